"""Files on the command line: the arguments that verbs share, which may be written, how to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from offrecord.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from offrecord.tables.io.format import ReadOptions

Table = Annotated[
    Path,
    Argument(
        metavar="TABLE",
        help="CSV, Parquet, Arrow IPC or NDJSON file, by the ending of its name (.csv.gz,"
        " .ndjson.zst … too); or a folder or pattern of Parquet files.",
    ),
]


def read_table(
    path: Path,
    options: ReadOptions,
    asked: Mapping[str, Any],
    *,
    keep: Sequence[str] = (),
    text: Sequence[str],
) -> pl.DataFrame:
    """The columns of a table without which it says nothing, and some to keep.

    asked: names the columns. text: columns that are not to be typed.
    """
    from concurrent.futures import ThreadPoolExecutor
    from importlib import import_module

    from offrecord.tables.io.formats import table_file

    columns = dict.fromkeys([*_needed(asked), *keep])
    with ThreadPoolExecutor(1) as pool:
        # What works on the table is imported while the engine reads.
        pool.submit(import_module, "offrecord.tables.engines.memory")
        return table_file(path, options).read(list(columns), text=text)


def _needed(asked: Mapping[str, Any]) -> list[str]:
    order = None if asked["order"] == "row" else asked["order"]
    named = [asked["value"], order, *(asked["by"] or ()), asked["private"]]
    return [one for one in named if one is not None]


def said_of(table: Path, keys: object, said: ReadOptions) -> ReadOptions:
    """What is said of the table itself; InputError for what is said of neither it nor the list.

    keys: the path of the list of private records, if there is one.
    """
    from offrecord.tables.io.formats import table_format

    kind = table_format(table, said.format)
    if isinstance(keys, (str, Path)) and table_format(Path(keys)) == "csv":
        said = said.for_kind(kind)
    return replace(said, format=kind)


# ---- what may be written


def check_all_apart(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """InputError if an output would overwrite an input or another output."""
    taken = dict(inputs)  # by where paths lead: a link and its target are one file
    for name, path in outputs.items():
        for other, one in taken.items():
            if path is not None and one is not None and path.resolve() == one.resolve():
                raise InputError(f"{name} must be another file than {other}, got {path} for both")
        taken[name] = path


def check_outside(outputs: Mapping[str, Path | None], table: Path) -> None:
    """InputError if an output would be one of the files of a table that consists of several."""
    from offrecord.tables.io.parquet import is_several, would_hold

    if not is_several(table):
        return
    for name, path in outputs.items():
        if path is not None and would_hold(table, path):
            raise InputError(f"{name} must not be one of the input's files, got {path}")
