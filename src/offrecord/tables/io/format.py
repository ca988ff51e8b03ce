"""What a file format must say of itself, what a person says of a file, and a table to be read.

What the table engine says about a failure may quote cells, so it is never passed on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, ClassVar

import polars as pl

from offrecord.errors import InputError
from offrecord.tables.column_names import check_columns
from offrecord.tables.guarding import collected, engine, memory_size, never_spill, unreadable
from offrecord.tables.io.limits import beyond, limit
from offrecord.tables.io.text import UTF8, Text, without_packing

#: Rows of a row group or record batch.
GROUP = 1 << 18


@dataclass(frozen=True)
class ReadOptions:
    """How a table file is to be read; None where that is left to the file."""

    format: str | None = None  # instead of the ending of its name
    separator: str | None = None  # of CSV, as is encoding
    encoding: str | None = None
    limits: Mapping[str, int] | None = None  # by name

    def for_kind(self, kind: str) -> ReadOptions:
        """Those that are about files of a format."""
        return self if kind == "csv" else replace(self, separator=None, encoding=None)


class Format(ABC):
    """A file format: how its files are named, opened and written."""

    name: ClassVar[str]  # also one of the endings, and `kind` of its source
    endings: ClassVar[tuple[str, ...]]
    read_endings: ClassVar[tuple[str, ...]] = ()  # names that are read, and not written
    is_text: ClassVar[bool] = False  # its files may be compressed

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


@dataclass(frozen=True, eq=False)
class Source(ABC):
    """A table to be read, at once or batch by batch. limits: by name, where they are given."""

    kind: ClassVar[str]

    path: Path
    limits: Mapping[str, int] | None

    # ---- what a format says

    @property
    @abstractmethod
    def lazy(self) -> pl.LazyFrame:
        """The table, as the engine reads it."""

    @property
    def files(self) -> list[Path]:
        """The files that it is read from."""
        return [self.path]

    @property
    def sorted_path(self) -> Path:
        """Where the command of `sorting` writes."""
        plain = without_packing(self.path)
        return plain.with_stem(f"{plain.stem}-sorted")

    @property
    def scan_options(self) -> str:
        """What polars needs to scan the file as it is read here, as Python."""
        return ""

    def typed(self, schema: Mapping[str, pl.DataType], text: Sequence[str]) -> pl.LazyFrame:
        """The table with some columns as text, where the format has no types of its own."""
        return self.lazy

    def check_header(self, columns: Sequence[str], names: Sequence[str]) -> None:
        """InputError if a column is not there."""
        check_columns(columns, names, self.name)

    def check_damage(self, columns: Sequence[str] | None) -> None:  # noqa: B027 - few need it
        """InputError for damage in columns that would end the process when it is read."""

    def check_whole(self) -> None:  # noqa: B027 - few need it
        """InputError for damage that the engine does not see. It runs beside the reading."""

    def explain_failure(self) -> None:  # noqa: B027 - few need it
        """InputError that says more, where the engine cannot read the file."""

    def check_batches(self) -> None:  # noqa: B027 - few need it
        """InputError for what cannot be read batch by batch."""

    # ---- reading

    @property
    def name(self) -> str:
        """What messages call it."""
        return str(self.path)

    @property
    def state(self) -> tuple[tuple[str, int, int, int], ...]:
        """What changes with the files."""
        found = [(str(file), file.stat()) for file in self.files]
        return tuple((name, one.st_ino, one.st_size, one.st_mtime_ns) for name, one in found)

    def rows(self) -> int | None:
        """How many rows there are, where that is known without reading them."""
        with engine(self.unreadable):
            return int(collected(self.lazy.select(pl.len())).item())

    def exceeds(self, size: int, a_row: int) -> bool:
        """Whether it would take more bytes of memory than that, with so many a row."""
        return (self.rows() or 0) * a_row > size

    def read(
        self, columns: Sequence[str] | None = None, *, text: Sequence[str] = ()
    ) -> pl.DataFrame:
        """Some columns, or all, in memory; InputError if one is not there, or a limit is exceeded.

        text: columns as text, where else a cell could leak by the type it gives to others.
        """
        with self._reading():
            chosen = self._chosen(columns, text)
            with ThreadPoolExecutor(1) as pool:
                whole = pool.submit(self._check_whole)  # while the engine reads
                try:
                    with engine(self.unreadable):
                        frame = collected(chosen.head(limit("rows", self.limits) + 1))
                finally:
                    whole.result()  # what is wrong with lines comes before what the engine says
        self._check_rows(frame.height)
        return frame

    def batches(
        self, columns: Sequence[str], size: int, *, text: Sequence[str] = ()
    ) -> Iterator[pl.DataFrame]:
        """Some columns as they stand, by about so many rows; few are held at a time."""
        self.check_batches()
        with self._reading():
            self._check_whole()
            chosen = self._chosen(columns, text)
        never_spill()
        seen = 0
        with engine(self.unreadable):
            pieces = iter(
                chosen.collect_batches(chunk_size=size, maintain_order=True, engine="streaming")
            )
        while True:
            with self._reading(), engine(self.unreadable):
                frame = next(pieces, None)
            if frame is None:
                return
            seen += frame.height
            self._check_rows(seen)
            yield frame

    def sorting(self, by: Mapping[str, pl.DataType]) -> str:
        """Python that writes the table anew, sorted by chain, with polars.

        by: the columns that name chains, with their types. Where polars has no functions called
        after `kind`, a source writes its own.
        """
        # text that is all whole numbers sorts as numbers, categories as text
        keys = ", ".join(
            f"polars.col({name!r})"
            + (f".cast(polars.{kind})" if kind.is_integer() or kind == pl.String else "")
            for name, kind in by.items()
        )
        return (
            f"polars.scan_{self.kind}({str(self.path)!r}{self.scan_options}).sort({keys},"
            f" maintain_order=True).sink_{self.kind}({str(self.sorted_path)!r}, mkdir=True)"
        )

    @property
    def unreadable(self) -> str:
        """What is said where the engine cannot read it."""
        return unreadable(self.name, self.kind)

    def _chosen(self, columns: Sequence[str] | None, text: Sequence[str]) -> pl.LazyFrame:
        with engine(self.unreadable):
            schema = self.lazy.collect_schema()
        most = limit("columns", self.limits)
        if len(schema) > most:
            raise beyond("columns", most, f"{self.name} has {len(schema):,} columns, more than")
        if columns is not None:
            self.check_header(columns, schema.names())
        self._check_rows(self.rows() or 0, exact=True)
        self.check_damage(columns)
        lazy = self.typed(schema, text)
        return lazy if columns is None else lazy.select(list(columns))

    def _check_rows(self, rows: int, *, exact: bool = False) -> None:
        """InputError for too many rows. exact: there are just so many."""
        most = limit("rows", self.limits)
        if rows > most:
            count = f"{rows} rows, more" if exact else "more rows"
            raise InputError(f"{self.name} has {count} than --limit rows={most}")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Where the engine cannot read it, say more where more is known."""
        try:
            yield
        except InputError as error:
            if str(error) == self.unreadable:
                with engine(self.unreadable):
                    self.explain_failure()
            raise

    def _check_whole(self) -> None:
        with engine(self.unreadable):
            self.check_whole()


@dataclass(frozen=True, eq=False)
class TextSource(Source):
    """A table in a text file, which may be compressed."""

    text: Text

    def rows(self) -> int | None:
        """Unknown before the file is read."""
        return None

    def exceeds(self, size: int, a_row: int) -> bool:
        """Text takes eight times its own size in memory."""
        with engine(self.unreadable):
            return self.text.exceeds(size // 8)

    def read(
        self, columns: Sequence[str] | None = None, *, text: Sequence[str] = ()
    ) -> pl.DataFrame:
        """As of any source; a text that is compressed or in another encoding is held in memory."""
        if self.text.is_plain:
            return super().read(columns, text=text)
        with engine(self.unreadable):
            held = self.text.held(memory_size())
        return replace(self, text=held).read(columns, text=text)

    def check_batches(self) -> None:
        """InputError for an encoding that the engine does not read."""
        if self.text.encoding != UTF8:
            raise InputError(
                f"{self.name} is in {self.text.encoding}, which is read at once: leave --stream"
                f" out, or convert it first: iconv -f {self.text.encoding} -t utf-8"
            )
