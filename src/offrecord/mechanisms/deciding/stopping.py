"""Deciding by stopping rules: near runs join, walks stop, and what two walks share goes.

The table rules of the proof page on stopping rules in tables. Clusters, and which sides cannot
look, follow from the layout; values are read by walks alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.deciding.layout import LEFT, RIGHT, Draw, Layout, Mask, kinds_of
from offrecord.mechanisms.deciding.rule_book import NO_SIDE, RuleBook
from offrecord.mechanisms.rules import StoppingRule
from offrecord.models.base import Integers
from offrecord.models.records import Chains
from offrecord.release.coins import ALWAYS, Draws, thresholds

#: What the draws of walks are for.
STOPS = b"offrecord/stops"
#: Counters of draws: a side's number times this, plus the number of the level.
SIDE = 2**20


@dataclass(frozen=True, eq=False, repr=False)
class Clusters:
    """Cores that joined, and their two sides; (c,) each, or (c, 2) for the sides.

    begin: (c + 1,) number of the first core of each, and how many cores there are. chain, first,
    last: where it is. rules: numbers of the rules, NO_SIDE where the chain ends at the cluster.
    deadlines: L of each side, m where there is none. rooms: records, absent ones included, up to
    the next cluster or the chain's end. faces: whether a cluster is what comes next. looks: whether
    a side can look at all that its rule asks for; one that cannot goes straight to its deadline.
    """

    begin: Integers
    chain: Integers
    first: Integers
    last: Integers
    rules: Integers
    deadlines: Integers
    rooms: Integers
    faces: Mask
    looks: Mask

    @property
    def count(self) -> int:
        """Number of clusters."""
        return len(self.chain)


class Coin(Protocol):
    """Whether walks stop."""

    def __call__(
        self,
        limits: Draws,
        chain: Integers,
        order: NDArray[np.integer],
        counter: Integers,
    ) -> Mask:
        """(a,) for walks that stop with the probabilities `limits` times 2**-64, surely at ALWAYS;
        each with the order value of its cluster's first private record.
        """


@dataclass(frozen=True)
class KeyedCoin:
    """The coin that acts: draws below the limit stop."""

    draw: Draw

    def __call__(
        self, limits: Draws, chain: Integers, order: NDArray[np.integer], counter: Integers
    ) -> Mask:
        """See `Coin`; draws only where neither outcome is certain."""
        stops = limits == ALWAYS
        unsure = np.flatnonzero((limits > 0) & ~stops)
        if len(unsure):
            drawn = self.draw(chain[unsure], order[unsure], STOPS, counter[unsure])
            stops[unsure] = drawn < limits[unsure]
        return stops


# ---- clusters, by positions


def clusters_of(layout: Layout, book: RuleBook[StoppingRule]) -> Clusters:
    """The clusters of a layout: two neighbours are one if fewer records lie between them than the
    longer of the two deadlines that face each other; again, until nothing changes.
    """
    begin = np.arange(layout.count + 1)
    while True:
        found = _joined(layout, book, begin)
        gap = found.rooms[:-1, RIGHT]
        longer = np.maximum(found.deadlines[:-1, RIGHT], found.deadlines[1:, LEFT])
        apart = ~(found.faces[:-1, RIGHT] & (gap < longer))
        if apart.all():
            return found
        begin = begin[np.concatenate(([True], apart, [True]))]


def _joined(layout: Layout, book: RuleBook[StoppingRule], begin: Integers) -> Clusters:
    """Clusters of the cores begin[i] … begin[i + 1] − 1."""
    head, tail = begin[:-1], begin[1:] - 1
    chain, first, last = layout.chain[head], layout.first[head], layout.last[tail]
    end = layout.ends[chain]
    kinds = kinds_of(first == 0, last == end, layout.single[head] & (head == tail))
    places = np.stack((layout.places[head, LEFT], layout.places[tail, RIGHT]), axis=1)
    rules = book.of(kinds, places)
    deadlines = np.where(rules == NO_SIDE, 0, book.reaches[rules]) + layout.order
    rooms = np.stack((first, end - last), axis=1)
    faces = np.zeros(rooms.shape, dtype=bool)
    faces[1:, LEFT] = faces[:-1, RIGHT] = chain[1:] == chain[:-1]
    between = first[1:] - last[:-1] - 1
    rooms[1:, LEFT] = np.where(faces[1:, LEFT], between, rooms[1:, LEFT])
    rooms[:-1, RIGHT] = np.where(faces[:-1, RIGHT], between, rooms[:-1, RIGHT])
    looks = np.zeros(rooms.shape, dtype=bool)
    found = Clusters(begin, chain, first, last, rules, deadlines, rooms, faces, looks)
    return found


def with_sight(layout: Layout, book: RuleBook[StoppingRule], clusters: Clusters) -> Clusters:
    """The clusters with `looks`: a side looks if its rule asks for anything, the deadline is within
    its room, and no record of the core's context, of a level's or of the deadline's is missing.
    """
    raise NotImplementedError
