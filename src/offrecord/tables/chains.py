"""From a table to chains of records: sorted, coded, and counted in steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models import clock
from offrecord.models.base import Integers, Label
from offrecord.models.records import MISSING, Chains
from offrecord.tables.cells import (
    chain_column,
    check_names,
    coded,
    encoded,
    nanoseconds,
    order_column,
    plain,
    private_marks,
    released_type,
    value_cells,
)
from offrecord.tables.formats import check_columns
from offrecord.tables.steps import Step

if TYPE_CHECKING:
    import polars as pl

#: `order=ROW`: records stand in the order of the table's rows.
ROW = "row"
_SPACINGS = 1 << 16  # pairs of neighbours from which their usual distance is told


@dataclass(frozen=True)
class Columns:
    """Which column says what. order None: the order of rows. by empty: a single chain.

    keep_all: kept cells leave also where the value is redacted.
    """

    value: str
    order: str | None
    by: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    keep_all: bool = False

    @classmethod
    def named(
        cls,
        value: str,
        order: str,
        by: str | Sequence[str] | None,
        single_chain: bool,
        keep: str | Sequence[str] | None = None,
        keep_all: bool = False,
    ) -> Columns:
        """From what a person gives; InputError unless that says what makes a chain, or if a column
        is named twice.
        """
        if bool(by) == single_chain:
            raise InputError(
                "say which records belong together: --by (a column or several, one chain each), or"
                " --single-chain"
            )
        if keep_all and not keep:
            raise InputError("--keep-all is about --keep: name the columns to release too")
        columns = cls(
            value, None if order == ROW else order, _several(by), _several(keep), keep_all
        )
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


@dataclass(frozen=True, eq=False)
class Arranged:
    """A table whose rows stand sorted by chain and order: what leaves of it (the value column
    apart), and its chains.

    names: the columns that name chains, text that is all whole numbers as such. labels: the values
    that codes stand for.
    private: (n,) marked rows, None without such a column. beside: rows that do not lie on the grid
    of the step. spread: without a step, the shortest and the longest time between neighbours.
    pairs: neighbouring rows, and how many of them are one step apart. spacing: without a step, the
    median distance of neighbours, and of how many. rows: where each row stood, None if they stood
    as they do. unlabelled: the value column, as long as it has no labels: no record has a code
    then.
    """

    columns: Columns
    frame: pl.DataFrame
    names: pl.DataFrame
    chains: Chains
    labels: tuple[Label, ...]
    value_type: pl.DataType
    private: NDArray[np.bool_] | None
    order_type: pl.DataType
    step: Step | None
    beside: int
    spread: tuple[int, int] | None
    pairs: tuple[int, int]
    spacing: tuple[float, int] | None
    rows: NDArray[Any] | None
    unlabelled: pl.Series | None = None

    @property
    def warnings(self) -> list[str]:
        """What a person should know about the order of records."""
        return order_warnings(self.columns, self.step, self.beside, self.spread)

    @property
    def zone(self) -> str | None:
        """The time zone of the order column, if it has one."""
        return getattr(self.order_type, "time_zone", None)

    @property
    def order_kind(self) -> str:
        """What orders the records: "row", "integer" or "time"."""
        return "row" if self.columns.order is None else "time" if self.chains.timed else "integer"

    def phases(self, phase: str, zone: str | None) -> NDArray[np.int8]:
        """(n,) the phase of each record, by its own clock in a zone that must be the
        table's own.
        """
        import polars as pl

        if not self.chains.timed:
            raise InputError(f"a kernel for each {phase} needs an order column that holds times")
        if phase == "hour" and self.order_type == pl.Date:
            raise InputError(
                "a kernel for each hour needs an order column with the time of day, not dates"
            )
        if zone != self.zone:
            here, there = (
                f"in the zone {one}" if one else "without a time zone" for one in (self.zone, zone)
            )
            raise InputError(
                f"the model tells the {phase} from times {there}, but those of column"
                f" {self.columns.order!r} are {here}; give both the same zone, or phases would slip"
            )
        return clock.phases_of(self.chains.order.astype(np.int64), phase, zone)

    def gap_times(self, chain: int, places: Integers) -> Integers:
        """(m,) the times of places without a row, as a chain's rows keep to the grid: off it by as
        much as half of them are.
        """
        chains, step = self.chains, self.step
        assert chains.steps is not None
        assert step is not None
        rows = slice(int(chains.starts[chain]), int(chains.starts[chain + 1]))
        first = np.asarray(chains.order[rows.start : rows.start + 1].astype(np.int64))
        off = chains.order[rows].astype(np.int64) - step.onward(
            first, chains.steps[rows], self.zone
        )
        return step.onward(first, places, self.zone) + int(np.median(off))

    def labelled(self, labels: tuple[Label, ...]) -> Arranged:
        """Coded by labels."""
        assert self.unlabelled is not None
        codes, kind = coded(self.unlabelled, labels), released_type(self.unlabelled.dtype, labels)
        return replace(
            self,
            chains=replace(self.chains, codes=codes),
            labels=labels,
            value_type=kind,
            unlabelled=None,
        )

    def chain_values(self, chains: Integers) -> list[list[bytes]]:
        """For each by column, the encoded values of some chains, for their coins."""
        if not self.columns.by:
            return []
        rows = self.names[self.chains.starts[chains]]
        return [encoded(rows[name]) for name in self.columns.by]


def arrange(
    frame: pl.DataFrame,
    columns: Columns,
    *,
    labels: Sequence[Label] | None,
    private: str | None = None,
    step: Step | None = None,
) -> Arranged:
    """Sort a table into chains and code its values; InputError for whatever would make that a
    guess.

    labels: what values may be, in the order of their codes; without it, values wait for their
    labels: see `labelled`.
    """
    import polars as pl

    check_columns([*columns.released, *([private] if private else [])], frame.columns, "the table")
    if frame.height == 0:
        raise InputError("the table has no rows")
    frame = frame.select(
        [*columns.released, *([private] if private else [])]
    ).rechunk()  # arrays then need no copies
    by = [chain_column(frame[name]) for name in columns.by]
    order = None if columns.order is None else order_column(frame[columns.order])
    values = frame[columns.value]
    if labels is None:
        value_cells(values)  # their type is checked
        codes = np.full(frame.height, MISSING, dtype=np.int8)
    else:
        codes = coded(values, labels)
    marked = None if private is None else private_marks(frame[private])
    timed = order is not None and order.dtype != pl.Int64 and not order.dtype.is_integer()
    numbers: NDArray[Any] = np.empty(0, dtype=np.int64)
    if order is not None:
        numbers = nanoseconds(order) if timed else order.to_numpy()
    starts, ordered = _boundaries(by, numbers if order is not None else None, frame.height)
    kept = [plain(frame[name]) for name in columns.keep]
    outgoing = [
        plain(frame[name])
        for name in (*columns.by, *([] if columns.order is None else [columns.order]))
    ] + kept
    table = pl.DataFrame(outgoing) if outgoing else pl.DataFrame()
    rows = None
    if not ordered:
        rows = _sorted_rows(by, numbers if order is not None else None, frame.height)
        table, codes = (table[rows] if table.width else table), codes[rows]
        marked = None if marked is None else marked[rows]
        by = [series[rows] for series in by]
        numbers = numbers[rows] if order is not None else numbers
        starts, _ = _boundaries(
            by, numbers if order is not None else None, frame.height, sort=False
        )
        values = values.gather(rows) if labels is None else values
    for series in by:
        check_names(series.gather(starts[:-1]), "the table")
    if order is None:
        numbers = np.arange(1, frame.height + 1) - np.repeat(starts[:-1], np.diff(starts))
    order_type = pl.Int64() if order is None else order.dtype
    zone = getattr(order_type, "time_zone", None)
    bare = isinstance(order_type, pl.Datetime) and zone is None
    if order is not None:
        _check_strict(numbers, starts, str(columns.order), bare)
    steps, beside, spread, spacing = None, 0, None, None
    pairs = frame.height - len(starts) + 1
    linked = pairs
    if step is not None:
        steps, beside = _steps(numbers, starts, step, timed, columns.order, zone)
        linked = int((np.diff(steps) == 1).sum()) - int(
            (np.diff(steps)[starts[1:-1] - 1] == 1).sum()
        )
        if bare and linked < pairs:
            _check_clock(numbers, starts, step, str(columns.order))
    elif order is not None:
        spread = _spread(numbers, starts) if timed else None
        spacing = _spacing(numbers, starts)
    chains = Chains(starts, codes, numbers, timed, steps)
    names = pl.DataFrame(by) if by else pl.DataFrame()
    return Arranged(
        columns=columns,
        frame=table,
        names=names,
        chains=chains,
        labels=() if labels is None else tuple(labels),
        value_type=values.dtype if labels is None else released_type(values.dtype, labels),
        private=marked,
        order_type=order_type,
        step=step,
        beside=beside,
        spread=spread,
        pairs=(pairs, linked),
        spacing=spacing,
        rows=rows,
        unlabelled=values if labels is None else None,
    )


def _boundaries(
    by: list[pl.Series], order: NDArray[Any] | None, rows: int, *, sort: bool = True
) -> tuple[Integers, bool]:
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
    return starts, increasing([series.gather(starts[:-1]) for series in by])


def increasing(columns: list[pl.Series]) -> bool:
    """Rows grow from one to the next, column by column; a series may wrongly claim to be sorted, so
    it is not asked.
    """
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


def _sorted_rows(by: list[pl.Series], order: NDArray[Any] | None, rows: int) -> NDArray[Any]:
    """The rows by chain and order; where everything fits into one number, by that, which is several
    times faster.
    """
    import polars as pl

    columns = [_rank(series) for series in by]
    if order is not None:
        columns.append(
            (order.astype(np.int64), int(order.min()), int(order.max()) - int(order.min()) + 1)
        )
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


def _rank(series: pl.Series) -> tuple[NDArray[Any], int, int]:
    """Numbers that are ordered as a column of chain names is: the numbers, the lowest, and how many
    there may be.
    """
    import polars as pl

    if series.dtype in (pl.String, pl.UInt64):
        series = series + (
            "" if series.dtype == pl.String else 0
        )  # made anew, it no longer claims to be sorted
        values = series.rank("dense").to_numpy().astype(np.int64)
        return values, 1, int(values.max())
    values = series.to_physical().to_numpy().astype(np.int64)
    return values, int(values.min()), int(values.max()) - int(values.min()) + 1


def _check_strict(order: NDArray[Any], starts: Integers, name: str, bare: bool) -> None:
    repeated = order[1:] == order[:-1]
    repeated[starts[1:-1] - 1] = False
    count = int(repeated.sum())
    if not count:
        return
    twice = np.unique(order[1:][repeated])[:_SPACINGS]
    back = bare and any(np.all(apart > 0) for _, apart in clock.changes(twice, twice))
    raise InputError(
        f"column {name!r} must order the records of a chain: {count} rows repeat the order value"
        " before them"
        + (
            ": clocks were put back then, and times without a time zone come twice; give times with"
            " a zone"
            if back
            else ""
        )
    )


def _steps(
    order: NDArray[Any],
    starts: Integers,
    step: Step,
    timed: bool,
    name: str | None,
    zone: str | None,
) -> tuple[Integers, int]:
    """The distance of each record from the first of its chain in steps, and how many lie beside
    that grid.
    """
    if name is None:
        raise InputError("--step needs an order column, not --order row")
    if step.timed != timed:
        raise InputError(
            f"--step {step.text} is {'a time' if step.timed else 'a number'}, but column {name!r}"
            f" holds {'times' if timed else 'whole numbers'}"
        )
    first = np.repeat(order[starts[:-1]], np.diff(starts))
    if int((order.astype(np.int64) - first.astype(np.int64)).min()) < 0:
        raise InputError(
            f"--step {step.text} is too short for column {name!r}: it makes more steps than can be"
            " counted"
        )
    steps, off = step.counted(first, order, zone)
    far = int((4 * off > step.length).sum())
    if far:
        raise InputError(
            f"--step {step.text} does not fit column {name!r}: {far} rows lie over a quarter step"
            " off the grid"
        )
    if (int(steps.max()) + 2) * len(starts) >= 2**62:
        raise InputError(
            f"--step {step.text} is too short for column {name!r}: it makes more steps than can be"
            " counted"
        )
    same = steps[1:] == steps[:-1]
    same[starts[1:-1] - 1] = False
    if same.any():
        raise InputError(
            f"--step {step.text} is too long for column {name!r}: {int(same.sum())} rows fall on"
            " the same step"
        )
    return steps, int(np.count_nonzero(off))


def _check_clock(order: NDArray[Any], starts: Integers, step: Step, name: str) -> None:
    """InputError where times without a zone miss just the hour that clocks somewhere skip:
    neighbours would seem further apart.

    Unless another row has a time that those clocks never show.

    The hour that clocks repeat in autumn makes order values that come twice, or steps that are too
    short: errors as well.
    """
    if step.kind != "time":
        return
    between = np.diff(order)
    wide = (4 * between > 5 * step.size) & (between <= step.size + 9 * clock.HOUR // 4)
    wide[starts[1:-1] - 1] = False
    at = np.flatnonzero(wide)
    pairs = np.unique(np.stack((order[at], order[at + 1]), axis=1), axis=0)[:_SPACINGS]
    for zone, apart in clock.changes(pairs[:, 0].copy(), pairs[:, 1].copy()):
        if np.any(4 * np.abs(apart - step.size) <= step.size) and clock.shows(order, zone):
            raise InputError(
                f"times in column {name!r} have no time zone and miss the hour that clocks skip in"
                f" zones like {zone}, so their steps cannot be told; give times with a zone (UTC,"
                " if that is what they are)"
            )


def _spacing(order: NDArray[Any], starts: Integers) -> tuple[float, int] | None:
    """The median distance of neighbours of a chain, and of how many it is: a sample where there are
    many.
    """
    rows = np.arange(0, len(order) - 1, max(len(order) // _SPACINGS, 1))
    rows = rows[starts[np.searchsorted(starts, rows + 1)] != rows + 1]
    if not len(rows):
        return None
    return float(np.median(order[rows + 1].astype(np.int64) - order[rows].astype(np.int64))), len(
        rows
    )


def _spread(order: NDArray[Any], starts: Integers) -> tuple[int, int] | None:
    """The shortest and the longest distance between neighbours of a chain."""
    between = np.diff(order)
    inside = np.ones(len(between), dtype=bool)
    inside[starts[1:-1] - 1] = False
    distances = between[inside]
    return (int(distances.min()), int(distances.max())) if len(distances) else None


def order_warnings(
    columns: Columns, step: Step | None, beside: int, spread: tuple[int, int] | None
) -> list[str]:
    """What a person should know about the order of records, from what `arrange` has counted."""
    warnings = []
    if step is not None and beside:
        warnings.append(
            f"{beside} rows lie beside the grid of --step {step.text}; each counts at its nearest"
            " step"
        )
    if spread is not None and spread[0] != spread[1]:
        warnings.append(
            f"times in column {columns.order!r} are irregular; neighbours count as one step apart,"
            " give --step to count time"
        )
    return warnings
