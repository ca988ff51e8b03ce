"""What every engine does with a table, once for all of them: survey, choose, plan, decide.

An engine is a source of whole chains: it hands each part of a table to the same work. Rows that
come in batches, sorted by chain, become such parts in `whole_chains`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import polars as pl

from offrecord.errors import InputError
from offrecord.models.base import Integers
from offrecord.models.file import Model
from offrecord.release.coins import Coins
from offrecord.tables.alphabet import Alphabet
from offrecord.tables.choosing import WHOLE, choose
from offrecord.tables.decision import Decision, Rule
from offrecord.tables.given import Given
from offrecord.tables.optouts import OptOuts
from offrecord.tables.plan import Plan, surveyor_of
from offrecord.tables.summary import Summary
from offrecord.tables.survey import Survey, Surveyor
from offrecord.tables.table import Dropped, Reader, Table, nothing_left

_R = TypeVar("_R")
_EngineT = TypeVar("_EngineT", bound="Engine")

PART = 1 << 20  # rows of a part, about: a few of them fit into the memory of any machine
_MOST_VALUES = 1000  # different cells that are collected where no model says what values are


def whole_chains(
    batches: Iterable[pl.DataFrame], by: Sequence[str], rows: int = PART
) -> Iterator[pl.DataFrame]:
    """Parts of a table that hold whole chains, from rows that come in batches.

    Args:
        batches: rows, all of a chain one after the other; Arrow batches as `pl.DataFrame(batch)`.
        by: the columns that name chains.
        rows: of a part at least; the last part may have fewer.

    Returns:
        The same rows in the same order. What may go on in the next batch is held back, so memory
        holds one part, or the longest chain.
    """
    held: list[pl.DataFrame] = []
    count = 0
    for batch in batches:
        if batch.height == 0:
            continue
        count += batch.height
        last = _last_chain(held[-1].tail(1) if held else batch.head(0), batch, by)
        if count >= rows and last is not None:
            yield pl.concat([*held, batch[:last]])
            held, count = [batch[last:]], batch.height - last
        else:
            held.append(batch)
    if held:
        yield pl.concat(held)


def _last_chain(before: pl.DataFrame, batch: pl.DataFrame, by: Sequence[str]) -> int | None:
    """Where the last chain of a batch begins; None if it began earlier. before: the row before."""
    joined = pl.concat([before, batch])
    changes = np.zeros(joined.height - 1, dtype=bool)
    for name in by:
        changes |= joined[name][1:].ne_missing(joined[name][:-1]).to_numpy()
    if not changes.any():
        return None
    return len(changes) - int(np.argmax(changes[::-1])) - before.height


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """How rows of whole chains become a table. touched: chains with a private record are left out.

    It can be pickled, and holds the key unless its coins are without one.
    """

    reader: Reader
    optouts: OptOuts | None
    coins: Coins
    touched: bool = False

    @classmethod
    def of(cls, given: Given, private: str | None) -> Reading:
        """As options say. private: the column that marks records, if there is one."""
        return cls(given.reader(private), given.optouts, given.coins)

    def table(self, rows: pl.DataFrame) -> Table:
        """The chains of some rows, with their coins."""
        table = self.reader.read(rows, self.optouts, touched=self.touched)
        return table.keyed(self.coins)


@dataclass(eq=False, repr=False)
class Engine(ABC):
    """A table, as a source of whole chains.

    is_whole: it is one part, and is read once.
    """

    given: Given
    reading: Reading
    is_whole: ClassVar[bool] = False

    @abstractmethod
    def each(self, what: str, work: Callable[[Table], _R]) -> Iterator[_R]:
        """What is made of each part of the table.

        Args:
            what: is done, for a progress bar.
            work: takes whole chains. It knows no key and can be pickled, as what it gives can.

        Raises:
            InputError: for wrong rows, in all parts together, once all have been looked at.
        """

    def without_touched(self: _EngineT) -> _EngineT:
        """The same table without any chain that has a private record."""
        return replace(self, reading=replace(self.reading, touched=True))

    def labelled(self: _EngineT, alphabet: Alphabet) -> _EngineT:
        """The same table with codes for its values, where no model said what these are."""
        reader = replace(self.reading.reader, alphabet=alphabet)
        return replace(self, reading=replace(self.reading, reader=reader))


# ---- what is known before anything is decided


class _Seen(NamedTuple):
    """What is seen in a part. survey: None if nothing is left of it. found: rows of a private list
    that name something in it. cells: of rows that stay, where no model says what values are.
    """

    survey: Survey | None
    dropped: Dropped
    found: Integers
    cells: pl.Series | None


def _seen(surveyor: Surveyor, table: Table) -> _Seen:
    found = np.flatnonzero(table.private.found)
    if table.is_empty:
        return _Seen(None, table.dropped, found, None)
    cells = table.arranged.unlabelled
    if cells is not None:
        cells = cells.filter(~table.chains.spread(table.touched))
    return _Seen(surveyor.survey(table), table.dropped, found, cells)


def _distinct(cells: Sequence[pl.Series]) -> pl.Series:
    """The different ones among the cells of several parts."""
    found = pl.concat(cells).unique(maintain_order=True)
    if len(found) > _MOST_VALUES:
        raise InputError(
            f"value column {found.name!r} has more than {_MOST_VALUES:,} different values; cut"
            " numbers with --bins"
        )
    return found


def _survey(engine: Engine, surveyor: Surveyor) -> tuple[Survey, Dropped, pl.Series | None]:
    """As `_Seen`, of a whole table; InputError if nothing is left of it, and for opt-outs that
    name nothing.
    """
    columns, optouts = engine.given.columns, engine.reading.optouts
    found = np.zeros(0 if optouts is None else optouts.count, dtype=bool)
    surveys: list[Survey] = []
    cells: list[pl.Series] = []
    dropped = Dropped()
    for part in engine.each("reading", partial(_seen, surveyor)):
        found[part.found] = True
        dropped += part.dropped
        if part.survey is not None:
            surveys = [Survey.of_all([*surveys, part.survey], columns)]
        if part.cells is not None:
            # Merging rare values counts them, which engines of one part alone offer.
            cells = [part.cells] if engine.is_whole else [_distinct([*cells, part.cells])]
    if optouts is not None:
        optouts.check_found(found, stepped=engine.given.step is not None)
    if not surveys and dropped.chains:
        raise nothing_left()
    return Survey.of_all(surveys, columns), dropped, cells[0] if cells else None


# ---- a plan and its way through the table


class Decided(NamedTuple):
    """What was decided of a part. survey: None where a table cannot change between two passes.
    changed: how many cells a format has changed, by column.
    """

    survey: Survey | None
    decision: Decision
    changed: Counter[str]

    @property
    def fingerprint(self) -> tuple[str, int]:
        """What the part was, and what leaves of it."""
        assert self.survey is not None
        return self.survey.fingerprint, self.decision.content


#: Makes the released rows of a part what they leave as.
Finish = Callable[[Decision], tuple[Decision, Counter[str]]]


@dataclass(eq=False, repr=False)
class Passage(Generic[_EngineT]):
    """A plan that goes through a table. total, changed: what was decided and changed by now."""

    engine: _EngineT
    plan: Plan
    surveyor: Surveyor
    total: Decision = field(default_factory=Decision)
    changed: Counter[str] = field(default_factory=Counter)

    @classmethod
    def planned(cls, engine: _EngineT, model: Model | None, started: float) -> Passage[_EngineT]:
        """The plan for a table, from a survey of all positions.

        Args:
            engine: the table.
            model: the model, if one is given or was learned.
            started: when, by a clock that never goes back.

        Raises:
            InputError: for wrong rows, and where nothing may be released.
        """
        given, surveyor = engine.given, surveyor_of(engine.given, model)
        survey, dropped, cells = _survey(engine, surveyor)
        survey.check_lengths(model)
        given.check_private(survey.private + dropped.private)
        chosen = choose(given, model, survey)
        if chosen.kind == WHOLE and not given.options.keep_rows:
            engine, surveyor = engine.without_touched(), surveyor_of(given, None)
            survey, dropped, cells = _survey(engine, surveyor)
        if cells is None:
            assert model is not None
            labels = model.promise.labels
        else:
            alphabet = given.wanted.alphabet(cells)[0]
            engine, labels = engine.labelled(alphabet), alphabet.labels
        plan = Plan.of(given, model, chosen, survey, dropped, labels, started)
        return cls(engine, plan, surveyor)

    def work(self, finish: Finish | None = None) -> Callable[[Table], Decided | None]:
        """What decides a part, or in a dry run expects; None if nothing is left of it."""
        dry_run = self.plan.given.options.dry_run
        surveyor = None if self.engine.is_whole else self.surveyor
        return partial(_decided, self.plan.rule, surveyor, dry_run, finish)

    def parts(self, finish: Finish | None = None) -> Iterator[Decided]:
        """What is decided of each part, or in a dry run expected; InputError if they are not those
        that were surveyed.
        """
        what = "expecting" if self.plan.given.options.dry_run else "redacting"
        again: list[Survey] = []
        for one in self.engine.each(what, self.work(finish)):
            if one is None:
                continue
            self.total += one.decision
            self.changed.update(one.changed)
            if one.survey is not None:
                again = [Survey.of_all([*again, one.survey], self.plan.given.columns)]
            yield one
        prints = [one.fingerprint for one in again]
        if not self.engine.is_whole and prints != [self.plan.survey.fingerprint]:
            raise InputError("the table was changed while it was read; start again")


def _decided(
    rule: Rule, surveyor: Surveyor | None, dry_run: bool, finish: Finish | None, table: Table
) -> Decided | None:
    if table.is_empty:
        return None
    decision, changed = rule.expect(table) if dry_run else rule.decide(table), Counter[str]()
    if finish is not None:
        decision, changed = finish(decision)
    return Decided(None if surveyor is None else surveyor.survey(table), decision, changed)


class Made:
    """What an engine gives back, as it is shown."""

    summary: Summary

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.summary.short}>"

    def __str__(self) -> str:
        return self.summary.figures()
