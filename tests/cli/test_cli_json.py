"""--json: one JSON object on standard output and nothing else, for every verb that has a result."""

import inspect
import io
import json
import sys

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import samples
from offrecord.cli.app import app


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with a table, a policy and a place for keys."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    chain = off.MarkovChain.binary(0.3, 0.5)
    rain = samples(chain, 1, 300, np.random.default_rng(1)).ravel()
    table = pl.DataFrame({"day": range(300), "rain": rain})
    table.with_columns(private=pl.col("day") == 150).write_csv("table.csv")
    problem = off.Problem(off.MarkovChain.binary(0.01, 0.8), 10, [1], 1.0)
    off.design(problem, off.BestWindow()).save("policy.json")
    return tmp_path


@pytest.fixture
def told(monkeypatch):
    """Has a text on standard input."""
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def only_json(result):
    code, out, _ = result
    assert code == 0
    assert out.count("\n") == 1
    return json.loads(out)


TABLE = ["table.csv", "--value", "rain", "--order", "day", "--single-chain"]


def test_every_verb_has_it():
    for verb in app.registered_commands:
        assert "as_json" in inspect.signature(verb.callback).parameters, verb.callback.__name__


def test_key(run, desk):
    made = only_json(run("key", "new", "--json"))
    file = desk / "data" / "offrecord" / "key.json"
    assert made == {"id": off.Key.load(file).id, "file": str(file)}
    assert only_json(run("key", "show-id", "--json")) == made
    assert run("key", "show-id")[1] == f"{made['id']}\n"


def test_answer(run, desk, told):
    question = ["answer", "--policy", "policy.json", "--key-file", "key.json", "--json"]
    told("1\n")
    withheld = only_json(run(*question, "--record", 1))
    assert withheld == {"record": 1, "released": False, "value": None}
    told("1\n")
    given = only_json(run(*question, "--record", 10))
    assert given == {"record": 10, "released": True, "value": 1}


def test_answer_without_it(run, desk, told):
    question = ["answer", "--policy", "policy.json", "--key-file", "key.json"]
    told("1\n")
    assert run(*question, "--record", 1)[:2] == (0, "⊥\n")
    told(" 1 \n")
    assert run(*question, "--record", 10)[:2] == (0, "1\n")


def test_fit_and_redact(run, desk):
    key = ["--key-file", "keys/key.json"]
    fitted = only_json(
        run("fit", *TABLE, "--private", "private", *key, "-o", "model.json", "--json")
    )
    assert 0 < fitted["records"] < 300  # none that may be redacted
    assert [one["epsilon"] for one in fitted["verdicts"]] == [0.5, 1.0, 2.0]
    options = ["--private", "private", "--epsilon", 1, "--dataset", "rain", "--mechanism", "window"]
    given = ["redact", *TABLE, *options, *key, "--model", "model.json"]
    expected = only_json(run(*given, "--dry-run", "--json"))
    assert (expected["private"], expected["rows"]) == (1, 300)
    assert "output" not in expected
    released = only_json(run(*given, "-o", "out.csv", "--json"))
    assert released["output"] == "out.csv"
    assert released["certificate"] == "out.csv.certificate.json"
    assert released["report"] == "out.csv.report.html"
    assert pl.read_csv("out.csv")["rain"].null_count() == released["redacted"]
