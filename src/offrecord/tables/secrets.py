"""Which records of a table are private: by a column, or by a list of keys; none may be lost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.mechanisms.blocks import Secrets
from offrecord.models.base import Integers
from offrecord.models.records import MISSING, Chains
from offrecord.tables.cells import check_names, nanoseconds, parsed_times, type_name
from offrecord.tables.chains import ROW, Arranged
from offrecord.tables.formats import check_columns
from offrecord.tables.steps import Step

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False, repr=False)
class Private:
    """Private records, sorted: the chain of each, and its place there in steps from the first.

    A place may be a gap between rows. order: their order values, of a gap the one that was listed.
    keys: how many rows of a private list were found.
    """

    chain: Integers
    place: Integers
    order: Integers
    keys: int = 0

    @property
    def count(self) -> int:
        """How many private records there are."""
        return len(self.place)

    def rows(self, chains: Chains) -> Integers:
        """The rows that are private."""
        before, after = _rows(chains, self)
        return before[after > before]


def private_records(arranged: Arranged, listed: pl.DataFrame | None, step: Step | None) -> Private:
    """The private records of a table, from its private column or a list of keys.

    Keys of chains that are not there are for others to find: see `check_all_found`.
    """
    chains = arranged.chains
    if listed is not None:
        return _listed(arranged, listed, step)
    rows = (
        np.empty(0, dtype=np.int64)
        if arranged.private is None
        else np.flatnonzero(arranged.private)
    )
    chain = np.searchsorted(chains.starts, rows, side="right") - 1
    place = rows - chains.starts[chain] if chains.steps is None else chains.steps[rows]
    return Private(chain, place, np.asarray(chains.order[rows].astype(np.int64)))


def secrets_of(chains: Chains, private: Private, protect: str) -> Secrets:
    """Private records as secrets: runs of them, whatever is missing in between, or each alone."""
    before, after = _rows(chains, private)
    joins = np.zeros(private.count, dtype=bool)  # to the private record before it
    if protect == "run":
        joins[1:] = private.chain[1:] == private.chain[:-1]
        if chains.whole:
            joins[1:] &= before[1:] == after[:-1]
        else:  # a record without a value says nothing: it does not part two private ones
            valued = np.concatenate(([0], np.cumsum(chains.codes != MISSING)))
            joins[1:] &= valued[before[1:]] == valued[after[:-1]]
    first = np.flatnonzero(~joins)
    last = np.append(first[1:], private.count)[: len(first)] - 1
    ends = private.place[first], private.place[last]
    return Secrets(private.chain[first], *ends, before[first], after[last], private.order[first])


def _rows(chains: Chains, private: Private) -> tuple[Integers, Integers]:
    """The row of each private record, and the one after; for a gap, twice the row after it."""
    if chains.steps is None:
        rows = chains.starts[private.chain] + private.place
        return rows, rows + 1
    keys = private.chain * chains.width + private.place
    before = np.searchsorted(chains.keys, keys, side="left")
    return before, np.searchsorted(chains.keys, keys, side="right")


def _listed(arranged: Arranged, listed: pl.DataFrame, step: Step | None) -> Private:
    """The records that the keys of a private list name, each in a row, or under a step in a gap.

    InputError for a key that finds neither.
    """
    columns, chains = arranged.columns, arranged.chains
    check_columns([*columns.by, columns.order or ROW], listed.columns, "the private list")
    if listed.height == 0:
        none = np.empty(0, dtype=np.int64)
        return Private(none, none, none)
    chain, order = _keys_of(arranged, listed)
    place = _places(arranged, chain, order, step)
    lost = int((place < 0).sum())
    if lost:
        raise InputError(
            f"the private list names {lost} records that the table does not have; no opt-out may be"
            " lost" + ("" if step else " (records in gaps can be protected with --step)")
        )
    keys = len(chain)
    pairs, once = np.unique(np.stack((chain, place), axis=1), axis=0, return_index=True)
    chain, place = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    found = Private(chain, place, order[once].astype(np.int64), keys)
    before, after = _rows(chains, found)
    there = after > before  # a row has its own order value, beside the grid as it may be
    found.order[there] = chains.order[before[there]]
    return found


def _keys_of(arranged: Arranged, listed: pl.DataFrame) -> tuple[Integers, NDArray[Any]]:
    """The chain and the order value of each key whose chain is in the table."""
    import polars as pl

    columns, chains = arranged.columns, arranged.chains
    order_name = columns.order or ROW
    order = _order_keys(listed[order_name], arranged, order_name)
    if not columns.by:
        return np.zeros(len(order), dtype=np.int64), order
    # text as it stands, whatever other chains are called
    known = [
        arranged.frame[name] if arranged.frame[name].dtype == pl.String else arranged.names[name]
        for name in columns.by
    ]
    for series in known:
        check_names(listed[series.name], "the private list")
    keys = [_as_type(listed[series.name], series.dtype, series.name) for series in known]
    firsts = [series.gather(chains.starts[:-1]) for series in known]
    named = [f"by {name}" for name in columns.by]
    table = _renamed(firsts, named).with_columns(pl.Series("chain", np.arange(chains.count)))
    wanted = _renamed(keys, named).with_columns(pl.Series("order", order))
    found = wanted.join(table, on=named, how="inner")
    return found["chain"].to_numpy().astype(np.int64), found["order"].to_numpy()


def _renamed(columns: list[pl.Series], names: list[str]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame([series.alias(name) for series, name in zip(columns, names, strict=True)])


def check_all_found(found: int, listed: int) -> None:
    """InputError unless every row of a private list was found."""
    if found != listed:
        raise InputError(
            f"the private list names {listed - found} records of chains that the table does not"
            " have; no opt-out may be lost"
        )


def _places(
    arranged: Arranged, chain: Integers, order: NDArray[Any], step: Step | None
) -> Integers:
    """The place of each key in its chain; −1 where it has no row, nor, under a step, a gap."""
    chains = arranged.chains
    begin, end = chains.starts[chain], chains.starts[chain + 1] - 1
    if step is not None:
        assert chains.steps is not None
        place, off = step.counted(chains.order[begin], order, arranged.zone)
        near = 4 * off <= step.length
        return np.where(near & (place >= 0) & (place <= chains.steps[end]), place, -1)
    place = np.full(len(chain), -1, dtype=np.int64)
    for i in range(len(chain)):  # a binary search in each key's chain
        at = int(np.searchsorted(chains.order[begin[i] : end[i] + 1], order[i]))
        if begin[i] + at <= end[i] and chains.order[begin[i] + at] == order[i]:
            place[i] = at
    return place


def _as_type(series: pl.Series, kind: pl.DataType, name: str) -> pl.Series:
    """A key column as the type the table's has; null where a key is none."""
    import polars as pl

    _check_filled(series, name)
    if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        series = series.cast(pl.String)
    numeric = series.dtype.is_integer() or series.dtype == pl.String
    if series.dtype == kind or (numeric and kind.is_integer()):
        return series.cast(kind, strict=False)
    if kind == pl.String and series.dtype.is_integer():
        return series.cast(pl.String)
    if series.dtype == pl.String and (kind == pl.Date or isinstance(kind, pl.Datetime)):
        return _zoned(parsed_times(series), kind, name).cast(kind, strict=False)
    raise InputError(
        f"column {name!r} holds {type_name(kind)} in the table but {type_name(series.dtype)} in the"
        " private list"
    )


def _check_filled(series: pl.Series, name: str) -> None:
    """InputError for empty keys: they would be opt-outs lost in silence."""
    if series.null_count():
        raise InputError(
            f"the private list must name a record in every row: column {name!r} is empty in"
            f" {series.null_count()}"
        )


def _zoned(times: pl.Series | None, kind: pl.DataType, name: str) -> pl.Series:
    """The times, if they have a time zone just where the table's do."""
    import polars as pl

    if times is None:
        raise InputError(
            f"the private list must hold dates or times (ISO 8601) in column {name!r}, got other"
            " text"
        )
    here, there = (
        isinstance(one, pl.Datetime) and bool(one.time_zone) for one in (kind, times.dtype)
    )
    if here != there:
        has = (
            "the private list's times have a time zone"
            if there
            else "the table's times have a time zone, the private list's have none"
        )
        raise InputError(
            f"column {name!r}: {has}; give both the same, or opt-outs would slip by hours"
        )
    return times


def _order_keys(series: pl.Series, arranged: Arranged, name: str) -> NDArray[Any]:
    """The order values of keys as the table's are kept: whole numbers, or nanoseconds."""
    import polars as pl

    kind = arranged.order_type
    _check_filled(series, name)
    if arranged.columns.unit is not None:
        return arranged.columns.unit.counted(series, "the private list")
    if not kind.is_integer():
        return nanoseconds(_zoned(_order_times(series, kind, name), kind, name))
    numbers = _as_type(series, pl.Int64(), name)
    if numbers.null_count():
        raise InputError(
            f"the private list names {numbers.null_count()} records whose {name!r} is no whole"
            " number"
        )
    return numbers.to_numpy()


def _order_times(series: pl.Series, kind: pl.DataType, name: str) -> pl.Series:
    """The order values of keys as days or as times, as the table's are."""
    import polars as pl

    times = parsed_times(series) if series.dtype == pl.String else series
    is_day = kind == pl.Date
    # midnights are days too, for programs that know no days
    if times is not None and times.dtype == pl.Datetime and is_day:
        times = times.dt.date() if (times.dt.time() == time()).all() else times
    if times is not None and (times.dtype == pl.Date) != is_day:
        here, there = ("days", "times") if is_day else ("times", "days")
        raise InputError(
            f"column {name!r} holds {here} in the table but {there} in the private list"
        )
    if times is None or not (times.dtype == pl.Date or isinstance(times.dtype, pl.Datetime)):
        raise InputError(
            f"the private list must hold dates or times in column {name!r}, as the table does"
        )
    return times
