"""Deciding a table: which records leave empty, and what that comes to in numbers.

`Rule` is all that decides beside a table's own coins. It has no key and can be pickled, so every
engine hands whole chains to the same `decide`.
"""

from __future__ import annotations

from collections import Counter
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
    *("waiting", "known", "changed"),
)
_DIGESTS = ("content", "known_digest", "settled", "repeated")


@dataclass(frozen=True, eq=False, repr=False)
class Decision:
    """What was decided of a table, or a part of it; the numbers of parts add up."""

    frame: pl.DataFrame | None = None  # the released rows; None in a dry run, and of several parts
    records: int = 0  # that have a value and do not wait
    released: int = 0  # those that leave with it
    regions: NDArray[np.int64] = field(default_factory=lambda: np.zeros(4, dtype=np.int64))
    touched: int = 0  # records of chains with a private record
    touched_released: int = 0  # those that leave
    lost: int = 0  # such chains of which none leaves
    observations: dict[str, Any] = field(default_factory=dict)  # of each check
    changed: Counter[str] = field(default_factory=Counter)  # cells that a format changed, by column
    content: int = 0  # a digest of what leaves of touched chains, for the key's owner alone
    waiting: int = 0  # records of a growing table that leave later
    known: int = 0  # private records that are known to be so
    known_digest: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(2, dtype=np.uint64))
    settled: int = 0  # a digest of what leaves of records that do not wait
    repeated: int = 0  # and of those that did not wait in the release before

    def __add__(self, other: Decision) -> Decision:
        sums = {name: getattr(self, name) + getattr(other, name) for name in _COUNTED}
        digests = {name: getattr(self, name) ^ getattr(other, name) for name in _DIGESTS}
        observations = checks.added(self.observations, other.observations)
        return Decision(observations=observations, **sums, **digests)


@dataclass(frozen=True, eq=False)
class Rule:
    """What decides a table beside its coins."""

    policy: TablePolicy | None  # None where every chain with a private record goes as a whole
    protect: str
    order: int = 1  # of the model, as are places
    places: Places | None = None
    kernel_places: Places | None = None
    values: int = 0  # how many there are, 0 without a policy
    holding: Holding | None = None  # of a growing table: what waits
    before: Before | None = None  # and the release before
    seen: Seen | None = None  # which records the model was learned from, if that is known

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

    @property
    def looks(self) -> bool:
        """Its rules look at values of other records in chains with a private one."""
        return self.policy is not None and not self.policy.is_local

    def _redacted(self, table: Table) -> Mask:
        """(n,) which rows leave empty by the rules and the coins."""
        if self.policy is None:
            return table.chains.spread(table.touched)
        if table.private.count == 0:
            return np.zeros(table.rows, dtype=bool)
        acting, runs, place_of = self._acting(table)
        gone = deciding.decide(acting, runs, self.policy, place_of, table.draw, self.order)
        return np.asarray(self._of_rows(gone, table))

    def _certain(self, table: Table) -> Part:
        """Which rows wait, are redacted whatever the values and coins, and never are."""
        if self.policy is None:
            always = table.chains.spread(table.touched)
            return Part(table, self, self._waits(table), always, ~always, None)
        acting, runs, place_of = self._acting(table)
        found = deciding.certain(acting, runs, self.policy, place_of, self.order)
        found = self._of_rows(found, table)
        always, never = found == deciding.ALWAYS, found == deciding.NEVER
        return Part(table, self, self._waits(table), always, never, None)

    def _waits(self, table: Table) -> Mask:
        """(n,) which rows leave later."""
        if self.holding is None:
            return np.zeros(table.rows, dtype=bool)
        return self.holding.waits(table.arranged, table.private)

    def _of_rows(self, found: NDArray[Any], table: Table) -> NDArray[Any]:
        """(n,) what is found of the records of `_acting`, without those that were added."""
        return found if self.holding is None else closed(found, table.chains)

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
        table, arranged = part.table, part.table.arranged
        unknown = np.flatnonzero((table.chains.codes == UNKNOWN) & self._must_know(part))
        if not len(unknown):
            return
        columns = arranged.columns
        said = f"value column {columns.value!r} holds a value the model does not know in "
        names = RowNames(arranged.frame, columns.by, columns.ordering, arranged.rows)
        raise names.error(unknown, Check.KNOWN, (said, "row", ""))

    def _must_know(self, part: Part) -> Mask:
        # An error about a record that is redacted whatever its value would leak something about it;
        # stopping rules look at the values of other records too.
        looked_at = part.table.chains.spread(part.table.touched) & self.looks
        return np.asarray(~(part.always | part.waits) | looked_at)

    def _grown(self, table: Table, leaves: Mask) -> dict[str, Any]:
        """What is counted of a table that grows."""
        if self.holding is None:
            return {}
        known = table.private.of(self.holding.knows(table.arranged, table.private))
        return {
            "known": known.count,
            "known_digest": table.set_digest(known.chain, known.order),
            "settled": _settled(table, self.holding, leaves),
            "repeated": 0 if self.before is None else _settled(table, self.before.holding, leaves),
        }


def _counted(part: Part, leaves: Mask) -> Decision:
    """Counts of a part, and what checks see in it. leaves: (n,) records released with a value."""
    table = part.table
    # A private record counts as having a value whether its cell is empty or not: a count that
    # differed would leak it.
    counts = table.valued & ~part.waits
    there, left = (_by_chain(table.chains, mask)[table.touched] for mask in (counts, leaves))
    return Decision(
        records=_count(counts),
        released=_count(leaves),
        regions=_regions(part, counts),
        touched=int(there.sum()),
        touched_released=int(left.sum()),
        lost=_count((left == 0) & (there > 0)),
        observations=checks.observed(part),
        waiting=_count(table.valued & part.waits),
    )


def _regions(part: Part, counts: Mask) -> NDArray[np.int64]:
    """(4,) how many of the records that count lie in each of `REGIONS`."""
    private = part.table.is_private & counts
    small, own = _count(part.never & counts), _count(private)
    large = _count(part.always & counts & ~private)
    return np.array([small, _count(counts) - small - large - own, large, own], dtype=np.int64)


def _count(mask: Mask) -> int:
    return int(np.count_nonzero(mask))


def _by_chain(chains: Chains, mask: Mask) -> Integers:
    """(m,) how many records of each chain are marked."""
    return np.add.reduceat(mask, chains.starts[:-1], dtype=np.int64)


def released_rows(arranged: Arranged, gone: Mask) -> pl.DataFrame:
    """The rows as they leave: sorted, emptied where they are redacted, with nothing underneath."""
    columns, values = arranged.columns, _released_column(arranged, gone)
    frame = arranged.frame.with_columns(values) if arranged.frame.width else values.to_frame()
    frame = frame.select(columns.released)
    if columns.keep and not columns.keep_all:
        frame = emptied(frame, columns.keep, gone)
    return without_hidden(frame, columns.keep)


def _released_column(arranged: Arranged, gone: Mask) -> pl.Series:
    codes, kind = arranged.chains.codes, arranged.value_type
    empty = gone | (codes < 0)
    return released_values(arranged.columns.value, codes, empty, arranged.labels, kind)


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
        lengths = _by_chain(chains, stays)
    mixed = np.add.reduceat(numbers, chains.starts[:-1])[some]
    return table.coins.content_digest(table.tags[some], mixed, lengths[some])
