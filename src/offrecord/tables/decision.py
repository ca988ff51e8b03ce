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

from offrecord.mechanisms.deciding import decide as deciding
from offrecord.mechanisms.deciding.layout import PlaceOf
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Integers, Mask
from offrecord.models.members import Places
from offrecord.models.records import MISSING, UNKNOWN, Chains, Runs
from offrecord.tables import checks
from offrecord.tables.chains import Arranged
from offrecord.tables.checks.check import Part
from offrecord.tables.checks.seen import Seen, record_numbers
from offrecord.tables.growing import Before, Holding, closed, open_ended
from offrecord.tables.problems import Check, RowNames
from offrecord.tables.table import Table
from offrecord.tables.writing import emptied, released_values, without_hidden

#: What a record is by its position, as in the paper: S never redacted, M sometimes, L always.
REGIONS = ("S", "M", "L", "private")
#: Numbers of parts that add up, and digests of them that combine by exclusive or.
_COUNTED = (
    *("records", "released", "regions", "touched", "touched_released", "lost"),
    *("waiting", "known"),
)
_DIGESTS = ("content", "known_digest", "settled", "repeated")


@dataclass(frozen=True, eq=False, repr=False)
class Decision:
    """What was decided of a table, or a part of it; the numbers of parts add up.

    frame: the released rows; None in a dry run, and of several parts. records: that have a value
    and do not wait. released: those that leave with it. regions: records by what their position
    says. touched: records of chains with a private record, touched_released: those that leave;
    lost: such chains of which none leaves. observations: of each check. content: a digest of what
    leaves of chains with a private record, for the key's owner alone. waiting: records of a growing
    table that leave later. known, known_digest: private records that are known to be so. settled,
    repeated: digests of what leaves of records that do not wait, and of those that did not wait in
    the release before.
    """

    frame: pl.DataFrame | None = None
    records: int = 0
    released: int = 0
    regions: NDArray[np.int64] = field(default_factory=lambda: np.zeros(4, dtype=np.int64))
    touched: int = 0
    touched_released: int = 0
    lost: int = 0
    observations: dict[str, Any] = field(default_factory=dict)
    content: int = 0
    waiting: int = 0
    known: int = 0
    known_digest: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(2, dtype=np.uint64))
    settled: int = 0
    repeated: int = 0

    def __add__(self, other: Decision) -> Decision:
        sums = {name: getattr(self, name) + getattr(other, name) for name in _COUNTED}
        digests = {name: getattr(self, name) ^ getattr(other, name) for name in _DIGESTS}
        observations = checks.added(self.observations, other.observations)
        return Decision(observations=observations, **sums, **digests)


@dataclass(frozen=True, eq=False)
class Rule:
    """What decides a table beside its coins.

    policy: side rules; None where every chain with a private record goes as a whole. order, places:
    of the model. values: how many there are, 0 without a policy. holding, before: of a growing
    table, what waits, and the release before. seen: which records the model was learned from, if
    that is known.
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
        part = self._certain(table)
        # Coins go by key, chain and order value: each engine and each part draws the same.
        gone = self._redacted(table) | part.waits
        self._check_known(part)
        leaves = ~gone & (table.chains.codes != MISSING)
        return replace(
            _counted(replace(part, gone=gone), leaves),
            frame=released_rows(table.arranged, gone),
            content=_content(table, leaves, np.flatnonzero(table.touched)),
            **self._grown(table, leaves),
        )

    def expect(self, table: Table) -> Decision:
        """What is certain about a table without reading its values: no record counts as released
        that is not so for certain.
        """
        part = self._certain(table)
        self._check_known(part)
        return _counted(part, part.never & ~part.waits & table.valued)

    @property
    def reach(self) -> int:
        """How far any rule redacts beside a private run."""
        assert self.policy is not None
        return self.policy.reach

    def _redacted(self, table: Table) -> Mask:
        """(n,) which rows leave empty by the rules and the coins."""
        if self.policy is None:
            return table.chains.spread(table.touched)
        if table.private.count == 0:
            return np.zeros(table.rows, dtype=bool)
        acting, runs, place_of = self._acting(table)
        gone = deciding.decide(acting, runs, self.policy, place_of, table.draw, self.order)
        return gone if self.holding is None else closed(gone, table.chains)

    def _certain(self, table: Table) -> Part:
        """Which rows wait, are redacted whatever the values and coins, and never are."""
        chains = table.chains
        none = np.zeros(table.rows, dtype=bool)
        if self.policy is None:
            always = chains.spread(table.touched)
            return Part(table, self, none, always, ~always, None)
        acting, runs, place_of = self._acting(table)
        found = deciding.certain(acting, runs, self.policy, place_of, self.order)
        always, never = found == deciding.ALWAYS, found == deciding.NEVER
        if self.holding is None:
            return Part(table, self, none, always, never, None)
        waits = self.holding.waits(table.arranged, table.private)
        return Part(table, self, waits, closed(always, chains), closed(never, chains), None)

    def _acting(self, table: Table) -> tuple[Chains, Runs, PlaceOf]:
        """The chains as rules see them, their private runs and places. Chains of a growing table go
        on, so no record is its chain's last.
        """
        chains = table.chains if self.holding is None else open_ended(table.chains)
        return chains, table.runs(self.protect), table.place_of(self.places)

    def _check_known(self, part: Part) -> None:
        """InputError for values that the model does not know where a record may leave, or where
        stopping rules look.
        """
        table = part.table
        looks = self.policy is not None and not self.policy.is_local
        matters = ~(part.always | part.waits) | (table.chains.spread(table.touched) & looks)
        unknown = np.flatnonzero((table.chains.codes == UNKNOWN) & matters)
        if not len(unknown):
            return
        arranged = table.arranged
        columns = arranged.columns
        said = f"value column {columns.value!r} holds a value the model does not know in "
        names = RowNames(arranged.frame, columns.by, columns.ordering, arranged.rows)
        raise names.error(unknown, Check.KNOWN, (said, "row", ""))

    def _grown(self, table: Table, leaves: Mask) -> dict[str, Any]:
        """What is counted of a table that grows."""
        if self.holding is None:
            return {}
        private = table.private
        known = self.holding.knows(table.arranged, private)
        return {
            "known": int(known.sum()),
            "known_digest": table.set_digest(private.chain[known], private.order[known]),
            "settled": _settled(table, self.holding, leaves),
            "repeated": 0 if self.before is None else _settled(table, self.before.holding, leaves),
        }


def _counted(part: Part, leaves: Mask) -> Decision:
    """Counts of a part, and what checks see in it. leaves: (n,) records released with a value."""
    table, chains = part.table, part.table.chains
    # A private record counts as having a value whether its cell is empty or not: a count that
    # differed would leak it.
    counts = table.valued & ~part.waits
    always, never = part.always & counts & ~table.is_private, part.never & counts
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
        observations=checks.observed(part),
        waiting=int(np.count_nonzero(table.valued & part.waits)),
    )


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


def _settled(table: Table, holding: Holding, leaves: Mask) -> int:
    """A digest of what leaves of records that do not wait, in chains with a private record of which
    that is known.
    """
    private = table.private.of(holding.knows(table.arranged, table.private))
    begins = holding.begins(table.arranged, private)
    stays = table.chains.places < table.chains.spread(begins)
    return _content(table, leaves, np.unique(private.chain), stays)


def _content(table: Table, leaves: Mask, some: Integers, stays: Mask | None = None) -> int:
    """A digest of what leaves of some chains, record by record. stays: (n,) which of them count."""
    if len(some) == 0:
        return 0
    chains = table.chains
    shown = ((chains.codes + np.int8(1)) * leaves).view(np.uint8)  # 0: empty
    numbers, lengths = record_numbers(chains.order, shown), np.diff(chains.starts)
    if stays is not None:
        numbers *= stays
        lengths = np.add.reduceat(stays, chains.starts[:-1], dtype=np.int64)
    mixed = np.add.reduceat(numbers, chains.starts[:-1])[some]
    return table.coins.content_digest(table.tags[some], mixed, lengths[some])
