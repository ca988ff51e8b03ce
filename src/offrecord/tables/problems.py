"""What is wrong with single rows: named by their keys, never by a value, and counted over a table.

A table may come in batches, and an error about one of them is an error about a few rows of many.
So what is wrong is data: it adds up over batches, becomes one line for a person, and a table of
its own for whoever wants to see all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
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
    """What rows are asked, in this order: what comes later makes sense only if they pass."""

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
class Wrong:
    """Rows that are wrong in one way.

    check, column: which check they fail, and in which of the columns that it looks at. before,
    thing, after: what is said, around how many things there are. where: whose rows. rows: (n,)
    their numbers there, from 1, null where nobody knows. keys: (n,) by which they are known, as
    text, null where that is what is wrong; named: how many of these columns name chains, whose
    cells are quoted. problems: (n,) what is wrong with each. more: how many more there are, of
    which nothing else is known.
    """

    check: Check
    column: int
    before: str
    thing: str
    after: str
    where: str
    rows: pl.Series
    keys: pl.DataFrame
    named: int
    problems: pl.Series
    more: int = 0

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.rows) + self.more

    @property
    def message(self) -> str:
        """One line, which names the first of them."""
        told = f"{self.before}{many(self.count, self.thing)}{self.after}"
        named = "; ".join(self._named())
        return f"{told}: {named}" if named else told

    @property
    def frame(self) -> pl.DataFrame:
        """All of them, a row each."""
        where = pl.Series([self.where.removeprefix("the ")] * len(self.rows), dtype=pl.String)
        added = {"in": where, "row": self.rows, "problem": self.problems}
        first, second, last = (
            column.alias(_free(name, self.keys.columns)) for name, column in added.items()
        )
        return pl.DataFrame([first, second, *self.keys.get_columns(), last])

    def shifted(self, before: int) -> Wrong:
        """As rows of a table that has some more before them."""
        return self if self.where == LIST else replace(self, rows=self.rows + before)

    def unnumbered(self) -> Wrong:
        """As rows that have no numbers."""
        return replace(self, rows=self.rows.clear(len(self.rows)))

    def headed(self) -> Wrong:
        """As many of them as a line may name, and how many more there are."""
        return replace(
            self,
            rows=self.rows.head(_LOOKED_AT),
            keys=self.keys.head(_LOOKED_AT),
            problems=self.problems.head(_LOOKED_AT),
            more=self.more + max(len(self.rows) - _LOOKED_AT, 0),
        )

    def _named(self) -> Iterator[str]:
        """The first few keys, with the rows that have them."""
        columns = self.keys.columns
        rows = self.rows.head(_LOOKED_AT).to_list()
        cells: list[tuple[Any, ...]] = [()] * len(rows)
        if columns:
            cells = self.keys.head(_LOOKED_AT).rows()
        seen: dict[tuple[Any, ...], list[int | None]] = {}
        for at, (key, row) in enumerate(zip(cells, rows, strict=True)):
            is_empty = all(cell is None for cell in key)
            told = (*key, at if is_empty else None)  # rows without a key are not the same
            if told in seen or len(seen) < _NAMED:
                seen.setdefault(told, []).append(row)
        for told, numbers in seen.items():
            words = [
                f"{name} {_shown(cell) if at < self.named else cell}"
                for at, (name, cell) in enumerate(zip(columns, told, strict=False))
                if cell is not None
            ]
            name, where = ", ".join(words), _numbered([row for row in numbers if row is not None])
            yield f"{name} ({where})" if name and where else name or where
        if self.count > sum(map(len, seen.values())):
            yield "…"


def _numbered(rows: list[int]) -> str:
    """Numbers of rows, the first of many."""
    if not rows:
        return ""
    more = ", …" if len(rows) > _NUMBERED else ""
    return f"row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows[:_NUMBERED]))}{more}"


def _free(name: str, taken: Sequence[str]) -> str:
    """A name for a column that no other has."""
    while name in taken:
        name += "_"
    return name


def _shown(name: str) -> str:
    """The name of a chain as it stands in a line."""
    if _PLAIN.fullmatch(name):
        return name
    return repr(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…")


class LocatedError(InputError):
    """Wrong input in rows that can be named. wrong: which they are."""

    def __init__(self, wrong: Wrong) -> None:
        super().__init__(wrong.message)
        self.wrong = wrong

    def __reduce__(self) -> tuple[type[LocatedError], tuple[Wrong]]:
        return LocatedError, (self.wrong,)


@dataclass(frozen=True, eq=False, repr=False)
class Places:
    """Where rows are found: by number and by key. frame: has the columns of their keys.

    named: those that name chains. order: the one that orders records, if there is one. numbers:
    (n,) where rows stood, None if they stand as they did.
    """

    frame: pl.DataFrame
    named: Sequence[str]
    order: Sequence[str] = ()
    numbers: NDArray[Any] | None = None
    where: str = TABLE

    def wrong(
        self,
        rows: NDArray[Any],
        check: Check,
        said: tuple[str, str, str],
        problem: str | pl.Series,
        *,
        column: int = 0,
        unread: str | None = None,
    ) -> LocatedError:
        """What is wrong with some rows, or with those that are marked.

        said: what comes before how many there are, what they are, and what comes after. unread: a
        column whose cells say nothing, and are not shown.
        """
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        numbers = rows if self.numbers is None else self.numbers[rows]
        sorting = np.argsort(numbers, kind="stable")
        rows, numbers = rows[sorting], numbers[sorting]
        keys = pl.DataFrame(
            [
                _text(self.frame[name].gather(rows), empty=name == unread)
                for name in (*self.named, *self.order)
            ]
        )
        if isinstance(problem, str):
            problem = pl.Series([problem] * len(rows), dtype=pl.String)
        else:
            problem = problem.gather(sorting)
        found = pl.Series("row", numbers.astype(np.int64) + 1)
        return LocatedError(
            Wrong(check, column, *said, self.where, found, keys, len(self.named), problem)
        )


def _text(series: pl.Series, *, empty: bool) -> pl.Series:
    """Cells of a key as text."""
    if empty:
        return pl.Series(series.name, [None] * len(series), dtype=pl.String)
    if isinstance(series.dtype, pl.Datetime):
        zone = "%:z" if series.dtype.time_zone else ""
        return series.dt.strftime(f"%Y-%m-%dT%H:%M:%S%.f{zone}")
    try:
        return series.cast(pl.String)
    except pl.exceptions.PolarsError:  # a type that is no key: another check says so
        return pl.Series(series.name, [None] * len(series), dtype=pl.String)


@dataclass(eq=False, repr=False)
class Found:
    """What is found to be wrong in batch after batch of a table. all_of_it: or as much of it as a
    line may name.
    """

    wrong: list[Wrong] = field(default_factory=list)
    all_of_it: bool = True

    @contextmanager
    def collecting(self, before: int) -> Iterator[None]:
        """What is wrong with a batch is kept, and the others are looked at all the same. before:
        how many rows come before it.
        """
        try:
            yield
        except LocatedError as error:
            self.add(error, before)

    def add(self, error: LocatedError, before: int) -> None:
        """What is wrong with a batch."""
        wrong = error.wrong.shifted(before)
        self.wrong.append(wrong if self.all_of_it else wrong.headed())

    def check(self) -> None:
        """InputError for what fails the first check that anything fails, all of it together."""
        if self.wrong:
            raise LocatedError(merged(self.wrong))


def merged(found: Sequence[Wrong]) -> Wrong:
    """What is wrong with the batches of a table as far as they fail the first check of all."""
    first = min(found, key=lambda one: (one.check, one.column))
    alike = [one for one in found if (one.check, one.column) == (first.check, first.column)]
    if first.check in (Check.LIST_FILLED, Check.LIST_READABLE):
        return first  # each batch has seen the same list
    rows = pl.concat([one.rows for one in alike])
    problems = pl.concat([one.problems for one in alike])
    keys = pl.concat([one.keys for one in alike]) if first.keys.width else first.keys
    sorting = pl.DataFrame([rows.alias("0"), *(s.alias(str(i)) for i, s in enumerate(keys, 1))])
    order = sorting.select(pl.arg_sort_by(sorting.columns, maintain_order=True)).to_series()
    return replace(
        first,
        rows=rows.gather(order),
        keys=keys[order] if keys.width else keys,
        problems=problems.gather(order),
        more=sum(one.more for one in alike),
    )
