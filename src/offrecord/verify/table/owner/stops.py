"""Where walks may stop: at every level of a side, or with the key where their draws let them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from offrecord.verify.table.cells import Integers, Mask
from offrecord.verify.table.owner.drawn import Drawn, Ends
from offrecord.verify.table.owner.rule import FAR, Rule


@dataclass(frozen=True, eq=False)
class Stops:
    """Of the sides that clusters may take on one side, (c, o) each.

    last: the last level. alone: of a pair. levels: (sides, m + 1) the levels of all sides after a
    0; by_walk: (c, o, m + 1) instead, where draws rule some out, the largest that is left up to
    each. counts: (sides, distances) how many levels lie within a distance.
    """

    sides: Integers
    last: Integers
    alone: Mask
    levels: Integers
    counts: Integers
    by_walk: Integers | None

    def part(self, clusters: Integers) -> Stops:
        """Of some clusters."""
        by_walk = None if self.by_walk is None else self.by_walk[clusters]
        names = ("sides", "last", "alone")
        some = {name: getattr(self, name)[clusters] for name in names}
        return replace(self, **some, by_walk=by_walk)

    @cached_property
    def most(self) -> Integers:
        """(c, o) the farthest stop; FAR for a closed side."""
        found = self.levels[self.sides, -1] if self.by_walk is None else self.by_walk[:, :, -1]
        return np.where(self.last >= FAR, np.maximum(self.last, found), found)

    def within(self, limits: Integers, axis: int) -> Integers:
        """The farthest stops up to some limits, which have one more axis; 0 where there is none."""
        sides = np.broadcast_to(np.expand_dims(self.sides, axis), limits.shape)
        distance = np.clip(limits, 0, self.counts.shape[1] - 1)
        count = self.counts[sides, distance]
        if self.by_walk is None:
            return np.asarray(self.levels[sides, count])
        shape = (*limits.shape, self.by_walk.shape[2])
        by_walk = np.broadcast_to(np.expand_dims(self.by_walk, axis), shape)
        return np.take_along_axis(by_walk, count[..., None], axis=-1)[..., 0]


def stops_of(rule: Rule, drawn: Drawn | None, ends: Ends, both: tuple[Integers, Integers]) -> Stops:
    """Of clusters, to one side. both: (c, o) the numbers of what they may take to the left and to
    the right.
    """
    sides, levels, counts = both[ends.column], rule.levels(), rule.counts()
    by_walk = None
    if drawn is not None:
        by_walk = np.zeros((*sides.shape, levels.shape[1]), dtype=np.int64)
        for number in np.unique(sides[sides > 0]).tolist():
            clusters, column = np.nonzero(sides == number)
            possible = drawn.possible(number, ends.part(clusters))
            own = np.where(possible, levels[number, 1 : possible.shape[1] + 1], 0)
            by_walk[clusters, column, 1 : possible.shape[1] + 1] = own
        np.maximum.accumulate(by_walk, axis=2, out=by_walk)
    return Stops(sides, rule.last()[sides], rule.alone()[sides], levels, counts, by_walk)
