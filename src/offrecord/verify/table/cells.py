"""What released cells say: which label a value is, which chain and when.

A value that left was made from a label, so it is compared with the labels alone, by what these are:
text, truth values or numbers. Bins and rare values are labels of text as all others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError

Codes: TypeAlias = NDArray[np.int8]
Integers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Label: TypeAlias = str | int | float | bool

EMPTY = -1  #: the code of a cell without a value
OTHER = -2  #: the code of a cell that is no label
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"  # a whole number in its plain form
_DAY = r"\d{4}-\d\d-\d\d"
_ZONE = r"(Z|[+-]\d\d:?\d\d)"
_TIME = rf"^{_DAY}[T ]\d\d:\d\d(:\d\d(\.\d{{1,9}})?)?"
_TICKS = {"ns": 1, "us": 10**3, "ms": 10**6}
DAY = 86_400 * 10**9
_LIMIT = 2**63


# ---- values


def codes_of(series: pl.Series, labels: Sequence[Label]) -> Codes:
    """(n,) which label each cell is, EMPTY or OTHER."""
    there = series.is_not_null().to_numpy()
    if all(isinstance(label, str) for label in labels):
        found = _of_text(series, labels)
    elif all(isinstance(label, bool) for label in labels):
        found = _of_truths(series, labels)
    else:
        found = _of_numbers(series, labels)
    return np.where(there, found, np.int8(EMPTY))


def _of_text(series: pl.Series, labels: Sequence[Label]) -> Codes:
    if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        series = series.cast(pl.String)
    if series.dtype != pl.String:
        return np.full(len(series), OTHER, dtype=np.int8)
    known = series.cast(pl.Enum([str(label) for label in labels]), strict=False)
    return known.to_physical().cast(pl.Int8).fill_null(OTHER).to_numpy()


def _of_truths(series: pl.Series, labels: Sequence[Label]) -> Codes:
    if series.dtype == pl.String:
        names = {str(label).lower(): code for code, label in enumerate(labels)}
        lower = series.str.to_lowercase()
        return lower.replace_strict(names, default=OTHER, return_dtype=pl.Int8).to_numpy()
    if series.dtype != pl.Boolean:
        return np.full(len(series), OTHER, dtype=np.int8)
    table = np.array([_place(labels, False), _place(labels, True)], dtype=np.int8)
    return np.asarray(table[series.fill_null(False).to_numpy().astype(np.int8)])


def _place(labels: Sequence[Label], value: bool) -> int:
    return labels.index(value) if value in labels else OTHER


def _of_numbers(series: pl.Series, labels: Sequence[Label]) -> Codes:
    kind = series.dtype
    if kind.is_integer() and kind.to_python() is int and kind not in (pl.Int128, pl.UInt128):
        return _of_whole(series, labels)
    if not (kind.is_numeric() or kind == pl.String):
        return np.full(len(series), OTHER, dtype=np.int8)
    if kind == pl.String and all(isinstance(label, int) for label in labels):
        # large numbers must not go by way of floats
        exact = series.cast(pl.Int64, strict=False)
        if exact.null_count() == series.null_count():
            return _of_whole(exact, labels)
    cells = series.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    numbers = np.array([_number(label) for label in labels])
    codes = _nearest(cells, numbers)
    if kind == pl.String and np.any(codes == OTHER):
        # a column of 32 bits is written with the digits that these have
        with np.errstate(over="ignore"):
            narrow = numbers.astype(np.float32)
        if len(set(narrow.tolist())) == len(labels):
            with np.errstate(over="ignore"):
                again = _nearest(cells.astype(np.float32), narrow)
            codes = np.where(codes == OTHER, again, codes)
    return codes


def _number(label: Label) -> float:
    """A label as a number; one that is none, among others that are, is no cell's."""
    return np.nan if isinstance(label, str) else float(label)


def _nearest(cells: NDArray[Any], numbers: NDArray[Any]) -> Codes:
    """Which of some numbers each cell is."""
    rank = np.argsort(numbers)
    at = np.clip(np.searchsorted(numbers[rank], cells), 0, len(rank) - 1)
    return np.where(numbers[rank][at] == cells, rank[at], OTHER).astype(np.int8)


def _of_whole(series: pl.Series, labels: Sequence[Label]) -> Codes:
    values = (series.fill_null(0) if series.null_count() else series).to_numpy()
    numbers = [Fraction(label) if not isinstance(label, str) else None for label in labels]
    whole = {
        int(one): code for code, one in enumerate(numbers) if one is not None and one == int(one)
    }
    found = np.full(len(values), OTHER, dtype=np.int8)
    limits = np.iinfo(values.dtype)
    for number, code in whole.items():
        if limits.min <= number <= limits.max:
            found[values == number] = code
    return found


def is_spelled_alike(series: pl.Series, codes: Codes) -> bool:
    """Whether every label is written in one way: how a value is written must not tell anything."""
    if series.dtype == pl.String:
        every = pl.DataFrame({"code": codes, "cell": series}).unique()
        return not bool(every.filter(pl.col("code") >= 0)["code"].is_duplicated().any())
    if series.dtype.is_float():
        zeros = np.signbit(series.filter(series == 0).to_numpy())
        return not zeros.any() or bool(zeros.all())
    return True


# ---- names of chains, and order values


def names_of(series: pl.Series) -> pl.Series:
    """A column that names chains; text that is all whole numbers as such."""
    kind = series.dtype
    if isinstance(kind, (pl.Categorical, pl.Enum)):
        series, kind = series.cast(pl.String), pl.String()
    if kind == pl.String:
        return series.cast(pl.Int64) if _all_match(series, _WHOLE) else series
    if kind.is_integer() or kind in (pl.Boolean, pl.Date) or isinstance(kind, pl.Datetime):
        return series
    raise InputError(f"column {series.name!r} names chains, but holds {type(kind).__name__}")


def _all_match(series: pl.Series, pattern: str) -> bool:
    if len(series) == 0 or series[0] is None:
        return False
    first = bool(series.head(1).str.contains(pattern).all())  # mostly one look is enough
    return first and bool(series.str.contains(pattern).fill_null(False).all())


def is_timed(series: pl.Series) -> bool:
    """It holds days or times."""
    return series.dtype == pl.Date or isinstance(series.dtype, pl.Datetime)


def times_of(series: pl.Series) -> pl.Series | None:
    """Text as months, days or times (ISO 8601), None where some cell is none of these, or some
    times have a zone and some have none.
    """
    if is_timed(series):
        return series
    if series.dtype != pl.String:
        return None
    if _all_match(series, r"^\d{4}-\d\d$"):
        series = series + "-01"
    if _all_match(series, rf"^{_DAY}$"):
        days = series.str.to_date("%Y-%m-%d", strict=False)
        return None if days.null_count() else days
    for pattern, zone in ((_TIME + "$", None), (_TIME + _ZONE + "$", "UTC")):
        if _all_match(series, pattern):
            try:
                return series.str.to_datetime(time_unit="ns", time_zone=zone)
            except pl.exceptions.PolarsError:
                return None
    return None


def nanoseconds(times: pl.Series) -> Integers:
    """Days and times as nanoseconds since 1970, UTC; without a zone, as they stand."""
    kind = times.dtype
    unit = _TICKS[kind.time_unit] if isinstance(kind, pl.Datetime) else DAY
    ticks = times.to_physical().to_numpy().astype(np.int64)
    if len(ticks) and max(abs(int(ticks.min())), abs(int(ticks.max()))) * unit >= _LIMIT:
        raise InputError(f"column {times.name!r} has times beyond the years 1678 to 2261")
    return np.asarray(ticks * unit)


def whole_of(series: pl.Series) -> Integers | None:
    """Whole numbers of at most 64 bits; None where some cell is none."""
    if series.dtype == pl.String or series.dtype.is_integer():
        numbers = series.cast(pl.Int64, strict=False)
        return None if numbers.null_count() else numbers.to_numpy().astype(np.int64, copy=False)
    return None


def _unit(text: str) -> Fraction:
    if re.fullmatch(r"\d{1,12}(\.\d{1,12})?", text) is None or Fraction(text) == 0:
        raise InputError(f"columns.order_unit {text!r} is no unit")
    return Fraction(text)


def units_of(series: pl.Series, unit: str) -> Integers | None:
    """How many of a decimal unit each number is; None where some cell is no whole multiple, up to a
    millionth of the unit and the rounding of floats.
    """
    if not (series.dtype.is_numeric() or series.dtype == pl.String):
        return None
    size = _unit(unit)
    if series.dtype.is_integer():
        values = [Fraction(value) / size for value in series.unique().to_list()]
        if any(value.denominator > 1 for value in values):
            return None
        counted = np.floor_divide(
            series.cast(pl.Int64).to_numpy() * size.denominator, size.numerator
        )
        return np.asarray(counted, dtype=np.int64)
    kind = series.dtype if series.dtype.is_float() else pl.Float64()
    cells = series.cast(kind, strict=False).fill_null(np.nan).to_numpy()
    if not np.isfinite(cells).all():
        return None
    counted = cells.astype(np.float64) * float(size.denominator) / float(size.numerator)
    rounding = 2 * float(np.finfo(cells.dtype).eps) * np.abs(counted)
    nearest = np.rint(counted)
    if np.any(np.abs(counted - nearest) > 1e-6 + rounding) or np.any(rounding > 1e-3):
        return None
    return nearest.astype(np.int64)
