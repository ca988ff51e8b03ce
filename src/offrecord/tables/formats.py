"""Tables read: CSV, Parquet, Arrow IPC and newline-delimited JSON, through polars.

What the engine says about a failure may quote cells, so it is never passed on. Text files are read
as text: types are decided later from all cells, never guessed from the first few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from glob import escape
from pathlib import Path

import polars as pl

from offrecord.errors import InputError
from offrecord.parquet import check_counts
from offrecord.tables.column_names import check_columns
from offrecord.tables.folders import files_of, is_several, scanned
from offrecord.tables.guarding import (
    check_readable,
    collected,
    engine,
    memory_size,
    never_spill,
    unreadable,
)
from offrecord.tables.lines import check_end, check_lengths, check_lines
from offrecord.tables.options import MAX_ROWS
from offrecord.tables.packing import PACKINGS, packing_of
from offrecord.tables.texts import UTF8, Text, marked_encoding, separator_of, text_at

#: Format names and the endings of file names that stand for them.
FORMATS = {
    "csv": (".csv",),
    "parquet": (".parquet", ".pq"),
    "ipc": (".arrow", ".ipc", ".feather"),
    "ndjson": (".ndjson", ".jsonl"),
}
#: The formats of text, which may be packed.
TEXTS = ("csv", "ndjson")
#: Endings of tables in CSV whose cells are separated by tabs: read, not written.
TABBED = (".tsv", ".tab")
#: Endings of spreadsheets, which are not read.
_SHEETS = (".xlsx", ".xls", ".ods")


@dataclass(frozen=True)
class Said:
    """What a person says of how a table file is to be read; None where it is left to the file.

    format: instead of the ending of its name. separator, encoding: of CSV.
    """

    format: str | None = None
    separator: str | None = None
    encoding: str | None = None

    def for_kind(self, kind: str) -> Said:
        """What of it is about files of a format."""
        return self if kind == "csv" else replace(self, separator=None, encoding=None)


NOTHING_SAID = Said()


def format_of(path: Path, named: str | None = None) -> str:
    """The format of a file: the one that is named, else by the ending of its name.

    InputError if it is packed and its format packs by itself.
    """
    packing = packing_of(path)
    kind = _named(named) or _by_ending(path.with_suffix("") if packing else path)
    if kind is None:
        if path.suffix.lower() in _SHEETS:
            raise InputError(
                f"{path} is a spreadsheet, which is neither read nor written: save it as CSV"
            )
        known = ", ".join(ending for endings in FORMATS.values() for ending in endings)
        packed = " or ".join(f".csv{ending}" for ending in PACKINGS)
        raise InputError(f"{path}: the name must end in {known}, {packed}, or give --format")
    if packing and kind not in TEXTS:
        raise InputError(
            f"{path}: {kind} has compression of its own; leave {path.suffix} away, or unpack it"
        )
    return kind


def _named(named: str | None) -> str | None:
    if named is not None and named not in FORMATS:
        raise InputError(f"--format must be one of {', '.join(FORMATS)}, got {named!r}")
    return named


def _by_ending(path: Path) -> str | None:
    ending = path.suffix.lower()
    if ending in TABBED:
        return "csv"
    return next((name for name, endings in FORMATS.items() if ending in endings), None)


def is_tabbed(path: Path) -> bool:
    """The ending of a name says that tabs separate cells."""
    return (path.with_suffix("") if packing_of(path) else path).suffix.lower() in TABBED


def table_format(path: Path, named: str | None = None) -> str:
    """The format of a table to read; one of several files is of Parquet."""
    if not is_several(path):
        return format_of(path, named)
    if _named(named) not in (None, "parquet"):
        raise InputError(f"{path}: a table of several files is of Parquet alone, got {named}")
    return "parquet"


def written_format(path: Path, named: str | None = None) -> str:
    """The format of a file to write."""
    kind = format_of(path, named)
    if is_tabbed(path) and named is None:
        raise InputError(f"{path}: CSV is written with commas; end its name in .csv")
    return kind


@dataclass(frozen=True, eq=False)
class Source:
    """A table to be read. name: for messages. origin: where its files are.

    frame: what it is read from, unless it is text.
    """

    name: str
    kind: str
    origin: Path
    frame: pl.LazyFrame | None = None
    text: Text | None = None

    @cached_property
    def lazy(self) -> pl.LazyFrame:
        """The table, as the engine reads it."""
        if self.frame is not None:
            return self.frame
        assert self.text is not None
        return _scanned_text(self.text, self.kind)

    @property
    def state(self) -> tuple[tuple[str, int, int, int], ...]:
        """What changes with the files."""
        found = [(str(file), file.stat()) for file in self._files]
        return tuple((name, one.st_ino, one.st_size, one.st_mtime_ns) for name, one in found)

    @property
    def _files(self) -> list[Path]:
        """What it is read from."""
        return files_of(self.origin) if is_several(self.origin) else [self.origin]

    def sorting(self, by: Mapping[str, pl.DataType]) -> str:
        """Python that writes the table anew, sorted by chain, with polars.

        by: the columns that name chains, with the types by which they sort: text that is all whole
        numbers sorts as numbers, categories as text.
        """
        keys = ", ".join(
            f"polars.col({name!r})"
            + (f".cast(polars.{kind})" if kind.is_integer() or kind == pl.String else "")
            for name, kind in by.items()
        )
        origin, reading, writing = self.origin, "", ""
        plain = origin.with_suffix("") if packing_of(origin) else origin
        there = plain.with_stem(f"{plain.stem}-sorted")
        if is_several(origin):
            # where neither the folder nor the pattern takes it for one of its own
            there, writing = Path("sorted") / "table.parquet", ", mkdir=True"
            reading = ", hive_partitioning=False, hidden_file_prefix=['.', '_']"
        if self.kind == "csv" and self.text is not None:
            there, reading = there.with_suffix(".csv"), ", infer_schema=False"
            reading += "" if self.text.separator == "," else f", separator={self.text.separator!r}"
        return (
            f"polars.scan_{self.kind}({str(origin)!r}{reading}).sort({keys},"
            f" maintain_order=True).sink_{self.kind}({str(there)!r}{writing})"
        )

    @property
    def _unreadable(self) -> str:
        return unreadable(self.name, self.kind)

    def rows(self) -> int | None:
        """How many rows there are, where that is known without reading them."""
        if self.text is not None:
            return None
        with engine(self._unreadable):
            return int(collected(self.lazy.select(pl.len())).item())

    def exceeds(self, size: int, a_row: int) -> bool:
        """In memory it would take more bytes than that, with so many a row; text takes eight times
        its own size.
        """
        rows = self.rows()
        if rows is not None:
            return rows * a_row > size
        assert self.text is not None
        with engine(self._unreadable):
            return self.text.exceeds(size // 8)

    def read(
        self,
        columns: Sequence[str] | None = None,
        *,
        text: Sequence[str] = (),
        max_rows: int = MAX_ROWS,
    ) -> pl.DataFrame:
        """Some columns, or all, in memory; InputError if one is not there, or rows are too many.

        text: columns that text formats give as text: else a cell could leak by the type it gives to
        others.
        """
        from concurrent.futures import ThreadPoolExecutor

        if self.text is not None and not self.text.is_plain:
            with engine(self._unreadable):
                held = self.text.held(memory_size())
            return replace(self, text=held).read(columns, text=text, max_rows=max_rows)
        with self._reading():
            chosen = self._chosen(columns, text, max_rows)
            with ThreadPoolExecutor(1) as pool:
                whole = pool.submit(lambda: self._whole)  # while the engine reads
                try:
                    with engine(self._unreadable):
                        frame = collected(chosen.head(max_rows + 1))
                finally:
                    whole.result()  # what is wrong with lines comes before what the engine says
        self._check(frame.height, max_rows)
        return frame

    def batches(
        self,
        columns: Sequence[str],
        size: int,
        *,
        text: Sequence[str] = (),
        max_rows: int = MAX_ROWS,
    ) -> Iterator[pl.DataFrame]:
        """Some columns as they stand, by about so many rows; few are held at a time."""
        self._check_streamed()
        with self._reading():
            assert self._whole
            chosen = self._chosen(columns, text, max_rows)
        never_spill()
        seen = 0
        with engine(self._unreadable):
            pieces = iter(
                chosen.collect_batches(chunk_size=size, maintain_order=True, engine="streaming")
            )
        while True:
            with self._reading(), engine(self._unreadable):
                frame = next(pieces, None)
            if frame is None:
                return
            seen += frame.height
            self._check(seen, max_rows)
            yield frame

    def _check(self, rows: int, max_rows: int) -> None:
        if rows > max_rows:
            raise InputError(f"{self.name} has more rows than --limit rows={max_rows}")

    def _check_streamed(self) -> None:
        """InputError for what cannot be read part by part."""
        if self.text is not None and self.text.encoding != UTF8:
            raise InputError(
                f"{self.name} is in {self.text.encoding}, which is read at once: leave --stream"
                f" out, or convert it first: iconv -f {self.text.encoding} -t utf-8"
            )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Where the engine cannot read a text, say whether that is because of its encoding."""
        try:
            yield
        except InputError as error:
            if self.kind == "csv" and self.text is not None and str(error) == self._unreadable:
                with engine(self._unreadable):
                    self.text.check_utf8()
            raise

    @cached_property
    def _whole(self) -> bool:
        """True; InputError for CSV whose lines do not have equally many cells."""
        if self.text is None:
            return True
        with engine(self._unreadable):
            if self.kind == "csv":
                check_lines(self.text)
            elif self.text.packing is not None:
                check_lengths(self.text)
        return True

    def _chosen(
        self, columns: Sequence[str] | None, text: Sequence[str], max_rows: int
    ) -> pl.LazyFrame:
        """The columns that are asked for, once they are known to be there."""
        with engine(self._unreadable):
            schema = self.lazy.collect_schema()
        lazy = self.lazy
        if columns is not None:
            self._check_header(columns, schema.names())
        if self.kind == "ndjson" and text and self.text is not None:
            kinds = {name: None if name in text else kind for name, kind in schema.items()}
            lazy = _scanned_json(self.text, kinds)
        rows = self.rows()
        if rows is not None and rows > max_rows:
            raise InputError(f"{self.name} has {rows} rows, more than --limit rows={max_rows}")
        if self.kind == "parquet":
            for file in self._files:
                with engine(unreadable(str(file), self.kind)):
                    check_counts(file, columns)
        return lazy if columns is None else lazy.select(list(columns))

    def _check_header(self, columns: Sequence[str], names: Sequence[str]) -> None:
        """InputError if a column is not there, or several are called so."""
        check_columns(columns, names, self.name, cells=self.kind == "csv")
        twice = [name for name in columns if f"{name}_duplicated_0" in names]
        if twice and self.kind == "csv":
            raise InputError(
                f"{self.name} has several columns {twice[0]!r}; give each its own name"
            )


def table_file(path: str | Path, said: Said = NOTHING_SAID) -> Source:
    """A table file, or several of Parquet: a folder of them, or a pattern of their names.

    InputError for anything that is none. An empty cell of CSV is null.
    """
    path = Path(path)
    name = str(path)
    kind = table_format(path, said.format)
    _check_said(said, kind, name)
    if is_several(path):
        return Source(name, kind, path, scanned(files_of(path), name))
    check_readable(path)
    with engine(unreadable(name, kind)):
        if kind in TEXTS:
            text = text_at(path, name, packing_of(path), said.encoding, kind)
            return Source(name, kind, path, text=_separated(text, kind, said, is_tabbed(path)))
        if kind == "parquet":
            return Source(name, kind, path, pl.scan_parquet(path, glob=False))
        return Source(name, kind, path, pl.scan_ipc(escape(name)))


def _check_said(said: Said, kind: str, name: str) -> None:
    """InputError for what is said of another format."""
    beside = said.for_kind(kind)
    for option in ("separator", "encoding"):
        if getattr(said, option) != getattr(beside, option):
            raise InputError(f"--{option} is for CSV; {name} is {kind}")


def _separated(text: Text, kind: str, said: Said, is_tabbed: bool) -> Text:
    """A text with its separator, if it is CSV; InputError if that plainly is not whole."""
    if kind != "csv":
        return text
    separator = said.separator or ("tab" if is_tabbed else None)
    text = replace(text, separator=separator_of(text, separator))
    if text.is_plain:
        check_end(text)
    return text


def _scanned_json(text: Text, schema: dict[str, pl.DataType | None] | None = None) -> pl.LazyFrame:
    """NDJSON. schema: instead of what all cells come to; None is text."""
    source = escape(str(text.origin)) if isinstance(text.origin, Path) else text.origin
    if schema is None:
        return pl.scan_ndjson(source, infer_schema_length=None)
    return pl.scan_ndjson(
        source,
        schema={name: pl.String() if kind is None else kind for name, kind in schema.items()},
    )


def _scanned_text(text: Text, kind: str) -> pl.LazyFrame:
    if kind == "ndjson":
        return _scanned_json(text)
    # quoted or not, an empty cell is a missing one: that is how a redaction is written
    return pl.scan_csv(
        text.origin,
        separator=text.separator,
        infer_schema=False,
        empty_string_is_null=True,
        glob=False,
    )


def read_list(
    path: str | Path, said: Said = NOTHING_SAID, *, max_rows: int = MAX_ROWS
) -> pl.DataFrame:
    """All columns of a private list.

    said: of its table; what it says of CSV goes for the list too, but for a byte order mark.
    """
    path = Path(path)
    kind = table_format(path)
    said = replace(said, format=None).for_kind(kind)
    if kind == "csv":
        check_readable(path)
        with engine(unreadable(str(path), kind)):
            said = replace(said, encoding=marked_encoding(path) or said.encoding)
    return read_frame(path, said=said, max_rows=max_rows)


def read_frame(
    path: str | Path,
    columns: Sequence[str] | None = None,
    *,
    said: Said = NOTHING_SAID,
    max_rows: int = MAX_ROWS,
) -> pl.DataFrame:
    """The columns of a table file, all without them."""
    return table_file(path, said).read(columns, max_rows=max_rows)
