"""Table files in and out: CSV, Parquet, Arrow IPC and newline-delimited JSON, through polars.

What the engine says about a failure may quote cells, so it is never passed on. Text files are read
as text: types are decided later from all cells, never guessed from the first few.
"""

from __future__ import annotations

import difflib
import errno
import hashlib
import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from offrecord.errors import InputError
from offrecord.tables.lines import check_end, check_lines

if TYPE_CHECKING:
    import polars as pl
    from _typeshed import ReadableBuffer

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
_GROUP = 1 << 18  # rows of a row group or record batch
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
        return (
            f"{self.name} cannot be read as {self.kind}: it is damaged, cut short, or of another"
            " format"
        )

    def rows(self) -> int | None:
        """How many rows there are, where that can be told without reading them."""
        import polars as pl

        if self.kind in ("csv", "ndjson"):
            return None
        with _engine(self._unreadable):
            return int(collected(self.lazy.select(pl.len())).item())

    def read(
        self,
        columns: Sequence[str] | None = None,
        *,
        text: Sequence[str] = (),
        max_rows: int = MAX_ROWS,
    ) -> pl.DataFrame:
        """Some columns, or all, in memory; InputError if one is not there, or there are too many
        rows.

        text: columns that text formats give as text: else a cell could tell by the type it gives to
        others.
        """
        from concurrent.futures import ThreadPoolExecutor

        chosen = self._chosen(columns, text, max_rows)
        with ThreadPoolExecutor(1) as pool:
            whole = pool.submit(lambda: self._whole)  # while the engine reads
            try:
                with _engine(self._unreadable):
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
        """Some columns, stretch by stretch of about so many rows, in the order in which they stand;
        few are held at a time.
        """
        chosen = self._chosen(columns, text, max_rows)
        assert self._whole
        never_spill()
        seen = 0
        with _engine(self._unreadable):
            pieces = iter(
                chosen.collect_batches(chunk_size=size, maintain_order=True, engine="streaming")
            )
        while True:
            with _engine(self._unreadable):
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
        with _engine(self._unreadable):
            if self.kind == "csv" and self.content is not None:
                check_lines(self.content, self.name)
        return True

    def _chosen(
        self, columns: Sequence[str] | None, text: Sequence[str], max_rows: int
    ) -> pl.LazyFrame:
        with _engine(self._unreadable):
            schema = self.lazy.collect_schema()
        lazy, names = self.lazy, schema.names()
        if columns is not None:
            blank = {name.strip() for name in names}
            if self.kind == "csv" and not set(columns) & {
                *names,
                *blank,
            }:  # what stands there may be cells: none is shown
                wanted = ", ".join(columns)
                raise InputError(
                    f"{self.name} has no column of these: {wanted}; its first line must hold the"
                    " names of columns"
                )
            check_columns(columns, names, self.name, cells=self.kind == "csv")
            twice = [
                name for name in columns if self.kind == "csv" and f"{name}_duplicated_0" in names
            ]
            if twice:
                raise InputError(
                    f"{self.name} has several columns {twice[0]!r}; give each its own name"
                )
        if self.kind == "ndjson" and text and self.content is not None:
            lazy = _scanned_json(
                self.content,
                {name: None if name in text else kind for name, kind in schema.items()},
            )
        rows = self.rows()
        if rows is not None and rows > max_rows:
            raise InputError(f"{self.name} has {rows} rows, more than --max-rows {max_rows}")
        return lazy if columns is None else lazy.select(list(columns))


def table_file(path: str | Path, named: str | None = None) -> Source:
    """A table file; InputError for anything that is not such a file. Cells of CSV are text, an
    empty one null.
    """
    import polars as pl

    path = Path(path)
    kind = format_of(path, named)
    try:
        if not path.is_file():
            raise InputError(f"{path} is not a file" if path.exists() else f"{path} does not exist")
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty")
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    with _engine(
        f"{path} cannot be read as {kind}: it is damaged, cut short, or of another format"
    ):
        if kind == "csv":
            check_end(path, str(path))
        if kind in ("csv", "ndjson"):
            return Source(str(path), kind, _scanned_text(path, kind), path)
        lazy = (
            pl.scan_parquet(path, glob=False)
            if kind == "parquet"
            else pl.scan_ipc(escape(str(path)))
        )
    return Source(str(path), kind, lazy)


def table_stream(stream: BinaryIO, named: str | None) -> Source:
    """A table from a stream, held in memory: it takes two looks to redact one. InputError if it
    does not come to its end.
    """
    import polars as pl

    kind, name = stream_format(named), "standard input"
    content = stream.read()
    if not content:
        raise InputError(f"{name} is empty")
    if kind == "ipc" and not content.endswith(_IPC_END):
        raise InputError(
            f"{name} stops before the end of an Arrow IPC stream: it was cut short, or is of"
            " another format"
        )
    if (
        kind == "ipc"
        and _IPC_END + content[: 8 + int.from_bytes(content[4:8], "little")] in content
    ):
        raise InputError(f"{name} holds several Arrow IPC streams; give one")
    with _engine(
        f"{name} cannot be read as {kind}: it is damaged, cut short, or of another format"
    ):
        if kind == "ipc":
            return Source(name, kind, pl.read_ipc_stream(io.BytesIO(content)).lazy())
        if kind == "csv":
            check_end(io.BytesIO(content), name)
        return Source(name, kind, _scanned_text(io.BytesIO(content), kind), io.BytesIO(content))


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
    """Keep the engine from writing what it reads, unredacted, to disk when memory is short: it must
    fail instead.
    """
    if os.environ.get(_SPILL) != _NEVER:
        import polars as pl

        pl.Config.load(
            json.dumps({"environment": {_SPILL: _NEVER}})
        )  # the engine may have read its settings long ago


def check_columns(
    wanted: Sequence[str], names: Sequence[str], where: str, *, cells: bool = False
) -> None:
    """InputError for the first column that is not there, with the nearest name.

    cells: where a header is missing, names are cells, so others are not listed.
    """
    for name in wanted:
        if name not in names:
            blank = next((one for one in names if one.strip() == name.strip()), None)
            if blank is not None:
                raise InputError(
                    f"{where} has no column {name!r} but one called {blank!r}: remove the blanks"
                    " around its name"
                )
            nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
            others = (
                "is its first row a header?"
                if cells
                else f"it has {', '.join(one[:40] for one in names[:8])}"
            )
            hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; {others}"
            raise InputError(f"{where} has no column {name!r}{hint}")


def check_holds(frame: pl.DataFrame, kind: str) -> None:
    """InputError for a column that a format cannot hold."""
    import polars as pl

    for name, held in frame.schema.items():
        nested = held.is_nested()
        if (kind == "csv" and (nested or held in (pl.Binary, pl.Duration))) or (
            kind == "ndjson" and _binary(held)
        ):
            raise InputError(
                f"column {name!r} holds {type(held).__name__}, which {kind.upper()} cannot; write"
                " another format"
            )


def _binary(kind: pl.DataType) -> bool:
    import polars as pl

    inner = [getattr(kind, name) for name in ("inner", "key", "value") if hasattr(kind, name)]
    inner += (
        [field.dtype for field in getattr(kind, "fields", [])]
        if isinstance(kind, pl.Struct)
        else []
    )
    return kind == pl.Binary or any(_binary(one) for one in inner)


def write_frame(frame: pl.LazyFrame, path: Path, kind: str) -> None:
    """Write a table file in place; whoever calls takes care that nobody sees it half-written.

    The same rows give the same bytes, whether they come at once or piece by piece. The engine gets
    an open file, never its
    name: after a failure its threads may still run, and would make the file anew when it has been
    removed.
    """
    import polars as pl

    never_spill()
    with (
        _engine(f"{path.parent} cannot hold the output: is the disk full?"),
        path.open("wb") as out,
    ):
        if kind == "parquet":
            frame.sink_parquet(out, row_group_size=_GROUP)
        elif kind == "csv":
            names = frame.collect_schema().names()
            if len(names) == 1:
                out.write(_single_column(collected(frame)))
            else:
                frame.sink_csv(out, null_value="")
        elif kind == "ndjson":
            frame.sink_ndjson(out)
        else:
            # the oldest layout stores each cell's own text, never a buffer shared with cells that
            # are gone
            oldest = pl.CompatLevel.oldest()
            frame.sink_ipc(out, compression="zstd", compat_level=oldest, record_batch_size=_GROUP)


def stream_frame(frame: pl.DataFrame, out: BinaryIO, kind: str) -> str:
    """Write a table to a stream (Arrow IPC in its stream format); the SHA-256 of what
    went there.
    """
    import polars as pl

    hashing = _Hashing(out)
    there = cast("BinaryIO", hashing)
    with _engine("the output stream was closed before the end"):
        if kind == "csv" and frame.width == 1:
            hashing.write(_single_column(frame))
        elif kind == "csv":
            frame.write_csv(there, null_value="")
        elif kind == "ndjson":
            frame.write_ndjson(there)
        else:
            frame.write_ipc_stream(there, compat_level=pl.CompatLevel.oldest())
        if hashing.failure is not None:
            raise hashing.failure
        out.flush()
    return hashing.digest.hexdigest()


class _Hashing(io.RawIOBase):
    """Passes bytes on to a stream, and their digest."""

    def __init__(self, out: BinaryIO) -> None:
        self.out, self.digest = out, hashlib.sha256()
        self.failure: OSError | None = None  # the engine may not say that a write failed

    def writable(self) -> bool:
        return True

    def write(self, content: ReadableBuffer) -> int:
        size = len(memoryview(content))
        self.digest.update(content)
        try:
            if self.out.write(content) != size:
                raise BlockingIOError(errno.EAGAIN, "it does not take all at once")
        except OSError as error:
            self.failure = error
            raise
        return size


def _single_column(frame: pl.DataFrame) -> bytes:
    """One column of CSV: an empty cell as a pair of quotes, since readers skip empty lines."""
    import csv

    import polars as pl

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(frame.columns)
    for (cell,) in frame.cast(pl.String).iter_rows():
        writer.writerow(["" if cell is None else cell])
    return text.getvalue().encode()


@contextmanager
def _engine(message: str) -> Iterator[None]:
    """Whatever the engine throws becomes one line without a word of its own: it may quote cells."""
    try:
        yield
    except (InputError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the engine is not an Exception
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{message.split(':', maxsplit=1)[0]}: {error.strerror}") from None
        raise InputError(message) from None
