"""How many records a policy is expected to release, by positions and the mean chain.

Exact for one side of a run; between two runs their stops count as independent, and of local rules
the nearest run's on each side alone. Sums are rounded once, so that they do not depend on the order
in which an engine meets the chains.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from offrecord.mechanisms.deciding.geometry import Geometry
from offrecord.mechanisms.deciding.layout import LEFT, RIGHT, Mask, margins_of
from offrecord.mechanisms.deciding.rule_book import NO_SIDE, RuleBook
from offrecord.mechanisms.deciding.stopping import clusters_of
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Floats, Integers
from offrecord.models.members import Members

#: Records between runs that are looked at at once: 64 MB an array.
_AT_ONCE = 2**23


def expected_released(geometry: Geometry, policy: TablePolicy, mean: Members) -> float:
    """Expected number of records with a value that leave."""
    layout = geometry.layout
    if not layout.count:
        return float(geometry.records)
    book = RuleBook.of_policy(policy, layout.order)
    if not policy.is_local:
        found = clusters_of(layout, book)
        cores = _Cores(found.chain, found.first, found.last, found.margins, found.faces)
        sides: _Sides = _Stops.of(book, mean, found.rules, found.places, found.looks, layout.order)
    else:
        numbers = book.of(layout.kinds, layout.places)
        ends = layout.ends[layout.chain]
        where = layout.chain, layout.first, layout.last
        cores = _Cores(*where, *margins_of(*where, ends))
        sides = _Locals.of(book, mean, numbers, layout.places)
    return geometry.records - _redacted(geometry, cores, sides)


class _Cores(NamedTuple):
    """Where cores or clusters are; (c,), and (c, 2) for their two sides."""

    chain: Integers
    first: Integers
    last: Integers
    margins: Integers
    faces: Mask


class _Gaps(NamedTuple):
    """Records between two cores, or between a core and its chain's end; (g,).

    first: the place of the first. size: how many. sides: (g, 2) numbers of the sides that reach
    into it from its left and from its right end, -1 for none.
    """

    chain: Integers
    first: Integers
    size: Integers
    sides: Integers

    def part(self, which: Integers) -> _Gaps:
        """Some of them, at times more than once."""
        return _Gaps(*(values[which] for values in self))


class _Sides(ABC):
    """What sides redact, all different ones numbered.

    reaches: (s + 1,) how far each reaches; the last is that of none. slack: two sides are
    independent where at least this many records lie between what they reach. alone: (s + 1, most
    + 1) expected redactions up to each distance of one side alone.
    """

    numbers: Integers
    reaches: Integers
    slack: int
    alone: Floats

    @abstractmethod
    def between(self, gaps: _Gaps, distance: Integers) -> Floats:
        """Probability that the record at a distance from the left end of a gap is redacted, where
        two sides reach into it.
        """

    def cost(self, gaps: _Gaps, low: Integers, high: Integers) -> Floats:
        """(g,) expected redactions at the distances low … high from the left end of gaps."""
        reach = self.reaches[gaps.sides]
        near = np.all(gaps.sides >= 0, axis=1) & (gaps.size < reach.sum(axis=1) + self.slack)
        most = self.alone.shape[1] - 1
        found = np.zeros(len(low))
        ends = ((low - 1, high), (gaps.size - high, gaps.size + 1 - low))
        for side, (begin, end) in zip((LEFT, RIGHT), ends, strict=True):
            costs = self.alone[gaps.sides[:, side, np.newaxis], np.minimum((begin, end), most).T]
            found += costs[:, 1] - costs[:, 0]
        found[near] = 0.0
        for some in _chunks(np.flatnonzero(near), (high - low + 1)):
            which = np.repeat(some, (high - low + 1)[some])
            begin = np.cumsum((high - low + 1)[some]) - (high - low + 1)[some]
            distance = np.arange(len(which)) + np.repeat(low[some] - begin, (high - low + 1)[some])
            chances = self.between(gaps.part(which), distance)
            found[some] = np.bincount(which, weights=chances, minlength=len(found))[some]
        return found


# `which` in parts of about _AT_ONCE records.
def _chunks(which: Integers, sizes: Integers) -> Iterator[Integers]:
    parts = np.cumsum(sizes[which]) // _AT_ONCE
    yield from np.split(which, np.flatnonzero(np.diff(parts)) + 1)


def _redacted(geometry: Geometry, cores: _Cores, sides: _Sides) -> float:
    """Expected number of records with a value that are redacted."""
    copies, gaps = geometry.copies, _gaps(geometry, cores, sides)
    terms = [copies[gaps.chain] * sides.cost(gaps, np.ones_like(gaps.size), gaps.size)]
    # cores of short runs may overlap
    first = cores.first - np.minimum(cores.margins[:, LEFT], 0)
    terms.append(copies[cores.chain] * (cores.last - first + 1))
    width = int(geometry.layout.ends.max()) + 2
    hole_chain, hole_first, hole_last = geometry.layout.holes
    spans = hole_chain * width + hole_first, hole_chain * width + hole_last
    for chain, begin, end, within in (
        (cores.chain, first, cores.last, None),
        (gaps.chain, gaps.first, gaps.first + gaps.size - 1, gaps),
    ):
        piece, low, high = _overlaps(chain * width + begin, chain * width + end, *spans)
        if within is None:
            terms.append(-copies[chain[piece]] * (high - low + 1))
        else:
            offset = chain[piece] * width + begin[piece] - 1
            cost = sides.cost(gaps.part(piece), low - offset, high - offset)
            terms.append(-copies[chain[piece]] * cost)
    return math.fsum(np.concatenate(terms).tolist())


def _gaps(geometry: Geometry, cores: _Cores, sides: _Sides) -> _Gaps:
    """The gaps to the left of all cores, then those between the last cores and the chains' ends."""
    faces, last = cores.faces, np.flatnonzero(~cores.faces[:, RIGHT])
    size = cores.margins[:, LEFT]
    before = np.where(faces[:, LEFT], np.roll(sides.numbers[:, RIGHT], 1), -1)
    found = _Gaps(
        np.concatenate((cores.chain, cores.chain[last])),
        np.concatenate((cores.first - size, cores.last[last] + 1)),
        np.concatenate((size, cores.margins[last, RIGHT])),
        np.concatenate(
            (
                np.stack((before, sides.numbers[:, LEFT]), axis=1),
                np.stack((sides.numbers[last, RIGHT], np.full(len(last), -1)), axis=1),
            )
        ),
    )
    found = found.part(np.flatnonzero(found.size > 0))
    return found.part(np.lexsort((found.first, found.chain)))


# Where ranges first … last meet pieces begin … end, both sorted and disjoint: the number of the
# piece, and the first and last place of what they share.
def _overlaps(
    begin: Integers, end: Integers, first: Integers, last: Integers
) -> tuple[Integers, Integers, Integers]:
    one = np.searchsorted(end, first)
    counts = np.maximum(np.searchsorted(begin, last, side="right") - one, 0)
    hole = np.repeat(np.arange(len(first)), counts)
    piece = np.arange(len(hole)) + np.repeat(one - np.cumsum(counts) + counts, counts)
    return piece, np.maximum(begin[piece], first[hole]), np.minimum(end[piece], last[hole])


# (c, 2) numbers of the different sides, -1 for none, and (s, 4) what each is: the side, the rule,
# the place, whether it looks.
def _numbered(rules: Integers, places: Integers, looks: Mask) -> tuple[Integers, Integers]:
    width = int(places.max(initial=0)) + 1
    keys = ((rules * width + places) * 2 + looks) * 2 + np.array([LEFT, RIGHT])
    there = rules != NO_SIDE
    different, inverse = np.unique(keys[there], return_inverse=True)
    numbers = np.full(rules.shape, -1)
    numbers[there] = inverse
    rest, side = np.divmod(different, 2)
    rest, sees = np.divmod(rest, 2)
    rule, place = np.divmod(rest, width)
    return numbers, np.stack((side, rule, place, sees), axis=1)


@dataclass(frozen=True, eq=False)
class _Stops(_Sides):
    """Of rules that are not local.

    stopped: (s + 1, most + 1) probability of a stop within each distance.
    """

    numbers: Integers
    reaches: Integers
    slack: int
    alone: Floats
    stopped: Floats

    @classmethod
    def of(
        cls,
        book: RuleBook,
        mean: Members,
        rules: Integers,
        places: Integers,
        looks: Mask,
        order: int,
    ) -> _Stops:
        """From the rules of clusters (c, 2), the places where they start, and which look."""
        numbers, different = _numbered(rules, places, looks)
        reaches = np.append(book.reaches[different[:, 1]], 0)
        stopped = np.zeros((len(reaches), int(reaches.max()) + order + 1))
        for number, (side, rule, place, sees) in enumerate(different.tolist()):
            one = book.rules[rule]
            if sees:
                direction: Any = ("left", "right")[side]
                law = one.stop_law(mean, place, direction)[0]
                stopped[number, order : order + len(law)] = law
            else:
                stopped[number, order + one.reach] = 1.0
        stopped = np.minimum(np.cumsum(stopped, axis=1), 1.0)
        stopped[-1] = 1.0
        # the record at distance d goes unless the walk stops by d + m - 1
        alone = np.cumsum(1.0 - stopped[:, order:], axis=1)
        alone = np.concatenate((np.zeros((len(alone), 1)), alone), axis=1)
        return cls(numbers, reaches, order, alone, stopped)

    def between(self, gaps: _Gaps, distance: Integers) -> Floats:
        """See `_Sides`; both stops must leave what the other side may look at."""
        order, most = self.slack, self.stopped.shape[1] - 1
        left, right = gaps.sides.T
        reach = self.reaches[gaps.sides]
        ends = (
            np.minimum(distance + order - 1, gaps.size - reach[:, RIGHT]),
            np.minimum(gaps.size - distance + order, gaps.size - reach[:, LEFT]),
        )
        by_left, by_right = (np.clip(end, 0, most) for end in ends)
        return np.asarray(1.0 - self.stopped[left, by_left] * self.stopped[right, by_right])


@dataclass(frozen=True, eq=False)
class _Locals(_Sides):
    """Of local rules. chances: (s + 1, most + 1, k) Pr(redacted, value) by distance and value,
    divided by the law of the value, which is in laws: (s + 1, most + 1, k).
    """

    numbers: Integers
    reaches: Integers
    slack: int
    alone: Floats
    chances: Floats
    laws: Floats

    @classmethod
    def of(cls, book: RuleBook, mean: Members, rules: Integers, places: Integers) -> _Locals:
        """From the rules of cores (c, 2) and the places where they start."""
        numbers, different = _numbered(rules, places, np.zeros(rules.shape, dtype=bool))
        reaches = np.append(book.reaches[different[:, 1]], 0)
        shape = (len(reaches), int(reaches.max()) + 2, mean.k)
        chances, laws = np.zeros(shape), np.zeros(shape)
        for number, (side, rule, place, _) in enumerate(different.tolist()):
            redaction = book.local[rule].redaction
            chances[number, 1 : len(redaction) + 1] = redaction
            sign = 1 if side == RIGHT else -1
            laws[number] = _value_laws(mean, place, sign, shape[1])
        alone = np.cumsum((chances * laws).sum(axis=2), axis=1)
        return cls(numbers, reaches, 0, alone, chances, laws)

    def between(self, gaps: _Gaps, distance: Integers) -> Floats:
        """See `_Sides`; the larger probability counts (F3)."""
        left, right = gaps.sides.T
        most = self.chances.shape[1] - 1
        near, far = np.minimum(distance, most), np.minimum(gaps.size + 1 - distance, most)
        larger = np.maximum(self.chances[left, near], self.chances[right, far])
        # what lies beyond both reaches is not redacted, whatever the law there
        laws = np.where(
            (distance <= most)[:, np.newaxis], self.laws[left, near], self.laws[right, far]
        )
        return np.asarray((larger * laws).sum(axis=1))


# (count, k) law of the value at each distance from a place; the last known one beyond the chain.
def _value_laws(mean: Members, place: int, sign: int, count: int) -> Floats:
    margin = mean.margin(place)[0 if sign < 0 else 1]
    steps = np.minimum(np.arange(count), count if margin is None else margin)
    if mean.places is None:
        return np.broadcast_to(_value_law(mean, 0), (count, mean.k))
    return np.array([_value_law(mean, mean.place_after(place, sign * d)) for d in steps.tolist()])


# (k,) law of the value at a place.
def _value_law(mean: Members, place: int) -> Floats:
    known = place
    if mean.places is not None and not mean.places.cyclic:
        known = max(place, mean.order - 1)  # before, there is no whole context
    digits = np.arange(mean.contexts) // mean.k ** (known - place) % mean.k
    found = np.bincount(digits, weights=mean.law(known)[0], minlength=mean.k)
    return found.astype(np.float64)
