"""The files that the pages' commands name: small tables of rooms, occupied or not."""

import lzma
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

import offrecord as off

CHAINS, LENGTH = 24, 120


def table(chain: str, order: str, value: str, places: pl.Series, seed: int) -> pl.DataFrame:
    """Chains in which 0 becomes 1 with probability 0.2, and 1 becomes 0 with probability 0.4."""
    rng = np.random.default_rng(seed)
    values = np.empty((CHAINS, LENGTH), dtype=int)
    values[:, 0] = rng.random(CHAINS) < 1 / 3
    for t in range(1, LENGTH):
        values[:, t] = rng.random(CHAINS) < np.where(values[:, t - 1] == 1, 0.6, 0.2)
    names = pl.Series(np.repeat(np.arange(1, CHAINS + 1), LENGTH))
    times = pl.concat([places] * CHAINS)
    return pl.DataFrame({chain: names, order: times, value: values.ravel()})


def rooms() -> None:
    """Rooms, minute by minute: occupied or not."""
    begin, end = datetime(2026, 3, 1, 8, tzinfo=UTC), datetime(2026, 3, 1, 9, 59, tzinfo=UTC)
    minutes = pl.datetime_range(begin, end, "1m", eager=True)
    readings = table("room", "time", "state", minutes, seed=1)
    private = pl.Series(np.random.default_rng(3).random(len(readings)) < 0.004)
    readings = readings.with_columns(private=private)
    readings.write_parquet("readings.parquet")
    readings.write_csv("readings.csv")
    Path("readings.csv.xz").write_bytes(lzma.compress(readings.write_csv().encode()))
    readings.filter("private").select("room", "time").write_csv("optouts.csv")
    before = minutes.dt.offset_by("-7d")  # another period, of which nobody asked for anything
    table("room", "time", "state", before, seed=2).write_parquet("reference.parquet")
    asked = {"value": "state", "order": "time", "by": "room", "step": "1m"}
    released(readings.drop("private"), asked, pl.read_parquet("reference.parquet"), "rooms-2026")


def released(frame: pl.DataFrame, asked: dict, reference: pl.DataFrame, dataset: str) -> None:
    """A model, and a release by a key of its own, in two formats."""
    off.fit(reference, **asked, chain_order=1).save("model.json")
    release = off.redact(
        frame,
        **asked,
        private_list="optouts.csv",
        model="model.json",
        epsilon=1.0,
        dataset=dataset,
        key_file="key/key.json",
    )
    release.write("released.parquet")
