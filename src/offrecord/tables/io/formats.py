"""The formats of table files: one line each. Here tables are opened, read and written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from offrecord.errors import InputError
from offrecord.tables.guarding import check_readable, engine, never_spill, unreadable
from offrecord.tables.io.csv import Csv, is_tabbed
from offrecord.tables.io.format import Format, ReadOptions, Source
from offrecord.tables.io.ipc import Ipc
from offrecord.tables.io.ndjson import Ndjson
from offrecord.tables.io.parquet import Parquet, is_several
from offrecord.tables.io.text import (
    PACKINGS,
    marked_encoding,
    packed,
    packing_of,
    without_packing,
)

#: All formats, by name. A new one is a file like those above, and a line here.
FORMATS: dict[str, Format] = {one.name: one for one in (Csv(), Parquet(), Ipc(), Ndjson())}
_BY_ENDING = {
    ending: one.name for one in FORMATS.values() for ending in (*one.endings, *one.read_endings)
}
#: Endings of tables that are not read, and what to do about them.
_UNREAD = dict.fromkeys(
    (".xlsx", ".xls", ".ods"),
    " is a spreadsheet, which is neither read nor written: save it as CSV",
) | {".json": ": the name must end in .ndjson, with one row a line: see offrecord look"}
_DEFAULTS = ReadOptions()


def _format_of(path: Path, named: str | None = None) -> str:
    """The format of a file: the one that is named, else by the ending of its name."""
    if named is not None and named not in FORMATS:
        raise InputError(f"--format must be one of {', '.join(FORMATS)}, got {named!r}")
    kind = named or _BY_ENDING.get(without_packing(path).suffix.lower())
    if kind is None:
        raise _unknown(path)
    if packing_of(path) and not FORMATS[kind].is_text:
        raise InputError(
            f"{path}: {kind} has compression of its own; leave {path.suffix} away, or unpack it"
        )
    return kind


def _unknown(path: Path) -> InputError:
    if path.suffix.lower() in _UNREAD:
        return InputError(f"{path}{_UNREAD[path.suffix.lower()]}")
    known = ", ".join(ending for one in FORMATS.values() for ending in one.endings)
    compressed = " or ".join(f".csv{ending}" for ending in PACKINGS)
    return InputError(f"{path}: the name must end in {known}, {compressed}, or give --format")


def table_format(path: Path, named: str | None = None) -> str:
    """The format of a table to read; one of several files is of Parquet."""
    if not is_several(path):
        return _format_of(path, named)
    if _format_of(Path("a.parquet"), named) != "parquet":
        raise InputError(f"{path}: a table of several files is of Parquet alone, got {named}")
    return "parquet"


def written_format(path: Path, named: str | None = None) -> str:
    """The format of a file to write."""
    kind = _format_of(path, named)
    if named is None and is_tabbed(path):
        raise InputError(f"{path}: CSV is written with commas; end its name in .csv")
    return kind


def table_file(path: str | Path, options: ReadOptions = _DEFAULTS) -> Source:
    """A table file, or several of Parquet: a folder of them, or a pattern of their names."""
    path = Path(path)
    kind = table_format(path, options.format)
    beside = options.for_kind(kind)
    for option in ("separator", "encoding"):
        if getattr(options, option) != getattr(beside, option):
            raise InputError(f"--{option} is for CSV; {path} is {kind}")
    if not is_several(path):
        check_readable(path)
    with engine(unreadable(str(path), kind)):
        return FORMATS[kind].source(path, options)


def read_list(path: str | Path, options: ReadOptions = _DEFAULTS) -> pl.DataFrame:
    """All columns of a private list.

    options: of its table; those of CSV hold for the list too, but for a byte order mark.
    """
    path = Path(path)
    kind = table_format(path)
    options = replace(options, format=None).for_kind(kind)
    if kind == "csv":
        check_readable(path)
        with engine(unreadable(str(path), kind)):
            marked = marked_encoding(path)
        options = replace(options, encoding=marked or options.encoding)
    return table_file(path, options).read()


def write_frame(frame: pl.LazyFrame, path: Path, kind: str, packing: str | None = None) -> None:
    """Write a table file in place; whoever calls takes care that nobody sees it half-written."""
    never_spill()
    full = f"{path.parent} cannot hold the output: is the disk full?"
    # The engine gets an open file, never its name: after a failure its threads may still run, and
    # would make the file anew when it has been removed.
    with engine(full), path.open("wb") as file, packed(file, packing) as out:
        FORMATS[kind].write(frame, out)
