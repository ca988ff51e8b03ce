"""Parquet: one file, a folder of files, or a pattern of their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, ClassVar

import polars as pl

from offrecord.tables.guarding import engine, unreadable
from offrecord.tables.io.folders import files_of, is_several, scanned
from offrecord.tables.io.format import GROUP, Format, ReadOptions
from offrecord.tables.io.limits import limit, unpacked_limit
from offrecord.tables.io.parquet_counts import check_columns, check_counts
from offrecord.tables.io.source import Source


@dataclass(frozen=True, eq=False)
class ParquetSource(Source):
    """A table in Parquet."""

    kind: ClassVar[str] = "parquet"

    @cached_property
    def lazy(self) -> pl.LazyFrame:
        """The table."""
        if is_several(self.path):
            return scanned(self.files, self.name)
        return pl.scan_parquet(self.path, glob=False)

    @property
    def files(self) -> list[Path]:
        """The files that it is read from."""
        return files_of(self.path) if is_several(self.path) else [self.path]

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
                most = unpacked_limit(file.stat().st_size, self.limits)
                check_counts(file, columns, unpacked=most)


class Parquet(Format):
    """Apache Parquet."""

    name = "parquet"
    endings = (".parquet", ".pq")

    def source(self, path: Path, options: ReadOptions) -> ParquetSource:
        """A table in Parquet."""
        source = ParquetSource(str(path), path, options.limits)
        for file in source.files:
            with engine(unreadable(str(file), self.name)):
                check_columns(file, limit("columns", options.limits))
        assert source.lazy is not None  # several files are checked against each other
        return source

    def write(self, frame: pl.LazyFrame, out: BinaryIO) -> None:
        """Write a table."""
        frame.sink_parquet(out, row_group_size=GROUP)
