"""Kept cells as numbers by which they can be compared."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats
from offrecord.tables.cells import parsed_times


def changes_of(
    here: tuple[Floats, Floats], before: tuple[Floats, Floats], follows: NDArray[np.bool_]
) -> Floats:
    """(n,) how much a number grows from the record before, or whether another cell stays.

    NaN where the record before is not released.
    """
    (cells, numbers), (old_cells, old_numbers) = here, before
    both = np.isfinite(numbers) & np.isfinite(old_numbers)
    with np.errstate(invalid="ignore"):
        grown = np.where(both, numbers - old_numbers, cells == old_cells)
    return np.where(follows, grown, np.nan)


def read_cells(series: pl.Series) -> tuple[Floats, Floats]:
    """Cells as names of categories, and as numbers; NaN where they are empty, or no numbers."""
    kind = series.dtype
    if kind.is_numeric() or kind.is_temporal() or kind == pl.Boolean:
        plain = series.to_physical() if kind.is_temporal() else series
        numbers = plain.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return numbers, numbers
    nothing = np.full(len(series), np.nan)
    if kind == pl.String:
        return _checksums(series), _numbers_in(series)
    return (_checksums(series) if kind == pl.Binary else nothing), nothing


def _checksums(series: pl.Series) -> Floats:
    """A number for each text or string of bytes, the same for the same one in every part."""
    names: dict[Any, float] = {None: np.nan}
    for word in series.unique().drop_nulls().to_list():
        names[word] = float(crc32(word if isinstance(word, bytes) else word.encode()))
    return np.array([names[word] for word in series.to_list()], dtype=np.float64)


def _numbers_in(series: pl.Series) -> Floats:
    """Text as times where all of it is, else as numbers; NaN where it is none."""
    try:
        times = parsed_times(series.drop_nulls())
    except InputError:  # with and without a zone: names of categories, then
        times = None
    if times is None or not len(times):
        found = series.str.strip_chars().cast(pl.Float64, strict=False)
        return found.fill_null(float("nan")).to_numpy()
    numbers = np.full(len(series), np.nan)
    numbers[series.is_not_null().to_numpy()] = times.to_physical().to_numpy()
    return numbers
