"""Files that are no table, or not a whole one."""

from pathlib import Path

import polars as pl
import pytest

from good_command import CUT, ROWS, with_bytes
from offrecord.tables.io import csv
from table_files import ENDINGS


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("zero.csv", b"", ["is empty"]),
        ("zero.parquet", b"", ["is empty"]),
        (
            "text.parquet",
            b"room,hour,state,hidden\na,1,secretcell,false\n",
            ["cannot be read as parquet", "another format"],
        ),
        (
            "text.arrow",
            b"room,hour,state,hidden\na,1,secretcell,false\n",
            ["cannot be read as ipc", "another format"],
        ),
        (
            "text.ndjson",
            b"room,hour,state,hidden\na,1,secretcell,false\n",
            ["cannot be read as ndjson", "another format"],
        ),
        (
            "wide.csv",
            b"room,hour,state,hidden\na,1,0,false,secretcell\n",
            ["1 row has more or fewer cells", "first row 1"],
        ),
        (
            "latin.csv",
            b"room,hour,state,hidden\n\xe9,1,0,secretcell\n",
            ["not in UTF-8", "--encoding latin-1 or cp1252"],
        ),
        ("other.ndjson", b'{"room": "a"}\n["secretcell"]\n', ["cannot be read as ndjson"]),
        (
            "cut.ndjson",
            b'{"room": "a", "hour": 1, "state": 1, "hidden": true}\n{"room": "secretcell',
            ["cannot be read as ndjson"],
        ),
        (
            "bare.csv",
            b"a,1,secretcell,false\na,2,secretcell,true\n",
            ["first line", "names of columns"],
        ),
        ("table.xlsx", b"PK\3\4", ["table.xlsx is a spreadsheet", "save it as CSV"]),
        ("table.ods", b"PK\3\4", ["table.ods is a spreadsheet", "save it as CSV"]),
        ("table", b"PK\3\4", ["table", ".csv, .parquet", "--format"]),
    ],
)
def test_files_that_are_no_table(desk, name, content, said):
    desk.fails(desk.redact(with_bytes(name, content)), name, *said, never=["secretcell"])


HEADER = b"room,hour,state,hidden\n"
GOOD = HEADER + b"a,1,0,true\na,2,1,false\n"
RAGGED = ["more or fewer cells than its header (4)", "need quotes"]


@pytest.mark.parametrize(
    ("content", "said"),
    {
        "cut in a cell": (GOOD + b"a,3,1,fal", CUT),
        "cut after a cell": (GOOD + b"a,3,1,false", CUT),
        "cut before a line end": (GOOD.replace(b"\n", b"\r\n")[:-1], CUT),
        "cut in quotes": (GOOD + b'a,3,1,"secretcell', CUT),
        "cut at a line end in quotes": (
            GOOD + b'a,3,1,"secretcell\n',
            ["does not end", "cut short"],
        ),
        "old line ends": (GOOD.replace(b"\n", b"\r"), CUT),
        "a cell too few": (
            GOOD + b"secretcell,3,0\na,4,1,false\nsecretcell\n",
            ["2 rows have", "first row 3", *RAGGED],
        ),
        "a cell too many": (
            GOOD + b"a,3,1,false,secretcell\n",
            ["1 row has", "first row 3", *RAGGED],
        ),
        "too many and too few": (
            GOOD + b"a,3,1,false,secretcell\na,4,1\n",
            ["2 rows have", "first row 3", *RAGGED],
        ),
        "an empty line": (GOOD + b"\na,4,1,false\n", ["1 row has", "first row 3", *RAGGED]),
        "an empty line at the end": (GOOD + b"\n", ["1 row has", "first row 3", *RAGGED]),
        "a comma without quotes": (
            GOOD + b"a,3,se,cret,false\n",
            ["1 row has", "first row 3", *RAGGED],
        ),
        "quotes after a blank": (
            GOOD + b'a,3,1, "fal,se"\n',
            ["1 row has", "first row 3", *RAGGED],
        ),
        "a quoted cell that goes on": (GOOD + b'a,3,1,"false"y\n', ["does not end"]),
        "a name twice": (
            b"room,hour,state,hidden,state\na,1,0,true,1\na,2,1,false,1\n",
            ["several columns 'state'"],
        ),
        "blanks in the header": (
            GOOD.replace(b"hour,", b" hour ,"),
            ["no column 'hour' but one called ' hour '", "remove"],
        ),
        "blanks all over": (
            GOOD.replace(b",", b" , ").replace(b"room", b" room"),
            ["no column", "remove the blanks"],
        ),
    }.values(),
)
@pytest.mark.parametrize("how", [{}, {"stream": True}])
def test_csv_that_is_not_whole(desk, content, said, how):
    name = with_bytes("bad.csv", content)
    desk.fails(desk.redact(name, **how), name, *said, never=["secretcell", "cret"])


@pytest.mark.parametrize(
    "content",
    {
        "plain": GOOD,
        "other line ends": GOOD.replace(b"\n", b"\r\n"),
        "byte order mark": b"\xef\xbb\xbf" + GOOD,
        "byte order mark and quotes": b"\xef\xbb\xbf" + GOOD.replace(b"room", b'"room"'),
        "quotes": b'room,hour,state,hidden,note\na,1,0,true,"a, ""b""\n\nc"\na,2,1,false,\n',
        "quotes within a cell": (
            b'room,hour,state,hidden,note\na,1,0,true,5" x 6" pipe\na,2,1,false,x\n'
        ),
        "empty lines before it": b"\n\r\n" + GOOD,
        "blanks around values": GOOD.replace(b",0,", b", 0 ,").replace(b",1,f", b",1\t,f"),
    }.values(),
)
def test_csv_that_is_whole(desk, content, monkeypatch):
    for block in (1 << 20, 5):
        monkeypatch.setattr(csv, "_BLOCK", block)
        asked = {"force": True, "mechanism": "window"}
        desk.works(*desk.redact(with_bytes("good.csv", content), **asked))
        desk.works(*desk.redact("good.csv", stream=True, **asked))
        assert Path("out.csv").read_bytes() == b"room,hour,state\na,1,\na,2,\n"


def test_one_column_of_csv(desk):
    """An empty line is a missing value there."""
    one = {
        "by": None,
        "single_chain": True,
        "order": "row",
        "private": None,
        "private_list": with_bytes("keys.csv", b"row\n2\n"),
    }
    desk.works(*desk.redact(with_bytes("one.csv", b"state\n0\n1\n\n1\n"), **one))
    one["force"] = True
    desk.fails(desk.redact(with_bytes("one.csv", b"state\n0\n1\n0"), **one), "one.csv", *CUT)
    desk.fails(
        desk.redact(with_bytes("one.csv", b"state\n0\n1,0\n"), **one), "one.csv", "first row 2"
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_blanks_around_values_are_none_of_theirs(desk, ending):
    desk.works(*desk.redact(output="plain.csv"))
    blank = desk.write(f"blank{ending}", state=["0", " 0", "1 ", "\t1", "0", "0", "1", "1\u00a0"])
    desk.works(*desk.redact(blank, output="trimmed.csv"))
    assert Path("plain.csv").read_bytes() == Path("trimmed.csv").read_bytes()


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_files_cut_short(desk, ending, kept):
    whole = Path(desk.write(f"whole{ending}")).read_bytes()
    name = with_bytes(f"cut{ending}", whole[: int(kept * len(whole))])
    desk.fails(desk.redact(name), name, "cannot be read", "cut short")


def test_files_that_are_not_there(desk):
    desk.fails(desk.redact("no.csv"), "no.csv", "does not exist")
    Path("folder.csv").mkdir()
    desk.fails(desk.redact("folder.csv"), "folder.csv", "is a folder without Parquet files")
    desk.fails(desk.redact("no*.parquet"), "no*.parquet", "names no file")


@pytest.mark.parametrize("ending", ENDINGS)
def test_more_rows_than_allowed(desk, ending):
    name = desk.write(f"long{ending}")
    desk.fails(desk.redact(name, limit="rows=7"), name, "rows", "rows=7")
    desk.fails(desk.fit(name, limit="rows=7"), name, "rows=7")
    desk.works(*desk.redact(name, limit="rows=8"))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_name_that_looks_like_a_pattern_is_a_name(desk, ending):
    desk.write(f"t1{ending}", state=[1] * ROWS)
    name = desk.write(f"t[1]{ending}", state=[0] * ROWS)
    desk.works(*desk.redact(name, private="hidden", epsilon=50))
    assert set(pl.read_csv("out.csv")["state"].drop_nulls()) == {0}
