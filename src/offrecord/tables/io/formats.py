"""The formats of table files: one line each. Here tables are opened, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from offrecord.errors import InputError
from offrecord.tables.guarding import check_readable, engine, never_spill, unreadable
from offrecord.tables.io.compression import PACKINGS, packed, packing_of
from offrecord.tables.io.csv import Csv
from offrecord.tables.io.folders import is_several
from offrecord.tables.io.format import Format, ReadOptions
from offrecord.tables.io.ipc import Ipc
from offrecord.tables.io.ndjson import Ndjson
from offrecord.tables.io.parquet import Parquet
from offrecord.tables.io.source import Source
from offrecord.tables.io.text import marked_encoding

#: All formats, by name. A new one is a file like those above, and a line here.
FORMATS: dict[str, Format] = {one.name: one for one in (Csv(), Parquet(), Ipc(), Ndjson())}
#: Endings of spreadsheets, which are not read.
_SHEETS = (".xlsx", ".xls", ".ods")
_DEFAULTS = ReadOptions()


def format_of(path: Path, named: str | None = None) -> str:
    """The format of a file: the one that is named, else by the ending of its name.

    InputError if it is compressed, and its format has compression of its own.
    """
    packing = packing_of(path)
    plain = path.with_suffix("") if packing else path
    kind = _checked(named) or _by_ending(plain.suffix.lower())
    if kind is None:
        if path.suffix.lower() in _SHEETS:
            raise InputError(
                f"{path} is a spreadsheet, which is neither read nor written: save it as CSV"
            )
        if path.suffix.lower() == ".json":
            raise InputError(
                f"{path}: the name must end in .ndjson, with one row a line: see offrecord look"
            )
        known = ", ".join(ending for one in FORMATS.values() for ending in one.endings)
        compressed = " or ".join(f".csv{ending}" for ending in PACKINGS)
        raise InputError(f"{path}: the name must end in {known}, {compressed}, or give --format")
    if packing and not FORMATS[kind].is_text:
        raise InputError(
            f"{path}: {kind} has compression of its own; leave {path.suffix} away, or unpack it"
        )
    return kind


def _checked(named: str | None) -> str | None:
    if named is not None and named not in FORMATS:
        raise InputError(f"--format must be one of {', '.join(FORMATS)}, got {named!r}")
    return named


def _by_ending(ending: str) -> str | None:
    known = (one.name for one in FORMATS.values() if ending in (*one.endings, *one.read_endings))
    return next(known, None)


def table_format(path: Path, named: str | None = None) -> str:
    """The format of a table to read; one of several files is of Parquet."""
    if not is_several(path):
        return format_of(path, named)
    if _checked(named) not in (None, "parquet"):
        raise InputError(f"{path}: a table of several files is of Parquet alone, got {named}")
    return "parquet"


def written_format(path: Path, named: str | None = None) -> str:
    """The format of a file to write."""
    kind = format_of(path, named)
    plain = path.with_suffix("") if packing_of(path) else path
    if named is None and plain.suffix.lower() in FORMATS[kind].read_endings:
        raise InputError(f"{path}: CSV is written with commas; end its name in .csv")
    return kind


def table_file(path: str | Path, options: ReadOptions = _DEFAULTS) -> Source:
    """A table file, or several of Parquet: a folder of them, or a pattern of their names.

    InputError for anything that is none.
    """
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


def read_frame(
    path: str | Path,
    columns: Sequence[str] | None = None,
    *,
    options: ReadOptions = _DEFAULTS,
) -> pl.DataFrame:
    """The columns of a table file, all without them."""
    return table_file(path, options).read(columns)


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
    return read_frame(path, options=options)


def write_frame(frame: pl.LazyFrame, path: Path, kind: str, packing: str | None = None) -> None:
    """Write a table file in place; whoever calls takes care that nobody sees it half-written.

    The same rows give the same bytes, whether they come at once or piece by piece.
    """
    never_spill()
    full = f"{path.parent} cannot hold the output: is the disk full?"
    # The engine gets an open file, never its name: after a failure its threads may still run, and
    # would make the file anew when it has been removed.
    with engine(full), path.open("wb") as file, packed(file, packing) as out:
        FORMATS[kind].write(frame, out)
