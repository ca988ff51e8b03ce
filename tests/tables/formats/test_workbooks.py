"""Excel workbooks in and out."""

import sys
import zipfile
from datetime import date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import offrecord as off
from hours import LENGTH, TIMES, frame
from offrecord.tables import workbooks
from offrecord.tables.formats import Said, table_file

fastexcel = pytest.importorskip("fastexcel", reason="needs the extra offrecord[excel]")
xlsxwriter = pytest.importorskip("xlsxwriter", reason="needs the extra offrecord[excel]")

DAYS = [date(2024, 2, 1) + timedelta(days=i) for i in range(LENGTH)]


@pytest.mark.parametrize("hours", [range(LENGTH), DAYS, TIMES], ids=["numbers", "days", "times"])
def test_orders_of_every_kind(run, hours):
    """Excel has no whole numbers and no days: 1.0 is 1, and midnights are days."""
    table = frame(hours=hours)
    table.write_parquet("t.parquet")
    run("redact", "t.parquet", output="expected.csv")
    table.write_excel("t.xlsx")
    run("redact", "t.xlsx", output="o.csv")
    expected = pl.read_csv("expected.csv", try_parse_dates=True)
    assert pl.read_csv("o.csv", try_parse_dates=True).equals(expected)
    table.filter("hidden").select("room", "hour").write_excel("keys.xlsx")
    run("redact", "t.xlsx", output="p.csv", private=None, private_list="keys.xlsx")
    assert Path("p.csv").read_bytes() == Path("o.csv").read_bytes()
    run("redact", "t.parquet", output="o.xlsx")
    released = pl.read_excel("o.xlsx", schema_overrides={"hour": expected["hour"].dtype})
    assert released.columns == ["room", "hour", "state"]
    assert released["hour"].to_list() == expected["hour"].to_list()
    assert released["state"].to_list() == expected["state"].to_list()


def test_the_same_rows_give_the_same_bytes_which_say_nothing_of_when(run):
    frame().write_parquet("t.parquet")
    for how in ("in_memory", "stream"):
        frame(shuffled=False).write_parquet("u.parquet")
        run("redact", "u.parquet", output=f"{how}.xlsx", **{how: True})
    assert Path("in_memory.xlsx").read_bytes() == Path("stream.xlsx").read_bytes()
    with zipfile.ZipFile("stream.xlsx") as packed:
        assert {part.date_time for part in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert b"2000-01-01T00:00:00Z" in packed.read("docProps/core.xml")


TEXTS = ["=1+1", "@x", "-1+1", "http://a.b", "mailto:a@b", "", "_x0041_", "a\nb", " é ", None]


def test_what_is_written_is_what_it_was():
    """Text stays text, whatever it looks like; numbers keep all their digits."""
    n = len(TEXTS)
    table = pl.DataFrame(
        {
            "text": TEXTS,
            "float": [
                0.1 + 0.2,
                15.339347334835264,
                1e-300,
                5e-324,
                1.7e308,
                -0.0,
                1.0,
                2,
                3,
                None,
            ],
            "whole": [2**53, -(2**53), 0, 1, 2, 3, 4, 5, 6, None],
            "small": pl.Series([0, 200, *range(n - 3), None], dtype=pl.UInt8),
            "truth": [True, False, None, *[True] * (n - 3)],
            "time": [datetime(2024, 2, 29, 23, 59, 59)] * (n - 1) + [None],
        }
    )
    content = workbooks.workbook_bytes(table)
    read = fastexcel.read_excel(content).load_sheet(0).to_polars()
    for name in table.columns:
        assert read[name].to_list() == table[name].to_list(), name
    text = pl.DataFrame(
        {
            "zoned": pl.Series([datetime(2024, 1, 1)]).dt.replace_time_zone("UTC"),
            "finer": [datetime(2024, 1, 1, 0, 0, 0, 7)],
            "older": [date(1850, 1, 1)],
            "none": [float("nan")],
        }
    )
    cells = fastexcel.read_excel(workbooks.workbook_bytes(text)).load_sheet(0).to_polars().row(0)
    assert cells == (
        "2024-01-01T00:00:00.000000+0000",
        "2024-01-01T00:00:00.000007",
        "1850-01-01",
        "NaN",
    )


def test_no_cell_is_a_formula_or_a_link(tmp_path):
    path = tmp_path / "t.xlsx"
    path.write_bytes(workbooks.workbook_bytes(pl.DataFrame({"=1+1": TEXTS, "b": TEXTS})))
    with zipfile.ZipFile(path) as packed:
        sheet = packed.read("xl/worksheets/sheet1.xml")
        assert b"<f>" not in sheet
        assert b"hyperlink" not in sheet
        assert b'quotePrefix="1"' in packed.read("xl/styles.xml")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pl.DataFrame({"n": [2**53 + 1]}), "'n' holds whole numbers beyond 2\\^53"),
        (pl.DataFrame({"n": [2**63]}, schema={"n": pl.UInt64}), "beyond 2\\^53"),
        (pl.DataFrame({"t": ["a" * 32_768]}), "'t' holds text of over 32,767 characters"),
    ],
)
def test_what_a_sheet_cannot_hold(table, said):
    with pytest.raises(off.InputError, match=said):
        workbooks.check_sheet(table)


@pytest.mark.parametrize("how", ["in_memory", "stream"])
def test_more_rows_than_a_sheet_has_are_refused_before_writing(run, monkeypatch, how):
    frame(shuffled=False).write_parquet("t.parquet")
    monkeypatch.setattr(workbooks, "MAX_ROWS", 239)
    with pytest.raises(AssertionError, match=r"holds 239 rows.*this table has 240"):
        run("redact", "t.parquet", output="o.xlsx", **{how: True})
    assert not list(Path().glob("*o.xlsx*"))
    monkeypatch.setattr(workbooks, "MAX_ROWS", 240)
    run("redact", "t.parquet", output="o.xlsx", **{how: True})


def book(path, **sheets):
    with xlsxwriter.Workbook(path) as made:
        for name, rows in sheets.items():
            sheet = made.add_worksheet(name)
            for at, row in enumerate(rows):
                sheet.write_row(at, 0, row)
    return path


def test_sheets(tmp_path):
    path = book(tmp_path / "t.xlsx", one=[["a"], [1]], two=[["a"], [2]])
    with pytest.raises(off.InputError, match="several sheets: name one of 'one', 'two' with"):
        table_file(path)
    with pytest.raises(off.InputError, match="no sheet 'three': name one of 'one', 'two'"):
        table_file(path, Said(sheet="three"))
    assert table_file(path, Said(sheet="two")).read(["a"])["a"].to_list() == ["2"]


def test_what_cells_say(tmp_path):
    """Each by itself, as text: an error of a formula is empty, and so are rows at the end."""
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as made:
        sheet = made.add_worksheet()
        sheet.write_row(0, 0, ["a", "b"])
        for at, cell in enumerate([1, 0.5, True, "x", "007"]):
            sheet.write(at + 1, 0, cell)
            sheet.write_number(at + 1, 1, at)
        sheet.write_formula(6, 0, "=NA()", None, "#N/A")
        sheet.write_number(6, 1, 6)
        sheet.write_string(7, 0, "")
    read = table_file(path).read()
    assert read["a"].to_list() == ["1", "0.5", "true", "x", "007", None]
    assert read["b"].to_list() == ["0", "1", "2", "3", "4", "6"]


def test_names_of_columns(tmp_path):
    with pytest.raises(off.InputError, match="several columns 'a'"):
        table_file(book(tmp_path / "twice.xlsx", one=[["a", "b", "a"], [1, 2, 3]]))
    bare = table_file(book(tmp_path / "bare.xlsx", one=[["secret", 1], ["x", 2]]))
    with pytest.raises(off.InputError, match="its first line must hold the names") as error:
        bare.read(["room", "state"])
    assert "secret" not in str(error.value)
    with pytest.raises(off.InputError, match="is empty"):
        table_file(book(tmp_path / "empty.xlsx", one=[]))


def test_a_workbook_that_unpacks_to_too_much(tmp_path, monkeypatch):
    path = book(tmp_path / "t.xlsx", one=[["a"], [1]])
    monkeypatch.setattr(workbooks, "_MAX_BYTES", 1000)
    with pytest.raises(off.InputError, match="unpacks to more than"):
        table_file(path)


def test_without_the_extra_one_line_says_what_to_install(run, monkeypatch):
    frame().write_excel("t.xlsx")
    frame().write_parquet("t.parquet")
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(AssertionError, match=r"fastexcel: pip install 'offrecord\[excel\]'"):
        run("redact", "t.xlsx", output="o.csv")
    with pytest.raises(AssertionError, match=r"XlsxWriter: pip install 'offrecord\[excel\]'"):
        run("redact", "t.parquet", output="o.xlsx")
