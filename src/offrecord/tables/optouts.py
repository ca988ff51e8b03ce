"""A private list: in each row a record, a range of records, or a chain that is private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import time
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models import clock
from offrecord.models.base import Integers, Mask
from offrecord.models.records import Chains
from offrecord.tables.cells import blank_names, nanoseconds, parsed_times, type_name
from offrecord.tables.chains import ROW, Arranged, Columns
from offrecord.tables.column_names import check_columns
from offrecord.tables.problems import LIST, Check, RowNames
from offrecord.tables.steps import Step

FROM, TO = "from", "to"  #: the columns of ranges
_FORMS = {"records": "record", "ranges": "range", "chains": "chain"}
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


class Named(NamedTuple):
    """What the rows of a list name in some chains.

    known: (l,) which rows name a chain that is there; found: those that find something in it. Of
    these, chain: (f,) the chain. first, last: (f,) the places from which to which it is private.
    order: (f,) the order value that is listed, for records. whole: (f,) all of its rows, and
    nothing but rows.
    """

    known: Mask
    found: Mask
    chain: Integers
    first: Integers
    last: Integers
    order: Integers
    whole: Mask


@dataclass(frozen=True, eq=False, repr=False)
class OptOuts:
    """A private list. form: what its rows name, "records", "ranges" or "chains".

    days: every `to` is a day, or midnight as of programs that know no days: that whole day.
    """

    frame: pl.DataFrame
    columns: Columns
    form: str
    days: bool

    @classmethod
    def of(cls, listed: pl.DataFrame, columns: Columns, *, days: bool | None = None) -> OptOuts:
        """From a frame with the columns --by, and that of --order, or `from` and `to`, or none.

        days: whether every `to` is a day, if that is known.
        """
        form = form_of(listed.columns, columns)
        if days is None:
            days = form == "ranges" and are_days(listed[TO])
        return cls(listed, columns, form, days)

    @property
    def count(self) -> int:
        """How many rows it has."""
        return self.frame.height

    @property
    def thing(self) -> str:
        """What a row of it names."""
        return _FORMS[self.form]

    def check_found(self, found: Mask, *, stepped: bool) -> None:
        """InputError for rows that name nothing in the table. found: (l,) those that do."""
        if found.all():
            return
        gaps = " (records in gaps can be protected with --step)"
        hint = "" if stepped or self.form == "chains" else gaps
        after = f" that the table does not have; no opt-out may be lost{hint}"
        said = (f"{LIST} names ", self.thing, after)
        raise self._names.error(~found, Check.LIST_FOUND, said)

    def named_in(self, arranged: Arranged, step: Step | None) -> Named:
        """What it names in some chains; InputError for cells that name nothing."""
        low, high = self._bounds(arranged)
        rows, chain = self._chains_of(arranged)
        known = np.zeros(self.count, dtype=bool)
        known[rows] = True
        low, high = low[rows], high[rows]
        whole = (low == _LOWEST) & (high == _HIGHEST)
        if self.form == "records":
            first = last = _places(arranged, chain, low, step)
        else:
            first, last = _spans(arranged, chain, (low, high), step, days=self.days)
        there = (first >= 0) & (first <= last)
        found = np.zeros(self.count, dtype=bool)
        found[rows[there]] = True
        return Named(
            known, found, chain[there], first[there], last[there], low[there], whole[there]
        )

    @cached_property
    def _names(self) -> RowNames:
        """How errors name its rows."""
        by, order = self.columns.by, self.columns.order or ROW
        if self.form == "chains":
            return RowNames(self.frame, by, where=LIST)
        if self.form == "records":
            return RowNames(self.frame, by, [order], where=LIST)
        ends = [pl.col(name).cast(pl.String, strict=False).fill_null("…") for name in (FROM, TO)]
        named = pl.concat_str(ends, separator=" to ").alias(order)
        return RowNames(self.frame.with_columns(named), by, [order], where=LIST)

    def _bounds(self, arranged: Arranged) -> tuple[Integers, Integers]:
        """(l,) the order values from which to which each row reaches, both included."""
        open_ends = np.full(self.count, _LOWEST), np.full(self.count, _HIGHEST)
        if self.form == "chains":
            return open_ends
        if self.form == "records":
            name = self.columns.order or ROW
            self._check_filled(name, len(self.columns.by))
            order = self._order_values(arranged, name)
            return order, order
        ends = []
        for at, name in enumerate((FROM, TO)):
            there = self.frame[name].is_not_null().to_numpy()
            values = open_ends[at]
            if there.any():
                values[there] = self._order_values(arranged, name, there)
            ends.append(values)
        low, high = ends
        turned = low > high
        if turned.any():
            said = (f"{LIST} has ", "range", f" whose {FROM!r} is after its {TO!r}")
            raise self._names.error(turned, Check.LIST_READABLE, said)
        return low, high

    def _chains_of(self, arranged: Arranged) -> tuple[Integers, Integers]:
        """The rows whose chain is there, and their chains."""
        columns, chains = self.columns, arranged.chains
        if not columns.by:
            return np.arange(self.count), np.zeros(self.count, dtype=np.int64)
        # text as it stands, whatever other chains are called
        known = [
            arranged.frame[name]
            if arranged.frame[name].dtype == pl.String
            else arranged.names[name]
            for name in columns.by
        ]
        for at, series in enumerate(known):
            self._check_filled(series.name, at)
            blank = blank_names(self.frame[series.name])
            if blank is not None:
                said = (f"{LIST} has blanks around names in column {series.name!r}, in ", "row")
                raise self._names.error(blank, Check.LIST_READABLE, (*said, ": remove them"))
        keys = [as_type(self.frame[series.name], series.dtype) for series in known]
        firsts = [series.gather(chains.starts[:-1]) for series in known]
        names = [f"by {name}" for name in columns.by]
        table = _renamed(firsts, names).with_columns(pl.Series("chain", np.arange(chains.count)))
        wanted = _renamed(keys, names).with_columns(pl.Series("row", np.arange(self.count)))
        found = wanted.join(table, on=names, how="inner", maintain_order="left")
        return found["row"].to_numpy().astype(np.int64), found["chain"].to_numpy().astype(np.int64)

    def _check_filled(self, name: str, column: int) -> None:
        """InputError for empty keys: they would be opt-outs lost in silence."""
        empty = self.frame[name].is_null()
        if empty.any():
            whole = "; a list of the --by columns alone names whole chains"
            hint = whole if self.form == "records" and self.columns.by else ""
            said = (f"{LIST} must name a {self.thing} in every row: {name!r} is empty in ", "row")
            rows = empty.to_numpy()
            raise self._names.error(rows, Check.LIST_FILLED, (*said, hint), column=column)

    def _order_values(
        self, arranged: Arranged, name: str, rows: Mask | None = None
    ) -> NDArray[np.int64]:
        """The order values of keys as the table's are kept: whole numbers, or nanoseconds."""
        kind = arranged.order_type
        series = self.frame[name] if rows is None else self.frame[name].filter(rows)
        if not kind.is_integer():
            return self._times(series, kind, name)
        numbers = as_type(series, pl.Int64())
        if numbers.null_count():
            bad = numbers.is_null().to_numpy()
            bad = np.flatnonzero(bad) if rows is None else np.flatnonzero(rows)[bad]
            said = (f"{LIST} has ", "row", f" whose {name!r} is no whole number")
            unread = self.columns.order or ROW
            raise self._names.error(bad, Check.LIST_READABLE, said, unread=unread)
        return numbers.to_numpy()

    def _times(self, series: pl.Series, kind: pl.DataType, name: str) -> NDArray[np.int64]:
        """Days and times of keys as nanoseconds."""
        times = parsed_times(series) if series.dtype == pl.String else series
        is_day, ranged = kind == pl.Date, self.form == "ranges"
        if times is not None and times.dtype == pl.Datetime and is_day:
            times = times.dt.date() if _is_midnight(times) else times
        bare = isinstance(kind, pl.Datetime) and kind.time_zone is None
        if times is not None and times.dtype == pl.Date and ranged and bare:
            times = times.cast(pl.Datetime("us"))  # a day begins at midnight
        if times is not None and (times.dtype == pl.Date) != is_day:
            here, there = ("days", "times") if is_day else ("times", "days")
            when = "" if is_day or bare else ", and in which zone days begin is not known"
            raise InputError(
                f"column {name!r} holds {there} in {LIST}, but the table's records have"
                f" {here}{when}: give {here}"
            )
        if times is None or not (times.dtype == pl.Date or isinstance(times.dtype, pl.Datetime)):
            raise InputError(
                f"{LIST} must hold dates or times (ISO 8601) in column {name!r}, as the table does"
            )
        times = zoned(times, kind, name)
        if name == TO and ranged and self.days and not is_day:
            return nanoseconds(times.dt.offset_by("1d")) - 1
        return nanoseconds(times)


def form_of(listed: Sequence[str], columns: Columns) -> str:
    """What the rows of a private list with some columns name; InputError where that is a guess."""
    by, order = columns.by, columns.order or ROW
    check_columns(by, listed, LIST)
    ranged = {FROM, TO} <= {*listed} - {*by}
    if ranged and order in listed:
        raise InputError(
            f"{LIST} has the columns {FROM!r} and {TO!r} of ranges, and {order!r} of records: it"
            " may name either"
            + (
                f"; rename the order column, or leave {TO!r} out"
                if order in (FROM, TO)
                else ", leave one out"
            )
        )
    if ranged:
        return "ranges"
    if by and {*listed} == {*by}:
        return "chains"
    ends = {FROM, TO} & ({*listed} - {*by})
    if ends and order not in listed:
        (here,), (missing,) = ends, {FROM, TO} - ends
        raise InputError(
            f"{LIST} has a column {here!r} and no column {missing!r}: ranges need both, and an"
            " empty cell leaves an end open"
        )
    try:
        check_columns([order], listed, LIST)
    except InputError as error:
        whole = "; a list of whole chains has the --by columns alone" if by else ""
        raise InputError(f"{error}{whole}") from None
    return "records"


def are_days(series: pl.Series) -> bool:
    """All that is there are days, or midnights."""
    known = series.drop_nulls()
    times = parsed_times(known) if known.dtype == pl.String and len(known) else known
    if times is None or not len(times):
        return False
    if times.dtype == pl.Date:
        return True
    return isinstance(times.dtype, pl.Datetime) and _is_midnight(times)


def _is_midnight(times: pl.Series) -> bool:
    return bool((times.dt.time() == time()).all())


def _renamed(columns: list[pl.Series], names: list[str]) -> pl.DataFrame:
    return pl.DataFrame([series.alias(name) for series, name in zip(columns, names, strict=True)])


def as_type(series: pl.Series, kind: pl.DataType) -> pl.Series:
    """A key column as the type the table's has; null where a key is none."""
    if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        series = series.cast(pl.String)
    numeric = series.dtype.is_integer() or series.dtype == pl.String
    if series.dtype == kind or (numeric and kind.is_integer()):
        return series.cast(kind, strict=False)
    if kind == pl.String and series.dtype.is_integer():
        return series.cast(pl.String)
    if series.dtype == pl.String and (kind == pl.Date or isinstance(kind, pl.Datetime)):
        times = parsed_times(series)
        if times is None:
            raise InputError(
                f"{LIST} must hold dates or times (ISO 8601) in column {series.name!r}, got other"
                " text"
            )
        return zoned(times, kind, series.name).cast(kind, strict=False)
    raise InputError(
        f"column {series.name!r} holds {type_name(kind)} in the table but"
        f" {type_name(series.dtype)} in {LIST}"
    )


def zoned(times: pl.Series, kind: pl.DataType, name: str) -> pl.Series:
    """The times, if they have a time zone just where the table's do."""
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


# ---- where in their chains


def _places(arranged: Arranged, chain: Integers, order: Integers, step: Step | None) -> Integers:
    """The place of each key in its chain; −1 where it has no row, nor, under a step, a gap."""
    chains = arranged.chains
    begin, end = chains.starts[chain], chains.starts[chain + 1]
    if step is not None:
        assert chains.steps is not None
        place, off = step.counted(chains.order[begin], order, arranged.zone)
        # a moment may be off by seconds; a day or a number names one record, not the next one
        near = 4 * off <= step.length
        if step.kind != "time" or step.length >= clock.DAY:
            row = np.minimum(_first_row(chains, chain, order, above=False), end - 1)
            near = (off == 0) | (chains.order[row] == order)
        return np.where(near & (place >= 0) & (place <= chains.steps[end - 1]), place, -1)
    row = _first_row(chains, chain, order, above=False)
    there = row < end
    there[there] = chains.order[row[there]] == order[there]
    return np.where(there, row - begin, -1)


def _spans(
    arranged: Arranged,
    chain: Integers,
    bounds: tuple[Integers, Integers],
    step: Step | None,
    *,
    days: bool,
) -> tuple[Integers, Integers]:
    """The first and last place of each range in its chain, the first after the last where it
    holds none.

    Under a step a gap is in a range as a key would find it: up to a quarter step beyond its ends.
    days: a range ends with a day, and the next one begins at midnight sharp.
    """
    chains, (low, high) = arranged.chains, bounds
    begin, end = chains.starts[chain], chains.starts[chain + 1]
    row = _first_row(chains, chain, low, above=False)
    beyond = _first_row(chains, chain, high, above=True)
    if step is None:
        return row - begin, beyond - 1 - begin
    assert chains.steps is not None
    since, farthest = chains.order[begin].astype(np.int64), chains.steps[end - 1]
    # a step outside of the chain is as good as any further: no number becomes too large
    least = np.maximum(since, _LOWEST + step.length) - step.length
    most = np.minimum(chains.order[end - 1].astype(np.int64), _HIGHEST - step.length) + step.length
    first, from_before = _nearest(step, since, np.clip(low, least, most), arranged.zone, 0.25)
    beyond_end = 0.0 if days else 0.25
    last, to_before = _nearest(step, since, np.clip(high, least, most), arranged.zone, beyond_end)
    first, last = first + (from_before < 0), last - (to_before > 0)
    held = beyond > row  # rows that are in it by their own order values are in it
    first[held] = np.minimum(first[held], chains.steps[row[held]])
    last[held] = np.maximum(last[held], chains.steps[beyond[held] - 1])
    return np.maximum(first, 0), np.minimum(last, farthest)


def _nearest(
    step: Step, since: Integers, order: Integers, zone: str | None, share: float
) -> tuple[Integers, Integers]:
    """The step nearest to each order value, and whether that lies more than a share of a step
    before (−1) or after it (1).
    """
    place, off = step.counted(since, order, zone)
    beside = np.sign(step.onward(since, place, zone) - order)
    return place, np.where(off <= share * step.length, 0, beside)


def _first_row(chains: Chains, chain: Integers, order: Integers, *, above: bool) -> Integers:
    """(r,) the first row of each chain with at least an order value, or one above it; where there
    is none, the row after the chain.
    """
    low, high = chains.starts[chain], chains.starts[chain + 1]
    while np.any(open_ := low < high):
        middle = (low + high) // 2
        values = chains.order[np.minimum(middle, len(chains.order) - 1)]
        less = open_ & ((values <= order) if above else (values < order))
        low, high = np.where(less, middle + 1, low), np.where(open_ & ~less, middle, high)
    return low
