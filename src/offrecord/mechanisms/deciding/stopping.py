"""Deciding by rules that are not local: near runs join, walks stop, what two walks share goes.

A walk is one side of a cluster; its rule decides how many records it redacts. These are the table
rules of the proof page on stopping rules in tables. Clusters, and which sides cannot look, follow
from the layout; values are read by walks alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.deciding.layout import (
    LEFT,
    RIGHT,
    Draw,
    Layout,
    Mask,
    filled,
    groups,
    kinds_of,
    rows_between,
)
from offrecord.mechanisms.deciding.rule_book import NO_SIDE, RuleBook
from offrecord.models.base import Integers
from offrecord.models.records import Chains
from offrecord.release.coins import ALWAYS, Draws

#: What the draws of walks are for.
STOPS = b"offrecord/stops"
#: Counters of draws: a side's number times this, plus the number of the level.
SIDE = 2**20


@dataclass(frozen=True, eq=False, repr=False)
class Clusters:
    """Cores that joined, and their two sides; (c,) each, or (c, 2) for the sides.

    order: m. begin: (c + 1,) number of the first core of each, and how many cores there are. chain,
    first, last: where it is. places: those of the last records of its start contexts. rules:
    numbers of the rules, NO_SIDE where the chain ends at the cluster. deadlines: reach + m of each
    side, m where there is none. margins: records up to the next cluster or the chain's end, absent
    ones too. faces: whether a cluster is what comes next. looks: whether a side sees all that its
    rule asks for; one that cannot goes straight to its deadline.
    """

    order: int
    begin: Integers
    chain: Integers
    first: Integers
    last: Integers
    places: Integers
    rules: Integers
    deadlines: Integers
    margins: Integers
    faces: Mask
    looks: Mask

    @property
    def count(self) -> int:
        """Number of clusters."""
        return len(self.chain)

    def edges(self, side: int) -> Integers:
        """(c,) the outermost places on a side."""
        return self.first if side == LEFT else self.last


#: Whether walks stop, given (a,) each: probabilities as limits times 2**-64, surely at ALWAYS; the
#: chain; the order value of the cluster's first private record; the counter of the draw.
Coin: TypeAlias = Callable[[Draws, Integers, NDArray[np.integer], Integers], Mask]


def keyed(draw: Draw) -> Coin:
    """The coin that acts: draws below the limit stop."""

    def coin(limits: Draws, chain: Integers, order: NDArray[np.integer], counter: Integers) -> Mask:
        stops = limits == ALWAYS
        unsure = np.flatnonzero((limits > 0) & ~stops)  # the others need no draw
        if len(unsure):
            drawn = draw(chain[unsure], order[unsure], STOPS, counter[unsure])
            stops[unsure] = drawn < limits[unsure]
        return np.asarray(stops)

    return coin


# ---- clusters, by positions


def clusters_of(layout: Layout, book: RuleBook) -> Clusters:
    """The clusters of a layout: two neighbours are one if fewer records lie between them than the
    longer of the two deadlines that face each other; again, until nothing changes.
    """
    begin = np.arange(layout.count + 1)
    while True:
        found = joined(layout, book, begin)
        gap = found.margins[:-1, RIGHT]
        # rule 1 of docs/proofs/several-runs.md
        longer = np.maximum(found.deadlines[:-1, RIGHT], found.deadlines[1:, LEFT])
        apart = ~(found.faces[:-1, RIGHT] & (gap < longer))
        if apart.all():
            looks = [_sees(layout, book, found, side) for side in (LEFT, RIGHT)]
            return replace(found, looks=np.stack(looks, axis=1))
        begin = begin[np.concatenate(([True], apart, [True]))]


def joined(layout: Layout, book: RuleBook, begin: Integers) -> Clusters:
    """Clusters of the cores begin[i] … begin[i + 1] − 1; no side looks yet."""
    head, tail = begin[:-1], begin[1:] - 1
    chain, first, last = layout.chain[head], layout.first[head], layout.last[tail]
    end = layout.ends[chain]
    kinds = kinds_of(first == 0, last == end, layout.single[head] & (head == tail))
    places = np.stack((layout.places[head, LEFT], layout.places[tail, RIGHT]), axis=1)
    rules = book.of(kinds, places)
    deadlines = np.where(rules == NO_SIDE, 0, book.reaches[rules]) + layout.order
    margins, faces = _margins(chain, first, last, end)
    looks = np.zeros(margins.shape, dtype=bool)
    where = layout.order, begin, chain, first, last, places
    return Clusters(*where, rules, deadlines, margins, faces, looks)


# (c, 2) margins of clusters, negative where they overlap, and whether a cluster is what comes next.
def _margins(
    chain: Integers, first: Integers, last: Integers, end: Integers
) -> tuple[Integers, Mask]:
    margins = np.stack((first, end - last), axis=1)
    faces = np.zeros(margins.shape, dtype=bool)
    faces[1:, LEFT] = faces[:-1, RIGHT] = chain[1:] == chain[:-1]
    between = first[1:] - last[:-1] - 1
    margins[1:, LEFT] = np.where(faces[1:, LEFT], between, margins[1:, LEFT])
    margins[:-1, RIGHT] = np.where(faces[:-1, RIGHT], between, margins[:-1, RIGHT])
    return margins, faces


# (c,) whether a side looks: its rule asks for anything, the deadline is within its margin, and no
# record of the core's context, of a level's or of the deadline's is missing. Which of the levels a
# walk would reach does not count: that would depend on values.
def _sees(layout: Layout, book: RuleBook, clusters: Clusters, side: int) -> Mask:
    edge, sees = clusters.edges(side), np.zeros(clusters.count, dtype=bool)
    for number, some in groups(clusters.rules[:, side]):
        rule = book.rules[number]
        # a window asks for nothing; its deadline is all it does
        if rule.is_window:
            continue
        deadline = rule.reach + layout.order
        able = some[clusters.margins[some, side] >= deadline]
        sees[able] = True
        # most walks have no hole anywhere from the start context to the deadline
        whole = deadline + layout.order
        near = able[_misses(layout, clusters.chain[able], edge[able], side, deadline, whole)]
        for level in {0, *rule.observed.tolist(), deadline}:
            blind = _misses(layout, clusters.chain[near], edge[near], side, level, layout.order)
            sees[near[blind]] = False
    return sees


# Whether any of the last so many records out to a level is missing.
def _misses(
    layout: Layout, chain: Integers, edge: Integers, side: int, level: int, records: int
) -> Mask:
    near = level - records + 1
    if side == RIGHT:
        return layout.misses(chain, edge + near, edge + level)
    return layout.misses(chain, edge - level, edge - near)


# ---- walks, by values


def stops_of(
    chains: Chains, orders: NDArray[np.integer], book: RuleBook, clusters: Clusters, coin: Coin
) -> Integers:
    """(c, 2) the distance at which each side stops, whatever its neighbours do.

    orders: (r,) the order value of each run's first record.
    """
    stops, first = clusters.deadlines.copy(), orders[clusters.begin[:-1]]
    for side in (LEFT, RIGHT):
        edge, looking = clusters.edges(side), np.flatnonzero(clusters.looks[:, side])
        for number, some in groups(clusters.rules[looking, side]):
            which, rule = looking[some], book.rules[number]
            where = clusters.chain[which], edge[which], first[which]
            walks = Walks(chains, rule.k, clusters.order, side, *where, coin)
            stops[which, side] = rule.redacted(walks) + clusters.order
    return stops


@dataclass(frozen=True, eq=False)
class Walks:
    """Sides of one direction that one rule decides together, numbered from 0; all can look.

    edge: (w,) the cores' outermost places. first: (w,) the order value of each one's first private
    record, which names its coins.
    """

    chains: Chains
    k: int
    order: int
    side: int
    chain: Integers
    edge: Integers
    first: NDArray[np.integer]
    act: Coin

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.chain)

    def coin(self, walks: Integers, limits: Draws, number: int) -> Mask:
        """(w,) outcomes of the coin of this number, true with probability limits times 2**-64."""
        counter = np.full(len(walks), self.side * SIDE + number)
        return self.act(limits, self.chain[walks], self.first[walks], counter)

    def contexts(self, walks: Integers, distance: int) -> Integers:
        """(w,) numbers of the contexts at a distance, in the order of time; 0 is the start context.
        A value that the model does not know stands for the first one.
        """
        place = self.edge[walks]
        place = place + distance - self.order + 1 if self.side == RIGHT else place - distance
        row = rows_between(self.chains, self.chain[walks], place, place)[0]
        found = np.zeros(len(walks), dtype=np.int64)
        for i in range(self.order):
            found = found * self.k + np.maximum(self.chains.codes[row + i], 0)
        return found


# ---- what goes


def covered(chains: Chains, clusters: Clusters, stops: Integers) -> Mask:
    """(n,) which records are redacted, given where each side stops.

    Two walks that face each other keep what lies between them only if neither stops where the other
    may have looked; else all of it goes, which either could have seen from its own side.
    """
    order = clusters.order
    beyond = np.minimum(stops - order, clusters.margins)
    gap, facing = clusters.margins[:-1, RIGHT], clusters.faces[:-1, RIGHT]
    # rule 2: beyond these stops neither walk has looked at what the other leaves
    kept = stops[:-1, RIGHT] <= gap + order - clusters.deadlines[1:, LEFT]
    kept &= stops[1:, LEFT] <= gap + order - clusters.deadlines[:-1, RIGHT]
    beyond[:-1, RIGHT] = np.where(facing & ~kept, gap, beyond[:-1, RIGHT])
    span = clusters.first - beyond[:, LEFT], clusters.last + beyond[:, RIGHT]
    return filled(len(chains.codes), *rows_between(chains, clusters.chain, *span))


def least_stops(book: RuleBook, clusters: Clusters) -> Integers:
    """(c, 2) the nearest distance at which a side may stop, whatever it sees."""
    nearest = [rule.least + clusters.order for rule in book.rules]
    least = np.array([*nearest, 0])[clusters.rules]
    return np.where(clusters.looks, least, clusters.deadlines)
