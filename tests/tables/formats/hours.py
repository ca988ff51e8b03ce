"""Rooms, hour by hour: the table that comes in every form."""

from datetime import datetime, timedelta

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import offrecord as off
from definition import samples
from explained import explained

MODEL = off.MarkovChain([[0.8, 0.2], [0.4, 0.6]])
EPSILON = 1.5  # leaves many records of that model to their coins
COLUMNS = {"value": "state", "order": "hour", "by": "room"}
LENGTH = 80
NOON = datetime(2013, 3, 30, 12)
TIMES = [NOON + timedelta(hours=i) for i in range(LENGTH)]


def frame(states=(0, 1), rooms=("a", "b", "c"), hours=range(LENGTH), seed=1, shuffled=True):
    """Rooms of LENGTH hours each, some private, away from the ends so that few designs do;
    shuffled, to be sorted.
    """
    rng = np.random.default_rng(seed)
    rows = len(rooms) * LENGTH
    codes = samples(MODEL, len(rooms), LENGTH, rng).ravel() % len(states)
    inside = np.tile(np.minimum(np.arange(LENGTH), np.arange(LENGTH)[::-1]) > 10, len(rooms))
    table = pl.DataFrame(
        {
            "room": pl.Series(rooms).gather(np.repeat(np.arange(len(rooms)), LENGTH)),
            "hour": pl.Series([*hours] * len(rooms)),
            "state": pl.Series(states).gather(codes),
            "hidden": inside & (rng.random(rows) < 0.13),
        }
    )
    return table[rng.permutation(rows)] if shuffled else table


def text(table):
    """Every cell as text, as CSV has it, to compare across formats."""
    return pl.read_csv(table.write_csv().encode(), infer_schema=False)


def rule_of(release):
    """The redaction probabilities, a row for each row."""
    return explained(release).select(pl.col("^Pr\\(redacted.*$")).to_numpy()


def rows_of(native):
    """The rows of a frame of any kind, what is missing as None."""
    if isinstance(native, pl.LazyFrame):
        native = native.collect()
    if isinstance(native, duckdb.DuckDBPyRelation):
        native = native.pl()
    if isinstance(native, pd.DataFrame):
        return [
            [None if pd.isna(cell) else cell for cell in row]
            for row in native.itertuples(index=False)
        ]
    return [
        list(row)
        for row in (pl.from_arrow(native) if isinstance(native, pa.Table) else native).rows()
    ]
