"""From a table to chains of records: sorted, coded, and counted in steps."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models import clock
from offrecord.models.base import Integers, Label
from offrecord.models.records import MISSING, UNKNOWN, Chains, Codes
from offrecord.tables.alphabet import Alphabet
from offrecord.tables.cells import (
    blank_names,
    chain_column,
    check_filled,
    encoded,
    nanoseconds,
    order_column,
    plain,
    private_marks,
)
from offrecord.tables.column_names import check_columns
from offrecord.tables.grid import Grid, OrderColumn, Spacing, grid_of, usual_step
from offrecord.tables.problems import TABLE, Check, RowNames
from offrecord.tables.sorting import chain_starts, is_sorted, sorted_rows
from offrecord.tables.steps import Step
from offrecord.tables.values import value_cells

#: `order=ROW`: records stand in the order of the table's rows.
ROW = "row"


@dataclass(frozen=True)
class Columns:
    """Which column says what."""

    value: str
    order: str | None  # None: the order of rows
    by: tuple[str, ...] = ()  # empty: a single chain
    keep: tuple[str, ...] = ()
    keep_all: bool = False  # kept cells leave also where the value is redacted

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
        """From what a person gives; InputError unless it says what makes a chain."""
        names, kept = _several(by), _several(keep)
        given = {"value": (value,), "order": (order,), "by": names, "keep": kept}
        for option, found in given.items():
            _check_names(option, found)
        if bool(names) == single_chain:
            raise InputError(
                "say which records belong together: --by (a column or several, one chain each), or"
                " --single-chain"
            )
        if keep_all and not kept:
            raise InputError("--keep-all is about --keep: name the columns to release too")
        columns = cls(value, None if order == ROW else order, names, kept, keep_all)
        released = columns.released
        for name in released:
            if released.count(name) > 1:
                raise InputError(f"column {name!r} is named twice among value, order, by and keep")
        return columns

    @property
    def ordering(self) -> list[str]:
        """The column that orders records, if one does."""
        return [] if self.order is None else [self.order]

    @property
    def released(self) -> list[str]:
        """The columns that leave, in order."""
        return [*self.by, *self.ordering, self.value, *self.keep]


def _several(names: str | Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(names, Sequence) and not isinstance(names, str):
        return tuple(names)
    return () if names is None else (names,)


def _check_names(option: str, names: Sequence[Any]) -> None:
    for name in names:
        if not isinstance(name, str):
            hint = f": write {str(name)!r}" if isinstance(name, int) else ""
            kind = "None" if name is None else type(name).__name__
            raise InputError(f"--{option} must be the name of a column, as text, got {kind}{hint}")


@dataclass(frozen=True, eq=False, repr=False)
class Arranged:
    """A table whose rows stand sorted by chain and order."""

    columns: Columns
    frame: pl.DataFrame  # what leaves of it, the value column apart
    names: pl.DataFrame  # of chains, text that is all whole numbers as such
    chains: Chains
    labels: tuple[Label, ...]  # the values that codes stand for
    value_type: pl.DataType
    private: NDArray[np.bool_] | None  # (n,) marked rows
    order_type: pl.DataType
    step: Step | None
    grid: Grid  # where rows lie on the grid of the step
    rows: NDArray[Any] | None  # (n,) where each row stood, None if they stood as they do
    unlabelled: pl.Series | None = None  # the value column, as long as codes are MISSING or UNKNOWN

    @property
    def warnings(self) -> list[str]:
        """What a person should know about the order of records."""
        grid = self.grid
        spacings = [] if grid.spacing is None else [grid.spacing]
        return order_warnings(self.columns, self.step, grid.beside, grid.spread, spacings)

    @property
    def usual_step(self) -> tuple[Step, int] | None:
        """The step that most rows follow each other by, and how many of its steps have no row."""
        column = OrderColumn(self.columns.order, self.order_type)
        names = RowNames(self.frame, self.columns.by, self.columns.ordering, self.rows)
        return usual_step(self.chains.order, self.chains.starts, column, names)

    @property
    def zone(self) -> str | None:
        """The time zone of the order column, if it has one."""
        return getattr(self.order_type, "time_zone", None)

    @property
    def order_kind(self) -> Literal["row", "integer", "time"]:
        """What orders the records: "row", "integer" or "time"."""
        return "row" if self.columns.order is None else "time" if self.chains.timed else "integer"

    def phases(self, phase: str, zone: str | None) -> NDArray[np.int64]:
        """(n,) the phase of each record; zone: must be the table's own."""
        self._check_clock(phase, zone)
        step, count = self.step, clock.phase_count(phase)
        needed = Step.parsed(clock.STEPS[phase])
        if step is None or not step.same(needed, self.zone):
            keep = (
                f"; to keep a row every {needed.text}: {needed.thinning(str(self.columns.order))}"
            )
            raise InputError(
                f"a kernel for each {phase} needs --step {needed.text}: it leads from one {phase}"
                f" to the next{keep if step is not None and step.length < needed.length else ''}"
            )
        # that of the chain's first record by the clock, and the next one with each step, also where
        # clocks are changed or a row comes early, as kernels go round
        begins = self.chains.order[self.chains.starts[:-1]].astype(np.int64)
        first = clock.phases_of(begins, phase, zone).astype(np.int64)
        return np.asarray((first[self.chains.chain_of] + self.chains.places) % count)

    def _check_clock(self, phase: str, zone: str | None) -> None:
        """InputError unless records show the hour, weekday or month of a zone."""
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
                f"the model takes the {phase} from times {there}, but those of column"
                f" {self.columns.order!r} are {here}; give both the same zone, or phases would slip"
            )

    def has_phase(self, phase: str) -> bool:
        """Whether records stand an hour, a weekday or a month apart, and show more than one."""
        with suppress(InputError):
            shown = self.phases(phase, self.zone)
            return bool(shown.min() < shown.max())
        return False

    def gap_times(self, chain: int, places: Integers) -> Integers:
        """(m,) the times of a chain's places without a row."""
        chains, step = self.chains, self.step
        assert chains.steps is not None
        assert step is not None
        rows = slice(int(chains.starts[chain]), int(chains.starts[chain + 1]))
        first = np.asarray(chains.order[rows.start : rows.start + 1].astype(np.int64))
        off = chains.order[rows].astype(np.int64) - step.onward(
            first, chains.steps[rows], self.zone
        )
        # off the grid by as much as half of the chain's rows are
        return step.onward(first, places, self.zone) + int(np.median(off))

    def labelled(self, alphabet: Alphabet) -> Arranged:
        """Coded by an alphabet."""
        assert self.unlabelled is not None
        codes = alphabet.coded(self.unlabelled)
        return replace(
            self,
            chains=replace(self.chains, codes=codes),
            labels=alphabet.labels,
            value_type=alphabet.released_type(self.unlabelled.dtype),
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
    alphabet: Alphabet | None,
    private: str | None = None,
    step: Step | None = None,
) -> Arranged:
    """Sort a table into chains and code its values; InputError for what would make that a guess.

    alphabet: what values may be; without it, values wait for their labels: see `labelled`.
    """
    asked = [*columns.released, *([private] if private else [])]
    check_columns(asked, frame.columns, TABLE)
    if frame.height == 0:
        raise InputError("the table has no rows")
    frame = frame.select(asked).rechunk()  # arrays then need no copies
    names = RowNames(frame, columns.by, columns.ordering)
    for at, (name, does) in enumerate(_must_be_filled(columns, private).items()):
        check_filled(frame[name], does, names, at)
    by = [chain_column(frame[name]) for name in columns.by]
    column, order = _order_values(frame, columns, names)
    marked = None if private is None else private_marks(frame[private], names)
    starts = chain_starts(by, frame.height)
    rows = None
    if not is_sorted(by, order, starts):
        del starts  # in a shuffled table as long as the table
        rows = sorted_rows(by, order)
        frame, by = frame[rows], [series[rows] for series in by]
        order = None if order is None else order[rows]
        marked = None if marked is None else marked[rows]
        starts = chain_starts(by, frame.height)
        names = RowNames(frame, columns.by, columns.ordering, rows)
    _check_trimmed(by, starts, names)
    if order is None:
        order = np.arange(1, frame.height + 1) - np.repeat(starts[:-1], np.diff(starts))
    grid = grid_of(order, starts, column, step, names)
    values, leaving = frame[columns.value], [*columns.by, *columns.ordering, *columns.keep]
    codes = _uncoded(values) if alphabet is None else alphabet.coded(values)
    return Arranged(
        columns=columns,
        frame=pl.DataFrame([plain(frame[name]) for name in leaving]),
        names=pl.DataFrame(by),
        chains=Chains(starts, codes, order, column.timed, grid.steps),
        labels=() if alphabet is None else alphabet.labels,
        value_type=values.dtype if alphabet is None else alphabet.released_type(values.dtype),
        private=marked,
        order_type=column.kind,
        step=step,
        grid=grid,
        rows=rows,
        unlabelled=values if alphabet is None else None,
    )


def _uncoded(values: pl.Series) -> Codes:
    """(n,) codes of values that have no labels yet: which of them are missing."""
    empty = value_cells(values).is_null().to_numpy()
    return np.where(empty, np.int8(MISSING), np.int8(UNKNOWN))


def _must_be_filled(columns: Columns, private: str | None) -> dict[str, str]:
    filled = dict.fromkeys(columns.by, "names chains")
    filled |= dict.fromkeys(columns.ordering, "orders records")
    return filled | ({private: "says which records are private"} if private else {})


def _order_values(
    frame: pl.DataFrame, columns: Columns, names: RowNames
) -> tuple[OrderColumn, NDArray[Any] | None]:
    """What orders rows, and by which values; without values, rows stand in order."""
    if columns.order is None:
        return OrderColumn(None, pl.Int64()), None
    cells = order_column(frame[columns.order], names)
    column = OrderColumn(columns.order, cells.dtype)
    return column, nanoseconds(cells) if column.timed else cells.to_numpy()


def _check_trimmed(by: list[pl.Series], starts: Integers, names: RowNames) -> None:
    # blanks would part one chain into two
    for at, series in enumerate(by):
        if (blank := blank_names(series.gather(starts[:-1]))) is not None:
            said = f"the table has blanks around the name of chains in column {series.name!r}, in "
            wrong = np.repeat(blank, np.diff(starts))
            raise names.error(wrong, Check.TRIMMED, (said, "row", ": remove them"), column=at)


def order_warnings(
    columns: Columns,
    step: Step | None,
    beside: int,
    spread: tuple[int, int] | None,
    spacings: Sequence[Spacing],
) -> list[str]:
    """What a person should know about the order of records, from what `arrange` has counted."""
    if step is not None and beside:
        return [
            f"{beside} rows lie beside the grid of --step {step.text}; each counts at its nearest"
            " step"
        ]
    if spread is not None and spread[0] != spread[1]:
        # no step fits the times of an event log
        is_even = 2 * sum(one.near for one in spacings) >= sum(one.pairs for one in spacings)
        said = (
            f"times in column {columns.order!r} are irregular; neighbours count as one step apart"
        )
        return [f"{said}, give --step to count time" if is_even else said]
    return []
