"""What a file format must say of itself, and what a person says of a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, ClassVar

import polars as pl

from offrecord.errors import InputError
from offrecord.tables.io.source import Source

#: Rows of a row group or record batch.
GROUP = 1 << 18


@dataclass(frozen=True)
class ReadOptions:
    """How a table file is to be read; None where that is left to the file.

    format: instead of the ending of its name. separator, encoding: of CSV. limits: by name.
    """

    format: str | None = None
    separator: str | None = None
    encoding: str | None = None
    limits: Mapping[str, int] | None = None

    def for_kind(self, kind: str) -> ReadOptions:
        """Those that are about files of a format."""
        return self if kind == "csv" else replace(self, separator=None, encoding=None)


class Format(ABC):
    """A file format: how its files are named, opened and written.

    name: also one of the endings, and `kind` of its source. read_endings: names that are read, and
    not written. is_text: its files may be compressed.
    """

    name: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    read_endings: ClassVar[tuple[str, ...]] = ()
    is_text: ClassVar[bool] = False

    @abstractmethod
    def source(self, path: Path, options: ReadOptions) -> Source:
        """A table to be read; InputError for a file that is none. It exists and is not empty."""

    @abstractmethod
    def write(self, frame: pl.LazyFrame, out: BinaryIO) -> None:
        """Write a table: the same rows give the same bytes, at once or piece by piece."""

    def holds(self, kind: pl.DataType) -> bool:
        """Whether a column of this type can be written."""
        return True

    def check_holds(self, frame: pl.DataFrame) -> None:
        """InputError for a column that the format cannot hold."""
        for name, kind in frame.schema.items():
            if not self.holds(kind):
                raise InputError(
                    f"column {name!r} holds {type(kind).__name__}, which {self.name.upper()}"
                    " cannot; write another format"
                )
