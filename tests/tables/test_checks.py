"""A check on the data is a plug: one class and one name, in memory and part by part."""

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.tables import checks
from offrecord.tables.checks.check import DataCheck, Finding
from offrecord.tables.engines import stream

CHAIN = off.MarkovChain([[0.8, 0.2], [0.4, 0.6]])
ASKED = {"value": "v", "order": "t", "by": "room", "private": "p", "model": CHAIN, "epsilon": 1.0}


class Leaving(DataCheck):
    """Says how many rows leave with a value; what it finds is of one kind."""

    def __init__(self, kind):
        self.kind = kind

    def before(self, plan):
        yield Finding("warning", f"{plan.survey.rows} rows are looked at")

    def observe(self, part):
        return None if part.gone is None else int(np.count_nonzero(~part.gone))

    def after(self, plan, observed):
        yield Finding(self.kind, f"{observed} rows leave")


@pytest.fixture
def frame(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "_PART", 100)
    rng = np.random.default_rng(0)
    rows = 12 * 50
    table = pl.DataFrame({"room": np.repeat(np.arange(12), 50), "t": np.tile(np.arange(50), 12)})
    values = rng.integers(0, 2, rows)
    return table.with_columns(v=values, p=np.arange(rows) % 300 == 20)


def plugged(monkeypatch, kind):
    monkeypatch.setattr(checks, "CHECKS", {**checks.CHECKS, "leaving": Leaving(kind)})


def test_a_check_observes_every_part_and_its_warning_is_in_the_summary(
    frame, tmp_path, monkeypatch
):
    plugged(monkeypatch, "warning")
    asked = ASKED | {"dataset": "d", "accept": "model", "key_file": tmp_path / "k" / "key.json"}
    release = off.redact(frame, **asked)
    leaving = release.frame["v"].count()
    frame.write_parquet(tmp_path / "t.parquet")
    streamed = off.redact_file(tmp_path / "t.parquet", tmp_path / "o.parquet", **asked)
    for made in (release, streamed):
        assert f"{leaving} rows leave" in made.summary.warnings
        assert "600 rows are looked at" in made.summary.warnings
    dry = off.redact(frame, **asked, dry_run=True)
    assert not any("rows leave" in one for one in dry.summary.warnings)


def test_a_refusal_stops_the_release_and_a_doubt_needs_to_be_accepted(frame, tmp_path, monkeypatch):
    asked = ASKED | {"dataset": "d", "key_file": tmp_path / "k" / "key.json"}
    plugged(monkeypatch, "refusal")
    with pytest.raises(off.InputError, match=r"^\d+ rows leave$"):
        off.redact(frame, **asked, accept="model")
    monkeypatch.undo()
    monkeypatch.setattr(checks, "CHECKS", {"leaving": Leaving("doubt")})
    with pytest.raises(off.InputError, match='rows leave, or add accept="model"'):
        off.redact(frame, **asked)
    release = off.redact(frame, **asked, accept="model")
    (said,) = release.certificate["evidence"]["accepted"]
    assert said.endswith("rows leave")


def test_a_secret_is_said_and_is_in_no_file(frame, tmp_path, monkeypatch):
    plugged(monkeypatch, "secret")
    asked = ASKED | {"dataset": "d", "accept": "model", "key_file": tmp_path / "k" / "key.json"}
    with pytest.warns(off.ChosenByValue, match="rows leave"):
        release = off.redact(frame, **asked)
    assert not any("rows leave" in one for one in release.summary.warnings)
    assert "rows leave" not in str(release.certificate)
