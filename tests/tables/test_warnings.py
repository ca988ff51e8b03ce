"""What a person should know is a Python warning of one category, once, and in the result too."""

import datetime as dt
import json
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import samples
from offrecord import cli

CHAIN = off.MarkovChain.binary(0.2, 0.3)
TRUST = "the model does not say what it was learned from"
ASKED = {"value": "v", "order": "t", "by": "who", "private": "p", "epsilon": 1.0, "dataset": "d"}


def table():
    rows = samples(CHAIN, 3, 40, np.random.default_rng(1))
    frame = pl.DataFrame({"who": np.repeat(["a", "b", "c"], 40), "t": [*range(40)] * 3})
    return frame.with_columns(v=rows.ravel(), p=(pl.col("who") == "b") & (pl.col("t") == 20))


@pytest.fixture
def options(tmp_path):
    return ASKED | {"model": CHAIN, "mechanism": "window", "key_file": tmp_path / "k" / "key.json"}


@pytest.fixture
def heard():
    """All warnings that Python has shown."""
    with warnings.catch_warnings(record=True) as all_of_them:
        warnings.simplefilter("always")
        yield all_of_them


def texts(heard):
    assert {one.category for one in heard} == {off.OffrecordWarning}
    assert {one.filename for one in heard} == {__file__}  # where it was asked for
    return [str(one.message) for one in heard]


def test_in_memory_each_comes_once(options, heard, tmp_path):
    release = off.redact(table(), **options)
    assert texts(heard) == list(release.summary.warnings)
    assert [one for one in release.summary.warnings if one.startswith(TRUST)]
    assert [one for one in release.summary.warnings if one.startswith("made a new key")]
    before = len(heard)
    release.write(tmp_path / "out.csv")
    assert len(heard) == before


def test_what_is_remembered_later_is_said_later(options, heard, tmp_path):
    release = off.redact(table(), remember=False, **options)
    assert heard == []
    release.write(tmp_path / "out.csv")
    assert len(texts(heard)) == len(set(texts(heard))) == 2


def test_of_a_file_each_comes_once(options, heard, tmp_path):
    source = tmp_path / "t.csv"
    table().with_columns(note=pl.lit("=1")).write_csv(source)
    done = off.redact_file(source, tmp_path / "out.csv", keep="note", **options)
    assert sorted(texts(heard)) == sorted(done.summary.warnings)
    assert [one for one in done.summary.warnings if "spreadsheet" in one]


def test_a_dry_run_warns(options, heard, tmp_path):
    release = off.redact(table(), dry_run=True, **options)
    assert texts(heard) == list(release.summary.warnings) != []


def test_a_fit_warns(heard):
    apart = table().with_columns(t=5 * pl.col("t") - 4 * (pl.col("t") % 13 == 1))
    fit = off.fit(apart, value="v", order="t", by="who", step=1)
    assert texts(heard) == list(fit.warnings) != []


def test_whoever_makes_them_errors_has_released_nothing(options):
    off.Key.new(options["key_file"])
    ledger = options["key_file"].with_name("key.ledger.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(off.OffrecordWarning, match=TRUST):
            off.redact(table(), **options)
    assert json.loads(ledger.read_text())["releases"] == {}


def test_a_release_that_the_ledger_refuses_is_one_line(options, heard):
    off.redact(table(), **options)
    heard.clear()
    corrected = table().with_columns(v=pl.when(t=0).then(1 - pl.col("v")).otherwise("v"))
    with pytest.raises(off.InputError, match="another set of released values"):
        off.redact(corrected, **options)
    assert heard == []


@pytest.mark.parametrize("how", ["--in-memory", "--stream", "--dry-run"])
def test_the_command_line_says_each_once(options, how, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table().write_csv("t.csv")
    CHAIN.save("m.json")
    asked = "redact t.csv --value v --order t --by who --private p --epsilon 1 --dataset d"
    asked += f" --model m.json --mechanism window --key-file k/key.json --json {how}"
    assert cli.main([*asked.split(), *([] if how == "--dry-run" else ["-o", "out.csv"])]) == 0
    said = capsys.readouterr()
    lines = [line.removeprefix("offrecord: warning: ") for line in said.err.splitlines()]
    assert lines == json.loads(said.out)["warnings"] != []
    assert len(set(lines)) == len(lines)
    assert Path("k").exists() == (how != "--dry-run")


def test_chosen_by_value_is_one_of_them():
    assert issubclass(off.ChosenByValue, off.OffrecordWarning)
    assert issubclass(off.OffrecordWarning, UserWarning)


@pytest.mark.parametrize("differs", [False, True])
def test_hours_that_differ_where_no_kernel_of_the_step_follows_them(differs):
    rng = np.random.default_rng(4)
    minutes = 5 * np.arange(12 * 24 * 20)
    day = (minutes // 60 % 24 >= 8) & differs
    values = np.zeros((4, len(minutes)), dtype=int)
    for t in range(1, len(minutes)):
        stays = rng.random(4) < (0.7 if day[t] else 0.95)
        values[:, t] = np.where(stays, values[:, t - 1], 1 - values[:, t - 1])
    begin = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
    times = [begin + dt.timedelta(minutes=int(one)) for one in minutes]
    frame = pl.DataFrame(
        {"bay": np.repeat(range(4), len(times)), "time": times * 4, "full": values.ravel()}
    )
    fitted = off.fit(frame, value="full", order="time", by="bay", step="5m", epsilons=[1.0])
    said = [one for one in fitted.warnings if "some hours of the day" in one]
    assert len(said) == differs
    if differs:  # the remedy, followed to the letter
        thin = eval(said[0].split("every 1h: ")[1], {"table": frame, "pl": pl})
        hourly = off.fit(thin, value="full", order="time", by="bay", step="1h", epsilons=[1.0])
        assert not [one for one in hourly.warnings if "some hours of the day" in one]
