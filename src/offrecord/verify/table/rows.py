"""A released table as chains of records: where each row stands, and which label it shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.release.certificate import Certificate, Columns
from offrecord.verify.table.cells import (
    EMPTY,
    OTHER,
    Codes,
    Integers,
    Mask,
    codes_of,
    is_spelled_alike,
    is_timed,
    names_of,
    nanoseconds,
    times_of,
    units_of,
    whole_of,
)
from offrecord.verify.table.found import Found, listed
from offrecord.verify.table.steps import Step

ROW = "row"  #: `columns.order` of a table whose rows stand in order
_MOST_PLACES = 2**62


@dataclass(frozen=True, eq=False)
class Table:
    """Rows by chain and order.

    frame: the columns that name rows. names: those that name chains, as they compare. starts:
    (m + 1,) where chains begin, and the end. order: (n,) whole numbers, or nanoseconds. steps: (n,)
    places, None where rows count as one step apart. codes: (n,) what they show. kept: (n,) whether
    a kept column has a cell, None without any. original: (n,) what they showed before, if
    that is known. waits: (n,) which are empty as they have to wait, in a table that grows.
    """

    columns: Columns
    step: Step | None
    frame: pl.DataFrame
    names: list[pl.Series]
    starts: Integers
    order: Integers
    steps: Integers | None
    codes: Codes
    kept: Mask | None
    order_type: pl.DataType
    original: Codes | None = None
    waits: Mask | None = None

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.codes)

    @property
    def chains(self) -> int:
        """How many there are."""
        return len(self.starts) - 1

    @cached_property
    def lengths(self) -> Integers:
        """(m,) the number of places of each chain, up to its last row."""
        last = self.starts[1:] - 1
        return (last - self.starts[:-1] if self.steps is None else self.steps[last]) + 1

    @cached_property
    def width(self) -> int:
        """More than any place."""
        return int(self.lengths.max()) + 1

    @cached_property
    def keys(self) -> Integers:
        """(n,) chain and place as one number, which grows from row to row."""
        assert self.steps is not None
        return np.repeat(np.arange(self.chains) * self.width, np.diff(self.starts)) + self.steps

    def part(self, chains: Integers) -> Table:
        """A table of some chains, which are sorted."""
        return self.taken(self.rows_of(chains), self.starts[chains + 1] - self.starts[chains])

    def taken(self, rows: Integers, sizes: Integers) -> Table:
        """A table of some rows, which are sorted. sizes: how many of them each chain has."""
        return replace(
            self,
            frame=self.frame[rows],
            names=[series.gather(rows) for series in self.names],
            starts=np.concatenate(([0], np.cumsum(sizes))),
            order=self.order[rows],
            steps=None if self.steps is None else self.steps[rows],
            codes=self.codes[rows],
            kept=None if self.kept is None else self.kept[rows],
            original=None if self.original is None else self.original[rows],
            waits=None if self.waits is None else self.waits[rows],
        )

    def rows_of(self, chains: Integers) -> Integers:
        """The rows of some chains."""
        return expand(self.starts[chains], self.starts[chains + 1])

    def chain_of(self, rows: Integers) -> Integers:
        """(r,) the chains of some rows."""
        return np.asarray(np.searchsorted(self.starts, rows, side="right") - 1)

    def place_of(self, rows: Integers) -> Integers:
        """(r,) the places of some rows."""
        if self.steps is not None:
            return self.steps[rows]
        return rows - self.starts[self.chain_of(rows)]

    @cached_property
    def is_whole(self) -> Mask:
        """(m,) whether every place of a chain has a row, so that rows need not be looked up."""
        if self.steps is None:
            return np.ones(self.chains, dtype=bool)
        return np.asarray(np.diff(self.starts) == self.lengths)

    def row_from(self, chain: Integers, place: Integers) -> Integers:
        """The first row of each chain at a place or after it; the one after the chain where there
        is none.
        """
        starts = self.starts[chain]
        found = np.clip(starts + place, starts, self.starts[chain + 1])
        if self.steps is not None:
            others = np.broadcast_to(~self.is_whole[chain], found.shape)
            if others.any():
                chain, place = (np.broadcast_to(one, found.shape)[others] for one in (chain, place))
                keys = chain * self.width + np.clip(place, 0, self.width - 1)
                found[others] = np.searchsorted(self.keys, keys, side="left")
        return np.asarray(found)

    def row_at(self, chain: Integers, place: Integers) -> tuple[Integers, Mask]:
        """The row of each chain at a place, and whether there is one; 0 if not."""
        there = (place >= 0) & (place < self.lengths[chain])
        row = np.where(there, self.starts[chain] + place, 0)
        if self.steps is not None:
            others = there & ~self.is_whole[chain]
            if others.any():
                chain, place = (np.broadcast_to(one, row.shape)[others] for one in (chain, place))
                row[others] = found = self.row_from(chain, place)
                there[others] = self.steps[found] == place
        return row, there

    def named(self, rows: Integers) -> Iterator[str]:
        """How some rows are told."""
        if not self.frame.width:
            yield from (f"row {row + 1}" for row in rows.tolist())
            return
        for row in rows.tolist():
            cells = zip(self.frame.columns, self.frame.row(row), strict=True)
            told = ", ".join(f"{name} {_cell(cell)}" for name, cell in cells)
            own = f", row {row - self.starts[self.chain_of(np.array([row]))[0]] + 1}"
            yield told + (own if self.columns.order == ROW else "")

    def told(self, chain: int, place: int) -> str:
        """How a record is told that need not have a row."""
        row = int(self.row_from(np.array([chain]), np.array([place]))[0])
        there = row < self.starts[chain + 1] and self.place_of(np.array([row]))[0] == place
        if there:
            return next(self.named(np.array([row])))
        first = next(self.named(self.starts[chain : chain + 1]))
        return f"{place} steps after {first}"


def _cell(cell: Any) -> str:
    text = str(cell)
    return text if len(text) <= 60 else text[:57] + "…"


def table_of(frame: pl.DataFrame, certificate: Certificate, found: Found) -> Table | None:
    """The rows of a release; None where they make no chains, which is a problem then."""
    columns = certificate.columns
    if not _check_columns(frame, certificate, found):
        return None
    naming = [*columns.by, *([] if columns.order == ROW else [columns.order])]
    empty = [name for name in naming if frame[name].null_count()]
    if empty or frame.height == 0:
        found.wrong(f"empty cells in {listed(empty)}" if empty else "the table has no rows")
        return None
    names = [names_of(frame[name]) for name in columns.by]
    ordered = _order(frame, columns, found)
    if ordered is None:
        return None
    order, kind = ordered
    frame, names, order = _sorted(frame, names, order, found, certificate)
    starts = _starts(names, frame.height)
    if order is None:
        order = np.arange(1, frame.height + 1) - np.repeat(starts[:-1], np.diff(starts))
    named = frame.select(naming)
    codes = codes_of(frame[columns.value], certificate.model.labels)
    if not is_spelled_alike(frame[columns.value], codes):
        found.wrong(f"column {columns.value!r} writes a label in several ways")
    step = None if columns.step is None else Step.of(columns.step)
    table = Table(
        columns, step, named, names, starts, order, None, codes, _kept(frame, columns), kind
    )
    steps = _places(table, found)
    if steps is None:
        return None
    return table if step is None else replace(table, steps=steps)


def _check_columns(frame: pl.DataFrame, certificate: Certificate, found: Found) -> bool:
    """Whether the columns are those that must leave, so that they can be read."""
    columns, output = certificate.columns, certificate.output
    assert output is not None
    ordering = [] if columns.order == ROW else [columns.order]
    should = [*columns.by, *ordering, columns.value, *columns.keep]
    if len(set(should)) < len(should):
        raise InputError("the certificate names a column twice among value, order, by and keep")
    found.unequal("columns", listed(output.columns), listed(frame.columns))
    if list(output.columns) != should:
        found.wrong(f"output.columns must be {listed(should)}, are {listed(output.columns)}")
    lost = [name for name in should if name not in frame.columns]
    if lost:
        found.wrong(f"columns are not there: {listed(lost)}")
    return not lost


def _kept(frame: pl.DataFrame, columns: Columns) -> Mask | None:
    if not columns.keep:
        return None
    there = pl.any_horizontal(pl.col(list(columns.keep)).is_not_null())
    return frame.select(there).to_series().to_numpy()


def _order(
    frame: pl.DataFrame, columns: Columns, found: Found
) -> tuple[Integers | None, pl.DataType] | None:
    """Order values and their type; None, and a problem, where they are not what they should be."""
    if columns.order == ROW:
        return None, pl.Int64()
    series = frame[columns.order]
    values: Integers | None = None
    kind: pl.DataType = pl.Int64()
    should = "whole numbers"
    if columns.order_unit is not None:
        values, should = units_of(series, columns.order_unit), f"multiples of {columns.order_unit}"
    elif columns.order_kind == "time":
        times, should = times_of(series), "times"
        if times is not None:
            values, kind = nanoseconds(times), times.dtype
    elif not is_timed(series):
        values = whole_of(series)
    if values is None:
        found.wrong(f"column {columns.order!r} holds no {should}, as the certificate says")
        return None
    return values, kind


# ---- rows in order


def _starts(names: list[pl.Series], rows: int) -> Integers:
    """(m + 1,) where chains begin in rows that stand chain by chain, and the end."""
    change = np.zeros(rows, dtype=bool)
    change[0] = True
    for series in names:
        if series.dtype.is_integer() or is_timed(series):
            values = series.to_physical().to_numpy()
            change[1:] |= values[1:] != values[:-1]
        else:
            change[1:] |= (series[1:] != series[:-1]).to_numpy()
    return np.append(np.flatnonzero(change), rows)


def _sorted(
    frame: pl.DataFrame,
    names: list[pl.Series],
    order: Integers | None,
    found: Found,
    certificate: Certificate,
) -> tuple[pl.DataFrame, list[pl.Series], Integers | None]:
    """The rows by chain and order; a problem if they do not leave so, but for a folder of files,
    which have no order among each other.
    """
    if _stand(names, order, frame.height):
        return frame, names, order
    assert certificate.output is not None
    if certificate.output.files is None:
        found.wrong("rows do not stand sorted by chain and order: their order may tell something")
    else:
        found.not_checked.append("The order in which rows stand in files of a folder.")
    keys = [series.alias(f"{at}") for at, series in enumerate(names)]
    keys += [] if order is None else [pl.Series("order", order)]
    if not keys:
        return frame, names, order
    table = pl.DataFrame(keys).with_row_index("row of the table")
    others = table.columns[1:]
    rows = table.sort(others, maintain_order=True)["row of the table"].to_numpy()
    gathered = [series.gather(rows) for series in names]
    return frame[rows], gathered, None if order is None else order[rows]


def _stand(names: list[pl.Series], order: Integers | None, rows: int) -> bool:
    starts = _starts(names, rows)
    if order is not None:
        falls = order[1:] < order[:-1]
        falls[starts[1:-1] - 1] = False
        if falls.any():
            return False
    if not names:
        return True
    firsts = [series.gather(starts[:-1]) for series in names]
    return _grow(firsts) or _grow([_numbers(series) for series in firsts])


def _numbers(series: pl.Series) -> pl.Series:
    """Text as numbers of any size, where all of it is: they were sorted as numbers."""
    if series.dtype != pl.String or not series.str.contains(r"^-?\d{1,20}$").all():
        return series
    return series.cast(pl.Int128)


def _grow(columns: list[pl.Series]) -> bool:
    """Each row is greater than the one before."""
    count = len(columns[0]) - 1
    grown, equal = np.zeros(count, dtype=bool), np.ones(count, dtype=bool)
    for series in columns:
        plain = series.to_physical() if is_timed(series) else series
        before, after = plain[:-1], plain[1:]
        grown |= equal & (after > before).to_numpy()
        equal &= (after == before).to_numpy()
    return bool(grown.all())


def _places(table: Table, found: Found) -> Integers | None:
    """(n,) places by the step; None, and problems, where rows have none of their own."""
    order, starts, columns = table.order, table.starts, table.columns
    firsts = np.zeros(table.rows, dtype=bool)
    firsts[starts[:-1]] = True
    same = (order[1:] == order[:-1]) & ~firsts[1:]
    if same.any():
        rows = np.flatnonzero(same) + 1
        found.wrong_at(table.named(rows), len(rows), "the row before it has the same order value")
        return None
    step = table.step
    if step is None:
        return np.zeros(0, dtype=np.int64)
    if (step.kind == "number") == (columns.order_kind == "time"):
        found.wrong(f"columns.step {columns.step} does not go with order values that are times")
        return None
    since = np.repeat(order[starts[:-1]], np.diff(starts))
    places, off = step.counted(since, order, columns.zone)
    far = np.flatnonzero(4 * off > step.length) if off.any() else np.zeros(0, dtype=np.int64)
    if len(far):
        says = f"over a quarter step of {columns.step} off the chain's grid"
        found.wrong_at(table.named(far), len(far), says)
        return None
    if (int(places.max()) + 2) * (len(starts) + 1) >= _MOST_PLACES or int(places.min()) < 0:
        raise InputError(f"columns.step {columns.step} makes more steps than can be counted")
    shared = (places[1:] == places[:-1]) & ~firsts[1:]
    if shared.any():
        rows = np.flatnonzero(shared) + 1
        found.wrong_at(table.named(rows), len(rows), "the row before it is on the same step")
        return None
    return places


def check_counts(table: Table, certificate: Certificate, found: Found) -> None:
    """Rows and chains as the certificate counts them, and no value but labels."""
    counts, output = certificate.counts, certificate.output
    assert output is not None
    found.unequal("rows", output.rows, table.rows)
    found.unequal("counts.rows", counts.rows, table.rows)
    found.unequal("counts.chains", counts.chains, table.chains)
    other = np.flatnonzero(table.codes == OTHER)
    found.wrong_at(table.named(other), len(other), "a value that is none of the model's labels")
    found.checked.append(
        f"{table.rows:,} rows in {table.chains:,} chains, sorted, each with a place of its own, and"
        " no value but the model's labels."
    )


def is_empty(table: Table) -> Mask:
    """(n,) the rows without a value."""
    return np.asarray(table.codes == EMPTY)


def expand(begin: Integers, end: Integers) -> NDArray[np.int64]:
    """All numbers begin[i] … end[i] − 1, one range after the other."""
    counts = np.maximum(end - begin, 0)
    shift = np.repeat(begin - np.cumsum(counts) + counts, counts)
    return np.asarray(shift + np.arange(int(counts.sum())))
