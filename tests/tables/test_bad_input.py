"""Wrong input to fit, redact and key: one line that says what to do, exit code 2, and not a byte
written.
"""

import io
import json
import os
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

import offrecord as off
from offrecord import cli
from offrecord.tables import lines

ROWS = 8
TABLE = {
    "room": ["a"] * 4 + ["b"] * 4,
    "hour": [1, 2, 3, 4] * 2,
    "state": [0, 0, 1, 1] * 2,
    "hidden": [False, True, False, False, False, False, False, False],
}
MODEL = off.MarkovChain([[0.9, 0.1], [0.2, 0.8]])
WRITERS = {
    ".csv": pl.DataFrame.write_csv,
    ".parquet": pl.DataFrame.write_parquet,
    ".arrow": pl.DataFrame.write_ipc,
    ".ndjson": pl.DataFrame.write_ndjson,
}
REDACT = {
    "value": "state",
    "order": "hour",
    "by": "room",
    "private": "hidden",
    "model": "model.json",
    "epsilon": 1,
    "dataset": "rooms",
    "output": "out.csv",
}
ASIDE = ("offrecord: warning: ", "offrecord: note: ")
FIT_OPTIONS = {"value": "state", "order": "hour", "by": "room", "output": "new.json"}


def _arguments(options):
    given = [
        ("--" + name.replace("_", "-"), value)
        for name, value in options.items()
        if value is not None
    ]
    return [part for name, value in given for part in ((name,) if value is True else (name, value))]


class Desk:
    """A folder with a table and a model, and a command line whose every trace is looked at."""

    def __init__(self, folder, capsys):
        self.folder, self.capsys = folder, capsys
        self.key = folder / "share" / "offrecord" / "key.json"
        MODEL.save("model.json")
        self.table = self.write("table.parquet")

    def write(self, name, columns=None, **changed):
        """A table file; the standard table with some columns changed unless columns are given."""
        frame = pl.DataFrame(TABLE | changed if columns is None else columns)
        WRITERS[Path(name).suffix](frame, name)
        return name

    def run(self, *arguments):
        code = cli.main(list(map(str, arguments)))
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err

    def redact(self, table=None, **changed):
        """The arguments of a good redact, with some changed; None leaves one out, True is
        a flag.
        """
        return ["redact", table or self.table, *_arguments(REDACT | changed)]

    def fit(self, table=None, **changed):
        """The arguments of a good fit, with some changed."""
        return ["fit", table or self.table, *_arguments(FIT_OPTIONS | changed)]

    def works(self, *arguments):
        code, out, err = self.run(*arguments)
        assert (code, all(line.startswith(ASIDE) for line in err.splitlines())) == (0, True), err
        return out

    def fails(self, arguments, *said, never=()):
        """Assert that it is refused in one line which holds all of `said`, and that every file
        stays as it was.
        """
        before = self.files()
        code, out, err = self.run(*arguments)
        lines = [line for line in err.splitlines() if not line.startswith(ASIDE)]
        assert (code, out, len(lines)) == (2, "", 1), err
        assert lines[0].startswith("offrecord: ")
        assert "internal error" not in err
        assert "Traceback" not in err
        assert [text for text in said if text not in lines[0]] == [], lines[0]
        assert [text for text in never if text in err] == [], err
        assert self.files() == before

    def files(self):
        """What every file holds; locks apart, which hold nothing, and a key under which nothing has
        left.
        """
        ledger = self.key.with_name("key.ledger.json")
        unused = ledger.exists() and '"releases": {}' in ledger.read_text()
        apart = {self.key, ledger, *self.key.parents} if unused else set()
        names = [
            name for name in self.folder.rglob("*") if name.suffix != ".lock" and name not in apart
        ]
        return {str(name): name.read_bytes() if name.is_file() else None for name in names}


@pytest.fixture
def desk(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, capsys)


def test_the_good_command_is_good(desk):
    desk.works(*desk.redact())
    assert pl.read_csv("out.csv").columns == ["room", "hour", "state"]
    assert desk.key.stat().st_mode & 0o777 == 0o600


# ---- options


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"value": "stat"}, ["'stat'", "did you mean 'state'?"]),
        ({"order": "hours"}, ["'hours'", "did you mean 'hour'?"]),
        ({"by": "rooms"}, ["'rooms'", "did you mean 'room'?"]),
        ({"by": "room,floor"}, ["'floor'", "it has room, hour"]),
        ({"by": "qqqq"}, ["'qqqq'", "it has room, hour, state, hidden"]),
        ({"private": "hiden"}, ["'hiden'", "did you mean 'hidden'?"]),
        ({"keep": "hidde"}, ["'hidde'", "did you mean 'hidden'?"]),
        ({"by": ""}, ["column ''"]),
        ({"value": "hour"}, ["'hour'", "twice"]),
        ({"keep": "state"}, ["'state'", "twice"]),
        ({"keep": "hidden"}, ["private column 'hidden'", "cannot be released"]),
        ({"private": "state"}, ["private column 'state'", "cannot be released"]),
        ({"by": None}, ["single"]),
        ({"single_chain": True}, ["by", "single"]),
        ({"private": None}, ["private", "list"]),
        ({"private_list": "table.parquet"}, ["private", "list"]),
        ({"model": None}, ["--model", "--fit"]),
        ({"fit": True}, ["--model", "--fit"]),
        ({"epsilon": None}, ["--epsilon"]),
        ({"epsilon": -1}, ["epsilon", "at least 0", "-1"]),
        ({"epsilon": "nan"}, ["epsilon", "finite", "nan"]),
        ({"epsilon": "inf"}, ["epsilon", "finite", "inf"]),
        ({"epsilon": "one"}, ["--epsilon", "number", "'one'"]),
        ({"dataset": None}, ["--dataset"]),
        ({"dataset": ""}, ["dataset", "1 to 200 printable characters"]),
        ({"dataset": " "}, ["dataset", "1 to 200 printable characters"]),
        ({"dataset": "a\nb"}, ["dataset", "printable"]),
        ({"value": None}, ["--value"]),
        ({"order": None}, ["--order"]),
        ({"output": None}, ["--output", "--dry-run"]),
        ({"mechanism": "best_local"}, ["mechanism", "did you mean best-local?"]),
        ({"protect": "all"}, ["protect", "each", "'all'"]),
        ({"step": "1h"}, ["--step 1h", "a time", "'hour' holds whole numbers"]),
        ({"step": "2"}, ["--step 2", "does not fit column 'hour'", "4 rows"]),
        ({"step": "9"}, ["--step 9", "'hour'"]),
        ({"step": "0"}, ["step", "at least 1", "'0'"]),
        ({"step": "-1"}, ["step", "at least 1", "'-1'"]),
        ({"step": "1.5"}, ["step", "whole number", "'1.5'"]),
        ({"step": "1q"}, ["step", "1h", "units", "'1q'"]),
        ({"step": "1", "order": "row"}, ["--step", "--order row"]),
        ({"format": "xlsx"}, ["--format", "csv, parquet, ipc, ndjson", "'xlsx'"]),
        ({"max_rows": "7"}, ["table.parquet", "8 rows", "--max-rows 7"]),
        ({"max_rows": "7.5"}, ["--max-rows", "whole number", "'7.5'"]),
        ({"colour": "red"}, ["--colour"]),
        ({"model": "no.json"}, ["no.json", "does not exist"]),
        ({"model": "table.parquet"}, ["table.parquet", "not JSON"]),
        ({"model": None, "fit": True, "chain_order": 3}, ["order", "1 or 2", "3"]),
        (
            {"model": None, "fit": True, "chain_order": "one"},
            ["--chain-order", "whole number", "'one'"],
        ),
        ({"model": None, "fit": True, "phase": "hour"}, ["kernel for each hour", "times"]),
        (
            {"model": None, "fit": True, "phase": "minute"},
            ["phase", "hour, weekday, month", "'minute'"],
        ),
        ({"phase": "hour"}, ["--phase", "--fit"]),
        ({"chain_order": 2}, ["--chain-order", "--fit"]),
    ],
    ids=str,
)
def test_options(desk, changed, said):
    desk.fails(desk.redact(**changed), *said)


# ---- what is in the table

HOURS = [datetime(2013, 3, 31, hour) for hour in range(4)] * 2
ZONED = [f"2013-03-31T0{hour}:00:00Z" for hour in range(4)]
FIT = {"model": None, "fit": True}


@pytest.mark.parametrize(
    ("column", "cells", "changed", "said"),
    [
        # values; of chain a the first three records are redacted whatever they are, and may be
        # anything
        ("state", [0, 0, 7777, 1] * 2, {}, ["'state'", "1 rows", "row 7"]),
        ("state", ["0", "zebra", "1", "1"] * 2, {}, ["'state'", "1 rows", "row 6"]),
        ("state", [True, False] * 4, {}, ["'state'", "Boolean", "whole numbers"]),
        (
            "state",
            [0, 1] * 4,
            {"model": "texts.json"},
            ["'state'", "Int64", "the model's values are text"],
        ),
        ("state", [0.5, float("nan")] * 4, FIT, ["'state'", "NaN"]),
        ("state", [[0], [1]] * 4, {}, ["'state'", "List"]),
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
        ("state", [0, 1, 1, 0] * 2, {"model": "never.json"}, ["1 transitions", "impossible"]),
        (
            "state",
            pl.Series([2**64 - 1, 1] * 4, dtype=pl.UInt64),
            {"model": "below.json"},
            ["'state'", "4 rows", "row 1"],
        ),
        ("state", pl.Series([2**100, 1] * 4, dtype=pl.Int128), {}, ["'state'"]),
        ("state", [0, 1] * 4, {"model": "huge.json"}, ["64 bits"]),
        # order
        ("hour", [1, 2, 2, 2] * 2, {}, ["'hour'", "4 rows repeat"]),
        ("hour", [1, 2, None, 4] * 2, {}, ["'hour'", "must not be empty", "2 rows"]),
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
        ("hour", ["1", "2", "3", "4.5"] * 2, {}, ["'hour'", "whole numbers, dates or times"]),
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
        ("hour", HOURS, {"step": "40m"}, ["--step 40m", "'hour'", "quarter step"]),
        ("hour", HOURS, {"step": "1d"}, ["--step 1d", "'hour'"]),
        ("hour", [date(3000, 1, day) for day in range(1, 5)] * 2, {}, ["'hour'", "1678 to 2261"]),
        (
            "hour",
            pl.Series([2**63 + i for i in range(4)] * 2, dtype=pl.UInt64),
            {},
            ["'hour'", "below 2^63"],
        ),
        ("hour", [-(2**62), 1, 2, 2**62] * 2, {"step": "1"}, ["--step 1", "'hour'", "steps"]),
        # chains
        ("room", ["a"] * 4 + ["b"] * 3 + [None], {}, ["'room'", "must not be empty", "1 row"]),
        ("room", [1.5] * 4 + [2.5] * 4, {}, ["'room'", "Float64"]),
        ("room", ["=a"] * 4 + ["b"] * 4, {}, ["'room'", "4 cells", "spreadsheet", "rename"]),
        (
            "room",
            ["a"] * 3 + ["a ", *["b"] * 4],
            {},
            ["'room'", "blanks around the name", "1 times", "remove"],
        ),
        (
            "room",
            ["7"] * 4 + ["\u00a07"] * 4,
            {},
            ["'room'", "blanks around the name", "1 times", "remove"],
        ),
        # the private column
        ("hidden", [True, None] * 4, {}, ["'hidden'", "true or false in every row", "4 rows"]),
        ("hidden", [0.0, 1.0] * 4, {}, ["'hidden'", "true and false", "Float64"]),
        ("hidden", [0, 2] * 4, {}, ["'hidden'", "true and false, or 1 and 0"]),
        ("hidden", ["yes", "no"] * 4, {}, ["'hidden'", "true and false, or 1 and 0"]),
        ("hidden", ["true ", "false"] * 4, {}, ["'hidden'", "4 cells have blanks around them"]),
        ("hour", ["1", " 2", "3", "4"] * 2, {}, ["'hour'", "2 cells have blanks around them"]),
        ("hidden", [False] * 8, {}, ["no record is private", "--allow-none"]),
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
    shown = ["7777", "zebra", "three", "2013-0", "03/01", "03-01", "4.5"]
    desk.fails(desk.redact("bad.parquet", **changed), *said, never=shown)


def test_an_unknown_value_is_named_by_its_row_in_the_file(desk):
    pl.DataFrame(TABLE | {"state": [0, 0, 1, 1, 0, 0, 1, 9876]}).reverse().write_csv("bad.csv")
    desk.fails(desk.redact("bad.csv"), "'state'", "1 rows", "row 1", never=["9876"])


@pytest.mark.parametrize("private", [{7}, {0, 7}, set(range(8))], ids=str)
def test_more_steps_than_can_be_counted(desk, private):
    """Many chains times very many steps: refused, or right; never a chain without protection."""
    hours = [0, 1, 2, 3, 4, 5, 6, 2 * 10**18]
    rows = {"room": [i for i in range(8) for _ in hours], "hour": hours * 8, "state": [0] * 64}
    hidden = [room in private and hour == 3 for room in range(8) for hour in hours]
    table = desk.write("far.parquet", rows | {"hidden": hidden})
    code, _, err = desk.run(*desk.redact(table, step="1", explain="e.csv"))
    if code == 0:
        rule = (
            pl.read_csv("e.csv")
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
        desk.redact("many.parquet", **FIT, allow_none=True), "'state'", "2 to 64 distinct", "got 65"
    )


@pytest.mark.parametrize("ending", WRITERS)
def test_an_empty_table(desk, ending):
    WRITERS[ending](pl.DataFrame(TABLE).clear(), f"empty{ending}")
    said = "is empty" if ending == ".ndjson" else "no rows"  # without rows it has no bytes
    desk.fails(desk.redact(f"empty{ending}"), said)
    desk.fails(desk.fit(f"empty{ending}"), said)


def test_all_private_is_legal(desk):
    out = desk.works(*desk.redact(desk.write("all.parquet", hidden=[True] * ROWS)))
    assert "released       0.00% of 8 records" in out
    assert pl.read_csv("out.csv")["state"].null_count() == ROWS


def test_no_private_record_if_that_is_right(desk):
    desk.works(*desk.redact(desk.write("none.parquet", hidden=[False] * ROWS), allow_none=True))
    assert pl.read_csv("out.csv")["state"].to_list() == TABLE["state"]


def test_kept_columns_that_csv_cannot_hold(desk):
    desk.write("nested.parquet", notes=[[1], [2]] * 4)
    desk.fails(desk.redact("nested.parquet", keep="notes"), "'notes'", "another format")
    assert not Path("out.csv").exists()


# ---- files


def _bytes(name, content):
    Path(name).write_bytes(content)
    return name


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
        ("latin.csv", b"room,hour,state,hidden\n\xe9,1,0,secretcell\n", ["cannot be read as csv"]),
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
        ("table.xlsx", b"PK\3\4", ["table.xlsx", ".csv, .parquet", "--format"]),
        ("table", b"PK\3\4", ["table", ".csv, .parquet", "--format"]),
    ],
)
def test_files_that_are_no_table(desk, name, content, said):
    desk.fails(desk.redact(_bytes(name, content)), name, *said, never=["secretcell"])


HEADER = b"room,hour,state,hidden\n"
GOOD = HEADER + b"a,1,0,true\na,2,1,false\n"
CUT = ["stops in the middle of a line", "cut short", "merely lacks it: echo >>"]
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
    name = _bytes("bad.csv", content)
    desk.fails(desk.redact(name, **how), name, *said, never=["secretcell", "cret"])


def test_standard_input_that_is_not_whole(desk, monkeypatch):
    for content, said in (
        (GOOD + b"a,3,1,false", CUT[:2]),
        (GOOD + b"secretcell,3,0\n", ["1 row has", "first row 3", *RAGGED]),
        (GOOD + b"a,3,0,false,secretcell\n", ["1 row has", "first row 3", *RAGGED]),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        desk.fails(desk.redact("-", format="csv"), "standard input", *said, never=["secretcell"])


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
        monkeypatch.setattr(lines, "_BLOCK", block)
        desk.works(*desk.redact(_bytes("good.csv", content), force=True))
        desk.works(*desk.redact("good.csv", force=True, stream=True))
        assert Path("out.csv").read_bytes() == b"room,hour,state\na,1,\na,2,\n"


def test_one_column_of_csv(desk):
    """An empty line is a missing value there."""
    one = {
        "by": None,
        "single_chain": True,
        "order": "row",
        "private": None,
        "private_list": _bytes("keys.csv", b"row\n2\n"),
    }
    desk.works(*desk.redact(_bytes("one.csv", b"state\n0\n1\n\n1\n"), **one))
    one["force"] = True
    desk.fails(desk.redact(_bytes("one.csv", b"state\n0\n1\n0"), **one), "one.csv", *CUT)
    desk.fails(desk.redact(_bytes("one.csv", b"state\n0\n1,0\n"), **one), "one.csv", "first row 2")


def test_private_lists_that_are_not_whole(desk):
    """The end of a list that was cut off would be opt-outs lost."""
    by_list = desk.redact(private=None, private_list="keys.csv")
    _bytes("keys.csv", b"room,hour\na,2\nb,1")
    desk.fails(by_list, "keys.csv", *CUT)
    _bytes("keys.csv", b"room,hour\na,2\nsecretcell\n")
    desk.fails(
        by_list,
        "keys.csv",
        "1 row has more or fewer cells than its header (2)",
        "first row 2",
        never=["secretcell"],
    )
    _bytes("keys.csv", b"room,hour\na,2\nb ,1\n")
    desk.fails(by_list, "the private list", "'room'", "blanks around the name", "1 times")
    _bytes("keys.csv", b"room,hour\na,2 \n")
    desk.fails(by_list, "the private list", "'hour'", "no whole number")
    _bytes("keys.csv", b"room, hour\na,2\n")
    desk.fails(by_list, "the private list", "no column 'hour' but one called ' hour'")
    _bytes("keys.csv", b"room,hour\r\na,2\r\n")
    desk.works(*by_list)


@pytest.mark.parametrize("ending", WRITERS)
def test_blanks_around_values_are_none_of_theirs(desk, ending):
    desk.works(*desk.redact(output="plain.csv"))
    blank = desk.write(f"blank{ending}", state=["0", " 0", "1 ", "\t1", "0", "0", "1", "1\u00a0"])
    desk.works(*desk.redact(blank, output="trimmed.csv"))
    assert Path("plain.csv").read_bytes() == Path("trimmed.csv").read_bytes()


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_files_cut_short(desk, ending, kept):
    whole = Path(desk.write(f"whole{ending}")).read_bytes()
    name = _bytes(f"cut{ending}", whole[: int(kept * len(whole))])
    desk.fails(desk.redact(name), name, "cannot be read", "cut short")


def test_files_that_are_not_there(desk):
    desk.fails(desk.redact("no.csv"), "no.csv", "does not exist")
    Path("folder.csv").mkdir()
    desk.fails(desk.redact("folder.csv"), "folder.csv", "is not a file")


@pytest.mark.parametrize("ending", WRITERS)
def test_more_rows_than_allowed(desk, ending):
    name = desk.write(f"long{ending}")
    desk.fails(desk.redact(name, max_rows=7), name, "rows", "--max-rows 7")
    desk.fails(desk.fit(name, max_rows=7), name, "--max-rows 7")
    desk.works(*desk.redact(name, max_rows=8))


@pytest.mark.parametrize("ending", WRITERS)
def test_a_name_that_looks_like_a_pattern_is_a_name(desk, ending):
    desk.write(f"t1{ending}", state=[1] * ROWS)
    name = desk.write(f"t[1]{ending}", state=[0] * ROWS)
    desk.works(*desk.redact(name, private="hidden", epsilon=50))
    assert set(pl.read_csv("out.csv")["state"].drop_nulls()) == {0}


# ---- outputs


def test_existing_outputs(desk):
    Path("out.csv").write_text("mine")
    desk.fails(desk.redact(), "out.csv", "exists", "--force")
    Path("out.csv").rename("out.csv.certificate.json")
    desk.fails(desk.redact(), "out.csv.certificate.json", "exists", "--force")
    desk.fails(desk.redact(output="else.csv", explain="notes.json"), "notes.json", "must end in")
    Path("e.csv").write_text("mine")
    desk.fails(desk.redact(output="else.csv", explain="e.csv"), "e.csv", "exists", "--force")
    desk.fails(desk.fit(output="model.json"), "model.json", "exists")


@pytest.mark.parametrize("output", ["table.parquet", "link.parquet", "sub/../table.parquet"])
def test_the_output_is_not_the_input(desk, output):
    Path("sub").mkdir()
    Path("link.parquet").symlink_to("table.parquet")
    desk.fails(desk.redact(output=output, force=True), "--output", "the input", output)
    desk.fails(
        desk.redact("link.parquet", output=output, force=True), "--output", "the input", output
    )


def test_another_name_of_the_same_bytes_may_be_replaced(desk):
    os.link("table.parquet", "hard.parquet")
    before = Path("table.parquet").read_bytes()
    desk.works(*desk.redact(output="hard.parquet", force=True))
    assert Path("table.parquet").read_bytes() == before
    assert pl.read_parquet("hard.parquet").columns == ["room", "hour", "state"]


@pytest.mark.parametrize("option", ["private_list", "model", "designs"])
def test_no_other_input_is_overwritten(desk, option):
    keys = desk.write("keys.csv", {"room": ["a"], "hour": [2]})
    given = {
        "private_list": {"private": None, "private_list": keys},
        "model": {"model": "model.csv"},
        "designs": {"designs": "d.csv"},
    }
    MODEL.save("model.csv")
    desk.works(*desk.redact(output="first.csv", **given["designs"]))
    file = {"private_list": keys, "model": "model.csv", "designs": "d.csv"}[option]
    desk.fails(desk.redact(output=file, force=True, **given[option]), file)
    desk.fails(desk.redact(explain=file, force=True, **given[option]), file)


def test_no_input_becomes_an_explanation_or_a_model(desk):
    desk.fails(desk.redact(explain="table.parquet", force=True), "--explain", "table.parquet")
    desk.fails(desk.redact(explain="out.csv"), "out.csv")
    desk.fails(desk.fit(output=desk.table, force=True), "table.parquet")


def test_outputs_in_folders_that_are_not_there(desk):
    desk.fails(desk.redact(output="no/out.csv"), "no", "is not a folder")
    desk.fails(desk.redact(explain="no/e.csv"), "no", "is not a folder")
    desk.fails(desk.redact(designs="no/d.json"), "no", "is not a folder")
    desk.fails(desk.fit(output="no/m.json"), "no", "is not a folder")
    Path("out.csv").mkdir()
    desk.fails(desk.redact(), "out.csv", "is a folder")


def test_formats_of_outputs(desk):
    desk.fails(desk.redact(output="out.dat"), "out.dat", "must end in", "--format")
    desk.works(*desk.redact(desk.write("table.csv"), output="out.dat", format="csv"))
    assert pl.read_csv("out.dat").columns == ["room", "hour", "state"]


@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write anywhere")
def test_outputs_in_folders_that_are_locked(desk):
    locked = desk.folder / "locked"
    locked.mkdir(mode=0o500)
    desk.fails(desk.redact(output="locked/out.csv"), "locked", "cannot be written")
    desk.fails(desk.redact(explain="locked/e.csv"), "locked", "cannot be written")
    desk.fails(desk.fit(output="locked/m.json"), "locked", "cannot be written")


@pytest.mark.parametrize("broken", ["output", "explain"])
def test_a_full_disk(desk, monkeypatch, broken):
    def full(_frame, out, *_, **__):
        if broken in str(out.name):
            out.write(b"half of a tab")
            raise OSError(28, "No space left on device")
        return written(_frame, out, *_, **__)

    written = pl.LazyFrame.sink_csv
    monkeypatch.setattr(pl.LazyFrame, "sink_csv", full)
    desk.run("key", "new")
    code, _, err = desk.run(*desk.redact(output="output.csv", explain="explain.csv"))
    assert code == 2
    assert "No space left on device" in err
    left = {name.name for name in desk.folder.iterdir()} - {"model.json", "table.parquet", "share"}
    assert left in (set(), {"output.csv", "output.csv.certificate.json"})


# ---- lists of private records


@pytest.mark.parametrize(
    ("keys", "changed", "said"),
    [
        (
            {"room": ["a", "a", "b"], "hour": [2, 9, 9]},
            {},
            ["names 2 records", "no opt-out may be lost", "--step"],
        ),
        (
            {"room": ["a", "a"], "hour": [2, 9]},
            {"step": "1"},
            ["names 1 records", "no opt-out may be lost"],
        ),
        (
            {"room": ["a", "z"], "hour": [2, 2]},
            {},
            ["names 1 records of chains", "no opt-out may be lost"],
        ),
        ({"room": ["a", None], "hour": [2, 2]}, {}, ["'room'", "every row"]),
        ({"room": ["a", "a"], "hour": [2, None]}, {}, ["'hour'", "every row"]),
        ({"room": ["a"], "hour": [2.0]}, {}, ["'hour'", "Int64 in the table but Float64"]),
        ({"room": ["a"], "hour": [True]}, {}, ["'hour'", "Int64 in the table but Boolean"]),
        ({"room": ["a"], "hour": ["two"]}, {}, ["1 records", "'hour'", "no whole number"]),
        ({"room": ["a"], "hour": [datetime(2013, 1, 1)]}, {}, ["'hour'", "Int64"]),
        ({"room": [1.5], "hour": [2]}, {}, ["'room'", "String", "Float64"]),
        ({"room": ["a"], "time": [2]}, {}, ["private list", "'hour'"]),
        ({"room": ["a"], "hours": [2]}, {}, ["private list", "'hour'", "did you mean 'hours'?"]),
        ({"hour": [2]}, {}, ["private list", "'room'"]),
        ({"room": ["a"], "hour": [2]}, {"order": "row"}, ["private list", "'row'"]),
        (
            {"room": ["a"], "row": [0]},
            {"order": "row"},
            ["names 1 records", "no opt-out may be lost"],
        ),
        ({"room": [], "hour": []}, {}, ["no record is private", "--allow-none"]),
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
        (UTC_HOURS, "2013-03-31T01:30:00Z", ["names 1 records"]),
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
    desk.fails(desk.redact(**given, private_list=_bytes("zero.csv", b"")), "zero.csv", "is empty")
    desk.fails(
        desk.redact(**given, private_list=_bytes("keys.txt", b"room,hour\na,2\n")),
        "keys.txt",
        "must end in",
    )
    desk.fails(
        desk.redact(**given, private_list=desk.table, max_rows=7), "table.parquet", "--max-rows 7"
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
        explain="e.csv",
        publish_positions=True,
    )
    desk.works(*arguments)
    rule = pl.read_csv("e.csv")
    assert "private" not in rule["region"]
    policy = off.design(off.Problem(MODEL, 10, [5], 1.0), off.BestLocal())
    for row in rule.iter_rows():
        assert row[3:] == pytest.approx(policy.redaction[row[1]], abs=1e-12)
    certificate = json.loads(Path("out.csv.certificate.json").read_text())
    assert certificate["private"]["positions"]["keys"] == [["a", 4]]
    desk.fails(
        desk.redact("gap.parquet", private=None, private_list=keys, output="other.csv"),
        "names 1 records",
        "--step",
    )


# ---- keys and the ledger


def test_keys(desk):
    code, made, err = desk.run("key", "new")
    assert (code, len(made.strip())) == (0, 16)
    assert err.startswith(f"offrecord: warning: made {desk.key}")
    desk.fails(["key", "new"], str(desk.key), "never overwritten", "--key-file")
    assert desk.works("key", "show-id") == made
    desk.fails(["key", "make"], "new or show-id", "'make'")
    desk.fails(["key", "show-id", "--key-file", "no.json"], "no.json", "does not exist")
    desk.key.chmod(0o644)
    desk.fails(["key", "show-id"], str(desk.key), "chmod 600")
    desk.fails(desk.redact(), str(desk.key), "chmod 600")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '"key"',
        '{"format": "offrecord-key", "version": 1}',
        '{"format": "offrecord-key", "version": 1, "key": 5}',
        '{"format": "offrecord-key", "version": 1, "key": "00ff"}',
        '{"format": "offrecord-key", "version": 2, "key": "' + "00" * 32 + '"}',
        '{"format": "offrecord-key", "version": 1, "key": "' + "zz" * 32 + '"}',
    ],
)
def test_files_that_are_no_key(desk, content):
    Path("sub").mkdir()
    key = Path("sub/key.json")
    key.write_text(content)
    key.chmod(0o600)
    desk.fails(desk.redact(key_file=key), "sub/key.json", never=["zzzz", "00ff"])


def test_the_key_lies_not_beside_the_output(desk):
    desk.fails(desk.redact(key_file="key.json"), "key.json", "beside the output", "--key-file")
    desk.fails(desk.redact(output=desk.key.parent / "out.csv"), "is not a folder")
    desk.run("key", "new")
    desk.fails(desk.redact(output=desk.key.parent / "out.csv"), "beside the output")


def test_a_run_that_fails_before_it_needs_a_key_makes_none(desk):
    desk.fails(desk.redact(value="no such"), "'no such'")
    desk.fails(
        desk.redact(desk.write("none.parquet", hidden=[False] * ROWS)), "no record is private"
    )
    desk.works(*desk.redact(dry_run=True))
    assert not desk.key.exists()


def test_the_first_release_under_a_key_says_keep_it(desk):
    """Also where a run that was refused has made it; and once."""
    Path("designs.json").write_text("{")
    desk.fails(desk.redact(designs="designs.json"), "designs.json")
    assert desk.key.exists()
    said = f"made a new key, {desk.key} (id {desk.works('key', 'show-id').strip()}): keep it secret"
    assert said in desk.run(*desk.redact())[2]
    assert said not in desk.run(*desk.redact(force=True))[2]


@pytest.mark.parametrize("lost", ["deleted", "copied"])
def test_a_key_without_its_ledger_does_not_know_of_other_releases(desk, lost):
    desk.works(*desk.redact())
    key = desk.key
    if lost == "deleted":
        key.with_name("key.ledger.json").unlink()
    else:
        key = desk.folder / "copies" / "key.json"
        key.parent.mkdir()
        key.write_bytes(desk.key.read_bytes())
        key.chmod(0o600)
    for output in ("b.csv", "c.csv"):  # what the ledger learns now does not tell what was before
        code, _, err = desk.run(*desk.redact(output=output, key_file=key))
        assert code == 0
        assert f"the key {key} was there without its ledger" in err
        release = json.loads(Path(f"{output}.certificate.json").read_text())["release"]
        assert (release["other_releases"], release["composed"]) == (None, None)
        assert "without its ledger" in release["why"]
    desk.works(*desk.redact(output="d.csv", key_file=key, epsilon=2, another_release=True))
    assert json.loads(Path("d.csv.certificate.json").read_text())["release"] == {
        "other_releases": 1,
        "composed": False,
    }


def test_a_ledger_without_its_key_gets_no_other_key(desk):
    desk.works(*desk.redact())
    secret = desk.key.read_bytes()
    desk.key.unlink()
    desk.fails(desk.redact(output="b.csv"), "key.ledger.json", "without its key")
    desk.fails(["key", "new"], "key.ledger.json", "without its key")
    desk.run("key", "new", "--key-file", "other.json")
    desk.key.write_bytes(Path("other.json").read_bytes())
    desk.key.chmod(0o600)
    desk.fails(desk.redact(output="b.csv"), "key.ledger.json", "the ledger of another key")
    desk.key.write_bytes(secret)
    desk.works(*desk.redact(output="b.csv"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda _: "{}",
        lambda _: "[]",
        lambda text: json.dumps(json.loads(text) | {"version": 9}),
        lambda text: json.dumps(json.loads(text) | {"releases": []}),
        lambda text: json.dumps(json.loads(text) | {"releases": {"rooms": {}}}),
        lambda text: json.dumps(json.loads(text) | {"releases": {"rooms": ["x"]}}),
        lambda text: json.dumps(json.loads(text) | {"releases": {"rooms": [None]}}),
    ],
)
def test_a_damaged_ledger(desk, damage):
    desk.works(*desk.redact(output="first.csv"))
    ledger = desk.key.with_name("key.ledger.json")
    ledger.write_text(damage(ledger.read_text()))
    desk.fails(desk.redact(), "ledger")
    desk.fails(desk.redact(), str(ledger))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"epsilon": 2}, "epsilon"),
        ({"mechanism": "window"}, "mechanism"),
        ({"protect": "each"}, "mechanism"),
        ({"model": "other.json"}, "model"),
        ({"private": "more"}, "private list"),
        ({"keep": "note"}, "choice of columns"),
        ({"step": "1"}, "choice of columns"),
    ],
    ids=str,
)
def test_a_second_different_release(desk, changed, reason):
    off.MarkovChain([[0.8, 0.2], [0.2, 0.8]]).save("other.json")
    table = desk.write("two.parquet", more=[True, *[False] * 7], note=["x"] * 8)
    desk.works(*desk.redact(table))
    desk.fails(
        desk.redact(table, output="b.csv", **changed),
        "'rooms'",
        f"another {reason}",
        "--dataset",
        "--another-release",
    )
    desk.works(*desk.redact(table, output="b.csv", **changed, another_release=True))
    assert json.loads(Path("b.csv.certificate.json").read_text())["release"] == {
        "other_releases": 1,
        "composed": False,
    }
    desk.works(*desk.redact(table, output="c.csv"))
    assert Path("c.csv").read_bytes() == Path("out.csv").read_bytes()


def test_what_was_refused_is_no_release(desk):
    table = desk.write("formula.parquet", room=["=a"] * 4 + ["b"] * 4)
    desk.run("key", "new")
    desk.fails(desk.redact(table), "spreadsheet")
    desk.works(*desk.redact(table, output="out.parquet", epsilon=2))


# ---- designs


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"epsilon": 2}, ["epsilon 1.0, not 2.0"]),
        ({"mechanism": "window"}, ["mechanism 'best-local', not 'window'"]),
        ({"protect": "each"}, ["protect 'run', not 'each'"]),
        ({"model": "other.json"}, ["another model"]),
    ],
    ids=str,
)
def test_designs_for_something_else(desk, changed, said):
    off.MarkovChain([[0.8, 0.2], [0.2, 0.8]]).save("other.json")
    desk.works(*desk.redact(designs="designs.json"))
    arguments = desk.redact(designs="designs.json", output="b.csv", dataset="b", **changed)
    desk.fails(arguments, "designs.json", *said, "give another file to --designs")


def _with(path, new):
    """A change of a designs file at a path of keys."""

    def change(content):
        place = content
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = new
        return content

    return change


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda _: "[]",
        _with(["version"], 9),
        _with(["sides"], 5),
        _with(["sides"], []),
        _with(["sides", 0], [[1, [2.0, 0.5]]]),
        _with(["sides", 0], [[10**12, [1.0, 1.0]]]),
        _with(["designs"], "x"),
        _with(["designs", 0], 1),
        _with(["designs", 0, "left"], -4),
        _with(["designs", 0, "left"], None),
        _with(["designs", 0, "left"], float("1e999")),
        _with(["designs", 0, "window"], []),
        _with(["designs", 0, "redaction_left"], 99),
        _with(["designs", 0, "redaction_left"], -1.5),
        _with(["grids"], {}),
        _with(["grids"], [[], []]),
        _with(["grids"], [[5, 3], [0, 1]]),
        _with(["loss"], "much"),
        _with(["loss"], float("1e999")),
        _with(["model"], 5),
        _with(["model", "transition"], [[0.5, 0.5], [0.5, 0.4]]),
    ],
)
def test_damaged_designs(desk, damage):
    desk.works(*desk.redact(designs="designs.json", output="first.csv"))
    text = Path("designs.json").read_text()
    try:
        Path("designs.json").write_text(damage(text))
    except TypeError:
        Path("designs.json").write_text(
            json.dumps(damage(json.loads(text))).replace("Infinity", "1e999")
        )
    desk.fails(desk.redact(designs="designs.json"), "designs.json")


def test_designs_from_elsewhere_are_checked_in_the_room_they_are_used_in(desk):
    """A file without a seal that claims nothing lies beyond the room it was made for must not
    release what does.
    """
    rows = {
        "room": ["a"] * 60,
        "hour": list(range(60)),
        "state": [0] * 60,
        "hidden": [i == 30 for i in range(60)],
    }
    table = desk.write("long.parquet", rows)
    desk.works(*desk.redact(table, designs="designs.json", output="first.csv"))
    content = json.loads(Path("designs.json").read_text())
    del content["seal"]
    content["grids"] = [[0, 1], [0, 1]]
    content["sides"] = [[[1, [1.0, 1.0]]]]
    content["designs"] = [
        content["designs"][0]
        | {
            "left": 1,
            "right": 1,
            "redaction_left": 0,
            "redaction_right": 0,
            "left_rest": False,
            "right_rest": False,
        }
    ]
    Path("designs.json").write_text(json.dumps(content))
    code, _, _ = desk.run(
        *desk.redact(table, designs="designs.json", explain="e.csv", another_release=True)
    )
    if code == 0:
        rule = pl.read_csv("e.csv").select(pl.col("^Pr.*$")).to_numpy()
        assert off.leakage(off.Problem(MODEL, 60, [31], 1.0), rule) <= 1.0
    else:
        assert not Path("out.csv").exists()


def test_designs_that_would_take_too_long(desk):
    kernels = [
        [[0.9, 0.1], [0.2, 0.8]] if hour % 2 else [[0.7, 0.3], [0.4, 0.6]] for hour in range(24)
    ]
    content = {
        "format": "offrecord-model",
        "version": 1,
        "order": 1,
        "phase": "hour",
        "zone": None,
        "labels": [0, 1],
    }
    Path("phased.json").write_text(
        json.dumps(content | {"transition": kernels, "start": [[0.5, 0.5]] * 24})
    )
    hours = [datetime(2013, 1, 1, hour) for hour in range(16)]
    rows = {
        "room": ["a"] * 16,
        "hour": hours,
        "state": [0] * 16,
        "hidden": [hour % 4 == 2 for hour in range(16)],
    }
    table = desk.write("phased.parquet", rows)
    desk.run("key", "new")
    said = ["not stationary", "4 of them", "--design-minutes", "--mechanism"]
    desk.fails(desk.redact(table, model="phased.json", step="1h", design_minutes=0), *said)
    desk.fails(desk.redact(model="phased.json"), "kernel for each hour", "times")
    desk.fails(desk.redact(table, model="phased.json", design_minutes="nan"), "--design-minutes")
    desk.fails(desk.redact(table, model="phased.json", design_minutes="-1"), "--design-minutes")
    desk.works(*desk.redact(table, model="phased.json", step="1h", mechanism="window"))


# ---- fit


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"value": "stat"}, ["'stat'", "did you mean 'state'?"]),
        ({"by": "rooms"}, ["did you mean 'room'?"]),
        ({"by": None}, ["single"]),
        ({"single_chain": True}, ["single"]),
        ({"phase": "hour"}, ["kernel for each hour", "times"]),
        ({"phase": "minute"}, ["phase", "hour, weekday, month", "'minute'"]),
        ({"chain_order": 0}, ["order", "1 or 2", "0"]),
        ({"step": "1h"}, ["--step 1h", "'hour' holds whole numbers"]),
        ({"private": "hiden"}, ["did you mean 'hidden'?"]),
        ({"private_list": "no.csv"}, ["no.csv", "does not exist"]),
        ({"private": "hidden", "private_list": "keys.csv"}, ["one of them"]),
        ({"private": "all"}, ["every chain holds a private record"]),
        (
            {"private": "hidden"},
            ["2 to 64 distinct values in the chains without a private record", "got 1"],
        ),
    ],
    ids=str,
)
def test_fit(desk, changed, said):
    desk.write("keys.csv", {"room": ["a"], "hour": [2]})
    desk.write("table.parquet", all=[True] * ROWS, state=[0, 0, 1, 1, 0, 0, 0, 0])
    desk.fails(desk.fit(**changed), *said)


def test_fit_needs_neighbours(desk):
    table = desk.write("apart.parquet", hour=[1, 3, 5, 7] * 2)
    desk.fails(desk.fit(table, step=1), "one step apart", "learn")


# ---- the values that a model is learned from


MANY = {
    "room": ["a"] * 4 + ["b"] * 4 + ["c"] * 4,
    "hour": [1, 2, 3, 4] * 3,
    "state": ["wet", "dry", "dry ", "NA", "dry", "wet", "wet", "wet", "wet", "secretcell", "x", ""],
    "hidden": [*[False] * 8, True, *[False] * 3],
}


def test_fit_says_which_values_there_are(desk):
    """Counted over the chains that are learned from; a text such as NA is named beside other texts,
    not refused.
    """
    desk.write("many.csv", MANY)
    said = "3 values: 'NA' (1), 'dry' (3), 'wet' (4)"
    assert said in desk.works(*desk.fit("many.csv", private="hidden"))
    summary = json.loads(desk.works(*desk.fit("many.csv", private="hidden", json=True, force=True)))
    assert summary["values"] == {"NA": 1, "dry": 3, "wet": 4}
    found = off.fit(pl.DataFrame(MANY), value="state", order="hour", by="room", private="hidden")
    assert found.values == {"NA": 1, "dry": 3, "wet": 4}


def test_redact_says_which_values_it_learns_from_before_it_does(desk):
    desk.write("many.csv", MANY | {"state": [*MANY["state"][:8], *["wet"] * 4]})
    code, out, err = desk.run(*desk.redact("many.csv", **FIT))
    assert code == 0, err
    assert err.startswith(
        "offrecord: note: learning from 3 values: 'NA' (1), 'dry' (3), 'wet' (4)\n"
    )
    assert "learning from" not in out
    code, _, err = desk.run(*desk.redact("many.csv", **FIT, chain_order=3, force=True))
    assert code == 2
    assert "learning from 3 values" in err


@pytest.mark.parametrize("cell", ["NA", "0.5", "secret", "True", "7", " ", "1e400"])
def test_a_value_beside_private_records_decides_nothing_about_the_others(desk, cell):
    """Neither whether values are numbers, nor whether there is an error."""
    states = ["0", "1", "1", "1", "1", "0", "0", "1"]
    results = []
    for name, odd in (("one", cell), ("two", "1")):
        desk.write(f"{name}.csv", MANY | {"state": [*states, odd, odd, "0", "1"]})
        out = desk.works(*desk.fit(f"{name}.csv", private="hidden", output=f"{name}.json"))
        results.append((out, Path(f"{name}.json").read_bytes()))
    assert results[0] == results[1]
    assert off.MarkovChain.load("one.json").labels == (0, 1)
