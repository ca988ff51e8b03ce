"""The figures of choosing.md, made by the code: `python docs/choosing.py`, from the rain that comes
with the package. Private hours are drawn by a seed; no value is looked at but to learn a model.
"""

from datetime import timedelta
from importlib.resources import files

import numpy as np
import polars as pl

import offrecord as off

MECHANISMS = ("window", "best-local", "owner")
HALF = pl.datetime(2013, 7, 1, time_zone="UTC")
ASKED = {"value": "rain", "order": "time", "single_chain": True}


def hours(length: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """January to June, and July to December; did it rain within so many hours?"""
    source = files("offrecord.demo") / "jfk_rain_2013.csv"
    table = pl.read_csv(source.read_bytes(), try_parse_dates=True)
    table = table.group_by(pl.col("time").dt.truncate(f"{length}h")).agg(pl.col("rain").max())
    table = table.sort("time")
    return table.filter(pl.col("time") < HALF), table.filter(pl.col("time") >= HALF)


def private_hours(table: pl.DataFrame, share: float, length: int) -> pl.Series:
    """Hours of the half-year, drawn at random; whatever holds one is private."""
    rng = np.random.default_rng(16)
    begin = table["time"].min()
    drawn = np.flatnonzero(rng.random(24 * 184) < share).tolist()
    places = [begin + timedelta(hours=hour // length * length) for hour in drawn]
    return table["time"].is_in(places)


def row(name: str, share: float, length: int, epsilon: float, exact: bool = False, **fit) -> None:
    """One row: of the other records, the share that each mechanism is expected to release."""
    reference, table = hours(length)
    found = off.fit(reference, **ASKED, step=f"{length}h", **fit)
    private = private_hours(table, share, length)
    cells = [name, f"{epsilon:g}", found.model.order, found.audit.verdict]
    for mechanism in MECHANISMS:
        release = off.redact(
            table,
            **ASKED,
            step=f"{length}h",
            private=private,
            model=found,
            exact_model=exact,
            accept_model=True,
            epsilon=epsilon,
            dataset="choosing.md",
            mechanism=mechanism,
            dry_run=True,
        )
        told = release.summary
        others = told.released * len(table) / (len(table) - private.sum())
        cells.append(f"{100 * others:.1f}" + ("" if told.mechanism == mechanism else " *"))
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def main() -> None:
    """Print them all."""
    print("| what | ε | order | audit |", " | ".join(MECHANISMS), "|")
    print("| --- " * (4 + len(MECHANISMS)) + "|")
    row("1 % of the hours, as `fit` comes", 0.01, 1, 1.0)
    row("0.2 % of the hours", 0.002, 1, 1.0)
    row("less privacy", 0.01, 1, 2.0)
    row("more privacy", 0.01, 1, 0.5)
    row("the model taken for exactly right", 0.01, 1, 1.0, exact=True)
    row("order 2", 0.01, 1, 1.0, chain_order=2)
    row("order 1", 0.01, 1, 1.0, chain_order=1)
    row("order 1, exactly right", 0.01, 1, 1.0, exact=True, chain_order=1)
    row("steps of 3 hours", 0.01, 3, 1.0)
    row("steps of 6 hours", 0.01, 6, 1.0)


if __name__ == "__main__":
    main()
