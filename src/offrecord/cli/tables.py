"""Tables that a person names, read: what verbs that work on tables share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import polars as pl

    from offrecord.tables.formats import Said

TABLE_HELP = (
    "CSV, Parquet, Arrow IPC or NDJSON file, by the ending of its name (.csv.gz, .ndjson.zst …"
    " too); or a folder or pattern of Parquet files."
)
Table = Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="TABLE")]


def read_table(
    path: Path,
    columns: Iterable[str],
    said: Said,
    max_rows: int,
    *,
    text: Sequence[str] = (),
) -> pl.DataFrame:
    """The columns of a table. text: columns that are not to be typed."""
    from concurrent.futures import ThreadPoolExecutor
    from importlib import import_module

    from offrecord.tables.formats import table_file

    with ThreadPoolExecutor(1) as pool:
        # What works on the table is imported while the engine reads.
        pool.submit(import_module, "offrecord.tables.engines.memory")
        return table_file(path, said).read(
            list(dict.fromkeys(columns)), text=text, max_rows=max_rows
        )


def read_keys(path: str | Path | None, said: Said, max_rows: int) -> pl.DataFrame | None:
    """The keys of private records, if a file lists them.

    said: of the table; what it says of CSV goes for the list too.
    """
    from offrecord.tables.formats import read_list

    return None if path is None else read_list(path, said, max_rows=max_rows)


def said_of(table: Path, keys: str | Path | None, said: Said) -> Said:
    """What is said of the table itself; InputError for what is said of neither it nor the list."""
    from offrecord.tables.formats import table_format

    kind = table_format(table, said.format)
    is_for_list = keys is not None and table_format(Path(keys)) == "csv"
    if is_for_list:
        said = said.for_kind(kind)
    return replace(said, format=kind)


def columns_read(
    value: str, order: str, by: Sequence[str] | None, private: str | None
) -> list[str]:
    """The columns without which a table says nothing."""
    ordered = [] if order == "row" else [order]
    return [value, *ordered, *(by or ()), *([] if private is None else [private])]


def is_too_large(table: Path, said: Said) -> bool:
    """The table, in memory, would take over half of what this machine has."""
    from offrecord.tables.formats import table_file
    from offrecord.tables.guarding import memory_size

    return table_file(table, said).exceeds(memory_size() // 2, a_row=80)
