"""Files on the command line: the arguments that verbs share, which may be written, how to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from offrecord.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from offrecord.tables.io.format import ReadOptions

Table = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="CSV, Parquet, Arrow IPC or NDJSON file, by the ending of its name (.csv.gz,"
        " .ndjson.zst … too); or a folder or pattern of Parquet files.",
    ),
]
Certificate = Annotated[
    Path, typer.Argument(metavar="CERTIFICATE", help="The certificate of a release (JSON).")
]
Released = Annotated[
    Path | None, typer.Argument(metavar="RELEASED", help="The released table, checked with it.")
]
PrivateList = Annotated[
    Path | None,
    typer.Option(help="The list of private records, where the certificate has none."),
]
Original = Annotated[
    Path | None,
    typer.Option(help="The table before it was redacted, for checks that need its values."),
]


def read_table(
    path: Path,
    columns: Iterable[str],
    options: ReadOptions,
    *,
    text: Sequence[str] = (),
) -> pl.DataFrame:
    """The columns of a table. text: columns that are not to be typed."""
    from concurrent.futures import ThreadPoolExecutor
    from importlib import import_module

    from offrecord.tables.io.formats import table_file

    with ThreadPoolExecutor(1) as pool:
        # What works on the table is imported while the engine reads.
        pool.submit(import_module, "offrecord.tables.engines.memory")
        return table_file(path, options).read(list(dict.fromkeys(columns)), text=text)


def read_keys(path: str | Path | None, options: ReadOptions) -> pl.DataFrame | None:
    """The keys of private records, if a file lists them. options: of the table and its list."""
    from offrecord.tables.io.formats import read_list

    return None if path is None else read_list(path, options)


def said_of(table: Path, keys: str | Path | None, said: ReadOptions) -> ReadOptions:
    """What is said of the table itself; InputError for what is said of neither it nor the list."""
    from offrecord.tables.io.formats import table_format

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


def is_too_large(table: Path, said: ReadOptions) -> bool:
    """The table, in memory, would take over half of what this machine has."""
    from offrecord.tables.guarding import memory_size
    from offrecord.tables.io.formats import table_file

    return table_file(table, said).exceeds(memory_size() // 2, a_row=80)


# ---- what may be written


def check_all_apart(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """InputError if an output would overwrite an input or another output."""
    named = [(name, path) for name, path in outputs.items() if path is not None]
    for at, (name, path) in enumerate(named):
        for other, taken in [*inputs.items(), *named[:at]]:
            if taken is not None and is_same(path, taken):
                raise InputError(f"{name} must be another file than {other}, got {path} for both")


def check_outside(outputs: Mapping[str, Path | None], table: Path) -> None:
    """InputError if an output would be one of the files of a table that consists of several."""
    from offrecord.tables.io.parquet import is_several, would_hold

    for name, path in outputs.items() if is_several(table) else ():
        if path is not None and would_hold(table, path):
            raise InputError(f"{name} must not be one of the input's files, got {path}")


def is_same(one: Path, other: Path) -> bool:
    """Two paths lead to the same file."""
    return one.resolve() == other.resolve()


def output_format(path: Path, named: str | None) -> str:
    """The format of an output: by the ending of its name, else the one that is named."""
    from offrecord.tables.io.formats import written_format

    try:
        return written_format(path)
    except InputError:
        if named is None:
            raise
        return written_format(path, named)


def check_folder(path: Path) -> None:
    """InputError if there is something at a path that is no folder."""
    try:
        if path.exists() and not path.is_dir():
            raise InputError(f"--output must be a folder, got the file {path}")
    except OSError as error:
        raise InputError(f"--output cannot be used: {error.strerror}") from None
