"""No character of a name or value acts on the terminal that shows it."""

import json

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.errors import InputError, OffrecordWarning
from offrecord.text import aligned, plain

EVIL = "a\x1b[31m\nb\u202e\x9b2J"
SHOWN = r"a\x1b[31m\nb\u202e\x9b2J"


def table(labels=("no", "yes"), who="id"):
    """Rooms with names that act on terminals, one private record in one of them."""
    rng = np.random.default_rng(3)
    rows = [(f"{EVIL}{at // 200}", at % 200, labels[int(rng.random() < 0.4)]) for at in range(2000)]
    frame = pl.DataFrame(rows, schema=[who, "t", "v"], orient="row")
    return frame.with_columns(out=(pl.col("t") == 100) & (pl.col(who) == f"{EVIL}3"))


def is_plain(text):
    return all(line.isprintable() for line in text.split("\n"))


@pytest.fixture
def says(run, tmp_path, monkeypatch):
    """Runs a verb in a folder of its own: its exit code, after a look at what it says."""
    monkeypatch.chdir(tmp_path)

    def says(*arguments, code=0, quotes=True):
        found, out, err = run(*arguments)
        assert code is None or found == code, err
        assert is_plain(out), repr(out)
        assert is_plain(err), repr(err)
        assert all(line.startswith("offrecord: ") for line in err.splitlines()), err
        assert not quotes or SHOWN in out + err
        return out

    return says


def test_text_is_plain():
    assert plain(EVIL) == SHOWN
    assert plain("⊥ β ε 値") == "⊥ β ε 値"
    assert aligned([[EVIL, "x"], ["b", EVIL]]).count("\n") == 1
    assert is_plain(aligned([[EVIL, "x"], ["b", EVIL]]))


@pytest.mark.parametrize("kind", [InputError, OffrecordWarning])
def test_messages_are_one_line_in_python_too(kind):
    assert str(kind(f"room {EVIL} is wrong")) == f"room {SHOWN} is wrong"


def test_every_verb_of_a_release(says, tmp_path):
    name, model, released = (f"{EVIL}.{kind}" for kind in ("parquet", "json", "csv"))
    table().write_parquet(tmp_path / name)
    asked = ["--value", "v", "--order", "t", "--by", "id", "--step", "1", "--private", "out"]
    says("look", name)
    says("fit", name, *asked, "-o", model)
    options = ["--model", model, "--epsilon", "2", "--dataset", "d", "--publish-positions"]
    says("redact", name, *asked, *options, "-o", released)
    proof = f"{released}.certificate.json"
    says("verify", proof, released, quotes=False)
    says("attack", released, quotes=False)
    says("report", proof, released, "--force")
    says("ledger", "list", quotes=False)
    says("ledger", "show", "d", quotes=False)
    page = (tmp_path / f"{released}.report.html").read_text()
    assert is_plain(page)
    for verb in (["look", name], ["redact", name, *asked, *options, "--dry-run"]):
        json.loads(says(*verb, "--json", quotes=False))


def test_a_certificate_of_others(says, tmp_path):
    """Whoever sends a certificate chooses all of its words."""
    table().rename({"id": "who"}).write_parquet(tmp_path / "t.parquet")
    asked = ["--value", "v", "--order", "t", "--by", "who", "--step", "1", "--private", "out"]
    says("fit", "t.parquet", *asked, "-o", "m.json", quotes=False)
    says(
        "redact",
        "t.parquet",
        *asked,
        "--model",
        "m.json",
        "--epsilon",
        "2",
        "--dataset",
        "mine",
        "-o",
        "r.csv",
        "--no-report",
        quotes=False,
    )
    proof = tmp_path / "r.csv.certificate.json"
    text = proof.read_text()
    for word in ('"mine"', '"who"', '"v"', '"owner"', '"no"'):
        proof.write_text(text.replace(word, json.dumps(EVIL)))
        says("verify", str(proof), "r.csv", code=None, quotes=False)
        says("attack", "r.csv", code=None, quotes=False)
        says("report", str(proof), "r.csv", "--force", code=None, quotes=False)


@pytest.mark.parametrize(
    "words",
    [
        ["look", EVIL],
        ["verify", EVIL],
        ["ledger", EVIL],
        ["design", f"--{EVIL}"],
        ["compare", "--epsilon", EVIL],
        ["design", "--n", EVIL],
        [EVIL],
    ],
)
def test_words_of_the_command_line(says, words):
    says(*words, code=2, quotes=False)


def test_values_that_are_refused(says, tmp_path):
    table(labels=("x", EVIL)).write_parquet(tmp_path / "t.parquet")
    says("look", "t.parquet")
    asked = ["--value", "v", "--order", "t", "--by", "id", "--step", "1"]
    says("fit", "t.parquet", *asked, "-o", "m.json", code=2)


def test_policies_and_comparisons():
    chain = off.MarkovChain.binary(0.1, 0.3)
    problem = off.Problem(chain, 9, [5], 1.0)
    policy = off.design(problem, off.BestWindow())
    held = policy.to_dict() | {"mechanism": EVIL, "details": {EVIL: EVIL}}
    assert is_plain(str(off.LocalPolicy.from_dict(held)))
    assert is_plain(str(off.compare(problem, {EVIL: off.BestWindow()})))
