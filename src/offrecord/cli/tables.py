"""Tables that a person names, read: what verbs that work on tables share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from offrecord.cli.paths import STREAM

if TYPE_CHECKING:
    import polars as pl

TABLE_HELP = (
    "CSV, Parquet, Arrow IPC or NDJSON file, by the ending of its name; - for standard input."
)
Table = Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="TABLE")]


def read_table(
    path: Path,
    columns: Iterable[str],
    kind: str | None,
    max_rows: int,
    *,
    text: Sequence[str] = (),
) -> pl.DataFrame:
    """The columns of a table. text: columns that are not to be typed."""
    from concurrent.futures import ThreadPoolExecutor
    from importlib import import_module

    from offrecord.tables.formats import table_file, table_stream

    with ThreadPoolExecutor(1) as pool:
        # What works on the table is imported while the engine reads.
        pool.submit(import_module, "offrecord.tables.engines.memory")
        source = table_stream(sys.stdin.buffer, kind) if path == STREAM else table_file(path, kind)
        return source.read(list(dict.fromkeys(columns)), text=text, max_rows=max_rows)


def read_keys(path: str | Path | None, max_rows: int) -> pl.DataFrame | None:
    """The keys of private records, if a file lists them."""
    from offrecord.tables.formats import read_frame

    return None if path is None else read_frame(path, max_rows=max_rows)


def columns_read(
    value: str, order: str, by: Sequence[str] | None, private: str | None
) -> list[str]:
    """The columns without which a table says nothing."""
    ordered = [] if order == "row" else [order]
    return [value, *ordered, *(by or ()), *([] if private is None else [private])]


def is_too_large(table: Path, kind: str) -> bool:
    """The table, in memory, would take over half of what this machine has."""
    from offrecord.tables.formats import table_file

    source = table_file(table, kind)
    rows = source.rows()
    needed = table.stat().st_size * 8 if rows is None else rows * 80
    return needed > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
