"""Deciding a table: which records leave empty, and what that comes to in numbers.

`Rule` is all that decides beside a table's own coins. It has no key and can be pickled, so every
engine hands whole chains to the same `decide`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.mechanisms import deciding
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Integers, Mask
from offrecord.models.members import Places
from offrecord.models.records import MISSING, UNKNOWN
from offrecord.tables.chains import Arranged
from offrecord.tables.choice import Choice, choice_of
from offrecord.tables.contents import record_numbers
from offrecord.tables.growing import Before, Holding, closed, open_ended, settled
from offrecord.tables.model_check import Moves
from offrecord.tables.problems import Check, RowNames
from offrecord.tables.seen import Seen, Sighting
from offrecord.tables.table import Table
from offrecord.tables.telling import Sample
from offrecord.tables.writing import emptied, released_values, without_hidden

#: What a record is by its position, as in the paper: S never redacted, L always, M sometimes.
NEVER, SOMETIMES, ALWAYS, PRIVATE, WAITS = "S", "M", "L", "private", "waits"
REGIONS = (NEVER, SOMETIMES, ALWAYS, PRIVATE)


@dataclass(frozen=True, eq=False, repr=False)
class Decision:
    """What was decided of a table, or a part of it; the numbers of parts add up.

    frame: the released rows; None in a dry run, and of several parts. records: that have a value
    and do not wait. released: those that leave with it. regions: records by what their position
    says. touched: records of chains with a private record, touched_released: those that leave;
    lost: such chains of which none leaves. moves: transitions among records that are never
    redacted. choice: which values private records have. kept: a sample of released rows with their
    kept cells. content: a digest of what leaves of chains with a private record, for the key's
    owner alone. seen: records that may be redacted, and that the model was learned from. waiting,
    waiting_private: records of a growing table that leave later. known, known_digest: private
    records that are known to be so. settled, repeated: digests of what leaves of records that do
    not wait, and of those that did not wait in the release before.
    """

    frame: pl.DataFrame | None = None
    records: int = 0
    released: int = 0
    regions: NDArray[np.int64] = field(default_factory=lambda: np.zeros(4, dtype=np.int64))
    touched: int = 0
    touched_released: int = 0
    lost: int = 0
    moves: Moves | None = None
    choice: Choice | None = None
    kept: Sample | None = None
    content: int = 0
    seen: Sighting = field(default_factory=Sighting)
    waiting: int = 0
    known: int = 0
    known_digest: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(2, dtype=np.uint64))
    settled: int = 0
    repeated: int = 0

    def __add__(self, other: Decision) -> Decision:
        return Decision(
            None,
            self.records + other.records,
            self.released + other.released,
            self.regions + other.regions,
            self.touched + other.touched,
            self.touched_released + other.touched_released,
            self.lost + other.lost,
            _sum(self.moves, other.moves),
            _sum(self.choice, other.choice),
            _sum(self.kept, other.kept),
            self.content ^ other.content,
            self.seen + other.seen,
            self.waiting + other.waiting,
            self.known + other.known,
            self.known_digest ^ other.known_digest,
            self.settled ^ other.settled,
            self.repeated ^ other.repeated,
        )


def _sum(one: Any, other: Any) -> Any:
    """The sum of what is there."""
    return other if one is None else one if other is None else one + other


@dataclass(frozen=True, eq=False)
class Rule:
    """What decides a table beside its coins.

    policy: side rules; None where every chain with a private record goes as a whole. order, places:
    of the model. values: how many there are. holding, before: of a growing table, what waits, and
    the release before. seen: which records the model was learned from, if that is known.
    """

    policy: TablePolicy | None
    protect: str
    order: int = 1
    places: Places | None = None
    kernel_places: Places | None = None
    values: int = 0
    holding: Holding | None = None
    before: Before | None = None
    seen: Seen | None = None

    def decide(self, table: Table) -> Decision:
        """Decide a table: the released rows, and numbers.

        Raises:
            InputError: for values that the model does not know and a rule may release.
        """
        waits, always, never = self._certain(table)
        gone = self._redacted(table) | waits
        self._check_known(table, always | waits)
        leaves = ~gone & (table.chains.codes != MISSING)
        counted = self._counted(table, leaves, (waits, always, never))
        counted = replace(
            counted,
            frame=released_rows(table.arranged, gone),
            kept=Sample.of(table.arranged, gone),
            content=_content(table, gone),
            **self._grown(table, leaves),
        )
        if self.policy is None:
            return counted
        plain = np.where(never & ~waits, table.chains.codes, np.int8(MISSING))
        choice = choice_of(table, self.values, self._reach)
        return replace(counted, moves=Moves.of(table, plain, self), choice=choice)

    def expect(self, table: Table) -> Decision:
        """What is certain about a table without a look at its values: no record counts as released
        that is not so for certain.
        """
        waits, always, never = self._certain(table)
        self._check_known(table, always | waits)
        leaves = never & ~waits & table.valued
        return self._counted(table, leaves, (waits, always, never))

    def regions(self, table: Table) -> NDArray[np.str_]:
        """(n,) what each row is by its position."""
        waits, always, never = self._certain(table)
        found = np.where(always, ALWAYS, np.where(never, NEVER, SOMETIMES))
        return np.where(table.is_private, PRIVATE, np.where(waits, WAITS, found))

    @property
    def _reach(self) -> int:
        """How far any rule redacts beside a private run."""
        assert self.policy is not None
        return self.policy.reach

    def _redacted(self, table: Table) -> Mask:
        """(n,) which rows leave empty by the rules and the coins."""
        chains = table.chains
        if self.policy is None:
            return chains.spread(table.touched)
        if table.private.count == 0:
            return np.zeros(table.rows, dtype=bool)
        acting = chains if self.holding is None else open_ended(chains)
        runs, place_of = table.runs(self.protect), table.place_of(self.places)
        gone = deciding.decide(acting, runs, self.policy, place_of, table.draw, self.order)
        return gone if self.holding is None else closed(gone, chains)

    def _certain(self, table: Table) -> tuple[Mask, Mask, Mask]:
        """(n,) each: which rows wait, are redacted whatever the values and coins, and never are."""
        chains = table.chains
        if self.policy is None:
            always = chains.spread(table.touched)
            return np.zeros(table.rows, dtype=bool), always, ~always
        acting = chains if self.holding is None else open_ended(chains)
        runs, place_of = table.runs(self.protect), table.place_of(self.places)
        found = deciding.certain(acting, runs, self.policy, place_of, self.order)
        always, never = found == deciding.ALWAYS, found == deciding.NEVER
        if self.holding is None:
            return np.zeros(table.rows, dtype=bool), always, never
        waits = self.holding.waits(table.arranged, table.private)
        return waits, closed(always, chains), closed(never, chains)

    def _check_known(self, table: Table, gone: Mask) -> None:
        """InputError for values that the model does not know where a record may leave, or where
        stopping rules look. gone: (n,) which records cannot leave.
        """
        looks = self.policy is not None and not self.policy.is_local
        _check_known(table, ~gone | (table.chains.spread(table.touched) & looks))

    def _counted(self, table: Table, leaves: Mask, certainty: tuple[Mask, Mask, Mask]) -> Decision:
        """Counts of a table. leaves: (n,) which records are released with a value."""
        waits, always, never = certainty
        chains = table.chains
        counts = table.valued & ~waits
        always, never = always & counts & ~table.is_private, never & counts
        private = int(np.count_nonzero(table.is_private & counts))
        records = int(np.count_nonzero(counts))
        small, large = int(np.count_nonzero(never)), int(np.count_nonzero(always))
        numbers = [small, records - small - large - private, large, private]
        by_chain = np.add.reduceat(leaves, chains.starts[:-1], dtype=np.int64)[table.touched]
        there = np.add.reduceat(counts, chains.starts[:-1], dtype=np.int64)[table.touched]
        return Decision(
            records=records,
            released=int(np.count_nonzero(leaves)),
            regions=np.array(numbers, dtype=np.int64),
            touched=int(there.sum()),
            touched_released=int(by_chain.sum()),
            lost=int(np.count_nonzero((by_chain == 0) & (there > 0))),
            seen=self._sighting(table, ~(never & ~waits)),
            waiting=int(np.count_nonzero(table.valued & waits)),
        )

    def _sighting(self, table: Table, marked: Mask) -> Sighting:
        """What the model was learned from, met among rows that are marked."""
        if self.seen is None:
            return Sighting()
        holding = np.flatnonzero(table.touched)
        return self.seen.sighting(table.coins.key, table.arranged, holding, marked)

    def _grown(self, table: Table, leaves: Mask) -> dict[str, Any]:
        """What is counted of a table that grows."""
        holding, private = self.holding, table.private
        if holding is None:
            return {}
        known = private.place <= holding.known(table.arranged)[private.chain]
        before = self.before
        return {
            "known": int(known.sum()),
            "known_digest": table.set_digest(private.chain[known], private.order[known]),
            "settled": settled(table, holding, leaves, record_numbers),
            "repeated": 0
            if before is None
            else settled(table, before.holding, leaves, record_numbers),
        }


def _check_known(table: Table, asked: Mask) -> None:
    """InputError for values that the model does not know. asked: (n,) where they matter."""
    unknown = np.flatnonzero((table.chains.codes == UNKNOWN) & asked)
    if not len(unknown):
        return
    arranged = table.arranged
    columns = arranged.columns
    said = (f"value column {columns.value!r} holds a value the model does not know in ", "row", "")
    names = RowNames(arranged.frame, columns.by, columns.ordering, arranged.rows)
    raise names.error(unknown, Check.KNOWN, said)


def released_rows(arranged: Arranged, gone: Mask) -> pl.DataFrame:
    """The rows as they leave: sorted, emptied where they are redacted, with nothing underneath."""
    columns, chains = arranged.columns, arranged.chains
    empty = gone | (chains.codes < 0)
    values = released_values(
        columns.value, chains.codes, empty, arranged.labels, arranged.value_type
    )
    frame = arranged.frame.with_columns(values) if arranged.frame.width else values.to_frame()
    frame = frame.select(columns.released)
    if columns.keep and not columns.keep_all:
        frame = emptied(frame, columns.keep, gone)
    return without_hidden(frame, columns.keep)


def _content(table: Table, gone: Mask) -> int:
    """A digest of what leaves of the chains with a private record, record by record."""
    touched = np.flatnonzero(table.touched)
    if len(touched) == 0:
        return 0
    chains = table.chains
    shown = ((chains.codes + np.int8(1)) * ~gone).view(np.uint8)  # 0: empty
    mixed = np.add.reduceat(record_numbers(chains.order, shown), chains.starts[:-1])
    lengths: Integers = np.diff(chains.starts)
    return table.coins.content_digest(table.tags[touched], mixed[touched], lengths[touched])
