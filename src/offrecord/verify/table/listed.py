"""The private records of a release: as its certificate publishes them, or by a private list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from offrecord.errors import InputError
from offrecord.release.certificate import Positions
from offrecord.verify.table.cells import (
    Integers,
    Mask,
    is_timed,
    nanoseconds,
    times_of,
    units_of,
    whole_of,
)
from offrecord.verify.table.files import read_file
from offrecord.verify.table.found import Found
from offrecord.verify.table.rows import Table, expand

_LOW, _HIGH = -(2**63), 2**63 - 1
_FROM, _TO = "from", "to"
_MOST_GAPS = 10**7
_LIST = "the private list"


@dataclass(frozen=True, eq=False)
class Private:
    """Private records, sorted: chain, place, order value, and row; where there is none, row is that
    after the place, and `there` is false.
    """

    chain: Integers
    place: Integers
    order: Integers
    row: Integers
    there: Mask

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.place)

    def part(self, some: slice) -> Private:
        """Some of them."""
        return Private(
            self.chain[some], self.place[some], self.order[some], self.row[some], self.there[some]
        )

    def alone(self, start: int) -> Private:
        """In a table of their chain alone, which begins with row `start` of this one."""
        return replace(self, chain=np.zeros_like(self.chain), row=self.row - start)


@dataclass(frozen=True, eq=False)
class _Ranges:
    """Of rows of a list: their chain, −1 where there is none, the first and last place (the first
    after the last where there is none), the order value for records, and whether all rows of a
    chain are meant, and no gap.
    """

    chain: Integers
    first: Integers
    last: Integers
    order: Integers
    whole: Mask


def by_list(table: Table, path: Path, found: Found) -> Private:
    """The private records that a file lists. Rows that name nothing may be of chains that were
    dropped: how many is said.
    """
    frame = read_file(path)
    columns = table.columns
    lost = [name for name in columns.by if name not in frame.columns]
    if lost:
        raise InputError(f"{_LIST} must have the columns {', '.join(columns.by)}")
    if frame.height == 0:
        return _records(table, _nothing(), with_orders=False)
    ranged = {_FROM, _TO} <= {*frame.columns} - {*columns.by}
    if not ranged and columns.order in frame.columns:
        return _found(table, _singles(table, frame), with_orders=True, found=found)
    if not ranged and not ({*frame.columns} == {*columns.by} and columns.by):
        raise InputError(f"{_LIST} must have the column {columns.order!r}, or 'from' and 'to'")
    return _found(table, _ranges(table, frame, ranged), with_orders=False, found=found)


def by_positions(table: Table, positions: Positions, found: Found) -> Private:
    """The private records that the certificate publishes."""
    columns = table.columns
    should = [*columns.by, columns.order]
    if list(positions.columns) != should:
        raise InputError(f"private.positions.columns must be {', '.join(should)}")
    cells = [list(column) for column in zip(*positions.keys, strict=True)] or [[] for _ in should]
    if not all(type(value) is int and _LOW <= value <= _HIGH for value in cells[-1]):
        raise InputError("private.positions.keys must end with order values, whole numbers")
    named = zip(columns.by, cells[:-1], strict=True)
    frame = pl.DataFrame([_names(name, column) for name, column in named])
    order = np.array(cells[-1], dtype=np.int64)
    chain = chains_of(table, frame, len(order))
    return _found(table, _placed(table, chain, order), with_orders=True, found=found)


def _names(name: str, cells: list[Any]) -> pl.Series:
    kinds = {type(cell) for cell in cells}
    if len(kinds) == 1:
        try:
            return pl.Series(name, cells)
        except (OverflowError, TypeError, pl.exceptions.PolarsError):
            pass
    return pl.Series(name, [str(cell) for cell in cells], dtype=pl.String)


# ---- which chain


def chains_of(table: Table, frame: pl.DataFrame, count: int, what: str = _LIST) -> Integers:
    """(l,) the chain that each row names, −1 if the table has none such."""
    if not table.columns.by:
        return np.zeros(count, dtype=np.int64)
    firsts = [table.frame[name].gather(table.starts[:-1]) for name in table.columns.by]
    pairs = [_comparable(known, frame[known.name], what) for known in firsts]
    names = [f"by {at}" for at in range(len(pairs))]
    here = pl.DataFrame([one.alias(name) for (one, _), name in zip(pairs, names, strict=True)])
    asked = pl.DataFrame([one.alias(name) for (_, one), name in zip(pairs, names, strict=True)])
    here = here.with_columns(pl.Series("chain", np.arange(table.chains)))
    found = asked.join(here, on=names, how="left", maintain_order="left")
    return found["chain"].fill_null(-1).to_numpy().astype(np.int64)


def _comparable(known: pl.Series, asked: pl.Series, what: str) -> tuple[pl.Series, pl.Series]:
    """Names of the table and of a list in one type."""
    if asked.null_count():
        raise InputError(f"{what} must name a chain in every row: {asked.name!r} is empty in some")
    if known.dtype.is_integer() and asked.dtype.is_integer():
        return known.cast(pl.Int128), asked.cast(pl.Int128)
    if is_timed(known) or is_timed(asked):
        times = times_of(known), times_of(asked)
        if times[0] is not None and times[1] is not None:
            return pl.Series(nanoseconds(times[0])), pl.Series(nanoseconds(times[1]))
    if known.dtype == asked.dtype:
        return known, asked
    return known.cast(pl.String), asked.cast(pl.String)


# ---- which records


def _singles(table: Table, frame: pl.DataFrame) -> _Ranges:
    """A record in each row."""
    order = order_values(table, frame[table.columns.order])
    return _placed(table, chains_of(table, frame, frame.height), order)


def _placed(table: Table, chain: Integers, order: Integers) -> _Ranges:
    safe = np.maximum(chain, 0)
    begin, end = table.starts[safe], table.starts[safe + 1]
    if table.step is not None:
        place, off = table.step.counted(table.order[begin], order, table.columns.zone)
        here = (4 * off <= table.step.length) & (place >= 0) & (place < table.lengths[safe])
    else:
        row = _row_from(table, safe, order)
        here = row < end
        here[here] = table.order[row[here]] == order[here]
        place = row - begin
    first = np.where(here & (chain >= 0), place, 1)
    last = np.where(here & (chain >= 0), place, 0)
    return _Ranges(chain, first, last, order, np.zeros(len(chain), dtype=bool))


def _ranges(table: Table, frame: pl.DataFrame, ranged: bool) -> _Ranges:
    """All records between two order values in each row, or a whole chain."""
    count = frame.height
    low, high = np.full(count, _LOW), np.full(count, _HIGH)
    days = ranged and _are_days(frame[_TO])
    if ranged:
        for ends, name in ((low, _FROM), (high, _TO)):
            there = frame[name].is_not_null().to_numpy()
            if there.any():
                cells = frame[name].filter(pl.Series(there))
                ends[there] = order_values(table, cells, whole_day=days and name == _TO)
    if np.any(low > high):
        raise InputError(f"{_LIST} has a range whose 'from' is after its 'to'")
    chain = chains_of(table, frame, count)
    safe = np.maximum(chain, 0)
    whole = (low == _LOW) & (high == _HIGH)
    row, beyond = _row_from(table, safe, low), _row_from(table, safe, high, above=True)
    begin = table.starts[safe]
    first, last = row - begin, beyond - 1 - begin
    if table.step is not None:
        first, last = _stepped(table, safe, (low, high), (row, beyond), days=days)
    first[chain < 0], last[chain < 0] = 1, 0
    return _Ranges(chain, first, last, low, whole)


def _stepped(
    table: Table,
    chain: Integers,
    ends: tuple[Integers, Integers],
    rows: tuple[Integers, Integers],
    *,
    days: bool,
) -> tuple[Integers, Integers]:
    """The places of ranges: those of the rows that are in it, and all steps that a key in it would
    find, which is up to a quarter step beyond its ends. days: those that end with a day do so at
    midnight sharp.
    """
    step, zone = table.step, table.columns.zone
    assert step is not None
    assert table.steps is not None
    since, until = table.order[table.starts[chain]], table.order[table.starts[chain + 1] - 1]
    least = np.maximum(since, _LOW + step.length) - step.length
    most = np.minimum(until, _HIGH - step.length) + step.length
    places = []
    for end, outwards in zip(ends, (-1, 1), strict=True):
        cut = np.clip(end, least, most)
        place, off = step.counted(since, cut, zone)
        at = step.onward(since, place, zone)
        # a step that lies beyond the end, and further than a quarter step, is not in it
        sharp = days and outwards > 0
        outside = (sharp | (4 * off > step.length)) & (np.sign(at - cut) == outwards)
        places.append(place - outwards * outside)
    first, last = places
    row, beyond = rows
    held = beyond > row
    first[held] = np.minimum(first[held], table.steps[row[held]])
    last[held] = np.maximum(last[held], table.steps[beyond[held] - 1])
    return np.maximum(first, 0), np.minimum(last, table.lengths[chain] - 1)


def _row_from(table: Table, chain: Integers, order: Integers, *, above: bool = False) -> Integers:
    """(l,) the first row of each chain with at least an order value, or more than it."""
    low, high = table.starts[chain].copy(), table.starts[chain + 1].copy()
    while np.any(low < high):
        middle = (low + high) // 2
        values = table.order[np.minimum(middle, table.rows - 1)]
        less = (values <= order) if above else (values < order)
        further = (low < high) & less
        high = np.where((low < high) & ~less, middle, high)
        low = np.where(further, middle + 1, low)
    return low


def order_values(
    table: Table, series: pl.Series, what: str = _LIST, *, whole_day: bool = False
) -> Integers:
    """Order values of a list as the table's are counted. what: for messages."""
    columns = table.columns
    if series.null_count():
        raise InputError(f"{what} must name a record in every row: {series.name!r} is empty")
    values: Integers | None
    if columns.order_unit is not None:
        values = units_of(series, columns.order_unit)
    elif columns.order_kind == "integer":
        values = None if is_timed(series) else whole_of(series)
    else:
        times = times_of(series)
        values = None if times is None else nanoseconds(_as_table(table, times, what))
        if values is not None and whole_day and table.order_type != pl.Date:
            values = nanoseconds(_as_table(table, times_of(series), what).dt.offset_by("1d")) - 1
    if values is None:
        raise InputError(f"{what} must hold order values as the table's in {series.name!r}")
    return values


def _as_table(table: Table, times: Any, what: str) -> pl.Series:
    """Times of a list; InputError if they have a zone where the table's have none, or the other way
    round.
    """
    zones = [getattr(kind, "time_zone", None) for kind in (table.order_type, times.dtype)]
    if bool(zones[0]) != bool(zones[1]):
        raise InputError(f"{what} and the table must both have times with a zone, or neither")
    timed: pl.Series = times.cast(pl.Datetime("us")) if times.dtype == pl.Date else times
    return timed


def _are_days(series: pl.Series) -> bool:
    """All that is there are days, or midnights."""
    told = series.drop_nulls()
    times = times_of(told) if len(told) else None
    if times is None:
        return False
    return times.dtype == pl.Date or bool((times.dt.time() == time()).all())


# ---- as records


def _nothing() -> _Ranges:
    none = np.zeros(0, dtype=np.int64)
    return _Ranges(none, none, none, none, np.zeros(0, dtype=bool))


def _found(table: Table, ranges: _Ranges, *, with_orders: bool, found: Found) -> Private:
    dropped = int(np.count_nonzero(ranges.chain < 0))
    if dropped:
        found.not_checked.append(
            f"{dropped:,} of {len(ranges.chain):,} private entries name chains that the released"
            " table does not have: those that are private as a whole may have been dropped."
        )
    # nothing is released while an entry names no record of a chain
    lost = int(np.count_nonzero((ranges.chain >= 0) & (ranges.first > ranges.last)))
    if lost:
        found.wrong(
            f"{lost:,} of {len(ranges.chain):,} private entries name records that their chains do"
            " not have in the released table"
        )
    here = (ranges.chain >= 0) & (ranges.first <= ranges.last)
    kept = _Ranges(
        ranges.chain[here],
        ranges.first[here],
        ranges.last[here],
        ranges.order[here],
        ranges.whole[here],
    )
    return _records(table, kept, with_orders=with_orders)


def _records(table: Table, ranges: _Ranges, *, with_orders: bool) -> Private:
    """All records of some ranges, each once."""
    width = table.width
    whole = np.unique(ranges.chain[ranges.whole])
    rows = expand(table.starts[whole], table.starts[whole + 1])
    some = ~ranges.whole
    base = ranges.chain[some] * width
    sizes = ranges.last[some] - ranges.first[some] + 1
    if int(sizes.sum()) > table.rows + _MOST_GAPS:
        raise InputError(f"{_LIST} has ranges that hold too many records to be looked at")
    lines = expand(base + ranges.first[some], base + ranges.last[some] + 1)
    if len(rows):
        lines = np.concatenate((lines, table.chain_of(rows) * width + table.place_of(rows)))
    lines = np.unique(lines)
    chain, place = np.divmod(lines, width)
    row = table.row_from(chain, place)
    there = row < table.starts[chain + 1]
    there[there] = table.place_of(row[there]) == place[there]
    order = np.zeros(len(lines), dtype=np.int64)
    order[there] = table.order[row[there]]
    if not there.all():
        _fill(table, (chain, place), order, ~there, (lines, ranges) if with_orders else None)
    return Private(chain, place, order, row, there)


def _fill(
    table: Table,
    records: tuple[Integers, Integers],
    order: Integers,
    gaps: Mask,
    said: tuple[Integers, _Ranges] | None,
) -> None:
    """The order values of records without a row: as they were listed, the first time, else by the
    chain's grid.
    """
    chain, place = records
    if said is not None:
        lines, ranges = said
        at = np.searchsorted(lines, ranges.chain * table.width + ranges.first)[::-1]
        told = gaps[at]
        order[at[told]] = ranges.order[::-1][told]
        return
    for one in np.unique(chain[gaps]).tolist():
        mine = gaps & (chain == one)
        order[mine] = gap_times(table, one, place[mine])


def gap_times(table: Table, chain: int, places: Integers) -> Integers:
    """When records of a chain stand that have no row: off its grid by as much as half of its rows
    are.
    """
    step, zone = table.step, table.columns.zone
    assert step is not None
    assert table.steps is not None
    rows = slice(int(table.starts[chain]), int(table.starts[chain + 1]))
    first = table.order[rows.start : rows.start + 1]
    off = table.order[rows] - step.onward(first, table.steps[rows], zone)
    return step.onward(first, places, zone) + int(np.median(off))
