"""Tables whose cells are wrong, and some that only look so."""

import re
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest

import offrecord as off
from explained import explained
from good_command import FIT, HOURS, MODEL, ROWS, TABLE
from table_files import ENDINGS, write

ZONED = [f"2013-03-31T0{hour}:00:00Z" for hour in range(4)]


@pytest.mark.parametrize(
    ("column", "cells", "changed", "said"),
    [
        # values; of chain a a local mechanism redacts the first three records whatever they are:
        # they may be anything
        (
            "state",
            [0, 0, 7777, 1] * 2,
            {"mechanism": "best-local"},
            ["'state'", "in 1 row: room 'b', hour 3 (row 7)"],
        ),
        (
            "state",
            [0, 0, 7777, 1] * 2,
            {},
            ["'state'", "room 'b', hour 3 (row 7)"],
        ),
        (
            "state",
            ["0", "zebra", "1", "1"] * 2,
            {},
            ["'state'", "in 1 row: room 'b', hour 2 (row 6)"],
        ),
        ("state", [True, False] * 4, {}, ["'state'", "Boolean", "whole numbers"]),
        (
            "state",
            [0, 1] * 4,
            {"model": "texts.json"},
            ["'state'", "Int64", "the model's values are text"],
        ),
        ("state", [0.5, float("nan")] * 4, FIT, ["'state'", "NaN"]),
        ("state", [[0], [1]] * 4, {}, ["'state'", "List"]),
        ("state", [timedelta(1), timedelta(2)] * 4, {}, ["'state'", "truth values", "Duration"]),
        ("state", [0] * 8, FIT, ["'state'", "2 to 64 distinct", "got 1"]),
        ("state", [None] * 8, FIT, ["'state'", "text, numbers or truth values"]),
        (
            "state",
            pl.Series([None] * 8, dtype=pl.Int64),
            FIT,
            ["'state'", "2 to 64 distinct", "got 0"],
        ),
        ("state", ["wet", ""] * 4, FIT, ["empty", "rename"]),
        ("state", ["wet", "  "] * 4, FIT, ["empty", "rename"]),
        (
            "state",
            ["0", "1", "NA", "1"] * 2,
            FIT,
            ["'state'", "holds numbers, but in 1 cells NA", "empty them"],
        ),
        (
            "state",
            ["0.5", "1", "nan", "-"] * 2,
            FIT,
            ["'state'", "holds numbers, but in 2 cells -, nan", "empty them"],
        ),
        (
            "state",
            ["True", "false", "N/A", "?"] * 2,
            FIT,
            ["holds true and false, but in 2 cells ?, N/A", "empty them"],
        ),
        (
            "state",
            ["0", "1"] * 4,
            {"model": "blank.json"},
            ["the model's values", "blanks around them"],
        ),
        ("state", [0, 1] * 4, {"model": "empty.json"}, ["empty", "rename"]),
        (
            "state",
            [0, 1] * 4,
            {"model": "mixed.json"},
            ["all text, all numbers, or true and false"],
        ),
        ("state", [0, 1] * 4, {"model": "many.json"}, ["2 to 64 values", "got 65"]),
        ("state", [0, 1, 1, 0] * 2, {"model": "never.json"}, ["1 transition", "impossible"]),
        (
            "state",
            pl.Series([2**64 - 1, 1] * 4, dtype=pl.UInt64),
            {"model": "below.json"},
            ["'state'", "4 rows", "row 1"],
        ),
        ("state", pl.Series([2**100, 1] * 4, dtype=pl.Int128), {}, ["'state'"]),
        ("state", [0, 1] * 4, {"model": "huge.json"}, ["64 bits"]),
        # order
        (
            "hour",
            [1, 2, 2, 2] * 2,
            {},
            [
                "'hour'",
                "in 6 rows",
                "room 'a', hour 2 (rows 2, 3, 4); room 'b', hour 2 (rows 6, 7, 8)",
            ],
        ),
        (
            "hour",
            [1, 2, None, 4] * 2,
            {},
            ["'hour'", "must not be empty", "in 2 rows: room 'a' (row 3); room 'b' (row 7)"],
        ),
        (
            "hour",
            [1.0, 2.0, 3.0, 4.0] * 2,
            {},
            ["'hour'", "Float64", "whole numbers, dates or times"],
        ),
        (
            "hour",
            ["one", "two", "three", "four"] * 2,
            {},
            ["'hour'", "whole numbers, dates or times", "ISO 8601"],
        ),
        (
            "hour",
            ["1", "2", "3", "4.5"] * 2,
            {},
            ["'hour'", "in 2 rows", "so that they are whole: room 'a' (row 4); room 'b' (row 8)"],
        ),
        (
            "hour",
            [*ZONED[:3], "2013-03-31T03:00:00"] * 2,
            {},
            ["'hour'", "with and without a time zone"],
        ),
        (
            "hour",
            ["03/01/2013", "04/01/2013", "05/01/2013", "01/02/2013"] * 2,
            {},
            ["'hour'", "ISO 8601"],
        ),
        (
            "hour",
            ["03-01-2013", "04-01-2013", "05-01-2013", "01-02-2013"] * 2,
            {},
            ["'hour'", "ISO 8601"],
        ),
        ("hour", [True, False] * 4, {}, ["'hour'", "Boolean"]),
        ("hour", HOURS, {"step": "1"}, ["--step 1", "a number", "'hour' holds times"]),
        (
            "hour",
            HOURS,
            {"step": "40m"},
            ["--step 40m", "'hour'", "4 rows lying over a quarter step", "01:00:00 (row 2)"],
        ),
        ("hour", HOURS, {"step": "1d"}, ["--step 1d", "'hour'", "8 rows", "02:00:00 (row 3)"]),
        ("hour", [date(3000, 1, day) for day in range(1, 5)] * 2, {}, ["'hour'", "1678 to 2261"]),
        (
            "hour",
            pl.Series([2**63 + i for i in range(4)] * 2, dtype=pl.UInt64),
            {},
            ["'hour'", "below 2^63"],
        ),
        ("hour", [-(2**62), 1, 2, 2**62] * 2, {"step": "1"}, ["--step 1", "'hour'", "steps"]),
        # chains
        (
            "room",
            ["a"] * 4 + ["b"] * 3 + [None],
            {},
            ["'room'", "must not be empty", "in 1 row: hour 4 (row 8)"],
        ),
        ("room", [1.5] * 4 + [2.5] * 4, {}, ["'room'", "Float64"]),
        ("room", ["=a"] * 4 + ["b"] * 4, {}, ["'room'", "4 cells", "spreadsheet", "rename"]),
        (
            "room",
            ["a"] * 3 + ["a ", *["b"] * 4],
            {},
            ["'room'", "blanks around the name", "in 1 row: remove", "'a ', hour 4 (row 4)"],
        ),
        (
            "room",
            ["7"] * 4 + ["\u00a07"] * 4,
            {},
            ["'room'", "blanks around the name", "in 4 rows: remove", "(row 5)"],
        ),
        # the private column
        (
            "hidden",
            [True, None] * 4,
            {},
            ["'hidden'", "must not be empty", "4 rows: room 'a', hour 2 (row 2)"],
        ),
        ("hidden", [0.0, 1.0] * 4, {}, ["'hidden'", "true and false", "Float64"]),
        ("hidden", [0, 2] * 4, {}, ["'hidden'", "true and false, or 1 and 0", "4 rows"]),
        ("hidden", ["yes", "no"] * 4, {}, ["'hidden'", "true and false, or 1 and 0"]),
        ("hidden", ["true ", "false"] * 4, {}, ["'hidden'", "blanks around cells", "4 rows"]),
        (
            "hour",
            ["1", " 2", "3", "4"] * 2,
            {},
            ["'hour'", "blanks around cells: room 'a' (row 2)", "2 rows"],
        ),
        ("hidden", [False] * 8, {}, ["no record is private", "--accept", "none"]),
        (
            "hidden",
            [True, *[False] * 3] * 2,
            FIT,
            ["every chain holds a private record", "--model"],
        ),
    ],
)
def test_tables(desk, column, cells, changed, said):
    models = {
        "texts": ["0", "1"],
        "empty": ["", "wet"],
        "mixed": ["0", 1],
        "below": [-1, 1],
        "many": list(range(65)),
    }
    models["blank"] = ["0", "1 "]
    models["huge"] = [0, 10**400]
    for name, labels in models.items():
        kernel = [[1 / len(labels)] * len(labels)] * len(labels)
        off.MarkovChain(kernel, labels=labels).save(f"{name}.json")
    off.MarkovChain([[0.5, 0.5], [1.0, 0.0]]).save("never.json")
    desk.write("bad.parquet", **{column: cells})
    shown = ["7777", "zebra", "three", "03/01", "03-01-", "4.5"]
    desk.fails(desk.redact("bad.parquet", **changed), *said, never=shown)


def test_an_unknown_value_is_named_by_its_row_in_the_file(desk):
    pl.DataFrame(TABLE | {"state": [0, 0, 1, 1, 0, 0, 1, 9876]}).reverse().write_csv("bad.csv")
    desk.fails(desk.redact("bad.csv"), "'state'", "1 row", "(row 1)", never=["9876"])


@pytest.mark.parametrize("private", [{7}, {0, 7}, set(range(8))], ids=str)
def test_more_steps_than_can_be_counted(desk, private):
    """Many chains times very many steps: refused, or right; never a chain without protection."""
    hours = [0, 1, 2, 3, 4, 5, 6, 2 * 10**18]
    rows = {"room": [i for i in range(8) for _ in hours], "hour": hours * 8, "state": [0] * 64}
    hidden = [room in private and hour == 3 for room in range(8) for hour in hours]
    table = desk.write("far.parquet", rows | {"hidden": hidden})
    code, _, err = desk.run(*desk.redact(table, step="1"))
    if code == 0:
        release = off.redact(
            pl.DataFrame(rows | {"hidden": hidden}),
            **{"value": "state", "order": "hour", "by": "room", "step": 1, "private": "hidden"},
            **{"model": MODEL, "epsilon": 1, "dataset": "far", "dry_run": True},
        )
        rule = (
            explained(release)
            .filter(pl.col("room").is_in(private))
            .partition_by("room", include_key=False)
        )
        assert all(chain["region"].to_list()[2:5] == ["L", "private", "L"] for chain in rule)
        assert pl.read_csv("out.csv")["state"].filter(pl.Series(hidden)).null_count() == len(
            private
        )
    else:
        assert "internal error" not in err
        assert "--step 1" in err


def test_65_values_are_too_many(desk):
    cells = list(range(65))
    desk.write(
        "many.parquet", {"room": ["a"] * 65, "hour": cells, "state": cells, "hidden": [False] * 65}
    )
    desk.fails(
        desk.redact("many.parquet", **FIT, accept="none"), "'state'", "2 to 64 distinct", "got 65"
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_empty_table(desk, ending):
    write(pl.DataFrame(TABLE).clear(), f"empty{ending}")
    said = "is empty" if ".ndjson" in ending else "no rows"  # without rows it has no bytes
    desk.fails(desk.redact(f"empty{ending}"), said)
    desk.fails(desk.fit(f"empty{ending}"), said)


def test_all_private_is_legal(desk):
    table = desk.write("all.parquet", hidden=[True] * ROWS)
    desk.fails(desk.redact(table), "nothing is left to release", "--keep-rows")
    out = desk.works(*desk.redact(table, keep_rows=True))
    assert re.search("released +0.00% of 8 records", out)
    assert pl.read_csv("out.csv")["state"].null_count() == ROWS


def test_no_private_record_if_that_is_right(desk):
    desk.works(*desk.redact(desk.write("none.parquet", hidden=[False] * ROWS), accept="none"))
    assert pl.read_csv("out.csv")["state"].to_list() == TABLE["state"]


def test_kept_columns_that_csv_cannot_hold(desk):
    desk.write("nested.parquet", notes=[[1], [2]] * 4)
    desk.fails(desk.redact("nested.parquet", keep="notes"), "'notes'", "another format")
    assert not Path("out.csv").exists()
