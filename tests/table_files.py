"""Tables in files of every format, told by their ending."""

import gzip
from pathlib import Path

import polars as pl
import pyarrow as pa


def _write_gzip(table, path):
    Path(path).write_bytes(gzip.compress(table.write_csv().encode()))


def _write_zstd(table, path):
    with pa.CompressedOutputStream(str(path), "zstd") as out:
        out.write(table.write_ndjson().encode())


WRITERS = {
    ".csv": pl.DataFrame.write_csv,
    ".parquet": pl.DataFrame.write_parquet,
    ".arrow": pl.DataFrame.write_ipc,
    ".ndjson": pl.DataFrame.write_ndjson,
    ".csv.gz": _write_gzip,
    ".ndjson.zst": _write_zstd,
}
READERS = {
    ".csv": pl.read_csv,
    ".parquet": pl.read_parquet,
    ".arrow": pl.read_ipc,
    ".ndjson": pl.read_ndjson,
    ".csv.gz": pl.read_csv,
    ".ndjson.zst": pl.read_ndjson,
}
ENDINGS = tuple(WRITERS)


def ending_of(path):
    return max((one for one in ENDINGS if Path(path).name.endswith(one)), key=len)


def write(table, path):
    """Write a polars frame as whoever made it would; where it lies."""
    WRITERS[ending_of(path)](table, path)
    return path


def read(path):
    return READERS[ending_of(path)](path)
