"""Lists of private records that are wrong."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

import offrecord as off
from explained import explained
from good_command import CUT, HOURS, MODEL, with_bytes


def test_private_lists_that_are_not_whole(desk):
    """The end of a list that was cut off would be opt-outs lost."""
    by_list = desk.redact(private=None, private_list="keys.csv")
    with_bytes("keys.csv", b"room,hour\na,2\nb,1")
    desk.fails(by_list, "keys.csv", *CUT)
    with_bytes("keys.csv", b"room,hour\na,2\nsecretcell\n")
    desk.fails(
        by_list,
        "keys.csv",
        "1 row has more or fewer cells than its header (2)",
        "first row 2",
        never=["secretcell"],
    )
    with_bytes("keys.csv", b"room,hour\na,2\nb ,1\n")
    desk.fails(by_list, "the private list", "'room'", "blanks around names", "1 row: remove")
    with_bytes("keys.csv", b"room,hour\na,2 \n")
    desk.fails(by_list, "the private list", "'hour'", "no whole number")
    with_bytes("keys.csv", b"room, hour\na,2\n")
    desk.fails(by_list, "the private list", "no column 'hour' but one called ' hour'")
    with_bytes("keys.csv", b"room,hour\r\na,2\r\n")
    desk.works(*by_list)


@pytest.mark.parametrize(
    ("keys", "changed", "said"),
    [
        (
            {"room": ["a", "a", "b"], "hour": [2, 9, 9]},
            {},
            ["names 2 records", "no opt-out may be lost", "--step", "room 'b', hour 9 (row 3)"],
        ),
        (
            {"room": ["a", "a"], "hour": [2, 9]},
            {"step": "1"},
            ["names 1 record that", "no opt-out may be lost: room 'a', hour 9 (row 2)"],
        ),
        (
            {"room": ["a", "z"], "hour": [2, 2]},
            {},
            ["names 1 record that", "no opt-out may be lost", "room 'z', hour 2 (row 2)"],
        ),
        ({"room": ["a", None], "hour": [2, 2]}, {}, ["'room'", "every row", "in 1 row", "(row 2)"]),
        (
            {"room": ["a", "a"], "hour": [2, None]},
            {},
            ["'hour'", "every row", "names whole chains"],
        ),
        ({"room": ["a"], "hour": [2.0]}, {}, ["'hour'", "Int64 in the table but Float64"]),
        ({"room": ["a"], "hour": [True]}, {}, ["'hour'", "Int64 in the table but Boolean"]),
        ({"room": ["a"], "hour": ["two"]}, {}, ["1 row whose", "'hour'", "no whole number"]),
        ({"room": ["a"], "hour": [datetime(2013, 1, 1)]}, {}, ["'hour'", "Int64"]),
        ({"room": [1.5], "hour": [2]}, {}, ["'room'", "String", "Float64"]),
        ({"room": ["a"], "time": [2]}, {}, ["private list", "'hour'"]),
        ({"room": ["a"], "hours": [2]}, {}, ["private list", "'hour'", "did you mean 'hours'?"]),
        (
            {"room": ["a"], "from": [2]},
            {},
            ["private list", "a column 'from' and no column 'to'", "an empty cell"],
        ),
        ({"room": ["a"], "to": [2]}, {}, ["a column 'to' and no column 'from'"]),
        (
            {"room": ["a"], "reason": ["ill"]},
            {},
            ["no column 'hour'; it has room, reason", "whole chains has the --by columns alone"],
        ),
        ({"hour": [2]}, {}, ["private list", "'room'"]),
        ({"room": ["a"], "hour": [2]}, {"order": "row"}, ["private list", "'row'"]),
        (
            {"room": ["a"], "row": [0]},
            {"order": "row"},
            ["names 1 record that", "no opt-out may be lost"],
        ),
        ({"room": [], "hour": []}, {}, ["no record is private", "--accept", "none"]),
    ],
    ids=str,
)
def test_lists(desk, keys, changed, said):
    keys = {
        name: pl.Series(cells, dtype=None if cells else pl.String) for name, cells in keys.items()
    }
    desk.write("keys.parquet", keys)
    desk.fails(desk.redact(private=None, private_list="keys.parquet", **changed), *said)


UTC_HOURS = [datetime(2013, 3, 31, hour, tzinfo=UTC) for hour in range(4)] * 2


@pytest.mark.parametrize(
    ("hours", "key", "said"),
    [
        (HOURS, datetime(2013, 3, 31, 1, tzinfo=UTC), ["time zone", "slip"]),
        (UTC_HOURS, datetime(2013, 3, 31, 1), ["time zone", "slip"]),
        (HOURS, "2013-03-31T01:00:00Z", ["time zone", "slip"]),
        (UTC_HOURS, "2013-03-31T01:00:00", ["time zone", "slip"]),
        (UTC_HOURS, "2013-03-31", ["'hour'"]),
        (UTC_HOURS, "2013-03-31T01:00:00+01:00", None),
        (UTC_HOURS, "2013-03-31T01:30:00Z", ["names 1 record that"]),
        (HOURS, 2, ["'hour'", "dates or times"]),
        (HOURS, "monday", ["'hour'", "dates or times"]),
        # a day is no hour: it would protect the record at midnight and lose the others
        (HOURS, date(2013, 3, 31), ["'hour'"]),
        (HOURS, "2013-03-31", ["'hour'"]),
    ],
    ids=str,
)
def test_lists_of_times(desk, hours, key, said):
    desk.write("times.parquet", hour=hours)
    desk.write("keys.parquet", {"room": ["a"], "hour": [key]})
    arguments = desk.redact("times.parquet", private=None, private_list="keys.parquet", step="1h")
    if said is None:
        desk.works(*arguments)
        return
    desk.fails(arguments, *said)


def test_lists_in_files_that_are_none(desk):
    given = {"private": None}
    desk.fails(desk.redact(**given, private_list="no.csv"), "no.csv", "does not exist")
    desk.fails(
        desk.redact(**given, private_list=with_bytes("zero.csv", b"")), "zero.csv", "is empty"
    )
    desk.fails(
        desk.redact(**given, private_list=with_bytes("keys.txt", b"room,hour\na,2\n")),
        "keys.txt",
        "must end in",
    )
    desk.fails(
        desk.redact(**given, private_list=desk.table, limit="rows=7"), "table.parquet", "rows=7"
    )
    mixed = desk.write(
        "mixed.csv", {"room": ["a", "a"], "hour": ["2013-03-31T01:00:00Z", "2013-03-31T02:00:00"]}
    )
    desk.fails(
        desk.redact(desk.write("times.parquet", hour=UTC_HOURS), **given, private_list=mixed),
        "with and without a time zone",
    )


def test_a_key_inside_a_gap_protects_the_gap(desk):
    columns = {"room": ["a"] * 8, "hour": [0, 1, 2, 3, 6, 7, 8, 9], "state": [0] * 8}
    desk.write("gap.parquet", columns)
    keys = desk.write("keys.csv", {"room": ["a"], "hour": [4]})
    arguments = desk.redact(
        "gap.parquet",
        private=None,
        private_list=keys,
        step="1",
        publish_positions=True,
        mechanism="best-local",
    )
    desk.works(*arguments)
    listed = pl.DataFrame({"room": ["a"], "hour": [4]})
    rule = explained(
        off.redact(
            pl.DataFrame(columns),
            **{"value": "state", "order": "hour", "by": "room", "step": 1, "private_list": listed},
            **{"model": MODEL, "epsilon": 1, "dataset": "gap", "mechanism": "best-local"},
            dry_run=True,
        )
    )
    assert "private" not in rule["region"]
    policy = off.design(off.Problem(MODEL, 80, [40], 1.0), off.BestLocal())  # room on both sides
    for row in rule.iter_rows():
        assert row[3:] == pytest.approx(policy.redaction[row[1] + 35], abs=1e-9)
    certificate = json.loads(Path("out.csv.certificate.json").read_text())
    assert certificate["private"]["positions"]["keys"] == [["a", 4]]
    desk.fails(
        desk.redact("gap.parquet", private=None, private_list=keys, output="other.csv"),
        "names 1 record that",
        "--step",
    )
