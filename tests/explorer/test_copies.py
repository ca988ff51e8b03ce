"""What is copied gives the numbers that the page shows."""

import contextlib
import io
import json
import shlex

import pytest

import offrecord as off


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"alpha": 0.125, "beta": 1 / 3, "n": 25, "private": "3, 10-12", "epsilon": 0.7},
        {"mechanism": "owner", "epsilon": 2},
        {"mechanism": "3r-constant", "n": 40, "private": "20", "epsilon": 1e-3},
        {"model": True, "n": 12, "private": "5", "mechanism": "window"},
    ],
)
def test_command_and_python_say_the_same(ask, run, asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if asked.get("model"):
        chain = off.MarkovChain([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]])
        chain.save("model.json")
        asked = asked | {"model": chain.to_dict()}
    copies = ask("POST", "/api/regions", asked).json["copies"]
    policy = ask("POST", "/api/policy", asked).json
    program, *words = shlex.split(copies["design"])
    code, out, err = run(*words, "--json")
    assert (program, code, err) == ("offrecord", 0, "")
    printed = json.loads(out)
    names = ("utility", "leakage", "worst_output", "mechanism", "epsilon")
    assert {name: printed[name] for name in names} == {name: policy[name] for name in names}
    scope = {}
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        exec(compile(copies["python"], "copied", "exec"), scope)
    assert scope["policy"].utility == policy["utility"]
    assert scope["policy"].leakage == policy["leakage"]
    assert shown.getvalue().startswith(policy["mechanism"])


def test_the_command_for_all_mechanisms_draws_the_pages_curve(ask, run):
    regions = ask("POST", "/api/regions", {"epsilon": 4}).json
    program, *words = shlex.split(regions["copies"]["compare"])
    code, out, _ = run(*words, "--mechanism", "window", "--json")
    assert (program, code) == ("offrecord", 0)
    rows = [one for one in json.loads(out)["results"] if one["mechanism"] == "window"]
    epsilons = sorted(epsilon for batch in regions["budgets"] for epsilon in batch)
    assert [round(one["epsilon"], 9) for one in rows] == [round(one, 9) for one in epsilons]
    assert max(epsilons) >= 4
    points = []
    for batch in regions["budgets"]:
        asked = {"epsilon": 4, "mechanism": "window", "epsilons": batch}
        points += ask("POST", "/api/curve", asked).json["points"]
    utility = {round(one["epsilon"], 9): one["utility"] for one in points}
    assert utility == {round(one["epsilon"], 9): one["utility"] for one in rows}
