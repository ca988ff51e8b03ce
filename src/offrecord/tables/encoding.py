"""Tables as the bytes of a format."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import polars as pl

from offrecord.errors import InputError
from offrecord.tables.guarding import collected, engine, never_spill
from offrecord.tables.packing import packed

_GROUP = 1 << 18  # rows of a row group or record batch


def check_holds(frame: pl.DataFrame, kind: str) -> None:
    """InputError for a column that a format cannot hold."""
    for name, held in frame.schema.items():
        no_cell = held.is_nested() or held in (pl.Binary, pl.Duration)
        if (kind == "csv" and no_cell) or (kind == "ndjson" and _holds_bytes(held)):
            raise InputError(
                f"column {name!r} holds {type(held).__name__}, which {kind.upper()} cannot; write"
                " another format"
            )


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
        else:
            # the oldest layout stores each cell's own text, never a buffer shared with cells that
            # are gone
            oldest = pl.CompatLevel.oldest()
            frame.sink_ipc(out, compression="zstd", compat_level=oldest, record_batch_size=_GROUP)


def _single_column(frame: pl.DataFrame) -> bytes:
    """One column of CSV: an empty cell as a pair of quotes, since readers skip empty lines."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(frame.columns)
    for (cell,) in frame.cast(pl.String).iter_rows():
        writer.writerow(["" if cell is None else cell])
    return text.getvalue().encode()
