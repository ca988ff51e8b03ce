"""Twins: tables that differ in records that are redacted whatever happens, and nowhere else."""

from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import offrecord as off
from explained import explained
from needles import NEEDLE, NEEDLE_FLOAT, NEEDLE_INT
from table_files import write

NAMES = ("ann", "bob-has-a-name-of-more-than-12-bytes", "cy", "dee")
LONG = 24
PRIVATE = {
    ("ann", 8),
    ("ann", 9),
    ("bob-has-a-name-of-more-than-12-bytes", 3),
    ("bob-has-a-name-of-more-than-12-bytes", 18),
}
KERNELS = {2: [[0.9, 0.1], [0.3, 0.7]], 3: [[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]}
SUFFIX = {
    "csv": ".csv",
    "parquet": ".parquet",
    "ipc": ".arrow",
    "ndjson": ".ndjson",
    "packed csv": ".csv.gz",
    "packed ndjson": ".ndjson.zst",
}


class Kind(NamedTuple):
    """A type of value column: the model's labels, how cells become a column, and the text formats
    that can hold it.
    """

    labels: tuple[Any, ...]
    column: Any
    texts: tuple[str, ...] = ()


def polars_column(dtype):
    return lambda cells: pl.Series(cells, strict=False).cast(dtype)


def dictionary(cells):
    return pa.array(cells).dictionary_encode()


TEXTS = ("short", "another text, longer than 12 bytes", NEEDLE)
BOTH = ("csv", "ndjson")
KINDS = {
    "int8": Kind((0, 5, 100), polars_column(pl.Int8)),
    "uint8": Kind((0, 5, 200), polars_column(pl.UInt8)),
    "int16": Kind((0, -5, 30_000), polars_column(pl.Int16)),
    "int32": Kind((0, -5, 0x7EADBEEF), polars_column(pl.Int32)),
    "int64": Kind((0, -5, NEEDLE_INT), polars_column(pl.Int64), BOTH),
    "uint64": Kind((0, 5, NEEDLE_INT), polars_column(pl.UInt64)),
    "float32": Kind((0.5, -1.25, 7.625), polars_column(pl.Float32)),
    "float64": Kind((0.1, -2.5, NEEDLE_FLOAT), polars_column(pl.Float64), BOTH),
    "whole and broken": Kind((0, 1, 0.5), polars_column(pl.Float64), BOTH),
    "truth": Kind((False, True), polars_column(pl.Boolean), BOTH),
    "text": Kind(("a", "b", "c"), polars_column(pl.String), BOTH),
    "long text": Kind(TEXTS, polars_column(pl.String), BOTH),
    "categorical": Kind(TEXTS, polars_column(pl.Categorical)),
    "enum": Kind(TEXTS, polars_column(pl.Enum(TEXTS))),
    "dictionary": Kind(TEXTS, dictionary),
    "dictionary of numbers": Kind((0, -5, NEEDLE_INT), dictionary),
    "date": Kind(
        ("2020-01-01", "2020-01-02", "2021-12-24"),
        lambda cells: pl.Series([date.fromisoformat(cell) for cell in cells]),
    ),
    "decimal": Kind(
        (0.5, 1.25, 1234.5),
        lambda cells: pl.Series([Decimal(cell) for cell in cells], dtype=pl.Decimal(10, 3)),
    ),
}
KEYS = [(name, t) for name in NAMES for t in range(LONG)]
MARKED = [key in PRIVATE for key in KEYS]
#: And one more chain, so long that what is learned can be audited.
AUDITED = [*KEYS, *(("eve", t) for t in range(200))]


def model(labels):
    return off.MarkovChain(KERNELS[len(labels)], labels=labels)


@cache
def certain(k):
    """The rows that are redacted whatever their values: private ones, and their neighbours in
    region L.
    """
    frame = pl.DataFrame(KEYS, schema=["id", "t"], orient="row").with_columns(
        v=pl.lit("0"), p=pl.Series(MARKED)
    )
    chain = model([str(i) for i in range(k)])
    release = redacted(frame, chain, dry_run=True, key_file="no-key-is-needed")
    regions = np.array(explained(release)["region"])
    assert (regions == "L").sum() >= 4
    assert (regions == "S").sum() >= 4
    return np.flatnonzero((regions == "private") | (regions == "L"))


def redacted(frame, chain, **options):
    given = dict(
        value="v",
        order="t",
        by="id",
        private="p",
        epsilon=1.0,
        dataset="twins",
        mechanism="3r-relaxed",
    )
    return off.redact(frame, **(given | {"model": chain} | options))


@cache
def twins(k):
    """Two lists of codes that differ in every certain row and nowhere else; the last code stands in
    certain rows only.
    """
    codes = np.random.default_rng(7).integers(0, max(k - 1, 2), len(KEYS))
    one, other = codes.copy(), codes.copy()
    one[certain(k)] = k - 1
    other[certain(k)] = np.arange(len(certain(k))) % max(k - 1, 1)
    assert (one != other).sum() == len(certain(k))
    return one, other


def table(kind, codes, extra=None, keys=KEYS):
    """As a polars frame, or one of pyarrow if some column is."""
    column = KINDS[kind].column([KINDS[kind].labels[code] for code in codes])
    columns = {
        "id": [key[0] for key in keys],
        "t": [key[1] for key in keys],
        "v": column,
        "p": [key in PRIVATE for key in keys],
        **(extra or {}),
    }
    if any(isinstance(column, pa.Array) for column in columns.values()):
        return pa.table(
            {
                name: cells.to_arrow() if isinstance(cells, pl.Series) else cells
                for name, cells in columns.items()
            }
        )
    return pl.DataFrame(columns)


def written(frame, path, rows=None):
    """Write a table as whoever made it would."""
    if rows is not None:
        frame = frame[rows] if isinstance(frame, pl.DataFrame) else frame.take(rows)
    if isinstance(frame, pa.Table):
        if path.suffix == ".parquet":
            pq.write_table(frame, path)
        else:
            with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, frame.schema) as writer:
                writer.write_table(frame)
        return path
    return write(frame, path)


class Extension(pa.ExtensionType):
    """A type of one's own, with words of one's own."""

    def __init__(self, storage, word):
        self.word = word
        super().__init__(storage, "test.extension")

    def __arrow_ext_serialize__(self):
        return self.word.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, word):
        return cls(storage, word.decode())


FRAMES = {
    "polars": lambda frame: frame,
    "polars lazy": lambda frame: frame.lazy(),
    "pandas": lambda frame: frame.to_pandas(),
    "pandas with arrow": lambda frame: frame.to_pandas(use_pyarrow_extension_array=True),
    "pyarrow": lambda frame: frame.to_arrow(),
    "duckdb": lambda frame: _relation(frame),
}


def _relation(frame):
    import duckdb

    return duckdb.from_arrow(frame.to_arrow())
