"""compare: mechanisms side by side."""

import csv
import json

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import samples


def test_compare_prints_writes_and_draws(run, tmp_path):
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
    code, out, _ = run(*arguments, "--csv", tmp_path / "t.csv", "--picture", tmp_path / "t.svg")
    assert code == 0
    assert "0.7134" in out
    assert "Theorem 2" in out
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert len(rows) == 2 * (1 + len(off.MECHANISMS))
    assert all(float(row["leakage"]) <= float(row["epsilon"]) for row in rows if row["leakage"])
    assert (tmp_path / "t.svg").read_text().startswith("<svg")
    code, _, err = run(*arguments, "--csv", tmp_path / "t.csv")
    assert code == 2
    assert "exists" in err
    code, out, _ = run(*arguments, "--json", "--mechanism", "window,3r-constant")
    content = json.loads(out)
    assert [r["mechanism"] for r in content["results"]][1:3] == ["window", "3r-constant"]


def test_compare_over_a_range_and_another_chain(run, tmp_path):
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
    code, out, _ = run(*arguments, "--json")
    results = json.loads(out)["results"]
    assert code == 0
    assert sorted({row["epsilon"] for row in results}) == [0.5, 1.0, 1.5]
    assert "quilt" not in {row["mechanism"] for row in results}
    code, _, err = run(*arguments, "--mechanism", "quilt")
    assert code == 2
    assert "quilt takes stationary chains" in err
    for wrong in ("0.5:1.5", "2:1:5", "a", "0:1:1", "nan", "0.1:inf:3"):
        assert run(*arguments[:-1], wrong)[0] == 2
    code, _, err = run(*arguments, "--picture", tmp_path / "x.gif")
    assert code == 2
    assert "picture must end in .svg, .png, .html" in err


# ---- of a table


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with a table of chains and a model of two values, and one of three."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    chain = off.MarkovChain.binary(0.1, 0.3)
    chain.save("model.json")
    days = pl.DataFrame({"who": np.repeat(["a", "b", "c"], 60), "day": [*range(60)] * 3})
    ill = samples(chain, 3, 60, np.random.default_rng(1)).ravel()
    private = (pl.col("who") == "b") & pl.col("day").is_in([20, 21, 40])
    table = days.with_columns(ill=ill, p=private)
    table.write_csv("table.csv")
    table.filter("p").select("who", "day").write_csv("list.csv")
    table.with_columns(ill=1 - pl.col("ill")).write_csv("other.csv")
    return tmp_path


COLUMNS = ["--value", "ill", "--order", "day", "--by", "who"]
TABLE = ["table.csv", *COLUMNS]


EACH = ["--private-list", "list.csv", "--model", "model.json", "--protect", "each"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--private", "p", "--model", "model.json"], "owner,best-local,window"),
        (EACH, "best-local,window"),
        (["--private", "p", "--fit", "--chain-order", 1], "owner,best-local,window"),
    ],
    ids=["model", "list", "fit"],
)
def test_a_table_gets_the_figures_of_dry_runs(run, desk, options, named):
    given = [*TABLE, *options]
    code, out, _ = run("compare", *given, "--epsilon", "0.5,2", "--mechanism", named, "--json")
    assert code == 0
    content = json.loads(out)
    assert (content["rows"], content["private"], content["touched"]) == (180, 3, 1)
    for row in content["results"]:
        pair = ["--epsilon", row["epsilon"], "--mechanism", row["mechanism"]]
        dry = ["redact", *given, *pair, "--dataset", "d", "--dry-run", "--json"]
        expected = json.loads(run(*dry)[1])
        assert (row["utility"], row["leakage"]) == (expected["released"], expected["leakage"])
        assert row["touched_released"] == expected["touched_released"] < row["utility"]
        assert row["why"] is None
    assert [(row["epsilon"], row["mechanism"]) for row in content["results"]] == [
        (epsilon, name) for epsilon in (0.5, 2.0) for name in named.split(",")
    ]


def test_a_table_is_not_looked_at_and_nothing_else_is_written(run, desk):
    before = {*desk.iterdir()}
    asked = [*COLUMNS, "--private", "p", "--model", "model.json", "--epsilon", "0.5,1"]
    asked += ["--mechanism", "window,3r-constant"]
    code, out, err = run(
        "compare", "table.csv", *asked, "--csv", "c.csv", "--picture", desk / "c.svg"
    )
    assert code == 0
    assert {*desk.iterdir()} - before == {desk / "c.csv", desk / "c.svg"}
    assert run("compare", "other.csv", *asked)[1:] == (out, err)
    rows = list(csv.DictReader((desk / "c.csv").read_text().splitlines()))
    shares = [f"{float(row['utility']):.4f}" for row in rows]
    assert [line.split()[1:] for line in out.splitlines()[2:]] == [shares[:2], shares[2:]]
    assert (desk / "c.svg").read_text().startswith("<svg")


def test_a_mechanism_that_does_not_serve_the_model_says_so_in_its_row(run, desk):
    off.MarkovChain([[0.9, 0.05, 0.05], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]).save("three.json")
    asked = [*TABLE, "--private", "p", "--model", "three.json", "--epsilon", 1]
    code, out, _ = run("compare", *asked, "--mechanism", "quilt,window", "--json")
    assert code == 0
    quilt, window = json.loads(out)["results"]
    assert (quilt["utility"], quilt["leakage"]) == (None, None)
    assert "quilt takes stationary chains" in quilt["why"]
    assert window["utility"] > 0
    out = run("compare", *asked, "--mechanism", "quilt,window")[1]
    assert out.splitlines()[2].split()[:2] == ["1", "–"]
    assert out.splitlines()[3].startswith("quilt: quilt takes stationary chains")
    code, _, err = run("compare", *asked, "--mechanism", "quilt")
    assert code == 2
    assert "quilt takes stationary chains" in err


def test_stopping_rules_for_each_record_by_itself_are_refused(run, desk):
    said = "stopping rules protect whole runs: protect must be 'run'"
    asked = [*TABLE, *EACH, "--epsilon", 1, "--json", "--mechanism"]
    code, out, _ = run("compare", *asked, "owner,window")
    assert code == 0
    owner, window = json.loads(out)["results"]
    assert (owner["utility"], owner["leakage"], owner["why"]) == (None, None, said)
    assert window["utility"] > 0
    refused = (2, "", f"offrecord: {said}\n")
    assert run("redact", *asked, "owner", "--dataset", "d", "--dry-run") == refused
    rules = ["--table", "--epsilon", 1, *EACH[2:], "--mechanism", "owner", "-o", "rules.json"]
    assert run("design", *rules) == refused
    assert not (desk / "rules.json").exists()


def test_a_table_is_read_as_redact_reads_it(run, desk):
    (desk / "one.csv").write_text("who,day\nb,21\n")
    (desk / "chains.csv").write_text("who\nc\n")
    for given in (
        [*TABLE, "--private-list", "one.csv"],
        [*TABLE, "--private", "p", "--private-list", "chains.csv"],
    ):
        asked = [*given, "--model", "model.json", "--epsilon", 1, "--mechanism", "window", "--json"]
        code, out, _ = run("compare", *asked)
        assert code == 0
        expected = json.loads(run("redact", *asked, "--dataset", "d", "--dry-run")[1])
        found = json.loads(out)
        assert found["results"][0]["utility"] == expected["released"]
        assert (found["rows"], found["private"]) == (expected["rows"], expected["private"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["table.csv", "--epsilon", 1], "a TABLE needs --value and --order"),
        ([*TABLE, "--epsilon", 1, "--n", 10], "--n is for chains without data"),
        ([*TABLE, "--epsilon", 1, "--alpha", 0.1], "--alpha is for chains without data"),
        ([*TABLE, "--epsilon", 1, "--private", "p"], "give either --model or --fit"),
        ([*TABLE, "--epsilon", 1, "--private", "q", "--model", "model.json"], "no column 'q'"),
        ([*TABLE, "--epsilon", 1, "--model", "model.json"], "--private"),
        (["--epsilon", 1, "--alpha", 0.1, "--beta", 0.1], "give a TABLE, or --n and --private"),
        (["--epsilon", 1, "--n", 9, "--private", 1, "--value", "ill"], "--value is for a TABLE"),
        (["--epsilon", 1, "--n", 9, "--private", 1, "--fit"], "--fit is for a TABLE"),
        ([*TABLE, "--epsilon", 1, "--csv", "table.csv", "--force"], "another file than the input"),
    ],
    ids=str,
)
def test_options_for_something_else_are_one_line(run, desk, arguments, said):
    code, out, err = run("compare", *arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err
