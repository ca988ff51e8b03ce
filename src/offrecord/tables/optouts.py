"""A private list: in each row a record, a range of records, or a chain that is private."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import time
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
    """What the rows of a list name in some chains."""

    known: Mask  # (l,) rows that name a chain that is there
    found: Mask  # (l,) rows that find something in it, the f rows below
    chain: Integers  # (f,)
    first: Integers  # (f,) the places from which it is private
    last: Integers  # (f,) and to which
    order: Integers  # (f,) the order value that is listed, for records
    whole: Mask  # (f,) all rows of the chain, and nothing but rows


@dataclass(frozen=True, eq=False, repr=False)
class OptOuts:
    """A private list. Each row is a range of order values in one chain.

    A record is a range from its own order value to itself, a whole chain one without ends.
    """

    frame: pl.DataFrame
    columns: Columns
    form: str  # what rows are written as: records, ranges or chains
    days: bool  # every `to` is a day, or midnight as of programs that know no days: that whole day

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
        raise self._names().error(~found, Check.LIST_FOUND, (f"{LIST} names ", self.thing, after))

    def strangers(self, known: Mask) -> list[str]:
        """A warning of rows that name no chain of the table, if any do. known: (l,) those that do.

        A list may be about several tables, so a reference need not have all of its chains.
        """
        if known.all():
            return []
        said = (f"{LIST} names ", self.thing, " of chains that the table does not have")
        return [str(self._names().error(~known, Check.LIST_FOUND, said))]

    def named_in(self, arranged: Arranged, step: Step | None) -> Named:
        """What it names in some chains; InputError for cells that name nothing."""
        low, high = self._bounds(arranged)
        rows, chain = self._chains_of(arranged)
        low, high = low[rows], high[rows]
        first, last = _spans(arranged, chain, low, high, step, self._quarters(step))
        there = first <= last
        known, found = np.zeros((2, self.count), dtype=bool)
        known[rows] = True
        found[rows[there]] = True
        whole = (low == _LOWEST) & (high == _HIGHEST)
        places = chain[there], first[there], last[there]
        return Named(known, found, *places, low[there], whole[there])

    def _quarters(self, step: Step | None) -> tuple[int, int]:
        """How many quarters of a step a gap may lie before a range, and after it."""
        if self.form == "records":
            # a moment may be off by seconds; a day or a number names one record, not the next one
            moments = step is not None and step.kind == "time" and step.length < clock.DAY
            return (1, 1) if moments else (0, 0)
        # a range ends with a day, and the next one begins at midnight sharp
        return 1, 0 if self.days else 1

    def _names(self) -> RowNames:
        by, order = self.columns.by, self.columns.order or ROW
        if self.form != "ranges":
            return RowNames(self.frame, by, [order] * (self.form == "records"), where=LIST)
        ends = [pl.col(name).cast(pl.String, strict=False).fill_null("…") for name in (FROM, TO)]
        named = pl.concat_str(ends, separator=" to ").alias(order)
        return RowNames(self.frame.with_columns(named), by, [order], where=LIST)

    def _bounds(self, arranged: Arranged) -> tuple[Integers, Integers]:
        """(l,) the order values from which to which each row reaches, both included."""
        if self.form == "chains":
            return np.full(self.count, _LOWEST), np.full(self.count, _HIGHEST)
        if self.form == "records":
            name = self.columns.order or ROW
            self._check_filled(name, len(self.columns.by))
            order = self._order_values(arranged, name, _LOWEST)
            return order, order
        low = self._order_values(arranged, FROM, _LOWEST)
        high = self._order_values(arranged, TO, _HIGHEST)
        turned = low > high
        if turned.any():
            said = (f"{LIST} has ", "range", f" whose {FROM!r} is after its {TO!r}")
            raise self._names().error(turned, Check.LIST_READABLE, said)
        return low, high

    def _chains_of(self, arranged: Arranged) -> tuple[Integers, Integers]:
        by, chains = self.columns.by, arranged.chains
        if not by:
            return np.arange(self.count), np.zeros(self.count, dtype=np.int64)
        known, wanted = [], []
        for at, name in enumerate(by):
            # text as it stands, whatever other chains are called
            is_text = arranged.frame[name].dtype == pl.String
            names = (arranged.frame if is_text else arranged.names)[name]
            self._check_filled(name, at)
            self._check_trimmed(name)
            known.append(names.gather(chains.starts[:-1]))
            wanted.append(as_type(self.frame[name], names.dtype))
        keys = [f"by {name}" for name in by]  # none is called "row" or "chain"
        table = pl.DataFrame(known, schema=keys).with_row_index("chain")
        rows = pl.DataFrame(wanted, schema=keys).with_row_index("row")
        found = rows.join(table, on=keys, maintain_order="left").cast(pl.Int64, strict=False)
        return found["row"].to_numpy(), found["chain"].to_numpy()

    def _check_filled(self, name: str, column: int) -> None:
        # an empty key would be an opt-out lost in silence
        empty = self.frame[name].is_null()
        if empty.any():
            whole = "; a list of the --by columns alone names whole chains"
            hint = whole if self.form == "records" and self.columns.by else ""
            said = f"{LIST} must name a {self.thing} in every row: {name!r} is empty in "
            named = (said, "row", hint)
            raise self._names().error(empty.to_numpy(), Check.LIST_FILLED, named, column=column)

    def _check_trimmed(self, name: str) -> None:
        blank = blank_names(self.frame[name])
        if blank is not None:
            said = f"{LIST} has blanks around names in column {name!r}, in "
            raise self._names().error(blank, Check.LIST_READABLE, (said, "row", ": remove them"))

    def _order_values(self, arranged: Arranged, name: str, empty: int) -> NDArray[np.int64]:
        """(l,) a column as the table keeps order values; empty: what stands for an empty cell."""
        filled = self.frame[name].is_not_null().to_numpy()
        values = np.full(self.count, empty)
        if filled.any():
            cells, kind = self.frame[name].filter(filled), arranged.order_type
            if kind.is_integer():
                values[filled] = self._whole_numbers(cells, np.flatnonzero(filled))
            else:
                values[filled] = self._times(cells, kind)
        return values

    def _whole_numbers(self, cells: pl.Series, rows: Integers) -> NDArray[np.int64]:
        numbers = as_type(cells, pl.Int64())
        if numbers.null_count():
            said = (f"{LIST} has ", "row", f" whose {cells.name!r} is no whole number")
            bad, unread = rows[numbers.is_null().to_numpy()], self.columns.order or ROW
            raise self._names().error(bad, Check.LIST_READABLE, said, unread=unread)
        return numbers.to_numpy()

    def _times(self, cells: pl.Series, kind: pl.DataType) -> NDArray[np.int64]:
        ranged, is_day = self.form == "ranges", kind == pl.Date
        times = _read_times(cells)
        if is_day and isinstance(times.dtype, pl.Datetime) and _is_midnight(times):
            times = times.dt.date()
        if times.dtype == pl.Date and ranged and _is_bare(kind):
            times = times.cast(pl.Datetime("us"))  # a day begins at midnight
        _check_days(times, kind)
        _check_zone(times, kind)
        if cells.name == TO and ranged and self.days and not is_day:
            return nanoseconds(times.dt.offset_by("1d")) - 1
        return nanoseconds(times)


def form_of(listed: Sequence[str], columns: Columns) -> str:
    """What the rows of a private list with some columns name; InputError where that is a guess."""
    by, order = columns.by, columns.order or ROW
    check_columns(by, listed, LIST)
    ends = {FROM, TO} & ({*listed} - {*by})
    if len(ends) == 2:
        if order in listed:
            raise _named_twice(order)
        return "ranges"
    if by and {*listed} == {*by}:
        return "chains"
    if ends and order not in listed:
        (here,), (missing,) = ends, {FROM, TO} - ends
        raise InputError(
            f"{LIST} has a column {here!r} and no column {missing!r}: ranges need both, and an"
            " empty cell leaves an end open"
        )
    try:
        check_columns([order], listed, LIST)
    except InputError as error:
        raise InputError("; ".join([str(error), *_order_remedies(listed, columns)])) from None
    return "records"


def _named_twice(order: str) -> InputError:
    instead = ", leave one out"
    if order in (FROM, TO):
        instead = f"; rename the order column, or leave {TO!r} out"
    return InputError(
        f"{LIST} has the columns {FROM!r} and {TO!r} of ranges, and {order!r} of records: it may"
        f" name either{instead}"
    )


def _order_remedies(listed: Sequence[str], columns: Columns) -> Iterator[str]:
    """What helps where a list lacks the column that orders records."""
    if columns.by:
        yield "a list of whole chains has the --by columns alone"
    others = [name for name in listed if name not in (*columns.by, columns.value)]
    if columns.order is None and len(others) == 1:
        yield f"if {others[0]!r} orders the rows of the table, give --order {others[0]}"


def are_days(series: pl.Series) -> bool:
    """All that is there are days, or midnights."""
    known = series.drop_nulls()
    times = parsed_times(known) if known.dtype == pl.String and len(known) else known
    if times is None or not len(times):
        return False
    return times.dtype == pl.Date or (isinstance(times.dtype, pl.Datetime) and _is_midnight(times))


def _is_midnight(times: pl.Series) -> bool:
    return bool((times.dt.time() == time()).all())


def as_type(series: pl.Series, kind: pl.DataType) -> pl.Series:
    """A key column as the type the table's has; null where a key is none."""
    if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        series = series.cast(pl.String)
    numeric = series.dtype.is_integer() or series.dtype == pl.String
    if series.dtype == kind or (numeric and kind.is_integer()):
        return series.cast(kind, strict=False)
    if kind == pl.String and series.dtype.is_integer():
        return series.cast(pl.String)
    if series.dtype == pl.String and kind.is_temporal():
        times = _read_times(series)
        _check_zone(times, kind)
        return times.cast(kind, strict=False)
    raise InputError(
        f"column {series.name!r} holds {type_name(kind)} in the table but"
        f" {type_name(series.dtype)} in {LIST}"
    )


def _read_times(series: pl.Series) -> pl.Series:
    """Keys as days or times; InputError for anything else."""
    times = parsed_times(series) if series.dtype == pl.String else series
    if times is None or not (times.dtype == pl.Date or isinstance(times.dtype, pl.Datetime)):
        raise InputError(
            f"{LIST} must hold dates or times (ISO 8601) in column {series.name!r}, as the table"
            " does"
        )
    return times


def _is_bare(kind: pl.DataType) -> bool:
    """Whether a type is that of times without a time zone."""
    return isinstance(kind, pl.Datetime) and kind.time_zone is None


def _check_days(times: pl.Series, kind: pl.DataType) -> None:
    """InputError for days where the table has times, and the other way round."""
    is_day = kind == pl.Date
    if (times.dtype == pl.Date) == is_day:
        return
    here, there = ("days", "times") if is_day else ("times", "days")
    when = "" if is_day or _is_bare(kind) else ", and in which zone days begin is not known"
    raise InputError(
        f"column {times.name!r} holds {there} in {LIST}, but the table's records have {here}{when}:"
        f" give {here}"
    )


def _check_zone(times: pl.Series, kind: pl.DataType) -> None:
    here, there = (bool(getattr(one, "time_zone", None)) for one in (kind, times.dtype))
    if here != there:
        has, none = ("the private list's", "the table's")[:: 1 if there else -1]
        raise InputError(
            f"column {times.name!r}: {has} times have a time zone, {none} have none; give both the"
            " same, or opt-outs would slip by hours"
        )


# ---- where in their chains


def _spans(
    arranged: Arranged,
    chain: Integers,
    low: Integers,
    high: Integers,
    step: Step | None,
    quarters: tuple[int, int],
) -> tuple[Integers, Integers]:
    """The first and last place of each range in its chain; the first is after the last for none."""
    chains = arranged.chains
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
    inside = [np.clip(one, least, most) for one in (low, high)]
    first, before = _nearest(step, since, inside[0], arranged.zone, quarters[0])
    last, after = _nearest(step, since, inside[1], arranged.zone, quarters[1])
    first, last = first + (before < 0), last - (after > 0)
    held = beyond > row  # rows that are in it by their own order values are in it
    first[held] = np.minimum(first[held], chains.steps[row[held]])
    last[held] = np.maximum(last[held], chains.steps[beyond[held] - 1])
    return np.maximum(first, 0), np.minimum(last, farthest)


def _nearest(
    step: Step, since: Integers, order: Integers, zone: str | None, quarters: int
) -> tuple[Integers, Integers]:
    """The nearest step, and whether it lies more than some quarters of one before (−1) or after."""
    place, off = step.counted(since, order, zone)
    beside = np.sign(step.onward(since, place, zone) - order)
    return place, np.where(4 * off <= quarters * step.length, 0, beside)


def _first_row(chains: Chains, chain: Integers, order: Integers, *, above: bool) -> Integers:
    """(r,) each chain's first row from an order value on, or above it; else the row after it."""
    low, high = chains.starts[chain], chains.starts[chain + 1]
    while np.any(open_ := low < high):  # bisection in all chains at once
        middle = (low + high) // 2
        values = chains.order[np.minimum(middle, len(chains.order) - 1)]
        less = open_ & ((values <= order) if above else (values < order))
        low, high = np.where(less, middle + 1, low), np.where(open_ & ~less, middle, high)
    return low
