"""Tables read: CSV, Parquet, Arrow IPC and newline-delimited JSON, through polars, and Excel's.

What the engine says about a failure may quote cells, so it is never passed on. Text files are read
as text: types are decided later from all cells, never guessed from the first few.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import BinaryIO

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
from offrecord.tables.texts import UTF8, Text, encoding_beside, separator_of, text_at

#: Format names and the endings of file names that stand for them.
FORMATS = {
    "csv": (".csv",),
    "parquet": (".parquet", ".pq"),
    "ipc": (".arrow", ".ipc", ".feather"),
    "ndjson": (".ndjson", ".jsonl"),
    "xlsx": (".xlsx",),
}
#: The formats of text, which may be packed.
TEXTS = ("csv", "ndjson")
#: Endings of tables in CSV whose cells are separated by tabs: read, not written.
TABBED = (".tsv", ".tab")
#: The formats that standard streams take; Arrow IPC in its stream format.
STREAMS = ("csv", "ndjson", "ipc")
_IPC_END = b"\xff\xff\xff\xff\0\0\0\0"  # how a stream of Arrow IPC says that it is complete


@dataclass(frozen=True)
class Said:
    """What a person says of how a table file is to be read; None where it is left to the file.

    format: instead of the ending of its name. separator, encoding: of CSV. sheet: of a workbook.
    """

    format: str | None = None
    separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None

    def for_kind(self, kind: str) -> Said:
        """What of it is about files of a format."""
        said = self if kind == "csv" else replace(self, separator=None, encoding=None)
        return said if kind == "xlsx" else replace(said, sheet=None)


NOTHING_SAID = Said()


def format_of(path: Path, named: str | None = None) -> str:
    """The format of a file: the one that is named, else by the ending of its name.

    InputError if it is packed and its format packs by itself.
    """
    packing = packing_of(path)
    kind = _named(named) or _by_ending(path.with_suffix("") if packing else path)
    if kind is None:
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
    if kind == "xlsx":
        from offrecord.tables.workbooks import check_writer

        check_writer()
    return kind


def stream_format(named: str | None) -> str:
    """The format of a standard stream, which has no name to tell it."""
    if named not in STREAMS:
        raise InputError(
            "a standard stream needs --format csv, ndjson or ipc (Arrow's stream format)"
        )
    return named


@dataclass(frozen=True, eq=False)
class Source:
    """A table to be read. name: for messages. origin: where its files are, None for a stream.

    frame: what it is read from, unless it is text.
    """

    name: str
    kind: str
    origin: Path | None = None
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
        assert self.origin is not None
        return files_of(self.origin) if is_several(self.origin) else [self.origin]

    def sorting(self, by: Sequence[str]) -> str:
        """Python that writes the table anew, its chains together, with polars."""
        assert self.origin is not None
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
            f"polars.scan_{self.kind}({str(origin)!r}{reading}).sort({list(by)!r},"
            f" maintain_order=True).sink_{self.kind}({str(there)!r}{writing})"
        )

    @property
    def _unreadable(self) -> str:
        return unreadable(self.name, self.kind)

    def rows(self) -> int | None:
        """How many rows there are, where that can be told without reading them."""
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

        text: columns that text formats give as text: else a cell could tell by the type it gives to
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
        return self._with_days(frame, text)

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
        if self.kind == "xlsx":
            raise InputError(
                f"{self.name} is a workbook, which is read at once: leave --stream out"
            )
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

    def _with_days(self, frame: pl.DataFrame, text: Sequence[str]) -> pl.DataFrame:
        """What a workbook holds as days, all midnights, as such; text: stays as it is."""
        from offrecord.tables.workbooks import as_days

        if self.kind != "xlsx":
            return frame
        return frame.with_columns(as_days(frame[one]) for one in frame.columns if one not in text)

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
        check_columns(columns, names, self.name, cells=self.kind in ("csv", "xlsx"))
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
        if kind == "xlsx":
            from offrecord.tables.workbooks import sheet_frame

            return Source(name, kind, path, sheet_frame(path, said.sheet).lazy())
        return Source(name, kind, path, pl.scan_ipc(escape(name)))


def _check_said(said: Said, kind: str, name: str) -> None:
    """InputError for what is said of another format."""
    beside = said.for_kind(kind)
    for option, of in (("separator", "CSV"), ("encoding", "CSV"), ("sheet", "workbooks")):
        if getattr(said, option) != getattr(beside, option):
            raise InputError(f"--{option} is for {of}; {name} is {kind}")


def _separated(text: Text, kind: str, said: Said, is_tabbed: bool) -> Text:
    """A text with its separator, if it is CSV; InputError if that plainly is not whole."""
    if kind != "csv":
        return text
    separator = said.separator or ("tab" if is_tabbed else None)
    text = replace(text, separator=separator_of(text, separator))
    if text.is_plain:
        check_end(text)
    return text


def table_stream(stream: BinaryIO, said: Said) -> Source:
    """A table from a stream, held in memory: it takes two looks to redact one."""
    kind, name = stream_format(said.format), "standard input"
    _check_said(said, kind, name)
    content = stream.read()
    if not content:
        raise InputError(f"{name} is empty")
    if kind == "ipc":
        _check_ipc(content, name)
    with engine(unreadable(name, kind)):
        if kind == "ipc":
            return Source(name, kind, frame=pl.read_ipc_stream(io.BytesIO(content)).lazy())
        text = text_at(content, name, None, said.encoding, kind)
        return Source(name, kind, text=_separated(text, kind, said, is_tabbed=False))


def _check_ipc(content: bytes, name: str) -> None:
    """InputError unless it is one stream of Arrow IPC, up to its end."""
    if not content.endswith(_IPC_END):
        raise InputError(
            f"{name} stops before the end of an Arrow IPC stream: it was cut short, or is of"
            " another format"
        )
    schema = content[: 8 + int.from_bytes(content[4:8], "little")]
    if _IPC_END + schema in content:
        raise InputError(f"{name} holds several Arrow IPC streams; give one")


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

    said: of its table; what it says of CSV goes for the list too, as far as that is so.
    """
    path = Path(path)
    kind = table_format(path)
    said = replace(said, format=None, sheet=None).for_kind(kind)
    if kind == "csv":
        check_readable(path)
        with engine(unreadable(str(path), kind)):
            found = encoding_beside(path, packing_of(path), said.encoding, memory_size())
        said = replace(said, encoding=found)
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
