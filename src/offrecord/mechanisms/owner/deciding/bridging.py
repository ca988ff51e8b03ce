"""Bridging: what is released between two runs too near to each other for two walks (O15).

All such gaps of a block at once, step by step: what is held out is released, or loses its first or
its last record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from offrecord.mechanisms.blocks import Block, Draw, Mask
from offrecord.mechanisms.owner.deciding.clusters import RIGHT, Clusters
from offrecord.mechanisms.owner.deciding.ground import Ground
from offrecord.mechanisms.owner.stopping import GapStopping
from offrecord.models.base import Floats, Integers
from offrecord.models.records import Codes
from offrecord.release.coins import Draws, redacts

#: What the draws are for; a step's number is their counter.
PURPOSE = b"offrecord/gap"
#: Expected releases of a gap that are worth more than joining the runs on both sides of it.
_WORTH = 0.25


class Bridged(NamedTuple):
    """Gaps (g,) that are bridged: the cluster to the left of each, their first rows and lengths."""

    cluster: Integers
    row: Integers
    length: Integers


@dataclass(frozen=True, eq=False)
class Bridges:
    """Gaps by length, as far as they are worth it. k: how many values there are."""

    gaps: Sequence[GapStopping]
    k: int

    @classmethod
    def worth(cls, gaps: Sequence[GapStopping], k: int) -> Bridges:
        """Those of a menu in which enough is released."""
        return cls([gap for gap in gaps if gap.law is not None and gap.law.sum() >= _WORTH], k)

    @cached_property
    def lengths(self) -> Mask:
        """(longest + 2,) whether a gap of a length is bridged; the last stands for longer ones."""
        longest = max((gap.length for gap in self.gaps), default=0)
        found = np.zeros(longest + 2, dtype=bool)
        found[[gap.length for gap in self.gaps]] = True
        return found

    @cached_property
    def _packed(self) -> tuple[Draws, Integers]:
        """Thresholds of all lengths, one after the other, and where those of each length begin."""
        begins = np.zeros(len(self.lengths), dtype=np.int64)
        at = 0
        for gap in self.gaps:
            begins[gap.length] = at
            at += gap.limits.size
        every = [gap.limits.ravel() for gap in self.gaps]
        return np.concatenate([*every, np.empty(0, dtype=np.uint64)]), begins

    def are_served(self, block: Block) -> Mask:
        """(secrets,) before which of a block's secrets lies a gap that is bridged: it has a length
        that is known, and every record of it a value.
        """
        secrets = block.secrets
        served = np.zeros(secrets.count, dtype=bool)
        if not self.gaps or secrets.count < 2:
            return served
        between = secrets.first[1:] - secrets.last[:-1] - 1
        near = (secrets.chain[1:] == secrets.chain[:-1]) & (between > 0)
        served[1:] = near & self.lengths[np.clip(between, 0, len(self.lengths) - 1)]
        some = np.flatnonzero(served[1:])
        low, high = secrets.high[some], secrets.low[some + 1]
        whole = high - low == between[some]
        if not block.chains.whole:
            missing = np.concatenate(([0], np.cumsum(block.chains.codes < 0)))
            whole &= missing[high] == missing[low]
        served[some[~whole] + 1] = False
        return served

    def gaps_of(self, clusters: Clusters) -> Bridged:
        """The gaps of clusters that are bridged."""
        cluster = np.flatnonzero(clusters.bridged[:, RIGHT])
        return Bridged(cluster, clusters.ends.high[cluster], clusters.gaps[cluster, RIGHT])

    def released(self, bridged: Bridged) -> tuple[Integers, Floats]:
        """Rows of bridged gaps, and how likely each of them leaves."""
        most = len(self.lengths) - 1
        laws = np.zeros((most, most))
        for gap in self.gaps:
            assert gap.law is not None
            laws[gap.length, : gap.length] = gap.law
        which = np.repeat(np.arange(len(bridged.length)), bridged.length)
        first = np.cumsum(bridged.length) - bridged.length
        place = np.arange(len(which)) - first[which]
        return bridged.row[which] + place, laws[bridged.length[which], place]

    def stops(self, bridged: Bridged, clusters: Clusters, block: Block, draw: Draw) -> Integers:
        """(g, 2) how far from the left and from the right run releasing begins; beyond the gap
        where nothing is released, as it is not where an end of the runs has no value.
        """
        codes, ends, ground = block.chains.codes, clusters.ends, Ground(block)
        left, chain = bridged.row - 1, ends.chain[bridged.cluster]
        # the very ends: where one has no row, a value further inside the run is none of it
        x = ground.value_at(chain, ends.last[bridged.cluster])
        b = ground.value_at(chain, ends.first[bridged.cluster + 1])
        first, last = np.ones_like(bridged.row), bridged.length.copy()
        released = np.zeros(len(bridged.row), dtype=bool)
        active = np.flatnonzero((x >= 0) & (b >= 0))
        step = 0
        while len(active):
            at = self._threshold(bridged, active, (first, last), (x, b), codes)
            limits, _ = self._packed
            drawn = draw(chain[active], block.chains.order[left[active]], PURPOSE, step)
            stops = redacts(drawn, limits[at])
            released[active[stops]] = True
            loses = redacts(drawn, np.maximum(limits[at], limits[at + 1]))
            active, loses = active[~stops], loses[~stops]
            going = first[active] < last[active]
            active, loses = active[going], loses[going]
            first[active[loses]] += 1
            last[active[~loses]] -= 1
            step += 1
        nothing = bridged.length + 1
        found = np.stack((first, bridged.length + 1 - last), axis=1)
        return np.where(released[:, np.newaxis], found, nothing[:, np.newaxis])

    def _threshold(
        self,
        bridged: Bridged,
        active: Integers,
        held: tuple[Integers, Integers],
        ends: tuple[Integers, Integers],
        codes: Codes,
    ) -> Integers:
        """Where the thresholds stand of what is held out, by its state and the values there."""
        first, last = held[0][active], held[1][active]
        row, length, k = bridged.row[active], bridged.length[active], self.k
        lost = length - (last - first + 1)
        at = lost * (lost + 1) // 2 + first - 1
        for value in (
            ends[0][active],
            ends[1][active],
            codes[row + first - 1],
            codes[row + last - 1],
        ):
            at = at * k + value
        _, begins = self._packed
        return np.asarray(begins[length] + 2 * at)
