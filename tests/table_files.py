"""Tables in files of every format, told by their ending."""

from pathlib import Path

import polars as pl

WRITERS = {
    ".csv": pl.DataFrame.write_csv,
    ".parquet": pl.DataFrame.write_parquet,
    ".arrow": pl.DataFrame.write_ipc,
    ".ndjson": pl.DataFrame.write_ndjson,
}
READERS = {
    ".csv": pl.read_csv,
    ".parquet": pl.read_parquet,
    ".arrow": pl.read_ipc,
    ".ndjson": pl.read_ndjson,
}
ENDINGS = tuple(WRITERS)


def write(table, path):
    """Write a polars frame as whoever made it would; where it lies."""
    WRITERS[Path(path).suffix](table, path)
    return path


def read(path):
    return READERS[Path(path).suffix](path)
