"""Errors about single rows: they name rows by key, never by a value, and add up over parts.

A table may come in parts, and an error about one of them concerns a few rows of many. So wrong rows
are data (`WrongRows`): those of all parts are merged into one line for a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.text import many

TABLE, LIST = "the table", "the private list"  #: whose rows are wrong
_NAMED = 5  # keys that a line names
_NUMBERED = 3  # rows of each of them
_LOOKED_AT = 1000  # rows among which the first keys are looked for
_LONGEST = 40  # characters of a name
_PLAIN = re.compile(r"-?\d{1,20}")  # shown without quotes


class Check(IntEnum):
    """The checks on rows, in their order: a later one makes sense only if all before it pass."""

    FILLED = 0
    READABLE = 1
    TRIMMED = 2
    DISTINCT = 3
    ON_GRID = 4
    ONE_A_STEP = 5
    LIST_FILLED = 6
    LIST_READABLE = 7
    LIST_FOUND = 8
    KNOWN = 9


@dataclass(frozen=True, eq=False, repr=False)
class WrongRows:
    """Rows that fail one check; only the first of many are kept, the rest is counted."""

    check: Check
    column: int  # which of the columns that the check looks at
    before: str  # before, thing, after: the sentence around their count
    thing: str
    after: str
    where: str  # whose rows
    rows: pl.Series  # (n,) their numbers from 1, null where unknown
    keys: pl.DataFrame  # (n,) as text, null where a key cell is what is wrong
    named: int  # so many columns of the keys name chains
    more: int = 0  # rows that are only counted

    @property
    def message(self) -> str:
        """One line, which names the first of them."""
        count = len(self.rows) + self.more
        said = f"{self.before}{many(count, self.thing)}{self.after}"
        named = "; ".join(self._named(count))
        return f"{said}: {named}" if named else said

    def shifted(self, before: int) -> WrongRows:
        """The same in a table that has so many rows before them."""
        return self if self.where == LIST else replace(self, rows=self.rows + before)

    def unnumbered(self) -> WrongRows:
        """The same without row numbers."""
        return replace(self, rows=self.rows.clear(len(self.rows)))

    def headed(self) -> WrongRows:
        """The same, with no more rows kept than a line may name."""
        cut = max(len(self.rows) - _LOOKED_AT, 0)
        rows, keys = self.rows.head(_LOOKED_AT), self.keys.head(_LOOKED_AT)
        return replace(self, rows=rows, keys=keys, more=self.more + cut)

    def _named(self, count: int) -> Iterator[str]:
        """The first few keys, with the rows that have them."""
        columns, rows = self.keys.columns, self.rows.to_list()
        cells: list[tuple[Any, ...]] = self.keys.rows() if columns else [()] * len(rows)
        seen: dict[tuple[Any, ...], list[int]] = {}
        for at, (key, row) in enumerate(zip(cells, rows, strict=True)):
            is_empty = all(cell is None for cell in key)
            name = (*key, at if is_empty else None)  # rows without a key are not the same
            if name in seen or len(seen) < _NAMED:
                seen.setdefault(name, []).append(row)
        for name, numbers in seen.items():
            key_text = ", ".join(self._key(columns, name))
            where = _numbered([row for row in numbers if row is not None])
            yield f"{key_text} ({where})" if key_text and where else key_text or where
        if count > sum(map(len, seen.values())):
            yield "…"

    def _key(self, columns: Sequence[str], cells: Sequence[Any]) -> Iterator[str]:
        for at, (column, cell) in enumerate(zip(columns, cells, strict=False)):
            if cell is not None:
                yield f"{column} {_shown(cell) if at < self.named else cell}"


def _numbered(rows: list[int]) -> str:
    if not rows:
        return ""
    more = ", …" if len(rows) > _NUMBERED else ""
    return f"row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows[:_NUMBERED]))}{more}"


def _shown(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    return repr(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…")


class LocatedError(InputError):
    """Wrong input in rows that can be named."""

    def __init__(self, wrong: WrongRows) -> None:
        super().__init__(wrong.message)
        self.wrong = wrong

    def __reduce__(self) -> tuple[type[LocatedError], tuple[WrongRows]]:
        return LocatedError, (self.wrong,)


@dataclass(frozen=True, eq=False, repr=False)
class RowNames:
    """How errors name rows: by number and by key."""

    frame: pl.DataFrame  # has the columns of their keys
    named: Sequence[str]  # the columns that name chains
    order: Sequence[str] = ()  # the one that orders records, if there is one
    numbers: NDArray[Any] | None = None  # (n,) where rows stood, None if they stand as they did
    where: str = TABLE

    def error(
        self,
        rows: NDArray[Any],
        check: Check,
        said: tuple[str, str, str],
        *,
        column: int = 0,
        unread: str | None = None,
    ) -> LocatedError:
        """The error about some rows, given by number or marked.

        said: before, thing, after. unread: a column whose cells are not shown.
        """
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        numbers = rows if self.numbers is None else self.numbers[rows]
        sorting = np.argsort(numbers, kind="stable")
        rows, numbers = rows[sorting], numbers[sorting]
        shown = [self.frame[name].gather(rows) for name in (*self.named, *self.order)]
        keys = pl.DataFrame([_text(one, empty=one.name == unread) for one in shown])
        found = pl.Series("row", numbers.astype(np.int64) + 1)
        wrong = WrongRows(check, column, *said, self.where, found, keys, len(self.named))
        return LocatedError(wrong.headed())


def _text(series: pl.Series, *, empty: bool) -> pl.Series:
    if isinstance(series.dtype, pl.Datetime) and not empty:
        zone = "%:z" if series.dtype.time_zone else ""
        return series.dt.strftime(f"%Y-%m-%dT%H:%M:%S%.f{zone}")
    with suppress(pl.exceptions.PolarsError):  # a type that is no key: another check says so
        if not empty:
            return series.cast(pl.String)
    return pl.Series(series.name, [None] * len(series), dtype=pl.String)


def check_parts(wrong: Sequence[WrongRows]) -> None:
    """InputError for wrong rows of a table's parts: all that fail the first failed check."""
    if not wrong:
        return
    first = min(wrong, key=lambda one: (one.check, one.column))
    if first.check in (Check.LIST_FILLED, Check.LIST_READABLE):
        raise LocatedError(first)  # each part has seen the same list
    alike = [one for one in wrong if (one.check, one.column) == (first.check, first.column)]
    rows = pl.concat([one.rows for one in alike])
    keys = pl.concat([one.keys for one in alike]) if first.keys.width else first.keys
    order = _order(rows, keys)
    merged = replace(
        first,
        rows=rows.gather(order),
        keys=keys[order] if keys.width else keys,
        more=sum(one.more for one in alike),
    )
    raise LocatedError(merged.headed())


def _order(rows: pl.Series, keys: pl.DataFrame) -> pl.Series:
    """The order of wrong rows by number, then by key."""
    named = [rows.alias("0"), *(one.alias(str(at)) for at, one in enumerate(keys, 1))]
    sorting = pl.DataFrame(named)
    return sorting.select(pl.arg_sort_by(sorting.columns, maintain_order=True)).to_series()
