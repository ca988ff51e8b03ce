"""A small table with needles, and tables as nobody expects them: other types, other shapes."""

from __future__ import annotations

import random
import tempfile
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from soak import needles

CHAINS, LONG = ("ann", "bob", "eve"), 20
EARLY = 15  # of a table that grows: the order value at which its first release ends
PRIVATE = {("ann", 5), ("ann", 6), ("bob", 0), ("eve", 19)}


def table() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Three chains; private records, and they alone, have needles. And which are private."""
    rng = np.random.default_rng(4)
    rows = []
    for name in CHAINS:
        for t in range(LONG):
            private = (name, t) in PRIVATE
            rows.append(
                {
                    "id": name,
                    "t": t,
                    "v": needles.VALUE if private else ("low", "mid")[rng.integers(2)],
                    "k": needles.KEPT if private else f"k{t}",
                    "x": needles.DROPPED if private else "x",
                }
            )
    listed = pl.DataFrame(sorted(PRIVATE), schema=["id", "t"], orient="row")
    return pl.DataFrame(rows), listed


def written_oddly(rng: random.Random, name: str) -> bytes:
    """The table with some columns of another type, order, number or size, in such a file."""
    import table_files

    frame, _ = table()
    for _ in range(rng.choice([1, 1, 2])):
        frame = _odd(rng, frame)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        try:
            table_files.write(frame, file)
        except BaseException:  # not every format holds everything, and some panic
            table_files.write(table()[0].sample(fraction=1, shuffle=True, seed=1), file)
        return file.read_bytes()


def _odd(rng: random.Random, frame: pl.DataFrame) -> pl.DataFrame:  # noqa: PLR0911 - a change each
    kind = rng.randrange(9)
    rows = len(frame)
    if kind == 0:
        name = rng.choice(frame.columns or ["v"])
        return frame.with_columns(_column(rng, name, rows))
    if kind == 1:
        return frame.drop(rng.choice(frame.columns)) if frame.columns else frame
    if kind == 2:
        return frame.head(rng.choice([0, 1, 2, 3]))
    if kind == 3:
        return pl.concat([frame, frame.head(rng.choice([1, rows]))])
    if kind == 4:
        return frame.sample(fraction=1.0, shuffle=True, seed=rng.randrange(99))
    if kind == 5 and frame.columns:
        old = rng.choice(frame.columns)
        new = rng.choice(
            ["", " ", "v", "V", "id", "t", "é", "a\nb", '"', ",", "x" * 300, "__index__"]
        )
        return frame.rename({old: new}) if new not in frame.columns else frame
    if kind == 6:
        name = rng.choice(frame.columns or ["v"])
        holes = pl.Series([rng.random() < 0.1 for _ in range(rows)], dtype=pl.Boolean)
        return frame.with_columns(pl.when(holes).then(None).otherwise(pl.col(name)).alias(name))
    if kind == 7:
        more = {f"c{i}": [i] * rows for i in range(rng.choice([1, 50, 300]))}
        return frame.with_columns(**{name: pl.Series(cells) for name, cells in more.items()})
    return frame.with_columns(
        t=pl.datetime_range(
            datetime(2026, 1, 1), datetime(2026, 1, 1) + timedelta(hours=rows - 1), "1h", eager=True
        )
        if rows
        else pl.Series([], dtype=pl.Datetime)
    )


def _column(rng: random.Random, name: str, rows: int) -> pl.Series:
    """Cells of a type that may be none that is taken."""
    makers: list[Any] = [
        lambda i: i, lambda i: -i, lambda i: 2**63 - 1 - i, lambda i: i / 3, lambda i: float("nan"),
        lambda i: float("inf"), lambda i: i % 2 == 0, lambda i: None, lambda i: str(i),
        lambda i: "",
        lambda i: " low", lambda i: "=1+1", lambda i: "x" * 10_000 if i == 3 else "x",
        lambda i: date(2026, 1, 1) + timedelta(days=i), lambda i: time(i % 24),
        lambda i: timedelta(days=i), lambda i: datetime(2026, 1, 1, i % 24),
        lambda i: Decimal(i) / 7,
        lambda i: bytes([i % 256]), lambda i: [i], lambda i: {"a": i}, lambda i: "\x00",
        lambda i: "low\n",
        lambda i: rng.choice(["low", "mid"]), lambda i: i // 3, lambda i: 1e300 * i, lambda i: -0.0,
        lambda i: f"2026-01-{i % 28 + 1:02}", lambda i: f"2026-13-{i}", lambda i: "9" * 400,
    ]  # fmt: skip
    cells = [rng.choice(makers)] * rows if rng.random() < 0.8 else rng.choices(makers, k=rows)
    values = [make(i) for i, make in enumerate(cells)]
    try:
        series = pl.Series(name, values, strict=False)
    except BaseException:  # cells that no column holds together
        series = pl.Series(name, [str(value) for value in values])
    if series.dtype == pl.String and rng.random() < 0.2:
        series = series.cast(pl.Categorical)
    if series.dtype == pl.Int64 and rng.random() < 0.3:
        kinds = [pl.Int8, pl.UInt64, pl.Float32, pl.Int128, pl.Date, pl.Datetime("ms"), pl.Duration]
        series = series.cast(rng.choice(kinds), strict=False)
    return series
