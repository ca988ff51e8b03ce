"""Rows by chain and order: where chains begin, whether rows stand sorted, and how to sort them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.models.base import Integers
from offrecord.tables.grid import marked_inside


def chain_starts(by: list[pl.Series], rows: int) -> Integers:
    """(m + 1,) where chains begin in rows that stand chain by chain, and the end."""
    change = np.zeros(rows, dtype=bool)
    change[0] = True
    for series in by:
        change[1:] |= (series[1:] != series[:-1]).to_numpy()
    return np.append(np.flatnonzero(change), rows)


def is_sorted(by: list[pl.Series], order: NDArray[Any] | None, starts: Integers) -> bool:
    """Rows stand by chain and order already; starts: where chains begin, if they do."""
    if order is not None and marked_inside(order[1:] < order[:-1], starts).any():
        return False
    return not by or increasing([series.gather(starts[:-1]) for series in by])


def increasing(columns: list[pl.Series]) -> bool:
    """Rows grow from one to the next, column by column."""
    # cells are compared: a series may wrongly claim to be sorted, so it is not asked
    grown, equal = np.zeros((2, len(columns[0]) - 1), dtype=bool)
    equal[:] = True
    for series in columns:
        grown |= equal & (series[1:] > series[:-1]).to_numpy()
        equal &= (series[1:] == series[:-1]).to_numpy()
    return bool(grown.all())


def sorted_rows(by: list[pl.Series], order: NDArray[Any] | None) -> NDArray[Any]:
    """The numbers of rows by chain and order; without order values, as they stand in a chain."""
    columns = [*map(_unflagged, by), *([] if order is None else [pl.Series(order)])]
    table = pl.DataFrame(columns, schema=[str(at) for at in range(len(columns))])
    return table.select(pl.arg_sort_by(table.columns, maintain_order=True)).to_series().to_numpy()


def _unflagged(series: pl.Series) -> pl.Series:
    # made anew: a series that wrongly claims to be sorted would not be sorted
    if series.dtype == pl.String:
        return series + ""
    return pl.Series(series.to_physical().to_numpy())
