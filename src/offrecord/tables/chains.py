"""From a table to chains of records: sorted, coded, and counted in steps."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord import draws
from offrecord.chain import Label
from offrecord.errors import InputError
from offrecord.redaction import Integers
from offrecord.tables.formats import check_columns

if TYPE_CHECKING:
    import polars as pl

Codes: TypeAlias = NDArray[np.int8]

#: `order=ROW`: records stand in the order of the table's rows.
ROW = "row"
MAX_VALUES = 64
MISSING = -1  #: the code of a record without a value
_PIECE = 1 << 16
_WHOLE = re.compile("(0|-?[1-9][0-9]{0,17})")  # a whole number in its plain form
_DAY, _ZONE = r"\d{4}-\d\d-\d\d", r"(Z|[+-]\d\d:?\d\d)"
_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
    "w": 7 * 86400 * 10**9,
}


@dataclass(frozen=True)
class Columns:
    """Which column says what. order None: the order of rows. by empty: a single chain."""

    value: str
    order: str | None
    by: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()

    @classmethod
    def named(cls, value: str, order: str, by: str | Sequence[str] | None, keep: str | Sequence[str] | None = None) -> Columns:
        """From what a person gives; InputError if a column is named twice."""
        columns = cls(value, None if order == ROW else order, _several(by), _several(keep))
        names = columns.released
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"column {name!r} is named twice among value, order, by and keep")
        return columns

    @property
    def released(self) -> list[str]:
        """The columns that leave, in order."""
        return [*self.by, *([] if self.order is None else [self.order]), self.value, *self.keep]


def _several(names: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


@dataclass(frozen=True)
class Step:
    """The distance in time, or in numbers, of one record from the next."""

    size: int
    timed: bool
    text: str

    @classmethod
    def parsed(cls, text: str | int) -> Step:
        """1h, 15m, 1d for times; a whole number for numbers."""
        found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", str(text))
        accepted = "step must be a whole number of at least 1, or a time such as 1h, 15m or 1d"
        if found is None or int(found[1]) == 0 or int(found[1]) > 10**15:
            raise InputError(f"{accepted}, got {text!r}")
        count, unit = int(found[1]), found[2]
        if not unit:
            return cls(count, False, str(count))
        if unit not in _NANOSECONDS:
            raise InputError(f"{accepted} (units {', '.join(_NANOSECONDS)}), got {text!r}")
        return cls(count * _NANOSECONDS[unit], True, f"{count}{unit}")


@dataclass(frozen=True, eq=False)
class Chains:
    """Records sorted by chain and order.

    starts: (m + 1,) where each chain begins, and the end. codes: (n,) which of the model's labels, MISSING where there is none.
    order: (n,) order values, whole numbers or (timed) nanoseconds, UTC. steps: (n,) each record's distance from the first of
    its chain, None where records stand one step apart.
    """

    starts: Integers
    codes: Codes
    order: NDArray[np.integer]
    timed: bool
    steps: Integers | None

    @property
    def count(self) -> int:
        """Number of chains."""
        return len(self.starts) - 1

    @cached_property
    def places(self) -> Integers:
        """(n,) the distance of each record from the first of its chain, in steps."""
        if self.steps is not None:
            return self.steps
        return np.arange(len(self.codes)) - np.repeat(self.starts[:-1], np.diff(self.starts))

    @cached_property
    def width(self) -> int:
        """More than any place in a chain, for keys."""
        return int(self.places.max()) + 2

    @cached_property
    def keys(self) -> Integers:
        """(n,) chain and place of each record as one number, which grows from row to row."""
        return self.chain_of * self.width + self.places

    @cached_property
    def whole(self) -> bool:
        """No record is missing its value."""
        return bool(self.codes.min() >= 0)

    @property
    def chain_of(self) -> Integers:
        """(n,) the chain of each record."""
        return np.repeat(np.arange(self.count), np.diff(self.starts))


@dataclass(frozen=True, eq=False)
class Arranged:
    """A table whose rows stand sorted by chain and order: what leaves of it (the value column apart), and its chains.

    names: the columns that name chains, text that is all whole numbers as such. labels: the values that codes stand for.
    private: (n,) marked rows, None without such a column. warnings: for people.
    """

    columns: Columns
    frame: pl.DataFrame
    names: pl.DataFrame
    chains: Chains
    labels: tuple[Label, ...]
    value_type: pl.DataType
    private: NDArray[np.bool_] | None
    order_type: pl.DataType
    warnings: tuple[str, ...]

    @property
    def zone(self) -> str | None:
        """The time zone of the order column, if it has one."""
        return getattr(self.order_type, "time_zone", None)

    def chain_values(self, chains: Integers) -> list[list[bytes]]:
        """For each by column, the encoded values of some chains, for their coins."""
        if not self.columns.by:
            return []
        rows = self.names[self.chains.starts[chains]]
        return [encoded(rows[name]) for name in self.columns.by]


# ---- reading columns


def arrange(
    frame: pl.DataFrame,
    columns: Columns,
    *,
    labels: Sequence[Label] | None,
    private: str | None = None,
    step: Step | None = None,
) -> Arranged:
    """Sort a table into chains and code its values; InputError for whatever would make that a guess.

    labels: what values may be, in the order of their codes; without it, the values that occur, sorted.
    """
    import polars as pl

    check_columns([*columns.released, *([private] if private else [])], frame.columns, "the table")
    if frame.height == 0:
        raise InputError("the table has no rows")
    frame = frame.select([*columns.released, *([private] if private else [])]).rechunk()  # arrays then need no copies
    warnings: list[str] = []
    by = [_chain_column(frame[name]) for name in columns.by]
    order = None if columns.order is None else _order_column(frame[columns.order])
    codes, labels = coded(frame[columns.value], labels)
    marked = None if private is None else _marked(frame[private])
    timed = order is not None and order.dtype != pl.Int64 and not order.dtype.is_integer()
    numbers: NDArray[Any] = np.empty(0, dtype=np.int64)
    if order is not None:
        numbers = (nanoseconds(order) if timed else order).to_numpy()
    starts, ordered = _boundaries(by, numbers if order is not None else None, frame.height)
    kept = [plain(frame[name]) for name in columns.keep]
    outgoing = [plain(frame[name]) for name in (*columns.by, *([] if columns.order is None else [columns.order]))] + kept
    table = pl.DataFrame(outgoing) if outgoing else pl.DataFrame()
    if not ordered:
        rows = _sorted_rows(by, numbers if order is not None else None, frame.height)
        table, codes = (table[rows] if table.width else table), codes[rows]
        marked = None if marked is None else marked[rows]
        by = [series[rows] for series in by]
        numbers = numbers[rows] if order is not None else numbers
        starts, _ = _boundaries(by, numbers if order is not None else None, frame.height, sort=False)
    if order is None:
        numbers = np.arange(1, frame.height + 1) - np.repeat(starts[:-1], np.diff(starts))
    else:
        _check_strict(numbers, starts, str(columns.order))
    steps = None
    if step is not None:
        steps = _steps(numbers, starts, step, timed, columns.order, warnings)
    elif timed:
        _warn_irregular(numbers, starts, str(columns.order), warnings)
    chains = Chains(starts, codes, numbers, timed, steps)
    order_type = pl.Int64() if order is None else order.dtype
    value_type = _value_type(frame[columns.value].dtype, labels)
    names = pl.DataFrame(by) if by else pl.DataFrame()
    return Arranged(columns, table, names, chains, labels, value_type, marked, order_type, tuple(warnings))


def _boundaries(by: list[pl.Series], order: NDArray[Any] | None, rows: int, *, sort: bool = True) -> tuple[Integers, bool]:
    """Where chains begin, and whether rows stand sorted by chain and order already."""

    change = np.zeros(rows, dtype=bool)
    change[0] = True
    for series in by:
        if series.dtype.is_integer():
            values = series.to_numpy()
            change[1:] |= values[1:] != values[:-1]
        else:
            change[1:] |= (series[1:] != series[:-1]).to_numpy()
    if sort and order is not None and not np.all((order[1:] >= order[:-1]) | change[1:]):
        return np.empty(0, dtype=np.int64), False
    starts = np.append(np.flatnonzero(change), rows)
    if not sort or not by:
        return starts, True
    return starts, _increasing([series.gather(starts[:-1]) for series in by])


def _increasing(columns: list[pl.Series]) -> bool:
    """Rows grow from one to the next, column by column; a series may wrongly claim to be sorted, so it is not asked."""
    arrays = [(series.to_physical() if series.dtype.is_temporal() else series).to_numpy() for series in columns]
    count = len(arrays[0]) - 1
    grown, equal = np.zeros(count, dtype=bool), np.ones(count, dtype=bool)
    for array in arrays:
        grown |= equal & (array[1:] > array[:-1]).astype(bool)
        equal &= (array[1:] == array[:-1]).astype(bool)
    return bool(grown.all())


def _sorted_rows(by: list[pl.Series], order: NDArray[Any] | None, rows: int) -> NDArray[Any]:
    """The rows by chain and order; where everything fits into one number, by that, which is several times faster."""
    import polars as pl

    columns = [_rank(series) for series in by]
    if order is not None:
        columns.append((order.astype(np.int64), int(order.min()), int(order.max()) - int(order.min()) + 1))
    if math.prod(size for _, _, size in columns) < 2**62:
        key = np.zeros(rows, dtype=np.int64)
        for values, low, size in columns:
            key = key * size + (values - low)
        if order is not None:
            return pl.Series(key).arg_sort().to_numpy()
        columns = [(key, 0, 0)]
    table = pl.DataFrame([pl.Series(str(i), values) for i, (values, _, _) in enumerate(columns)]).with_row_index("row")
    return table.sort([str(i) for i in range(len(columns))], maintain_order=True)["row"].to_numpy()


def _rank(series: pl.Series) -> tuple[NDArray[Any], int, int]:
    """Numbers that are ordered as a column of chain names is: the numbers, the lowest, and how many there may be."""
    import polars as pl

    if series.dtype in (pl.String, pl.UInt64):
        series = series + ("" if series.dtype == pl.String else 0)  # made anew, it no longer claims to be sorted
        values = series.rank("dense").to_numpy().astype(np.int64)
        return values, 1, int(values.max())
    values = series.to_physical().to_numpy().astype(np.int64)
    return values, int(values.min()), int(values.max()) - int(values.min()) + 1


def _check_strict(order: NDArray[Any], starts: Integers, name: str) -> None:
    repeated = order[1:] == order[:-1]
    repeated[starts[1:-1] - 1] = False
    count = int(repeated.sum())
    if count:
        raise InputError(f"column {name!r} must order the records of a chain: {count} rows repeat the order value before them")


def _steps(order: NDArray[Any], starts: Integers, step: Step, timed: bool, name: str | None, warnings: list[str]) -> Integers:
    if name is None:
        raise InputError("--step needs an order column, not --order row")
    if step.timed != timed:
        raise InputError(
            f"--step {step.text} is {'a time' if step.timed else 'a number'}, but column {name!r} holds"
            f" {'times' if timed else 'whole numbers'}"
        )
    since = order.astype(np.int64) - np.repeat(order[starts[:-1]].astype(np.int64), np.diff(starts))
    steps = (since + step.size // 2) // step.size
    off = np.abs(since - steps * step.size)
    far = int((4 * off > step.size).sum())
    if far:
        raise InputError(f"--step {step.text} does not fit column {name!r}: {far} rows lie over a quarter step off the grid")
    if (int(steps.max()) + 2) * len(starts) >= 2**62 or int(since.min()) < 0:
        raise InputError(f"--step {step.text} is too short for column {name!r}: it makes more steps than can be counted")
    same = steps[1:] == steps[:-1]
    same[starts[1:-1] - 1] = False
    if same.any():
        raise InputError(f"--step {step.text} is too long for column {name!r}: {int(same.sum())} rows fall on the same step")
    if off.any():
        warnings.append(
            f"{int((off > 0).sum())} rows lie beside the grid of --step {step.text}; each counts at its nearest step"
        )
    return steps


def _warn_irregular(order: NDArray[Any], starts: Integers, name: str, warnings: list[str]) -> None:
    between = np.diff(order)
    inside = np.ones(len(between), dtype=bool)
    inside[starts[1:-1] - 1] = False
    distances = between[inside]
    if len(distances) and distances.min() != distances.max():
        warnings.append(
            f"times in column {name!r} are irregular; neighbours count as one step apart, give --step to count time"
        )


def _chain_column(series: pl.Series) -> pl.Series:
    """A column of chain names as whole numbers, text, truth values, dates or times."""
    import polars as pl

    nulls = series.null_count()
    if nulls:
        raise InputError(f"column {series.name!r} names chains and must not be empty: {nulls} rows are")
    kind = series.dtype
    if isinstance(kind, (pl.Categorical, pl.Enum)):
        series, kind = series.cast(pl.String), pl.String()
    if kind == pl.String:
        return _whole_numbers(series)
    if (
        (kind.is_integer() and kind not in (pl.Int128, pl.UInt128))
        or kind in (pl.Boolean, pl.Date)
        or isinstance(kind, pl.Datetime)
    ):
        return series
    raise InputError(
        f"column {series.name!r} must name chains by text, whole numbers, truth values or times, got {type_name(kind)}"
    )


def _whole_numbers(series: pl.Series) -> pl.Series:
    """Text as whole numbers where every cell is one in its plain form (so that nothing changes), else as it is."""
    import polars as pl

    first = series[0]
    if first is None or not _WHOLE.fullmatch(first) or not series.str.contains(f"^{_WHOLE.pattern}$").all():
        return series
    return series.cast(pl.Int64)


def _order_column(series: pl.Series) -> pl.Series:
    """A column that orders records, as whole numbers, dates or times."""
    import polars as pl

    nulls = series.null_count()
    if nulls:
        raise InputError(f"column {series.name!r} orders records and must not be empty: {nulls} rows are")
    kind = series.dtype
    if kind == pl.String:
        numbers = _whole_numbers(series)
        if numbers.dtype != pl.String:
            return numbers
        times = parsed_times(series)
        if times is not None:
            return times
        raise InputError(f"column {series.name!r} must hold whole numbers, dates or times (ISO 8601), got other text")
    if kind in (pl.Int128, pl.UInt64, pl.UInt128):
        try:
            return series.cast(pl.Int64)
        except Exception:
            raise InputError(f"column {series.name!r} must hold whole numbers below 2^63") from None
    if kind.is_integer() or kind == pl.Date or isinstance(kind, pl.Datetime):
        return series
    raise InputError(
        f"column {series.name!r} must hold whole numbers, dates or times to order records, got {type_name(kind)}"
        + ("; numbers with a fraction are not exact enough" if kind.is_float() else "")
    )


def parsed_times(series: pl.Series) -> pl.Series | None:
    """Text as days, or as times (ISO 8601) that all have or all lack a time zone; None if some cell is neither."""
    import polars as pl

    if series.str.contains(rf"^{_DAY}$").all():
        days = series.str.to_date("%Y-%m-%d", strict=False)
        return None if days.null_count() else days
    if not series.str.contains(rf"^{_DAY}[T ]\d\d:\d\d(:\d\d(\.\d{{1,9}})?)?{_ZONE}?$").all():
        return None
    zoned = series.str.contains(f"{_ZONE}$")
    if zoned.any() != zoned.all():
        raise InputError(f"column {series.name!r} has times with and without a time zone; give all of them one")
    try:
        return series.str.to_datetime(time_unit="ns", time_zone="UTC" if zoned.all() else None, strict=True)
    except pl.exceptions.PolarsError:
        return None


def nanoseconds(series: pl.Series) -> pl.Series:
    """Dates and times as nanoseconds since 1970, UTC (a date at midnight; times without a zone are taken as they stand)."""
    import polars as pl

    if series.dtype == pl.Date:
        series = series.cast(pl.Datetime("ms"))
    unit = {"ns": 1, "us": 10**3, "ms": 10**6}[series.dtype.time_unit]  # type: ignore[attr-defined]
    ticks = series.to_physical()
    largest = max(abs(int(ticks.max() or 0)), abs(int(ticks.min() or 0)))  # type: ignore[arg-type]
    if largest * unit >= 2**63:
        raise InputError(f"column {series.name!r} has times beyond the years 1678 to 2261")
    return ticks * unit


def _marked(series: pl.Series) -> NDArray[np.bool_]:
    """The private column as truth values; a null would be an opt-out lost in silence."""
    import polars as pl

    name = series.name
    if series.null_count():
        raise InputError(f"private column {name!r} must say true or false in every row: {series.null_count()} rows are empty")
    if series.dtype == pl.String:
        series = series.str.to_lowercase().replace({"1": "true", "0": "false"})
        if not series.is_in(["true", "false"]).all():
            raise InputError(f"private column {name!r} must hold true and false, or 1 and 0, got other text")
        series = series == "true"
    elif series.dtype.is_integer():
        if not series.is_in([0, 1]).all():
            raise InputError(f"private column {name!r} must hold true and false, or 1 and 0, got other numbers")
        series = series == 1
    elif series.dtype != pl.Boolean:
        raise InputError(f"private column {name!r} must hold true and false, got {type_name(series.dtype)}")
    return series.to_numpy()


# ---- values and labels


def coded(series: pl.Series, labels: Sequence[Label] | None) -> tuple[Codes, tuple[Label, ...]]:
    """The codes of a value column, and the labels they stand for: as given, or the values that occur, sorted."""
    import polars as pl

    name, kind = series.name, series.dtype
    if kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Null, pl.Unknown) or isinstance(kind, pl.BaseExtension):
        raise InputError(f"value column {name!r} must hold text, numbers or truth values, got {type_name(kind)}")
    if not (kind.is_numeric() or kind == pl.Boolean) or kind.is_decimal():
        series = series.cast(pl.String)
    if labels is None:
        labels = _labels_of(series)
    if not 2 <= len(labels) <= MAX_VALUES:
        raise InputError(f"tables take models with 2 to {MAX_VALUES} values, got {len(labels)}")
    if any(label == "" for label in labels):
        raise InputError("the empty text cannot be a value: it is how a redaction is written; rename it")
    family = label_family(labels)
    if family == "whole" and not all(-(2**63) <= int(label) < 2**63 for label in labels):
        raise InputError("the model's values must be whole numbers of at most 64 bits")
    if series.dtype in (pl.Int128, pl.UInt128):
        wide, series = series, series.cast(pl.Int64, strict=False)
        _check_known(series, wide)
    if series.dtype == pl.String and family != "text":
        series = _parsed_values(series, family)
    elif (family == "text") != (series.dtype == pl.String) or (family == "truth") != (series.dtype == pl.Boolean):
        raise InputError(
            f"value column {name!r} holds {type_name(series.dtype)}, but the model's values are {_FAMILIES[family]}"
        )
    codes = _codes(series, labels)
    unknown = codes == MISSING
    if series.null_count():
        unknown &= series.is_not_null().to_numpy()
    if unknown.any():
        row = int(np.argmax(unknown)) + 1
        raise InputError(
            f"value column {name!r} holds a value the model does not know in {int(unknown.sum())} rows, first in row {row}"
        )
    return codes, tuple(labels)


_FAMILIES = {"text": "text", "truth": "true and false", "whole": "whole numbers", "number": "numbers"}


def label_family(labels: Sequence[Label]) -> str:
    """What all labels are: text, truth, whole or number."""
    if all(isinstance(label, str) for label in labels):
        return "text"
    if all(isinstance(label, bool) for label in labels):
        return "truth"
    if any(isinstance(label, (str, bool)) for label in labels):
        raise InputError("tables need a model whose values are all text, all numbers, or true and false")
    return "whole" if all(isinstance(label, int) for label in labels) else "number"


def _labels_of(series: pl.Series) -> tuple[Label, ...]:
    import polars as pl

    values = series.drop_nulls().unique()
    if series.dtype.is_float() and not values.is_finite().all():
        raise InputError(f"value column {series.name!r} holds NaN or infinity, which no model takes")
    if not 2 <= len(values) <= MAX_VALUES:
        raise InputError(f"value column {series.name!r} must have 2 to {MAX_VALUES} distinct values, got {len(values)}")
    if values.dtype == pl.String:
        # text that is all whole numbers or all true and false stands for these, as in a typed file
        numbers = _whole_numbers(values)
        if numbers.dtype != pl.String:
            values = numbers
        elif values.str.to_lowercase().is_in(["true", "false"]).all():
            values = values.str.to_lowercase() == "true"
            values = values.unique()
    if values.dtype.is_float() and bool((values == values.round()).all()) and bool((values.abs() < 2**53).all()):
        values = values.cast(pl.Int64)  # whole numbers are labels as such, however they were written
    return tuple(values.sort().to_list())


def _parsed_values(series: pl.Series, family: str) -> pl.Series:
    """Text cells as the numbers or truth values the model's labels are; a cell that is none stays apart as unknown."""
    import polars as pl

    if family == "truth":
        known = series.str.to_lowercase().replace({"1": "true", "0": "false"})
        parsed = known.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean)
    elif family == "whole":
        cells = series.str.strip_chars()
        parsed = cells.cast(pl.Int64, strict=False)  # 1.0 is 1 too, but large numbers must not go by way of floats
        floats = cells.cast(pl.Float64, strict=False)
        whole = pl.select(pl.when((floats == floats.round()) & (floats.abs() < 2**53)).then(floats)).to_series().cast(pl.Int64)
        parsed = parsed.fill_null(whole)
    else:
        parsed = series.str.strip_chars().cast(pl.Float64, strict=False)
    _check_known(parsed, series)
    return parsed


def _check_known(parsed: pl.Series, cells: pl.Series) -> None:
    """InputError for cells that have become none of the values they may be."""
    odd = parsed.is_null() & cells.is_not_null()
    if odd.any():
        row = int(odd.arg_max() or 0) + 1
        raise InputError(
            f"value column {cells.name!r} holds a value the model does not know in {odd.sum()} rows, first in row {row}"
        )


def _codes(series: pl.Series, labels: Sequence[Label]) -> Codes:
    import polars as pl

    if series.dtype == pl.String:
        return _with_missing(series.cast(pl.Enum([str(label) for label in labels]), strict=False).to_physical())
    if series.dtype == pl.Boolean:
        truths = series.cast(pl.UInt8)
        return _looked_up(truths, {int(label): code for code, label in enumerate(labels)})
    whole = {int(label): code for code, label in enumerate(labels) if isinstance(label, int) or float(label).is_integer()}
    if series.dtype.is_integer():
        return _looked_up(series, whole)
    numbers = np.array([float(label) for label in labels])
    values = series.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    rank = np.argsort(numbers)
    at = np.clip(np.searchsorted(numbers[rank], values), 0, len(rank) - 1)
    return np.where(numbers[rank][at] == values, rank[at], MISSING).astype(np.int8)


def _looked_up(series: pl.Series, codes: dict[int, int]) -> Codes:
    """Whole numbers through a table of codes."""
    found = np.full(len(series), MISSING, dtype=np.int8)
    values = (series.fill_null(0) if series.null_count() else series).to_numpy()
    low, high = min(codes, default=0), max(codes, default=0)
    if high - low < 1 << 20 and high < 2**62 and low > -(2**62):
        table = np.full(high - low + 2, MISSING, dtype=np.int8)  # the last entry is for what lies outside
        for value, code in codes.items():
            table[value - low] = code
        for begin in range(0, len(values), _PIECE):  # piece by piece: wider numbers in between stay in the cache
            place = values[begin : begin + _PIECE].astype(np.int64) - low
            place[(place < 0) | (place > high - low)] = high - low + 1
            np.take(table, place, out=found[begin : begin + _PIECE])
        if values.dtype == np.uint64:
            found[values > np.uint64(2**63 - 1)] = MISSING
    else:
        for value, code in codes.items():
            found[values == value] = code
    if series.null_count():
        found[series.is_null().to_numpy()] = MISSING
    return found


def _with_missing(physical: pl.Series) -> Codes:
    import polars as pl

    return physical.cast(pl.Int8).fill_null(MISSING).to_numpy()


def _value_type(kind: pl.DataType, labels: Sequence[Label]) -> pl.DataType:
    """The type of the released column, from the labels: the input's own width where that is of the same family."""
    import polars as pl

    family = label_family(labels)
    if family == "text":
        return pl.String()
    if family == "truth":
        return pl.Boolean()
    if family == "whole":
        if not kind.is_integer() or kind in (pl.Int128, pl.UInt128):
            return pl.Int64()
        width = np.iinfo(str(kind).lower())
        return kind if all(width.min <= int(label) <= width.max for label in labels) else pl.Int64()
    return kind if kind.is_float() else pl.Float64()


def plain(series: pl.Series) -> pl.Series:
    """A kept column without dictionaries or categories, also within lists and structs: they may hold what was redacted."""
    import polars as pl

    if isinstance(series.dtype, pl.BaseExtension):
        series = series.ext.storage()
    kind = _plain_type(series.dtype, series.name)
    return series if kind == series.dtype else series.cast(kind)


def _plain_type(kind: pl.DataType, name: str) -> pl.DataType:
    import polars as pl

    if isinstance(kind, (pl.Categorical, pl.Enum)):
        return pl.String()
    if isinstance(kind, pl.List):
        return pl.List(_plain_type(kind.inner, name))  # type: ignore[arg-type]
    if isinstance(kind, pl.Array):
        return pl.Array(_plain_type(kind.inner, name), kind.size)  # type: ignore[arg-type]
    if isinstance(kind, pl.Map):
        return pl.Map(_plain_type(kind.key, name), _plain_type(kind.value, name))  # type: ignore[arg-type]
    if isinstance(kind, pl.BaseExtension):
        raise InputError(f"column {name!r} cannot be kept: extension types carry metadata of their own; store it plainly")
    if isinstance(kind, pl.Struct):
        return pl.Struct([pl.Field(field.name, _plain_type(field.dtype, name)) for field in kind.fields])  # type: ignore[arg-type]
    if kind in (pl.Object, pl.Unknown):
        raise InputError(f"column {name!r} cannot be kept: it holds {type_name(kind)}")
    return kind


def _encoded_name(text: str) -> bytes:
    return draws.encoded_whole(int(text)) if _WHOLE.fullmatch(text) else draws.encoded_text(text)


def type_name(kind: pl.DataType) -> str:
    """What kind of type it is; its parameters (categories, fields, metadata) may be words of the data."""
    return type(kind).__name__


def encoded(series: pl.Series) -> list[bytes]:
    """The values of a chain column as bytes for their coins (draws.py)."""
    import polars as pl

    kind = series.dtype
    if kind == pl.String:  # a whole number is one also as text, whatever the other chains are called
        return [_encoded_name(text) for text in series.to_list()]
    if kind == pl.Boolean:
        return [draws.encoded_boolean(value) for value in series.to_list()]
    if kind.is_integer():
        return draws.encoded_integers(series.to_numpy(), draws.INTEGER)
    return draws.encoded_integers(nanoseconds(series).to_numpy(), draws.TIME)
