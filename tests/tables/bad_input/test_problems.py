"""Wrong rows are named by key, and counted over the whole table."""

from pathlib import Path

import polars as pl
import pytest

from good_command import TABLE
from offrecord.tables.engines import stream


def told(desk, table, *said, part=3, **options):
    """The line in which a table is refused, the same in memory and in small parts."""
    lines = []
    for how in ("in_memory", "stream"):
        given = {how: True, "output": "out.csv"} | options
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stream, "_PART", part)
            code, out, err = desk.run(*desk.redact(table, **given))
        assert (code, out, err.count("\n")) == (2, "", 1), err
        lines.append(err)
        assert not Path("out.csv").exists()
    assert lines[0] == lines[1]
    assert [text for text in said if text not in lines[0]] == [], lines[0]
    return lines[0]


def many_rooms(**columns):
    rooms = [name for name in "abcdefgh" for _ in range(4)]
    frame = pl.DataFrame({"room": rooms, "hour": [1, 2, 3, 4] * 8, "state": [0, 0, 1, 1] * 8})
    return frame.with_columns(**({"hidden": pl.lit(False)} | columns))


def test_ties(desk):
    """Every row that shares its key counts: of three that share one, three."""
    frame = many_rooms(hour=pl.Series([1, 2, 2, 2] + [1, 2, 3, 3] * 7))
    desk.write("t.csv", frame)
    told(
        desk,
        "t.csv",
        "has the same value in 17 rows",
        "room 'a', hour 2 (rows 2, 3, 4); room 'b', hour 3 (rows 7, 8)",
        "room 'e', hour 3 (rows 19, 20); …",
    )


def test_blanks_around_names(desk):
    """All rows of the chains that are named so."""
    named = pl.when(pl.col("room").is_in(["b", "g"]) & (pl.col("hour") > 1))
    desk.write("t.csv", many_rooms(room=named.then(pl.col("room") + " ").otherwise("room")))
    told(desk, "t.csv", "has blanks around the name of chains in column 'room', in 6 rows: remove")


def test_empty_cells(desk):
    frame = many_rooms()
    hour = pl.when(pl.col("hour") != 2).then("hour")
    desk.write("t.csv", frame.with_columns(hour=hour))
    told(desk, "t.csv", "'hour'", "must not be empty, but is in 8 rows: room 'a' (row 2)")
    room = pl.when(pl.col("hour") != 2).then("room")
    desk.write("t.csv", frame.with_columns(room=room))
    told(desk, "t.csv", "'room'", "in 8 rows: hour 2 (rows 2, 6, 10, …)")
    marks = pl.when(pl.int_range(pl.len()) != 30).then("hidden")
    desk.write("t.csv", frame.with_columns(hidden=marks))
    told(desk, "t.csv", "'hidden'", "in 1 row: room 'h', hour 3 (row 31)")


def test_cells_that_say_nothing_are_not_shown(desk):
    hour = [*map(str, [1, 2, 3, 4] * 8)]
    hour[5] = hour[30] = "secretcell"
    desk.write("t.csv", many_rooms(hour=pl.Series(hour)))
    line = told(desk, "t.csv", "in 2 rows: room 'b' (row 6); room 'h' (row 31)", part=100)
    hidden = ["false"] * 32
    hidden[7] = "secretcell"
    desk.write("t.csv", many_rooms(hidden=pl.Series(hidden)))
    line = told(desk, "t.csv", "'hidden'", "other text in 1 row: room 'b', hour 4 (row 8)")
    assert "secretcell" not in line


def test_rows_off_the_grid_and_on_the_same_step(desk):
    desk.write("t.csv", many_rooms(hour=pl.Series([0, 10, 23, 30] * 8)))
    told(desk, "t.csv", "8 rows lying over a quarter step", "room 'a', hour 23 (row 3)", step="10")
    desk.write("t.csv", many_rooms(hour=pl.Series([0, 10, 19, 21] * 8)))
    told(desk, "t.csv", "16 rows on the same step", "room 'a', hour 21 (row 4)", step="10")


def test_values_that_the_model_does_not_know(desk):
    """By key, and never by the value."""
    desk.write("t.csv", many_rooms(state=pl.Series([0, 0, 1, 7777] * 8)))
    given = {"private": None, "private_list": desk.write("k.csv", {"room": ["a"], "hour": [1]})}
    line = told(desk, "t.csv", "does not know in 8 rows: room 'a', hour 4 (row 4)", **given)
    assert "7777" not in line


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"room": ["a", "z", "b", "a"], "hour": [1, 1, 9, 1]},
            "names 2 records that the table does not have; no opt-out may be lost (records in gaps"
            " can be protected with --step): room 'z', hour 1 (row 2); room 'b', hour 9 (row 3)",
        ),
        (
            {"room": ["a", "b", "a"], "from": [1, 7, 5], "to": [2, 8, None]},
            "names 2 ranges that the table does not have; no opt-out may be lost (records in gaps"
            " can be protected with --step): room 'b', hour 7 to 8 (row 2); room 'a', hour 5 to …",
        ),
        (
            {"room": ["a", "z"]},
            "names 1 chain that the table does not have; no opt-out may be lost",
        ),
        (
            {"room": ["a", "b"], "from": [2, 3], "to": [1, 3]},
            "has 1 range whose 'from' is after its 'to': room 'a', hour 2 to 1 (row 1)",
        ),
        (
            {"room": ["a", None], "from": [2, 3], "to": [2, 3]},
            "must name a range in every row: 'room' is empty in 1 row: hour 3 to 3 (row 2)",
        ),
        (
            {"room": ["a", "b"], "hour": [None, 3]},
            "'hour' is empty in 1 row; a list of the --by columns alone names whole chains: room"
            " 'a' (row 1)",
        ),
        (
            {"room": ["a", "b"], "from": ["x", "3"], "to": ["3", "3"]},
            "has 1 row whose 'from' is no whole number: room 'a' (row 1)",
        ),
    ],
)
def test_opt_outs(desk, keys, said):
    desk.write("t.csv", many_rooms())
    told(desk, "t.csv", said, private_list=desk.write("k.csv", keys), private=None)


def test_names_stay_on_one_line(desk):
    names = ["x\ny\x1b[31m" + "z" * 100] * 2 + ["b"] * 2
    desk.write("t.parquet", {k: v[:4] for k, v in TABLE.items()} | {"room": names, "hour": [1] * 4})
    code, _, err = desk.run(*desk.redact("t.parquet"))
    assert (code, err.count("\n")) == (2, 1)
    assert r"room 'x\ny\x1b[31mz" in err
    assert len(err) < 400
