"""The same data in every format of file."""

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

from hours import frame, text
from table_files import ENDINGS, read, write


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_in_and_out(run, ending):
    table = frame()
    run("redact", write(table, "first.parquet"), output="expected.parquet")
    expected = pl.read_parquet("expected.parquet")
    released = expected["state"].is_not_null()
    assert 0 < released.sum() < table.height
    source = write(table, f"table{ending}")
    for out in ENDINGS:
        run("redact", source, output=f"out{out}", force=True)
        assert text(read(f"out{out}")).equals(text(expected))
        certificate = json.loads(Path(f"out{out}.certificate.json").read_text())
        assert (
            certificate["output"]["sha256"]
            == hashlib.sha256(Path(f"out{out}").read_bytes()).hexdigest()
        )
        assert certificate["output"]["columns"] == ["room", "hour", "state"]
        assert certificate["output"]["rows"] == certificate["counts"]["rows"] == table.height


def test_format_by_name(run):
    table = frame()
    table.write_csv("table.dat")
    run("redact", "table.dat", format="csv", output="out")
    run("redact", write(table, "table.parquet"), output="out.csv")
    assert Path("out").read_bytes() == Path("out.csv").read_bytes()


def test_coins_decide_about_many_records(redact):
    """Else the tests in this file could not tell one draw from another."""
    summary = redact(frame()).summary
    assert (summary.mechanism, summary.regions["M"] >= 25) == ("owner", True)


def test_rows_leave_sorted_and_complete(run):
    table = frame()
    run("redact", write(table, "table.csv"), output="out.csv")
    released = pl.read_csv("out.csv")
    assert released.columns == ["room", "hour", "state"]
    expected = table.sort("room", "hour")
    assert released.drop("state").equals(expected.drop("state", "hidden"))
    kept = released["state"].is_not_null()
    assert released["state"].filter(kept).equals(expected["state"].filter(kept))
    assert not (kept & expected["hidden"]).any()


def test_the_same_command_gives_the_same_bytes(run):
    table = frame()
    run("redact", write(table, "table.parquet"), output="a.parquet")
    run("redact", write(table.reverse(), "reversed.parquet"), output="b.parquet")
    assert Path("a.parquet").read_bytes() == Path("b.parquet").read_bytes()
    one, other = (json.loads(Path(f"{name}.parquet.certificate.json").read_text()) for name in "ab")
    assert one == other
