"""Several Parquet files as one table: a folder of them, or those that a pattern names.

The files come sorted by name. Nothing that lies in a folder is left out in silence: a file that is
no Parquet, or a folder in it, is an error; names that begin with a dot or an underscore are not
looked at, as usual.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import polars as pl

from offrecord.errors import InputError
from offrecord.tables.guarding import check_readable, engine, unreadable

ENDINGS = (".parquet", ".pq")


def is_several(path: Path) -> bool:
    """A path stands for several files: it is a folder, or a pattern and no file's own name."""
    return path.is_dir() or (glob.has_magic(str(path)) and not path.exists())


def files_of(path: Path) -> list[Path]:
    """The files of a table that is a folder or a pattern, by name; InputError if there is none, or
    something else among them.
    """
    is_folder = path.is_dir()
    try:
        found = sorted(path.iterdir() if is_folder else map(Path, glob.glob(str(path))))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    files = [one for one in found if not one.name.startswith((".", "_"))]
    if not files:
        none = "is a folder without Parquet files" if is_folder else "names no file"
        raise InputError(f"{path} {none}")
    for file in files:
        if file.is_dir() or file.suffix.lower() not in ENDINGS:
            what = f"the folder {file.name!r}" if file.is_dir() else f"{file.name!r}"
            why = (
                "tables in folders of folders, as room=a/, are not read: give one folder"
                if file.is_dir()
                else f"a table of several files is of Parquet alone, {' or '.join(ENDINGS)}"
            )
            raise InputError(f"{path} holds {what}; {why}")
    return files


def scanned(files: Sequence[Path], name: str) -> pl.LazyFrame:
    """Parquet files as one table; InputError unless all have the same columns and types."""
    first: dict[str, pl.DataType] = {}
    for file in files:
        check_readable(file)
        with engine(unreadable(str(file), "parquet")):
            schema = dict(pl.read_parquet_schema(file))
        first = first or schema
        _check_alike(first, schema, files[0], file)
    with engine(unreadable(name, "parquet")):
        frames = [pl.scan_parquet(file, glob=False, hive_partitioning=False) for file in files]
        return pl.concat([frame.select(list(first)) for frame in frames])


def _check_alike(
    first: dict[str, pl.DataType], schema: dict[str, pl.DataType], one: Path, other: Path
) -> None:
    """InputError unless two files have the same columns, with the same types."""
    from offrecord.tables.cells import type_name

    for column in [*first, *schema]:
        if column not in schema or column not in first:
            has, lacks = (one, other) if column in first else (other, one)
            raise InputError(f"{lacks} has no column {column!r:.60}, which {has.name} has")
        if schema[column] != first[column]:
            here, there = type_name(schema[column]), type_name(first[column])
            same = " of another kind" if here == there else ""
            raise InputError(
                f"{other} holds {here} in column {column!r:.60}, but {one.name} {there}{same}; give"
                " all files the same types"
            )


def would_hold(path: Path, file: Path) -> bool:
    """A file would be one of the table's own, were it there."""
    if path.is_dir():
        return file.resolve().parent == path.resolve()
    pattern = os.path.abspath(path)
    return glob.has_magic(pattern) and fnmatchcase(os.path.abspath(file), pattern)
