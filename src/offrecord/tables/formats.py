"""Table files in and out: CSV, Parquet, Arrow IPC and newline-delimited JSON, through polars.

What the engine says about a failure may quote cells, so it is never passed on. Text files are read as text: types are decided
later from all cells, never guessed from the first few.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from offrecord.errors import InputError

if TYPE_CHECKING:
    import polars as pl

#: Format names and the endings of file names that stand for them.
FORMATS = {
    "csv": (".csv",),
    "parquet": (".parquet", ".pq"),
    "ipc": (".arrow", ".ipc", ".feather"),
    "ndjson": (".ndjson", ".jsonl"),
}
MAX_ROWS = 200_000_000
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


def read_frame(
    path: str | Path, columns: Sequence[str] | None = None, *, named: str | None = None, max_rows: int = MAX_ROWS
) -> pl.DataFrame:
    """The columns of a table file (all without them); InputError for anything that is not such a file, or is too long.

    Cells of CSV are text, an empty one null.
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
    unreadable = f"{path} cannot be read as {kind}: it is damaged, cut short, or of another format"
    with _engine(unreadable):
        if kind == "ndjson":
            lazy = pl.scan_ndjson(escape(str(path)), infer_schema_length=None)
        elif kind == "csv":
            # quoted or not, an empty cell is a missing one: that is how a redaction is written
            lazy = pl.scan_csv(path, infer_schema=False, empty_string_is_null=True, glob=False)
        else:
            lazy = pl.scan_parquet(path, glob=False) if kind == "parquet" else pl.scan_ipc(escape(str(path)))
        names = lazy.collect_schema().names()
    if columns is not None:
        if kind == "csv" and not set(columns) & set(names):  # then what stands there may be cells: none is shown
            wanted = ", ".join(columns)
            raise InputError(f"{path} has no column of these: {wanted}; its first line must hold the names of columns")
        check_columns(columns, names, str(path), cells=kind == "csv")
    with _engine(unreadable):
        if kind in ("parquet", "ipc"):
            rows = int(collected(lazy.select(pl.len())).item())
            if rows > max_rows:
                raise InputError(f"{path} has {rows} rows, more than --max-rows {max_rows}")
        chosen = lazy if columns is None else lazy.select(list(columns))
        frame = collected(chosen.head(max_rows + 1) if kind in ("csv", "ndjson") else chosen)
    if frame.height > max_rows:
        raise InputError(f"{path} has more rows than --max-rows {max_rows}")
    return frame


def collected(lazy: pl.LazyFrame) -> pl.DataFrame:
    """What a query gives, in memory and nowhere else."""
    never_spill()
    return lazy.collect(engine="in-memory")


def never_spill() -> None:
    """Keep the engine from writing what it reads, unredacted, to disk when memory is short: it must fail instead."""
    if os.environ.get(_SPILL) != _NEVER:
        import polars as pl

        pl.Config.load(json.dumps({"environment": {_SPILL: _NEVER}}))  # the engine may have read its settings long ago


def check_columns(wanted: Sequence[str], names: Sequence[str], where: str, *, cells: bool = False) -> None:
    """InputError for the first column that is not there, with the nearest name.

    cells: where a header is missing, names are cells, so others are not listed.
    """
    for name in wanted:
        if name not in names:
            nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
            others = "is its first row a header?" if cells else f"it has {', '.join(one[:40] for one in names[:8])}"
            hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; {others}"
            raise InputError(f"{where} has no column {name!r}{hint}")


def check_holds(frame: pl.DataFrame, kind: str) -> None:
    """InputError for a column that a format cannot hold."""
    import polars as pl

    for name, held in frame.schema.items():
        nested = held.is_nested()
        if (kind == "csv" and (nested or held in (pl.Binary, pl.Duration))) or (kind == "ndjson" and _binary(held)):
            raise InputError(f"column {name!r} holds {type(held).__name__}, which {kind.upper()} cannot; write another format")


def _binary(kind: pl.DataType) -> bool:
    import polars as pl

    inner = [getattr(kind, name) for name in ("inner", "key", "value") if hasattr(kind, name)]
    inner += [field.dtype for field in getattr(kind, "fields", [])] if isinstance(kind, pl.Struct) else []
    return kind == pl.Binary or any(_binary(one) for one in inner)


def write_frame(frame: pl.DataFrame, path: Path, kind: str) -> None:
    """Write a table file in place; whoever calls takes care that nobody sees it half-written."""
    import polars as pl

    check_holds(frame, kind)
    with _engine(f"{path.parent} cannot hold the output: is the disk full?"):
        if kind == "parquet":
            frame.write_parquet(path)
        elif kind == "csv" and frame.width == 1:
            _write_single_column(frame, path)
        elif kind == "csv":
            frame.write_csv(path, null_value="", check_extension=False)
        elif kind == "ndjson":
            frame.write_ndjson(path)
        else:
            # the oldest layout stores each cell's own text, never a buffer shared with cells that are gone
            frame.write_ipc(path, compression="zstd", compat_level=pl.CompatLevel.oldest())


def _write_single_column(frame: pl.DataFrame, path: Path) -> None:
    """One column of CSV: an empty cell as a pair of quotes, since readers skip empty lines."""
    import csv

    import polars as pl

    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(frame.columns)
        for (cell,) in frame.cast(pl.String).iter_rows():
            writer.writerow(["" if cell is None else cell])


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
