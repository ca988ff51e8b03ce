"""Tables read: CSV, Parquet, Arrow IPC and newline-delimited JSON, through polars.

What the engine says about a failure may quote cells, so it is never passed on. Text files are read
as text: types are decided later from all cells, never guessed from the first few.
"""

from __future__ import annotations

import difflib
import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from offrecord.errors import InputError
from offrecord.tables.lines import check_end, check_lines

if TYPE_CHECKING:
    import polars as pl

#: Format names and the endings of file names that stand for them.
FORMATS = {
    "csv": (".csv",),
    "parquet": (".parquet", ".pq"),
    "ipc": (".arrow", ".ipc", ".feather"),
    "ndjson": (".ndjson", ".jsonl"),
}
#: The formats that standard streams take; Arrow IPC in its stream format.
STREAMS = ("csv", "ndjson", "ipc")
MAX_ROWS = 200_000_000
_IPC_END = b"\xff\xff\xff\xff\0\0\0\0"  # how a stream of Arrow IPC says that it is complete
_SPILL, _NEVER = "POLARS_OOC_SPILL_MIN_BYTES", str(10**15)


def format_of(path: Path, named: str | None = None) -> str:
    """The format of a file: the one that is named, else by the ending of its name."""
    if named is not None:
        if named not in FORMATS:
            raise InputError(f"--format must be one of {', '.join(FORMATS)}, got {named!r}")
        return named
    for name, endings in FORMATS.items():
        if path.suffix.lower() in endings:
            return name
    known = ", ".join(ending for endings in FORMATS.values() for ending in endings)
    raise InputError(f"{path}: the name must end in {known}, or give --format")


def stream_format(named: str | None) -> str:
    """The format of a standard stream, which has no name to tell it."""
    if named not in STREAMS:
        raise InputError(
            "a standard stream needs --format csv, ndjson or ipc (Arrow's stream format)"
        )
    return named


@dataclass(frozen=True, eq=False)
class Source:
    """A table to be read. name: for messages. content: what a text format is read from."""

    name: str
    kind: str
    lazy: pl.LazyFrame
    content: Path | io.BytesIO | None = None

    @property
    def _unreadable(self) -> str:
        return _unreadable(self.name, self.kind)

    def rows(self) -> int | None:
        """How many rows there are, where that can be told without reading them."""
        import polars as pl

        if self.kind in ("csv", "ndjson"):
            return None
        with engine(self._unreadable):
            return int(collected(self.lazy.select(pl.len())).item())

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

        chosen = self._chosen(columns, text, max_rows)
        with ThreadPoolExecutor(1) as pool:
            whole = pool.submit(lambda: self._whole)  # while the engine reads
            try:
                with engine(self._unreadable):
                    frame = collected(chosen.head(max_rows + 1))
            finally:
                whole.result()  # what is wrong with lines comes before what the engine makes of it
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
        chosen = self._chosen(columns, text, max_rows)
        assert self._whole
        never_spill()
        seen = 0
        with engine(self._unreadable):
            pieces = iter(
                chosen.collect_batches(chunk_size=size, maintain_order=True, engine="streaming")
            )
        while True:
            with engine(self._unreadable):
                frame = next(pieces, None)
            if frame is None:
                return
            seen += frame.height
            self._check(seen, max_rows)
            yield frame

    def _check(self, rows: int, max_rows: int) -> None:
        if rows > max_rows:
            raise InputError(f"{self.name} has more rows than --max-rows {max_rows}")

    @cached_property
    def _whole(self) -> bool:
        """True; InputError for CSV whose lines do not have equally many cells."""
        with engine(self._unreadable):
            if self.kind == "csv" and self.content is not None:
                check_lines(self.content, self.name)
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
        if self.kind == "ndjson" and text and self.content is not None:
            kinds = {name: None if name in text else kind for name, kind in schema.items()}
            lazy = _scanned_json(self.content, kinds)
        rows = self.rows()
        if rows is not None and rows > max_rows:
            raise InputError(f"{self.name} has {rows} rows, more than --max-rows {max_rows}")
        return lazy if columns is None else lazy.select(list(columns))

    def _check_header(self, columns: Sequence[str], names: Sequence[str]) -> None:
        """InputError if a column is not there, or several are called so."""
        if self.kind != "csv":
            check_columns(columns, names, self.name)
            return
        if not set(columns) & {*names, *(name.strip() for name in names)}:
            # what stands there may be cells: none is shown
            raise InputError(
                f"{self.name} has no column of these: {', '.join(columns)}; its first line must"
                " hold the names of columns"
            )
        check_columns(columns, names, self.name, cells=True)
        twice = [name for name in columns if f"{name}_duplicated_0" in names]
        if twice:
            raise InputError(
                f"{self.name} has several columns {twice[0]!r}; give each its own name"
            )


def _unreadable(name: str, kind: str) -> str:
    return f"{name} cannot be read as {kind}: it is damaged, cut short, or of another format"


def table_file(path: str | Path, named: str | None = None) -> Source:
    """A table file; InputError for anything that is not one. An empty cell of CSV is null."""
    import polars as pl

    path = Path(path)
    kind = format_of(path, named)
    _check_readable(path)
    with engine(_unreadable(str(path), kind)):
        if kind == "csv":
            check_end(path, str(path))
        if kind in ("csv", "ndjson"):
            return Source(str(path), kind, _scanned_text(path, kind), path)
        if kind == "parquet":
            return Source(str(path), kind, pl.scan_parquet(path, glob=False))
        return Source(str(path), kind, pl.scan_ipc(escape(str(path))))


def _check_readable(path: Path) -> None:
    try:
        if not path.is_file():
            raise InputError(f"{path} is not a file" if path.exists() else f"{path} does not exist")
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty")
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def table_stream(stream: BinaryIO, named: str | None) -> Source:
    """A table from a stream, held in memory: it takes two looks to redact one."""
    import polars as pl

    kind, name = stream_format(named), "standard input"
    content = stream.read()
    if not content:
        raise InputError(f"{name} is empty")
    if kind == "ipc":
        _check_ipc(content, name)
    with engine(_unreadable(name, kind)):
        if kind == "ipc":
            return Source(name, kind, pl.read_ipc_stream(io.BytesIO(content)).lazy())
        if kind == "csv":
            check_end(io.BytesIO(content), name)
        return Source(name, kind, _scanned_text(io.BytesIO(content), kind), io.BytesIO(content))


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


def _scanned_json(
    content: Path | io.BytesIO, schema: dict[str, pl.DataType | None] | None = None
) -> pl.LazyFrame:
    """NDJSON. schema: instead of what all cells come to; None is text."""
    import polars as pl

    source = escape(str(content)) if isinstance(content, Path) else content
    if schema is None:
        return pl.scan_ndjson(source, infer_schema_length=None)
    return pl.scan_ndjson(
        source,
        schema={name: pl.String() if kind is None else kind for name, kind in schema.items()},
    )


def _scanned_text(source: Path | io.BytesIO, kind: str) -> pl.LazyFrame:
    import polars as pl

    if kind == "ndjson":
        return _scanned_json(source)
    # quoted or not, an empty cell is a missing one: that is how a redaction is written
    return pl.scan_csv(source, infer_schema=False, empty_string_is_null=True, glob=False)


def read_frame(
    path: str | Path,
    columns: Sequence[str] | None = None,
    *,
    named: str | None = None,
    max_rows: int = MAX_ROWS,
) -> pl.DataFrame:
    """The columns of a table file, all without them."""
    return table_file(path, named).read(columns, max_rows=max_rows)


def collected(lazy: pl.LazyFrame) -> pl.DataFrame:
    """What a query gives, in memory and nowhere else."""
    never_spill()
    return lazy.collect(engine="in-memory")


def never_spill() -> None:
    """Keep the engine from writing what it reads, unredacted, to disk when memory is short.

    It must fail instead.
    """
    if os.environ.get(_SPILL) != _NEVER:
        import polars as pl

        # the engine may have read its settings long ago: the variable alone is not enough
        pl.Config.load(json.dumps({"environment": {_SPILL: _NEVER}}))


def check_columns(
    wanted: Sequence[str], names: Sequence[str], where: str, *, cells: bool = False
) -> None:
    """InputError for the first column that is not there, with the nearest name.

    cells: where a header is missing, names are cells, so others are not listed.
    """
    name = next((name for name in wanted if name not in names), None)
    if name is None:
        return
    blank = next((one for one in names if one.strip() == name.strip()), None)
    if blank is not None:
        raise InputError(
            f"{where} has no column {name!r} but one called {blank!r}: remove the blanks around its"
            " name"
        )
    if nearest := difflib.get_close_matches(name, names, n=1, cutoff=0.6):
        hint = f"did you mean {nearest[0]!r}?"
    elif cells:
        hint = "is its first row a header?"
    else:
        hint = f"it has {', '.join(one[:40] for one in names[:8])}"
    raise InputError(f"{where} has no column {name!r}; {hint}")


@contextmanager
def engine(message: str) -> Iterator[None]:
    """Whatever the engine throws becomes one line without a word of its own: it may quote cells."""
    try:
        yield
    except (InputError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the engine is not an Exception
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{message.split(':', maxsplit=1)[0]}: {error.strerror}") from None
        raise InputError(message) from None
