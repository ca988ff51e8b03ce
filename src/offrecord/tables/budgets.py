"""What a table would release under other budgets, or by other mechanisms: foretold from the places
of its records and of its secrets, without a look at a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from offrecord.designs.clusters import with_clusters
from offrecord.designs.library import Setting
from offrecord.designs.sharing import designs_for, room_limits
from offrecord.errors import InputError
from offrecord.mechanisms import Mechanism
from offrecord.mechanisms.blocks import Mask
from offrecord.mechanisms.window import BestWindow
from offrecord.models.base import Integers
from offrecord.models.records import MISSING, Chains
from offrecord.tables.batch import ChainBatch, TableSpec
from offrecord.tables.job import nearness_of
from offrecord.tables.rule import Rule
from offrecord.tables.secrets import Private
from offrecord.tables.windows import Windows

#: Records of a table that are foretold at most, about.
MOST = 1_000_000


class Point(NamedTuple):
    """What a mechanism is expected to release with a budget: a share of the records."""

    epsilon: float
    mechanism: str
    released: float


@dataclass(frozen=True, eq=False)
class Blank:
    """A table without its values: which records there are, which are private, which have a value
    and which wait. share: of a budget that designs are made for. every: one of so many chains was
    taken.
    """

    spec: TableSpec
    batch: ChainBatch
    share: float
    growing: bool
    every: int

    @classmethod
    def of(
        cls, spec: TableSpec, batch: ChainBatch, share: float, *, growing: bool, most: int = MOST
    ) -> Blank:
        """Of a batch: every value that there is becomes the same. Of a table with more than `most`
        records, chains at equal distances, of as many records about.
        """
        arranged, private, waits = batch.arranged, batch.private, batch.waits
        chains = arranged.chains
        if chains.whole:
            codes = np.zeros_like(chains.codes)
        else:
            codes = np.where(chains.codes == MISSING, np.int8(MISSING), np.int8(0))
            codes[private.rows(chains)] = 0
        chains = replace(chains, codes=codes)
        every = min(-(-batch.rows // most), max(chains.count, 1))
        if every > 1:
            taken = np.arange(chains.count) % every == 0
            rows = np.repeat(taken, np.diff(chains.starts))
            chains, private = _some(chains, taken, rows), _numbered(private, taken)
            waits = None if waits is None else waits[rows]
        bare = arranged.frame.head(0), arranged.names.head(0)
        arranged = replace(arranged, chains=chains, frame=bare[0], names=bare[1], private=None)
        own = replace(spec.batch(arranged, private), waits=waits)
        return cls(spec, own, share, growing, every)

    @property
    def records(self) -> int:
        """Those that may leave: with a value, and not waiting."""
        valued = self.batch.valued
        return self.batch.rows if valued is None else int(valued.sum())

    def points(self, mechanism: Mechanism, epsilons: Sequence[float]) -> list[Point]:
        """What a mechanism is expected to release with each budget, as far as it serves."""
        found = []
        for epsilon in epsilons:
            try:
                left = self.released(mechanism, epsilon)
            except InputError:  # it does not serve this table with that budget
                continue
            found.append(Point(epsilon, mechanism.name, left / max(self.records, 1)))
        return found

    def released(self, mechanism: Mechanism, epsilon: float) -> float:
        """How many records are expected to leave."""
        setting = Setting(self.spec.model, self.share * epsilon, mechanism, self.spec.protect)
        limits = room_limits(setting.model, setting.epsilon)
        spec = replace(self.spec, limits=limits, nearness=nearness_of(setting, limits[0]))
        batch = spec.batch(self.batch.arranged, self.batch.private)
        batch = replace(batch, waits=self.batch.waits)
        needs = batch.needs
        designs, which = designs_for(setting, needs, growing=self.growing)
        if mechanism.name == BestWindow.name:
            return Windows.of(designs.designs, which, needs).released(batch)
        designs = with_clusters(designs, batch.clusters.secrets).for_gaps(needs.gaps)
        instead, others = None, np.empty(0, dtype=np.int64)
        if getattr(mechanism, "keeps_to_windows", False) and not self.growing:
            instead, others = designs_for(setting._replace(mechanism=BestWindow()), needs)
        which_of: tuple[Integers, Integers] = which, others
        return Rule.of(designs, instead, needs, which_of).expect(batch).released


def _some(chains: Chains, taken: Mask, rows: Mask) -> Chains:
    """Some chains."""
    lengths = np.diff(chains.starts)[taken]
    steps = None if chains.steps is None else chains.steps[rows]
    starts = np.append(0, np.cumsum(lengths))
    return Chains(starts, chains.codes[rows], chains.order[rows], chains.timed, steps)


def _numbered(private: Private, taken: Mask) -> Private:
    """The private records of some chains, by their numbers among these."""
    some = private.of_chains(taken)
    return replace(some, chain=(np.cumsum(taken) - 1)[some.chain])
