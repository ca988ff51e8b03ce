"""Rows by chain and order: where chains begin, whether rows stand sorted, and how to sort them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.models.base import Integers


def chain_starts(by: list[pl.Series], rows: int) -> Integers:
    """(m + 1,) where chains begin in rows that stand chain by chain, and the end."""
    change = np.zeros(rows, dtype=bool)
    change[0] = True
    for series in by:
        if series.dtype.is_integer():
            values = series.to_numpy()
            change[1:] |= values[1:] != values[:-1]
        else:
            change[1:] |= (series[1:] != series[:-1]).to_numpy()
    return np.append(np.flatnonzero(change), rows)


def is_sorted(by: list[pl.Series], order: NDArray[Any] | None, starts: Integers) -> bool:
    """Rows stand by chain and order already; starts: where chains begin, if they do."""
    if order is not None:
        falls = order[1:] < order[:-1]
        falls[starts[1:-1] - 1] = False
        if falls.any():
            return False
    return not by or increasing([series.gather(starts[:-1]) for series in by])


def increasing(columns: list[pl.Series]) -> bool:
    """Rows grow from one to the next, column by column."""
    # a series may wrongly claim to be sorted, so it is not asked
    arrays = [
        (series.to_physical() if series.dtype.is_temporal() else series).to_numpy()
        for series in columns
    ]
    count = len(arrays[0]) - 1
    grown, equal = np.zeros(count, dtype=bool), np.ones(count, dtype=bool)
    for array in arrays:
        grown |= equal & (array[1:] > array[:-1]).astype(bool)
        equal &= (array[1:] == array[:-1]).astype(bool)
    return bool(grown.all())


def sorted_rows(by: list[pl.Series], order: NDArray[Any] | None) -> NDArray[Any]:
    """The numbers of rows by chain and order; without order values, as they stand in a chain."""
    columns = [*map(_unflagged, by), *([] if order is None else [pl.Series(order)])]
    table = pl.DataFrame([column.alias(str(i)) for i, column in enumerate(columns)])
    return table.select(pl.arg_sort_by(table.columns, maintain_order=True)).to_series().to_numpy()


def _unflagged(series: pl.Series) -> pl.Series:
    # made anew: a series that wrongly claims to be sorted would not be sorted
    if series.dtype == pl.String:
        return series + ""
    return pl.Series(series.to_physical().to_numpy())
