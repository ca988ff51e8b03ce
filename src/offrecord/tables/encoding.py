"""Tables as the bytes of a format: in files, and in streams with the digest of what went there."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import polars as pl

from offrecord.errors import InputError
from offrecord.tables.guarding import collected, engine, never_spill
from offrecord.tables.packing import packed
from offrecord.tables.workbooks import check_sheet, workbook_bytes

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_GROUP = 1 << 18  # rows of a row group or record batch


def check_holds(frame: pl.DataFrame, kind: str) -> None:
    """InputError for a column that a format cannot hold."""
    for name, held in frame.schema.items():
        no_cell = held.is_nested() or held in (pl.Binary, pl.Duration)
        if (kind in ("csv", "xlsx") and no_cell) or (kind == "ndjson" and _holds_bytes(held)):
            raise InputError(
                f"column {name!r} holds {type(held).__name__}, which {kind.upper()} cannot; write"
                " another format"
            )
    if kind == "xlsx":
        check_sheet(frame)


def _holds_bytes(kind: pl.DataType) -> bool:
    """The type is bytes, or something within it is."""
    inner = [getattr(kind, name) for name in ("inner", "key", "value") if hasattr(kind, name)]
    if isinstance(kind, pl.Struct):
        inner += [field.dtype for field in kind.fields]
    return kind == pl.Binary or any(_holds_bytes(one) for one in inner)


def write_frame(frame: pl.LazyFrame, path: Path, kind: str, packing: str | None = None) -> None:
    """Write a table file in place; whoever calls takes care that nobody sees it half-written.

    The same rows give the same bytes, whether they come at once or piece by piece. The engine gets
    an open file, never its name: after a failure its threads may still run, and would make the file
    anew when it has been removed.
    """
    never_spill()
    sheet = b""
    if kind == "xlsx":
        with engine(f"{path.parent} cannot hold the output: it cannot be made a workbook"):
            sheet = workbook_bytes(collected(frame))
    full = f"{path.parent} cannot hold the output: is the disk full?"
    with engine(full), path.open("wb") as file, packed(file, packing) as out:
        if kind == "parquet":
            frame.sink_parquet(out, row_group_size=_GROUP)
        elif kind == "csv":
            if len(frame.collect_schema().names()) == 1:
                out.write(_single_column(collected(frame)))
            else:
                frame.sink_csv(out, null_value="")
        elif kind == "ndjson":
            frame.sink_ndjson(out)
        elif kind == "xlsx":
            out.write(sheet)
        else:
            # the oldest layout stores each cell's own text, never a buffer shared with cells that
            # are gone
            oldest = pl.CompatLevel.oldest()
            frame.sink_ipc(out, compression="zstd", compat_level=oldest, record_batch_size=_GROUP)


def stream_frame(frame: pl.DataFrame, out: BinaryIO, kind: str) -> str:
    """Write a table to a stream (Arrow IPC in its stream format); the SHA-256 of its bytes."""
    hashing = _Hashing(out)
    there = cast("BinaryIO", hashing)
    with engine("the output stream was closed before the end"):
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
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(frame.columns)
    for (cell,) in frame.cast(pl.String).iter_rows():
        writer.writerow(["" if cell is None else cell])
    return text.getvalue().encode()
