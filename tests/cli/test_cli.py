"""The command line as its users meet it: whole processes for what matters there, the rest in
process.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import offrecord as off
from offrecord import cli
from offrecord.paper import reproduce as paper

COMMAND = str(Path(sys.executable).with_name("offrecord"))
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


def run(capsys, *arguments):
    code = cli.main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_design_json_is_the_contract(capsys):
    code, out, err = run(capsys, *DESIGN, "--mechanism", "3r-constant", "--json")
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
def test_design_knows_every_mechanism_by_name(capsys, mechanism):
    code, out, _ = run(capsys, *DESIGN, "--mechanism", mechanism, "--json")
    assert code == 0
    assert json.loads(out)["mechanism"] == mechanism


def test_the_best_local_mechanism_is_the_default(capsys):
    code, out, _ = run(capsys, *DESIGN, "--json")
    content = json.loads(out)
    assert (code, content["mechanism"], content["leakage_is_exact"]) == (0, "best-local", True)
    assert content["utility"] == pytest.approx(0.7957, abs=5e-5)
    assert content["utility"] <= content["utility_bound"] <= content["utility"] + 1e-6


def test_design_for_people(capsys):
    code, out, _ = run(capsys, *DESIGN, "--mechanism", "3r-relaxed", "--split", "even")
    assert code == 0
    assert "3r-relaxed: releases 74.79% of 10 records" in out


def test_design_takes_a_model_file_and_saves_a_policy(capsys, tmp_path):
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
    assert run(capsys, *arguments)[0] == 0
    policy = off.Policy.load(saved)
    assert policy.problem.private == (10, 11, 12, 30)
    assert policy.leakage <= 1
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert "exists; add --force" in err
    assert run(capsys, *arguments, "--force")[0] == 0


def test_infinity_is_a_string_in_json():
    problem = off.Problem(off.MarkovChain.binary(0.1, 0.2), 3, [2], 1.0)
    everything_released = off.Policy(problem, off.Redaction.of(3, 2, []), "none")
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
def test_wrong_input_is_one_line_and_exit_2(capsys, tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *DESIGN, "-o", "policy.json", *change)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_missing_options_are_named(capsys):
    code, _, err = run(capsys, "design", "--n", "10", "--private", "1", "--epsilon", "1")
    assert (code, err) == (2, "offrecord: give --alpha and --beta, or --model FILE\n")
    code, _, err = run(
        capsys, "design", "--alpha", "0.1", "--beta", "0.2", "--n", "10", "--private", "1"
    )
    assert code == 2
    assert "--epsilon" in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ('{"format": "offrecord-model", "version": 7}', "version must be 1"),
        ("", "is not JSON"),
    ],
)
def test_a_damaged_model_file_is_one_line_and_exit_2(capsys, tmp_path, content, message):
    path = tmp_path / "model.json"
    path.write_text(content)
    code, _, err = run(capsys, "design", "--model", path, "--n", 5, "--private", 1, "--epsilon", 1)
    assert (code, err.count("\n")) == (2, 1)
    assert message in err


def test_compare_prints_writes_and_draws(capsys, tmp_path):
    arguments = [
        "compare",
        "--alpha",
        0.01,
        "--beta",
        0.8,
        "--n",
        10,
        "--private",
        1,
        "--epsilon",
        "0.5,1",
    ]
    code, out, _ = run(
        capsys, *arguments, "--csv", tmp_path / "t.csv", "--picture", tmp_path / "t.svg"
    )
    assert code == 0
    assert "0.7134" in out
    assert "Theorem 2" in out
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert len(rows) == 14
    assert all(float(row["leakage"]) <= float(row["epsilon"]) for row in rows if row["leakage"])
    assert (tmp_path / "t.svg").read_text().startswith("<svg")
    code, _, err = run(capsys, *arguments, "--csv", tmp_path / "t.csv")
    assert code == 2
    assert "exists" in err
    code, out, _ = run(capsys, *arguments, "--json", "--mechanism", "window,3r-constant")
    content = json.loads(out)
    assert [r["mechanism"] for r in content["results"]][1:3] == ["window", "3r-constant"]


def test_compare_over_a_range_and_another_chain(capsys, tmp_path):
    off.MarkovChain([[0.9, 0.05, 0.05], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]).save(tmp_path / "m.json")
    arguments = [
        "compare",
        "--model",
        tmp_path / "m.json",
        "--n",
        20,
        "--private",
        9,
        "--epsilon",
        "0.5:1.5:3",
    ]
    code, out, _ = run(capsys, *arguments, "--json")
    results = json.loads(out)["results"]
    assert code == 0
    assert sorted({row["epsilon"] for row in results}) == [0.5, 1.0, 1.5]
    assert "quilt" not in {row["mechanism"] for row in results}
    code, _, err = run(capsys, *arguments, "--mechanism", "quilt")
    assert code == 2
    assert "quilt takes stationary chains" in err
    for wrong in ("0.5:1.5", "2:1:5", "a", "0:1:1", "nan", "0.1:inf:3"):
        assert run(capsys, *arguments[:-1], wrong)[0] == 2
    code, _, err = run(capsys, *arguments, "--picture", tmp_path / "x.gif")
    assert code == 2
    assert "picture must end in .svg, .png, .html" in err


def test_outputs_that_cannot_be_are_refused_before_anything_is_written(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    compare = ["compare", *DESIGN[1:]]
    for arguments in (
        [*DESIGN, "-o", "a" * 300],
        [*compare, "--picture", "a" * 300 + ".svg"],
        [*compare, "--csv", "same.svg", "--picture", "same.svg"],
        ["reproduce", "-o", "a" * 300],
        [*DESIGN[:-4], "--epsilon", "1", "--private", "1-900000000", "--n", "1000000000"],
        ["design", "--model", "/dev/zero", "--n", "5", "--private", "1", "--epsilon", "1"],
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert list(tmp_path.iterdir()) == []


def test_reproduce_writes_the_figures_and_agrees(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(paper, "FIG2_EPSILONS", [0.5, 1.0])
    code, out, _ = run(capsys, "reproduce", "-o", tmp_path / "figures", "--json")
    content = json.loads(out)
    assert (code, content["failed"]) == (0, 0)
    assert {Path(f).name for f in content["figures"]} == {
        f"fig{i}.{k}" for i in (1, 2, 3) for k in ("svg", "png")
    }
    assert (tmp_path / "figures" / "fig2.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "figures" / "fig1.svg").read_text().startswith("<svg")
    code, _, err = run(capsys, "reproduce", "-o", tmp_path / "figures")
    assert code == 2
    assert "exists" in err


def test_reproduce_exits_1_if_a_number_disagrees(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(paper, "FIG2_EPSILONS", [0.5, 1.0])
    wrong = paper.Check("Fig. 2", "made up", 0.5, 0.6, 1e-3)
    monkeypatch.setattr(paper, "checks", lambda: [wrong])
    code, out, _ = run(capsys, "reproduce", "-o", tmp_path / "f")
    assert code == 1
    assert "DISAGREES" in out
    assert not paper.Check("", "", 0.5, np.nan, 1.0).agrees


def test_help_answers_without_loading_anything_heavy():
    """How long that takes is measured by `make bench`; what makes it slow is known."""
    program = (
        "import sys, offrecord.cli as c; c.main(['--help']); print([m for m in sys.modules if m in"
        " set(sys.argv[1:])])"
    )
    heavy = ["numpy", "scipy", "numba", "altair", "rich"]
    done = subprocess.run(
        [sys.executable, "-c", program, *heavy], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    text = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
    assert [text.index(verb) for verb in ("design", "compare", "reproduce")] == sorted(
        text.index(verb) for verb in ("design", "compare", "reproduce")
    )


def test_the_installed_command_fails_with_2_and_one_line():
    done = subprocess.run(
        [COMMAND, "design", "--n", "x"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "Traceback" not in done.stderr


def test_version(capsys):
    code, out, _ = run(capsys, "--version")
    assert code == 0
    assert out.startswith("offrecord ")
