"""design: what an opt-out costs, without data."""

import json

import numpy as np
import pytest

import offrecord as off

DESIGN = [
    "design",
    "--alpha",
    "0.01",
    "--beta",
    "0.8",
    "--n",
    "10",
    "--private",
    "1",
    "--epsilon",
    "1",
]


def test_design_json_is_the_contract(run):
    code, out, err = run(*DESIGN, "--mechanism", "3r-constant", "--json")
    content = json.loads(out)
    assert (code, err) == (0, "")
    assert content["mechanism"] == "3r-constant"
    assert (content["epsilon"], content["n"], content["private"]) == (1.0, 10, [1])
    assert content["leakage"] == pytest.approx(1.0, abs=1e-9)
    assert content["leakage"] <= 1.0
    assert content["utility"] == pytest.approx(0.7895, abs=5e-5)
    assert (content["first"], content["last"]) == (1, 10)
    assert content["regions"] == ["private", "M", "M", *["S"] * 7]
    assert len(content["redaction"]) == 10
    assert content["redaction"][1] == [pytest.approx(0.5469265, abs=1e-7), 1.0]


@pytest.mark.parametrize("mechanism", off.MECHANISMS)
def test_design_knows_every_mechanism_by_name(run, mechanism):
    code, out, _ = run(*DESIGN, "--mechanism", mechanism, "--json")
    assert code == 0
    assert json.loads(out)["mechanism"] == mechanism


def test_the_best_local_mechanism_is_the_default(run):
    code, out, _ = run(*DESIGN, "--json")
    content = json.loads(out)
    assert (code, content["mechanism"]) == (0, "best-local")
    assert content["utility"] == pytest.approx(0.7957, abs=5e-5)
    assert content["utility"] <= content["utility_bound"] <= content["utility"] + 1e-6


def test_design_for_people(run):
    code, out, _ = run(*DESIGN, "--mechanism", "3r-relaxed", "--split", "even")
    assert code == 0
    assert "3r-relaxed: releases 74.79% of 10 records" in out


def test_design_takes_a_model_file_and_saves_a_policy(run, tmp_path):
    chain = off.MarkovChain(
        [[0.9, 0.05, 0.05], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]], labels=["a", "b", "c"]
    )
    chain.save(tmp_path / "model.json")
    saved = tmp_path / "policy.json"
    arguments = [
        "design",
        "--model",
        tmp_path / "model.json",
        "--n",
        50,
        "--private",
        "10-12,30",
        "--epsilon",
        1,
        "-o",
        saved,
    ]
    assert run(*arguments)[0] == 0
    policy = off.Policy.load(saved)
    assert policy.problem.private == (10, 11, 12, 30)
    assert policy.leakage <= 1
    code, _, err = run(*arguments)
    assert code == 2
    assert "exists; add --force" in err
    assert run(*arguments, "--force")[0] == 0


def test_infinity_is_a_string_in_json():
    problem = off.Problem(off.MarkovChain.binary(0.1, 0.2), 3, [2], 1.0)
    everything_released = off.LocalPolicy(problem, np.zeros((3, 2)), "none")
    assert (
        json.loads(json.dumps(everything_released.summary(), allow_nan=False))["leakage"] == "inf"
    )


BAD = [
    (["--alpha", "0"], "alpha must be in (0, 1], got alpha=0.0"),
    (["--alpha", "nan"], "alpha must be in (0, 1], got alpha=nan"),
    (["--beta", "1.5"], "beta must be in (0, 1], got beta=1.5"),
    (["--beta", "x"], "'--beta': must be a number, got 'x'"),
    (["--epsilon", "-1"], "epsilon must be finite and at least 0, got epsilon=-1.0"),
    (["--epsilon", "inf"], "epsilon must be finite"),
    (["--epsilon", "nan"], "epsilon must be finite"),
    (["--epsilon", "one"], "'--epsilon': must be a number, got 'one'"),
    (["--n", "1"], "n must be from 2 to"),
    (["--n", "2.5"], "'--n': must be a whole number, got '2.5'"),
    (["--private", "0"], "private must be records from 1 to 10, got 0 (records count from 1)"),
    (["--private", "11"], "got 11"),
    (["--private", "3,3"], "got 3 twice"),
    (["--private", "a"], "--private must be records such as 3,7 or 10-12, got 'a'"),
    (["--private", "5-3"], "--private must be ranges"),
    (["--private", ""], "--private must be records such as"),
    (["--mechanism", "3r-constnt"], "did you mean 3r-constant?"),
    (["--mechanism", "window", "--split", "even"], "split is for the 3R mechanisms"),
    (
        ["--mechanism", "3r-convex", "--split", "2"],
        "split must be best, even or a number from 0 to 1, got 2.0",
    ),
    (["--protect", "all"], 'protect must be "run" or "each"'),
    (["--model", "nowhere.json"], "give either --model or --alpha and --beta"),
    (["--bogus"], "No such option: --bogus"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[" ".join(change) for change, _ in BAD])
def test_wrong_input_is_one_line_and_exit_2(run, tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*DESIGN, "-o", "policy.json", *change)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_missing_options_are_named(run):
    code, _, err = run("design", "--n", "10", "--private", "1", "--epsilon", "1")
    assert (code, err) == (2, "offrecord: give --alpha and --beta, or --model FILE\n")
    code, _, err = run("design", "--alpha", "0.1", "--beta", "0.2", "--n", "10", "--private", "1")
    assert code == 2
    assert "--epsilon" in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ('{"format": "offrecord-model", "version": 7}', "version must be 2"),
        ("", "is not JSON"),
    ],
)
def test_a_damaged_model_file_is_one_line_and_exit_2(run, tmp_path, content, message):
    path = tmp_path / "model.json"
    path.write_text(content)
    code, _, err = run("design", "--model", path, "--n", 5, "--private", 1, "--epsilon", 1)
    assert (code, err.count("\n")) == (2, 1)
    assert message in err


def test_stopping_rules_for_each_record_by_itself_are_refused(run, tmp_path):
    off.MarkovChain.binary(0.1, 0.3).save(tmp_path / "model.json")
    saved = tmp_path / "rules.json"
    rules = ["design", "--table", "--epsilon", 1, "--protect", "each", "--mechanism", "owner"]
    found = run(*rules, "--model", tmp_path / "model.json", "-o", saved)
    assert found == (2, "", "offrecord: owner protects whole runs: protect must be 'run'\n")
    assert not saved.exists()
