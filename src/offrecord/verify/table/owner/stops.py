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


def stops_of(
    rule: Rule, drawn: Drawn | None, ends: Ends, both: tuple[Integers, Integers]
) -> tuple[Stops, Stops]:
    """Of clusters, to the left and to the right. ends: their left ones. both: (c, o) the numbers of
    what they may take to each side.
    """
    levels, counts = rule.levels(), rule.counts()
    by_walk = (None, None) if drawn is None else _walked(drawn, ends, both, levels)
    left, right = (
        Stops(sides, rule.last()[sides], rule.alone()[sides], levels, counts, walked)
        for sides, walked in zip(both, by_walk, strict=True)
    )
    return left, right


def _walked(
    drawn: Drawn, left: Ends, both: tuple[Integers, Integers], levels: Integers
) -> tuple[Integers, Integers]:
    """(c, o, m + 1) to each side, the farthest level up to each that draws leave."""
    ends = left, left.turned()
    sides = drawn.rule.sides
    numbers = [np.unique(one[one > 0]).tolist() for one in both]
    counts = (max(map(drawn.count, some), default=0) for some in numbers)
    draws = [drawn.draws(one, count) for one, count in zip(ends, counts, strict=True)]
    found = [np.zeros((*one.shape, levels.shape[1]), dtype=np.int64) for one in both]

    def put(column: int, number: int, at: tuple[Integers, Integers], possible: Mask) -> None:
        own = slice(1, possible.shape[1] + 1)
        found[column][at[0], at[1], own] = np.where(possible, levels[number, own], 0)

    for column, some in enumerate(numbers):
        for number in some:
            if sides[number].is_second:
                continue  # with the one that goes first
            clusters, option = np.nonzero(both[column] == number)
            at = clusters, option
            mine, own = ends[column].part(clusters), draws[column][clusters]
            if not sides[number].alone:
                put(column, number, at, drawn.possible(number, mine, own))
                continue
            first, second = drawn.in_turn(number, mine, (own, draws[1 - column][clusters]))
            put(column, number, at, first)
            put(1 - column, int(both[1 - column][clusters[0], option[0]]), at, second)
    for one in found:
        np.maximum.accumulate(one, axis=2, out=one)
    return found[0], found[1]
