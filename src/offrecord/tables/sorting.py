"""Rows by chain and order: where chains begin, whether rows stand sorted, and how to sort them."""

from __future__ import annotations

import math
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


def sorted_rows(by: list[pl.Series], order: NDArray[Any] | None, rows: int) -> NDArray[Any]:
    """The numbers of rows by chain and order; without order values, as they stand in a chain."""
    columns = [_ranks(series) for series in by]
    if order is not None:
        low = int(order.min())
        columns.append((order.astype(np.int64), low, int(order.max()) - low + 1))
    # where everything fits into one number, sorting by that is several times as fast
    if math.prod(size for _, _, size in columns) < 2**62:
        key = np.zeros(rows, dtype=np.int64)
        for values, low, size in columns:
            key = key * size + (values - low)
        if order is not None:
            return pl.Series(key).arg_sort().to_numpy()
        columns = [(key, 0, 0)]
    table = pl.DataFrame(
        [pl.Series(str(i), values) for i, (values, _, _) in enumerate(columns)]
    ).with_row_index("row")
    return table.sort([str(i) for i in range(len(columns))], maintain_order=True)["row"].to_numpy()


def _ranks(series: pl.Series) -> tuple[NDArray[Any], int, int]:
    """Numbers in the order of chain names: the numbers, the lowest, and how many there may be."""
    if series.dtype in (pl.String, pl.UInt64):
        # made anew, the series no longer claims to be sorted
        series = series + ("" if series.dtype == pl.String else 0)
        values = series.rank("dense").to_numpy().astype(np.int64)
        return values, 1, int(values.max())
    values = series.to_physical().to_numpy().astype(np.int64)
    return values, int(values.min()), int(values.max()) - int(values.min()) + 1
