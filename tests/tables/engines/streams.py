"""Rooms one after the other, and what a refusal looks like."""

from pathlib import Path

import numpy as np
import polars as pl

import offrecord as off
from definition import samples

CHAIN = off.MarkovChain([[0.8, 0.2], [0.4, 0.6]])
COLUMNS = {"value": "state", "order": "hour", "by": "room"}
ROOMS = {
    "in order": [*range(40)],
    "some": [0, 1, 2, 3, 5, 7, 8, 11, 12, 23, 31, 39, 40],
    "text": [f"room {i:02}" for i in range(1, 30)],
    "numbers as text": [str(i) for i in range(5, 30)],
}


def frame(rooms, length=17, seed=1, gaps=0.0, empty=0.0):
    """Rooms of `length` hours, one after the other as named; some records private, some rows or
    values missing.
    """
    rng = np.random.default_rng(seed)
    rows = len(rooms) * length
    table = pl.DataFrame(
        {
            "room": pl.Series(rooms).gather(np.repeat(np.arange(len(rooms)), length)),
            "hour": np.tile(np.arange(length), len(rooms)),
            "state": samples(CHAIN, len(rooms), length, rng).ravel().astype(np.int8),
            "hidden": rng.random(rows) < 0.1,
            "note": [f"note {i}" for i in range(rows)],
        }
    )
    table = table.with_columns(
        pl.when(pl.Series(rng.random(rows) >= empty)).then("state").alias("state")
    )
    return table.filter(rng.random(rows) >= gaps)


def refused(desk, *said, **options):
    before = {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()}
    code, out, err = desk(*options.pop("arguments"), **options)
    lines = [line for line in err.splitlines() if "warning" not in line]
    assert (code, out, len(lines)) == (2, "", 1), err
    assert [text for text in said if text not in lines[0]] == [], lines[0]
    assert {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()} == before
    return lines[0]
