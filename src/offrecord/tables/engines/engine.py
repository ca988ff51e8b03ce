"""What every engine does with a table, once for all of them: survey, choose, plan, decide.

An engine is a source of whole chains: it hands each part of a table to the same work. Rows that
come in batches, sorted by chain, become such parts in `whole_chains`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import polars as pl

from offrecord.errors import InputError
from offrecord.models.base import Integers, Label
from offrecord.models.file import Model
from offrecord.release.certificate import Certificate
from offrecord.release.coins import Coins
from offrecord.tables.alphabet import Alphabet
from offrecord.tables.chains import Columns
from offrecord.tables.checks.ledger import Entered
from offrecord.tables.choosing import WHOLE, choose
from offrecord.tables.decision import Decision
from offrecord.tables.given import Given
from offrecord.tables.optouts import OptOuts
from offrecord.tables.outcome import Outcome
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
        The same rows in the same order. Where parts end depends on the rows alone, not on their
        batches. Memory holds one part and a batch, or the longest chain.
    """
    held: list[pl.DataFrame] = []
    count = 0
    for batch in batches:
        begins, done = _chain_begins(held[-1].tail(1) if held else batch.head(0), batch, by), 0
        # Always the first border that is far enough: sources may change the size of batches between
        # two passes (Spark has a setting for it), and parts are compared by their fingerprints.
        while (at := np.searchsorted(begins, done + rows - count)) < len(begins):
            end = int(begins[at])
            yield pl.concat([*held, batch[done:end]])
            held, count, done = [], 0, end
        if done < batch.height:
            held.append(batch[done:])
            count += batch.height - done
    if held:
        yield pl.concat(held)


def _chain_begins(before: pl.DataFrame, batch: pl.DataFrame, by: Sequence[str]) -> Integers:
    """Which rows of a batch are the first of a chain. before: the row before, if there is one."""
    joined = pl.concat([before, batch])
    changes = np.zeros(max(joined.height - 1, 0), dtype=bool)
    for name in by:
        changes |= joined[name][1:].ne_missing(joined[name][:-1]).to_numpy()
    return np.flatnonzero(changes) + 1 - before.height


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """How rows of whole chains become a table. It can be pickled."""

    reader: Reader
    optouts: OptOuts | None
    coins: Coins  # which hold the key
    touched: bool = False  # chains with a private record are left out

    @classmethod
    def of(cls, given: Given, marking: str | None) -> Reading:
        """As options say. marking: the column that marks private records, if there is one."""
        return cls(given.reader(marking), given.optouts, given.coins)

    def table(self, rows: pl.DataFrame) -> Table:
        """The chains of some rows, with their coins."""
        table = self.reader.read(rows, self.optouts, touched=self.touched)
        return table.keyed(self.coins)


@dataclass(eq=False, repr=False)
class Engine(ABC):
    """A table, as a source of whole chains."""

    given: Given
    reading: Reading
    is_whole: ClassVar[bool] = False  # it is one part, and is read once

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
    """What is seen in a part."""

    survey: Survey | None  # None if nothing is left of it
    dropped: Dropped
    found: Integers  # rows of a private list that name something in it
    cells: pl.Series | None  # of rows that stay, where no model says what values are


def _seen(surveyor: Surveyor, counting: bool, table: Table) -> _Seen:
    """What is seen in a part. counting: every cell counts, not only how they differ."""
    found = np.flatnonzero(table.private.found)
    if table.is_empty:
        return _Seen(None, table.dropped, found, None)
    cells = table.arranged.unlabelled
    if cells is not None:
        cells = cells.filter(~table.chains.spread(table.touched))
        cells = cells if counting else cells.unique(maintain_order=True)
    return _Seen(surveyor.survey(table), table.dropped, found, cells)


def _survey(engine: Engine, surveyor: Surveyor) -> tuple[Survey, Dropped, pl.Series | None]:
    """As `_Seen`, of a whole table; InputError if nothing is left of it, and for opt-outs that
    name nothing.
    """
    survey, dropped, cells = None, Dropped(), None
    found: list[Integers] = []
    # Merging rare values counts them, which engines of one part alone offer.
    for part in engine.each("reading", partial(_seen, surveyor, engine.is_whole)):
        found.append(part.found)
        survey = _both(survey, part.survey, engine.given.columns)
        dropped += part.dropped
        cells = part.cells if engine.is_whole else _distinct(cells, part.cells)
    _check_found(engine, found)
    if survey is None:
        raise nothing_left() if dropped.chains else InputError("the table has no rows")
    return survey, dropped, cells


def _check_found(engine: Engine, found: Sequence[Integers]) -> None:
    """InputError for rows of a private list that name nothing in any part."""
    optouts = engine.reading.optouts
    if optouts is None:
        return
    named = np.zeros(optouts.count, dtype=bool)
    for rows in found:
        named[rows] = True
    optouts.check_found(named, stepped=engine.given.step is not None)


def _both(one: Survey | None, other: Survey | None, columns: Columns) -> Survey | None:
    """The survey of two parts, if there is one of either."""
    there = [survey for survey in (one, other) if survey is not None]
    return Survey.of_all(there, columns) if there else None


def _distinct(one: pl.Series | None, other: pl.Series | None) -> pl.Series | None:
    """The different ones among the cells of two parts; InputError for too many."""
    there = [cells for cells in (one, other) if cells is not None]
    found = pl.concat(there).unique(maintain_order=True) if there else None
    if found is not None and len(found) > _MOST_VALUES:
        raise _too_many(found.name)
    return found


def _too_many(name: str) -> InputError:
    return InputError(
        f"value column {name!r} has more than {_MOST_VALUES:,} different values; cut numbers with"
        " --bins"
    )


# ---- a plan and its way through the table


class Decided(NamedTuple):
    """What was decided of a part."""

    survey: Survey | None  # None where a table cannot change between two passes
    decision: Decision

    @property
    def fingerprint(self) -> tuple[str, int]:
        """What the part was, and what leaves of it."""
        assert self.survey is not None
        return self.survey.fingerprint, self.decision.content


#: Makes the released rows of a part what they leave as.
Finish = Callable[[Decision], Decision]


@dataclass(eq=False, repr=False)
class Passage(Generic[_EngineT]):
    """A plan that goes through a table."""

    engine: _EngineT
    plan: Plan
    surveyor: Surveyor
    total: Decision = field(default_factory=Decision)  # what was decided by now

    @classmethod
    def planned(cls, engine: _EngineT, model: Model | None, started: float) -> Passage[_EngineT]:
        """The plan for a table, from a survey of all positions; InputError for wrong rows, and
        where nothing may be released. started: when, by a clock that never goes back.
        """
        given, surveyor = engine.given, surveyor_of(engine.given, model)
        survey, dropped, cells = _survey(engine, surveyor)
        survey.check_lengths(model)
        given.check_private(survey.private + dropped.private)
        chosen = choose(given, model, survey)
        if chosen.kind == WHOLE and not given.options.keep_rows:
            engine, surveyor = engine.without_touched(), surveyor_of(given, None)
            survey, dropped, cells = _survey(engine, surveyor)
        engine, labels = _labelled(engine, model, cells)
        before = surveyor.before  # the ledger may hold another one by now, which is noticed later
        plan = Plan.of(given, model, chosen, survey, dropped, before, labels, started)
        return cls(engine, plan, surveyor)

    def work(self, finish: Finish | None = None) -> Callable[[Table], Decided | None]:
        """What decides a part, or in a dry run expects; None if nothing is left of it."""
        rule, is_dry = self.plan.rule, self.plan.given.options.dry_run
        surveyor = None if self.engine.is_whole else self.surveyor
        return partial(_decided, rule.expect if is_dry else rule.decide, surveyor, finish)

    def parts(self, finish: Finish | None = None) -> Iterator[Decided]:
        """What is decided of each part, or in a dry run expected; InputError if they are not those
        that were surveyed.
        """
        given, again = self.plan.given, None
        what = "expecting" if given.options.dry_run else "redacting"
        for one in filter(None, self.engine.each(what, self.work(finish))):
            self.total += one.decision
            again = _both(again, one.survey, given.columns)
            yield one
        if not self.engine.is_whole:
            self._check_same(again)

    @property
    def outcome(self) -> Outcome:
        """What came of all parts; InputError where a check refuses the release."""
        return Outcome.of(self.plan, self.total)

    def _check_same(self, again: Survey | None) -> None:
        """InputError if what was decided is not what was surveyed."""
        if again is None or again.fingerprint != self.plan.survey.fingerprint:
            raise InputError("the table was changed while it was read; start again")


def _labelled(
    engine: _EngineT, model: Model | None, cells: pl.Series | None
) -> tuple[_EngineT, tuple[Label, ...]]:
    """An engine with codes for its values, and their labels. cells: as in `_Seen`."""
    if cells is None:
        assert model is not None
        return engine, model.promise.labels
    alphabet = engine.given.wanted.alphabet(cells)[0]
    return engine.labelled(alphabet), alphabet.labels


def _decided(
    decide: Callable[[Table], Decision],
    surveyor: Surveyor | None,
    finish: Finish | None,
    table: Table,
) -> Decided | None:
    if table.is_empty:
        return None
    decision = decide(table)
    survey = None if surveyor is None else surveyor.survey(table)
    return Decided(survey, decision if finish is None else finish(decision))


# ---- what comes of it


@dataclass(eq=False, repr=False)
class Made:
    """What an engine gives back. outcome: what it was made of."""

    summary: Summary
    outcome: Outcome
    _entered: Entered | None  # as the ledger knows it by now

    def _certificate(self) -> Certificate:
        return self.outcome.certificate(self._entered)

    def _certified(self, kind: str, columns: Sequence[str], digest: str) -> bytes:
        """The certificate's file, with what it says about a table of this SHA-256."""
        return self._certificate().of_output(kind, columns, sha256=digest).to_json()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.summary.short}>"

    def __str__(self) -> str:
        return self.summary.figures()
