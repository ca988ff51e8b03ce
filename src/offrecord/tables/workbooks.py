"""Excel workbooks, one sheet each, through fastexcel and XlsxWriter: the extra `excel`.

All cells are read as text, as those of CSV are: what one holds decides nothing about others. What
is written is text, numbers, truth values and dates, never a formula or a link, and says neither
who made it nor when.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from datetime import date, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from offrecord.errors import InputError

MAX_ROWS = 1_048_575  #: rows of a sheet, its header apart
_MAX_COLUMNS = 16_384
_MAX_TEXT = 32_767  # characters of a cell
_WHOLE = (-(2**53), 2**53)  # beyond, Excel's numbers are not exact
_MAX_BYTES = 1 << 33  # of a workbook, unpacked
_FIRST_DAY = date(1900, 3, 1)  # Excel counts a day before it that never was
_MADE = datetime(2000, 1, 1)  # the same in every file


def _missing(package: str) -> InputError:
    return InputError(f"Excel workbooks need {package}: pip install 'offrecord[excel]'")


def sheet_frame(path: Path, sheet: str | None) -> pl.DataFrame:
    """The cells of a workbook's sheet as text; what errors of formulas leave is empty.

    InputError for several sheets, if none is named. Whatever fastexcel says is for `engine`.
    """
    if find_spec("fastexcel") is None:
        raise _missing("fastexcel")
    import fastexcel

    _check_size(path)
    book = fastexcel.read_excel(path)
    name = _sheet(book.sheet_names, sheet, path)
    # names as they stand: of two that are the same, the other way makes two
    first = book.load_sheet(name, header_row=None, n_rows=1, dtypes="string").to_polars()
    if first.height == 0:
        raise InputError(f"{path} is empty")
    names = [cell or f"column {at + 1}" for at, cell in enumerate(first.row(0))]
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise InputError(f"{path} has several columns {twice!r:.60}; give each its own name")
    cells = book.load_sheet(name, header_row=None, skip_rows=1, dtypes="string").to_polars()
    if cells.width != len(names):
        raise InputError(f"{path} must hold the names of columns in its first row, and rows below")
    cells.columns = names
    return _without_empty(cells)


def _check_size(path: Path) -> None:
    """InputError for a workbook that unpacks to more than is sensible."""
    with zipfile.ZipFile(path) as packed:
        if sum(part.file_size for part in packed.infolist()) > _MAX_BYTES:
            raise InputError(f"{path} unpacks to more than {_MAX_BYTES >> 30} GiB")


def _sheet(names: list[str], sheet: str | None, path: Path) -> str:
    if sheet is None and len(names) == 1:
        return names[0]
    if sheet in names:
        return str(sheet)
    there = ", ".join(repr(name[:40]) for name in names[:8])
    has = f"no sheet {sheet!r:.40}" if sheet is not None else "several sheets"
    raise InputError(f"{path} has {has}: name one of {there} with --sheet")


def _without_empty(cells: pl.DataFrame) -> pl.DataFrame:
    """An empty text is an empty cell; rows at the end that hold nothing, as sheets have, go."""
    cells = cells.select(pl.when(pl.all() != "").then(pl.all()))
    filled = cells.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()
    return cells.head(0 if filled.is_empty() else int(filled[-1]) + 1)


def as_days(cells: pl.Series) -> pl.Series:
    """A column of times, all of them midnight, as one of days: Excel has no days."""
    midnight = r"^\d{4}-\d\d-\d\d 00:00:00$"
    if cells.len() and cells.str.contains(midnight).all() and not cells.null_count():
        return cells.str.head(10)
    return cells


def check_writer() -> None:
    """InputError if nothing here writes workbooks."""
    if find_spec("xlsxwriter") is None:
        raise _missing("XlsxWriter")


def check_sheet(frame: pl.DataFrame) -> None:
    """InputError for what a sheet cannot hold: of numbers, what would not stay what it is."""
    for series in frame.get_columns():
        kind = series.dtype
        if kind.is_integer() and not series.cast(pl.Int128).is_between(*_WHOLE).all():
            raise InputError(
                f"column {series.name!r} holds whole numbers beyond 2^53, which Excel cannot; write"
                " another format"
            )
        if kind == pl.String and (series.str.len_chars() > _MAX_TEXT).any():
            raise InputError(
                f"column {series.name!r} holds text of over {_MAX_TEXT:,} characters, which Excel"
                " cannot; write another format"
            )
    check_rows(frame.height, frame.width)


def check_rows(rows: int, columns: int) -> None:
    """InputError for a table that is longer or wider than a sheet."""
    if rows > MAX_ROWS or columns > _MAX_COLUMNS:
        raise InputError(
            f"a sheet of Excel holds {MAX_ROWS:,} rows and {_MAX_COLUMNS:,} columns at most, this"
            f" table has {rows:,} and {columns:,}; write another format"
        )


def workbook_bytes(frame: pl.DataFrame) -> bytes:
    """A table as a workbook: the same rows give the same bytes."""
    check_writer()
    import xlsxwriter

    content = io.BytesIO()
    book = xlsxwriter.Workbook(content, {"in_memory": True})
    book.set_properties({"created": _MADE})
    sheet = book.add_worksheet("table")
    styles = {
        name: book.add_format(style)
        for name, style in {
            "day": {"num_format": "yyyy-mm-dd"},
            "time": {"num_format": "yyyy-mm-dd hh:mm:ss"},
            "text": {"quote_prefix": True},  # stays text also when someone edits it
        }.items()
    }
    for column, name in enumerate(frame.columns):
        sheet.write_string(0, column, name)
        _write_column(sheet, column, frame[name], styles)
    book.close()
    return content.getvalue()


def _write_column(sheet: Any, column: int, series: pl.Series, styles: dict[str, Any]) -> None:
    """The cells of a column below its name; an empty one is not there at all."""
    kind = series.dtype
    style: Any = None
    if kind == pl.Boolean:
        write = sheet.write_boolean
    elif _are_numbers(series):
        write = _exactly(sheet.write_number)
        if kind == pl.Float32:  # as it is written, not what that is nearest to in 64 bits
            series = series.cast(pl.String).cast(pl.Float64)
    elif kind == pl.Date and _are_excel_days(series):
        write, style = sheet.write_datetime, styles["day"]
    elif isinstance(kind, pl.Datetime) and _are_excel_times(series):
        write, style = sheet.write_datetime, styles["time"]
    else:
        write, style = sheet.write_string, styles["text"]
        series = _as_text(series)
    for row, cell in enumerate(series.to_list(), start=1):
        if cell is not None:
            write(row, column, cell, style)


class _Exact(float):
    """A number that is written with all of its digits, where XlsxWriter asks for sixteen."""

    def __format__(self, how: str) -> str:
        return repr(float(self))


def _exactly(write: Callable[..., int]) -> Callable[..., int]:
    return lambda row, column, cell, style: write(row, column, _Exact(cell), style)


def _are_numbers(series: pl.Series) -> bool:
    if series.dtype.is_float():
        return bool(series.is_finite().all())
    return series.dtype.is_integer()


def _are_excel_days(series: pl.Series) -> bool:
    least = series.min()
    return least is None or (isinstance(least, date) and least >= _FIRST_DAY)


def _are_excel_times(series: pl.Series) -> bool:
    """Times that a sheet holds as they are: without a zone, and in whole seconds."""
    assert isinstance(series.dtype, pl.Datetime)
    if series.dtype.time_zone is not None:
        return False
    whole = series.dt.truncate("1s") == series
    return bool(whole.all()) and _are_excel_days(series.dt.date())


def _as_text(series: pl.Series) -> pl.Series:
    """A column as CSV writes it."""
    if series.dtype == pl.String:
        return series
    written = series.to_frame().write_csv(include_header=False, quote_style="never", null_value="")
    cells = pl.Series(series.name, written.split("\n")[: series.len()], dtype=pl.String)
    return pl.select(pl.when(series.is_not_null()).then(cells)).to_series()
