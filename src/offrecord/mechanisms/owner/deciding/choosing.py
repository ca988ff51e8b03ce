"""Choosing: which option each cluster takes, from positions alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from offrecord.mechanisms.blocks import Mask, Secrets
from offrecord.mechanisms.owner.deciding.clusters import LEFT, RIGHT, SIGNS, Clusters
from offrecord.mechanisms.owner.deciding.contraction import Contraction
from offrecord.mechanisms.owner.deciding.expecting import SideLaw, pair_laws, side_law
from offrecord.mechanisms.owner.deciding.meeting import Gap
from offrecord.mechanisms.owner.deciding.packed import PackedSides, Packing
from offrecord.mechanisms.owner.stopping import Stopping, StoppingPair, StoppingSide
from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats, Integers

#: Costs this near to each other are equal: rounding, which may differ from machine to machine, must
#: not decide.
_TIE = 1e-9
#: Left of ε where what is told through channels is computed in floats (O11).
_SLACK = 1e-9


class Option(NamedTuple):
    """The numbers of a left and a right side, and their budgets."""

    sides: tuple[int, int]
    budgets: tuple[float, float]


class PairOption(NamedTuple):
    """Both sides of a single record in turn.

    sides: their numbers, of the second that of all it may look at. first: the column of the first.
    seconds: the numbers of the second's sides, by label. reaches: to the left and the right.
    """

    sides: tuple[int, int]
    first: int
    seconds: Integers
    reaches: tuple[int, int]


class Choice(NamedTuple):
    """Of clusters: sides (c, 2), the numbers of what their walks may look at; pairs (c,) which pair
    they take, −1 for none; lacking: (c,) which ones found nothing that they are allowed.
    """

    sides: Integers
    pairs: Integers
    lacking: Mask


class Menu(NamedTuple):
    """What a cluster may choose from whose first and last secret have certain designs; last of all
    to redact everything on both sides.
    """

    epsilon: float
    options: tuple[Option, ...]
    pair: int | None


@dataclass(frozen=True, eq=False)
class Kit:
    """All sides there are, by number.

    menus: of each stopping. ways: None where steps differ from place to place. channels: None where
    clusters may spend no more than ε in all. laws, gaps: what is known so far.
    """

    packed: PackedSides
    sides: dict[int, StoppingSide]
    menus: tuple[Menu, ...]
    pairs: tuple[PairOption, ...]
    made_of: tuple[StoppingPair, ...]
    ways: tuple[Way, Way] | None
    channels: tuple[Contraction, Contraction] | None
    laws: dict[int, SideLaw] = field(default_factory=dict)
    gaps: dict[tuple[int, ...], Floats] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        stoppings: Sequence[Stopping],
        ways: tuple[Way, Way] | None,
        channels: tuple[Contraction, Contraction] | None,
    ) -> Kit:
        """From all that secrets need."""
        packing, menus = Packing(), []
        closed = [Option((number, number), (0.0, 0.0)) for number in _closed(stoppings, packing)]
        sides: dict[int, StoppingSide] = {}
        pairs: list[PairOption] = []
        made_of: list[StoppingPair] = []
        for stopping in stoppings:
            options = []
            for both in stopping.options:
                numbers = packing.side(both[LEFT]), packing.side(both[RIGHT])
                sides.update(zip(numbers, both, strict=True))
                options.append(Option(numbers, (both[LEFT].budget, both[RIGHT].budget)))
            pair = None
            if stopping.pair is not None and ways is not None:
                pair = len(pairs)
                pairs.append(_pair_option(stopping.pair, packing, sides))
                made_of.append(stopping.pair)
            menus.append(Menu(stopping.epsilon, (*options, *closed), pair))
        packed = packing.packed()
        return cls(packed, sides, tuple(menus), tuple(pairs), tuple(made_of), ways, channels)

    def menu(self, first: int, last: int) -> Menu:
        """What clusters choose from whose first and last secret have these stoppings."""
        if first == last:
            return self.menus[first]
        one, other = self.menus[first], self.menus[last]
        both = [
            Option((a.sides[LEFT], b.sides[RIGHT]), (a.budgets[LEFT], b.budgets[RIGHT]))
            for a in one.options
            for b in other.options
        ]
        return Menu(min(one.epsilon, other.epsilon), tuple(both), None)

    def law(self, number: int) -> SideLaw | None:
        """Of a side, by number; None of a closed one."""
        if not self.packed.counts[number]:
            return None
        if number not in self.laws:
            for made_of, pair in zip(self.made_of, self.pairs, strict=True):
                if number in pair.sides:
                    self._add_pair(made_of, pair)
            if number in self.sides:
                side = self.sides[number]
                self.laws[number] = side_law(side, self._way(side.direction))
        return self.laws[number]

    def gap(self, one: int, other: int, straight: int, faced: int, size: int) -> Floats:
        """(size + 1,) how likely each record of a gap leaves, by distance from its left.

        straight, faced: whether either walk goes straight to its deadline.
        """
        shape = one, other, straight, faced, size
        if shape not in self.gaps:
            sides = [
                _as_window(self.sides[number]) if is_straight else self.sides[number]
                for number, is_straight in ((one, straight), (other, faced))
            ]
            ways = None if self.ways is None else (self.ways[RIGHT], self.ways[LEFT])
            self.gaps[shape] = Gap(size, (sides[0], sides[1]), ways).released()
        return self.gaps[shape]

    def _add_pair(self, made_of: StoppingPair, pair: PairOption) -> None:
        """The laws of both sides of a pair."""
        assert self.ways is not None
        ways = self.ways[pair.first], self.ways[1 - pair.first]
        numbers = pair.sides[pair.first], pair.sides[1 - pair.first]
        self.laws.update(zip(numbers, pair_laws(made_of, *ways), strict=True))

    def _way(self, direction: int) -> Way | None:
        return None if self.ways is None else self.ways[SIGNS.index(direction)]


def _closed(stoppings: Sequence[Stopping], packing: Packing) -> Iterator[int]:
    """The number of a closed side, which every cluster may take that has its chain to itself."""
    for stopping in stoppings[:1]:
        side = stopping.options[0][LEFT]
        yield packing.side(StoppingSide(0, 0.0, side.levels[:0], side.limits[:, :0]))


def _as_window(side: StoppingSide) -> StoppingSide:
    """A side that only has its deadline."""
    law = None if side.law is None else side.law.sum(axis=0, keepdims=True)
    return StoppingSide(side.direction, side.budget, side.levels[-1:], side.limits[:, :0], law)


def second_sides(kit: Kit, pairs: Integers, labels: Integers) -> Integers:
    """(n,) the numbers of second sides, by pair and label."""
    most = max(len(pair.seconds) for pair in kit.pairs)
    table = np.zeros((len(kit.pairs), most), dtype=np.int64)
    for number, pair in enumerate(kit.pairs):
        table[number, : len(pair.seconds)] = pair.seconds
    return np.asarray(table[pairs, labels])


def _pair_option(
    pair: StoppingPair, packing: Packing, sides: dict[int, StoppingSide]
) -> PairOption:
    """A pair with its sides' numbers."""
    seconds = [packing.side(side) for side in pair.seconds]
    sides.update(zip(seconds, pair.seconds, strict=True))
    first, everything = packing.first_of(pair), packing.all_of(pair.seconds)
    column = SIGNS.index(pair.first)
    numbers = (first, everything) if column == LEFT else (everything, first)
    return PairOption(numbers, column, np.array(seconds, dtype=np.int64), pair.deadlines)


# ---- one choice for each cluster


def choose(kit: Kit, clusters: Clusters, secrets: Secrets, stoppings: Integers) -> Choice:
    """What each cluster takes. stoppings: (s,) which one each secret has."""
    first, last = stoppings[clusters.begin[:-1]], stoppings[clusters.begin[1:] - 1]
    sides = np.empty((clusters.count, 2), dtype=np.int64)
    pairs = np.full(clusters.count, -1, dtype=np.int64)
    costs = np.empty(clusters.count)
    for one, other, some in _by_stoppings(first, last):
        menu = kit.menu(one, other)
        option, costs[some] = _cheapest(kit, menu, clusters, secrets, some)
        numbers = np.array([option.sides for option in menu.options], dtype=np.int64)
        sides[some] = numbers[option]
        # who relies on its neighbours, and they on it, takes what serves everyone (O15)
        leaning = some[clusters.bridged[some].any(axis=1)]
        sides[leaning], costs[leaning] = numbers[0], 0.0
    for number, pair in enumerate(kit.pairs):
        taken = _takes_pair(kit, number, clusters, stoppings)
        taken &= _is_cheaper(kit, pair, clusters, costs)
        sides[taken], pairs[taken] = pair.sides, number
    return Choice(sides, pairs, np.isinf(costs) & (pairs < 0))


def _by_stoppings(first: Integers, last: Integers) -> Iterator[tuple[int, int, Integers]]:
    """Clusters by the stoppings of their first and last secret: these two, and which clusters."""
    both = np.stack((first, last), axis=1)
    if len(both) and np.all(both == both[0]):
        yield int(first[0]), int(last[0]), np.arange(len(both))
        return
    different, which = np.unique(both, axis=0, return_inverse=True)
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(len(different) + 1))
    for number, (one, other) in enumerate(different.tolist()):
        yield one, other, order[ends[number] : ends[number + 1]]


def _cheapest(
    kit: Kit, menu: Menu, clusters: Clusters, secrets: Secrets, some: Integers
) -> tuple[Integers, Floats]:
    """(n,) for some clusters the number of the option of least expected redactions among those that
    they are allowed, the first of equal ones, and its cost.
    """
    best = np.full(len(some), np.inf)
    number = np.zeros(len(some), dtype=np.int64)
    several = np.flatnonzero(clusters.sizes[some] > 1)
    for index, option in enumerate(menu.options):
        within = sum(option.budgets) <= menu.epsilon
        if not within and kit.channels is None:
            continue
        asked = np.arange(len(some)) if within else several
        cost = _cost(kit, option.sides, clusters, some[asked])
        better = np.flatnonzero(cost * (1.0 + _TIE) + _TIE < best[asked])
        if not within:
            keeps = _keeps(kit, menu, option, clusters, secrets, some[asked[better]])
            better = better[keeps]
        number[asked[better]], best[asked[better]] = index, cost[better]
    return number, best


def _cost(kit: Kit, sides: tuple[int, int], clusters: Clusters, some: Integers) -> Floats:
    """(n,) expected redactions beside some clusters; a closed side is for the chain's end alone."""
    cost = np.zeros(len(some))
    for column, number in enumerate(sides):
        gaps, faces = clusters.gaps[some, column], clusters.faces[some, column]
        law = kit.law(number)
        if law is None:
            cost += np.where(faces, np.inf, gaps)
        else:
            far = len(law.costs) - 1
            cost += law.costs[np.where(faces, far, np.minimum(gaps, far))]
    return cost


def _keeps(
    kit: Kit, menu: Menu, option: Option, clusters: Clusters, secrets: Secrets, some: Integers
) -> Mask:
    """(n,) whether each secret of some clusters keeps within ε though the budgets sum to more: it
    sees the outputs at the cluster's ends through what lies between (O11).
    """
    assert kit.channels is not None
    if not len(some):
        return np.empty(0, dtype=bool)
    sizes = clusters.sizes[some]
    heads = np.cumsum(sizes) - sizes
    inside = np.repeat(clusters.begin[some] - heads, sizes) + np.arange(int(sizes.sum()))
    ends = clusters.ends
    away = (
        secrets.first[inside] - np.repeat(ends.first[some], sizes),
        np.repeat(ends.last[some], sizes) - secrets.last[inside],
    )
    told = np.zeros(len(inside))
    for channel, budget, distance in zip(kit.channels, option.budgets, away, strict=True):
        told += channel.told(budget, distance)
    return np.asarray(np.logical_and.reduceat(told <= menu.epsilon - _SLACK, heads))


def _takes_pair(kit: Kit, number: int, clusters: Clusters, stoppings: Integers) -> Mask:
    """(c,) which clusters may take a pair: a single record that has it, so far from its neighbours
    that no walk of theirs looks at what its own look at (O10).
    """
    ends, reaches = clusters.ends, np.zeros((clusters.count, 2), dtype=np.int64)
    single = (clusters.sizes == 1) & (ends.first == ends.last)
    has = np.array([-1 if menu.pair is None else menu.pair for menu in kit.menus])[
        stoppings[clusters.begin[:-1]]
    ]
    for column in (LEFT, RIGHT):
        # how far the neighbours may reach, whatever they take themselves
        edge = clusters.begin[:-1] if column == LEFT else clusters.begin[1:] - 1
        base = np.array([kit.packed.deadlines[menu.options[0].sides[column]] for menu in kit.menus])
        reaches[:, column] = base[stoppings[edge]]
        for other, pair in enumerate(kit.pairs):
            most = np.maximum(reaches[:, column], pair.reaches[column])
            reaches[:, column] = np.where(single & (has == other), most, reaches[:, column])
    mine = np.array(kit.pairs[number].reaches)
    apart = clusters.gaps >= mine + clusters.facing(reaches) - 1
    return np.asarray(single & (has == number) & np.all(apart | ~clusters.faces, axis=1))


def _is_cheaper(kit: Kit, pair: PairOption, clusters: Clusters, costs: Floats) -> Mask:
    """(c,) whether a pair is expected to redact less than what else a cluster would take."""
    cost = _cost(kit, pair.sides, clusters, np.arange(clusters.count))
    return np.asarray(cost * (1.0 + _TIE) + _TIE < costs)
