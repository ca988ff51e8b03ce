"""Parquet: one file, a folder of files, or a pattern of their names.

Several files come sorted by name. Nothing that lies in a folder is left out in silence: a file that
is no Parquet, or a folder in it, is an error; names that begin with a dot or an underscore are not
looked at, as usual.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, ClassVar

import polars as pl

from offrecord.errors import InputError
from offrecord.tables.cells import type_name
from offrecord.tables.guarding import check_readable, engine, unreadable
from offrecord.tables.io.format import GROUP, Format, ReadOptions, Source
from offrecord.tables.io.limits import limit, unpacked_limit
from offrecord.tables.io.parquet_counts import check_columns, check_counts


@dataclass(frozen=True, eq=False)
class ParquetSource(Source):
    """A table in Parquet."""

    kind: ClassVar[str] = "parquet"

    @cached_property
    def lazy(self) -> pl.LazyFrame:
        """The table."""
        if is_several(self.path):
            return _scanned(self.files, self.name)
        return pl.scan_parquet(self.path, glob=False)

    @property
    def files(self) -> list[Path]:
        """The files that it is read from."""
        return _files_of(self.path) if is_several(self.path) else [self.path]

    @property
    def sorted_path(self) -> Path:
        """Where neither the folder nor the pattern takes it for one of its own."""
        return Path("sorted") / "table.parquet" if is_several(self.path) else super().sorted_path

    @property
    def scan_options(self) -> str:
        """Folders are read without their names."""
        if not is_several(self.path):
            return ""
        return ", hive_partitioning=False, hidden_file_prefix=['.', '_']"

    def check_damage(self, columns: Sequence[str] | None) -> None:
        """InputError for counts that would end the process when a column is read."""
        for file in self.files:
            with engine(unreadable(str(file), self.kind)):
                check_counts(file, columns, unpacked_limit(file.stat().st_size, self.limits))


class Parquet(Format):
    """Apache Parquet."""

    name = "parquet"
    endings = (".parquet", ".pq")

    def source(self, path: Path, options: ReadOptions) -> ParquetSource:
        """A table in Parquet."""
        source = ParquetSource(path, options.limits)
        for file in source.files:
            with engine(unreadable(str(file), self.name)):
                check_columns(file, limit("columns", options.limits))
        assert source.lazy is not None  # several files are checked against each other
        return source

    def write(self, frame: pl.LazyFrame, out: BinaryIO) -> None:
        """Write a table."""
        frame.sink_parquet(out, row_group_size=GROUP)


# ---- several files


def is_several(path: Path) -> bool:
    """A path stands for several files: it is a folder, or a pattern and no file's own name."""
    return path.is_dir() or (glob.has_magic(str(path)) and not path.exists())


def would_hold(path: Path, file: Path) -> bool:
    """A file would be one of the table's own, were it there."""
    if path.is_dir():
        return file.resolve().parent == path.resolve()
    pattern = os.path.abspath(path)
    return glob.has_magic(pattern) and fnmatchcase(os.path.abspath(file), pattern)


def _files_of(path: Path) -> list[Path]:
    """The files of a table, by name; InputError if there is none, or something else among them."""
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
        _check_part(path, file)
    return files


def _check_part(path: Path, file: Path) -> None:
    if file.is_dir():
        raise InputError(
            f"{path} holds the folder {file.name!r}; tables in folders of folders, as room=a/,"
            " are not read: give one folder"
        )
    if file.suffix.lower() not in Parquet.endings:
        endings = " or ".join(Parquet.endings)
        raise InputError(
            f"{path} holds {file.name!r}; a table of several files is of Parquet alone, {endings}"
        )


def _scanned(files: Sequence[Path], name: str) -> pl.LazyFrame:
    """Parquet files as one table; InputError unless all have the same columns and types."""
    schemas = []
    for file in files:
        check_readable(file)
        with engine(unreadable(str(file), "parquet")):
            schemas.append(dict(pl.read_parquet_schema(file)))
        _check_alike(schemas[0], schemas[-1], files[0], file)
    with engine(unreadable(name, "parquet")):
        frames = [pl.scan_parquet(file, glob=False, hive_partitioning=False) for file in files]
        return pl.concat([frame.select(list(schemas[0])) for frame in frames])


def _check_alike(
    first: dict[str, pl.DataType], schema: dict[str, pl.DataType], one: Path, other: Path
) -> None:
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
