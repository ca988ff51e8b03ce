"""The explorer's API: what it answers is what the library computes, and only to its own page."""

import json

import numpy as np
import pytest

from offrecord.explorer.answers import drawn_values, inferred
from offrecord.explorer.app import LARGEST_BODY
from offrecord.mechanisms import MECHANISMS, design
from offrecord.models.chain import MarkovChain
from offrecord.models.file import Model
from offrecord.models.promise import KnownChains
from offrecord.theory.problem import Problem

THREE = MarkovChain([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]], labels=["a", "<i>", "c"])


@pytest.fixture
def asked(ask):
    """Asks for a state."""
    return lambda path="answer", **state: ask("POST", f"/api/{path}", state)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_numbers_are_those_of_the_design(asked, mechanism):
    found = asked(mechanism=mechanism, n=20, private="9").json
    problem = Problem(MarkovChain.binary(0.01, 0.8), 20, [9], 1.0)
    policy = design(problem, mechanism)
    assert found["utility"] == pytest.approx(policy.utility, abs=1e-12)
    assert found["leakage"] == pytest.approx(policy.leakage, abs=1e-12)
    assert found["within"]
    assert len(found["sample"]["records"]) == 20
    assert all(one["svg"].startswith("<svg") for one in (found["influence"], found["profile"]))


def test_a_model_file_and_several_runs(asked):
    model = Model(KnownChains([THREE])).to_dict()
    found = asked(model=model, n=40, private="5,20-21", about=2, mechanism="owner").json
    assert found["secrets"] == ["record 5", "records 20–21"]
    assert found["about"] == 2
    assert "<i>" not in found["influence"]["svg"]
    assert [one["value"] for one in found["sample"]["beliefs"]] == ["a", "<i>", "c"]


def test_curves_hold_the_utilities_of_designs_and_mark_the_chosen_one(asked):
    found = asked("curves", mechanisms=["window", "best-local"]).json
    one = next(row for row in found["rows"] if row["epsilon"] == 1 and row["mechanism"] == "window")
    problem = Problem(MarkovChain.binary(0.01, 0.8), 10, [1], 1.0)
    assert one["utility"] == pytest.approx(design(problem, "window").utility)
    assert found["picture"]["svg"].startswith("<svg")
    assert found["why"] == {}


@pytest.mark.parametrize("mechanism", ["best-local", "owner"])
def test_samples_give_away_no_more_than_the_leakage_and_on_average_nothing(mechanism):
    problem = Problem(MarkovChain.binary(0.1, 0.3), 30, [15], 1.0)
    policy = design(problem, mechanism)
    after = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        values = drawn_values(problem.members, problem.n, rng)
        found = inferred(policy, values, policy.apply(values.tolist(), rng))
        assert abs(found.ratio[0]) <= policy.leakage + 1e-9
        after.append(found.posterior[0, 1])
    assert np.mean(after) == pytest.approx(found.prior[0, 1], abs=4 * np.std(after) / 60**0.5)


WRONG = [
    ({"alpha": 0}, "alpha"),
    ({"alpha": "x"}, "alpha"),
    ({"n": 301}, "n"),
    ({"n": 2.5}, "n"),
    ({"private": "11"}, "private"),
    ({"private": "0"}, "private"),
    ({"private": "1;2"}, "private"),
    ({"epsilon": -1}, "epsilon"),
    ({"epsilon": 1e9}, "epsilon"),
    ({"mechanism": "best"}, "mechanism"),
    ({"model": {"a": 1}}, "model"),
    ({"model": {"format": "offrecord-model", "version": 1}}, "model"),
    ({"other": 1}, None),
]


@pytest.mark.parametrize(("state", "field"), WRONG)
def test_what_is_wrong_is_said_beside_its_field(asked, state, field):
    response = asked(**state)
    assert response.status == 422
    (wrong,) = response.json["errors"]
    assert wrong["field"] == field
    assert len(wrong["message"]) < 400
    assert "\n" not in wrong["message"]


def test_deep_and_broken_bodies(ask):
    deep = '{"model":' * 2000 + "1" + "}" * 2000
    model = json.dumps(Model(KnownChains([THREE])).to_dict() | {"origin": "@"})
    deeper = f'{{"model": {model}}}'.replace('"@"', "[" * 400 + "]" * 400)
    for body in (deep.encode(), deeper.encode(), b"{", b"[1]", b"null", b"\xed\xa0\x80"):
        response = ask("POST", "/api/answer", content=body)
        assert response.status in (400, 422), body[:20]
        assert response.json["errors"]


# ---- only this machine's own page


def test_other_origins_hosts_types_and_sizes_get_no_answer(ask):
    def status(**headers):
        return ask("POST", "/api/answer", {}, **headers).status

    assert status() == 200
    assert status(origin="http://127.0.0.1:8750") == 200
    assert status(origin="http://evil.example") == 403
    assert status(origin="null") == 403
    assert status(host="evil.example") == 421
    assert status(host="127.0.0.1.evil.example:8750") == 421
    assert status(content_type="text/plain") == 415
    part = b" " * (LARGEST_BODY // 2 + 1)  # whatever length it says that it has
    head = {"content_type": "application/json", "content_length": "2"}
    assert ask("POST", "/api/answer", chunks=[part, part], **head).status == 413


def test_the_page_comes_with_headers_that_let_nothing_else_in(ask):
    page = ask("GET", "/")
    assert page.status == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "://" not in page.text
    for name in ("page.css", "page.js", "icon.svg"):
        assert ask("GET", f"/static/{name}").status == 200
    assert ask("GET", "/static/../app.py").status == 404
    assert all(f'value="{name}"' in page.text for name in MECHANISMS)
