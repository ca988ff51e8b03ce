"""How many records a policy is expected to release, by positions and the mean chain.

Exact for one side of a run; between two runs their stops count as independent, and of local rules
the nearest run's on each side alone. Sums are rounded once, so that they do not depend on the order
in which an engine meets the chains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from offrecord.mechanisms.deciding.layout import LEFT, RIGHT, Layout, PlaceOf, layout_of
from offrecord.mechanisms.deciding.rule_book import NO_SIDE, RuleBook
from offrecord.mechanisms.deciding.stopping import Clusters, clusters_of, joined
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Floats, Integers
from offrecord.models.members import Members
from offrecord.models.records import MISSING, Chains, Runs

_AT_ONCE = 2**23  # records between runs that are looked at at once: 64 MB an array
#: In place of the number of a side: nothing reaches in from there; a core, which goes whole.
_NONE, _CORE = -1, -2


@dataclass(frozen=True, eq=False, repr=False)
class Geometry:
    """The layout of a table's private runs.

    layout: of chains that have a private run. records: number of records with a value in all
    chains, those without a private run included.
    """

    layout: Layout
    records: int

    @classmethod
    def joined(cls, parts: Sequence[Geometry]) -> Geometry:
        """That of several batches of chains; at least one."""
        layouts, before = [], 0
        for part in parts:
            one = part.layout
            holes = one.holes + np.array([[before], [0], [0]])
            layouts.append(replace(one, chain=one.chain + before, holes=holes))
            before += len(one.ends)
        together = {
            field.name: np.concatenate([getattr(one, field.name) for one in layouts])
            for field in fields(Layout)
            if field.name not in ("order", "holes")
        }
        together["holes"] = np.concatenate([one.holes for one in layouts], axis=1)
        whole = Layout(layouts[0].order, **together)
        return cls(whole, sum(part.records for part in parts))


def geometry(chains: Chains, runs: Runs, order: int, place_of: PlaceOf) -> Geometry:
    """The geometry of a batch of whole chains, by positions alone; `Geometry.joined` adds up."""
    layout = layout_of(chains, runs, order, place_of)
    kept, chain = np.unique(layout.chain, return_inverse=True)
    # of chains without a private run nothing is kept: a stream may have very many
    of_holes = np.searchsorted(kept, layout.holes[0])
    there = np.isin(layout.holes[0], kept)
    holes = np.stack((of_holes, *layout.holes[1:]))[:, there]
    records = int(np.count_nonzero(chains.codes != MISSING))
    return Geometry(replace(layout, ends=layout.ends[kept], chain=chain, holes=holes), records)


def expected_released(geometry: Geometry, policy: TablePolicy, mean: Members) -> float:
    """Expected number of records with a value that leave."""
    layout = geometry.layout
    if not layout.count:
        return float(geometry.records)
    book = RuleBook.of_policy(policy, layout.order)
    if policy.is_local:
        clusters = joined(layout, book, np.arange(layout.count + 1))
        sides = _local_sides(book, mean, clusters)
    else:
        clusters = clusters_of(layout, book)
        sides = _stopping_sides(book, mean, clusters)
    return geometry.records - _redacted(geometry, clusters, sides)


class _Pieces(NamedTuple):
    """Cores, and the records between two of them or between one and its chain's end; (p,).

    first: the place of the first record. size: how many. left, right: numbers of the sides that
    reach into it from its left and from its right end, _NONE or _CORE.
    """

    chain: Integers
    first: Integers
    size: Integers
    left: Integers
    right: Integers

    def part(self, which: Integers) -> _Pieces:
        """Some of them, at times more than once."""
        return _Pieces(*(values[which] for values in self))


class _Sides(NamedTuple):
    """What sides redact, all different ones numbered.

    numbers: (c, 2) of the clusters' sides. reaches: (s + 1,) how far each reaches; the last is that
    of none. slack: two sides are independent where at least this many records lie between what they
    reach. alone: (s + 1, most + 1) expected redactions up to each distance of one side alone.
    between: probability that the record at a distance from the left end of a piece is redacted,
    where two sides reach into it.
    """

    numbers: Integers
    reaches: Integers
    slack: int
    alone: Floats
    between: Callable[[_Pieces, Integers], Floats]

    def cost(self, pieces: _Pieces, low: Integers, high: Integers) -> Floats:
        """(p,) expected redactions at the distances low … high from the left end of pieces."""
        left, right = np.maximum(pieces.left, _NONE), np.maximum(pieces.right, _NONE)
        reach, sizes = self.reaches[left] + self.reaches[right], high - low + 1
        near = (left >= 0) & (right >= 0) & (pieces.size < reach + self.slack)
        found = self._alone(left, low, high)
        found += self._alone(right, pieces.size + 1 - high, pieces.size + 1 - low)
        found = np.where(pieces.left == _CORE, sizes, found)
        found[near] = 0.0
        for some in _chunks(np.flatnonzero(near), sizes):
            which = np.repeat(some, sizes[some])
            begin = np.cumsum(sizes[some]) - sizes[some]
            distance = np.arange(len(which)) + np.repeat(low[some] - begin, sizes[some])
            chances = self.between(pieces.part(which), distance)
            found[some] = np.bincount(which, weights=chances, minlength=len(found))[some]
        return found

    # (p,) what one side redacts at the distances low … high from it.
    def _alone(self, sides: Integers, low: Integers, high: Integers) -> Floats:
        most = self.alone.shape[1] - 1
        ends = np.minimum(high, most), np.minimum(low - 1, most)
        return np.asarray(self.alone[sides, ends[0]] - self.alone[sides, ends[1]])


# `which` in parts of about _AT_ONCE records.
def _chunks(which: Integers, sizes: Integers) -> Iterator[Integers]:
    parts = np.cumsum(sizes[which]) // _AT_ONCE
    yield from np.split(which, np.flatnonzero(np.diff(parts)) + 1)


# Expected number of records with a value that are redacted: all of the pieces less their holes.
def _redacted(geometry: Geometry, clusters: Clusters, sides: _Sides) -> float:
    width = geometry.layout.width
    pieces = _pieces(clusters, sides.numbers)
    whole = sides.cost(pieces, np.ones_like(pieces.size), pieces.size)
    begin = pieces.chain * width + pieces.first
    which, low, high = _overlaps(begin, begin + pieces.size - 1, *geometry.layout.hole_keys)
    empty = sides.cost(pieces.part(which), low - begin[which] + 1, high - begin[which] + 1)
    return math.fsum(np.concatenate((whole, -empty)).tolist())


# The cores, the gaps to the left of all of them, and those between last cores and chains' ends.
def _pieces(clusters: Clusters, numbers: Integers) -> _Pieces:
    chain, faces, last = clusters.chain, clusters.faces, np.flatnonzero(~clusters.faces[:, RIGHT])
    gap = clusters.margins[:, LEFT]
    begin = clusters.first - np.minimum(gap, 0)  # cores of short runs may overlap
    before = np.where(faces[:, LEFT], np.roll(numbers[:, RIGHT], 1), _NONE)
    core, none = np.full(len(chain), _CORE), np.full(len(last), _NONE)
    size = clusters.last - begin + 1, gap, clusters.margins[last, RIGHT]
    found = _Pieces(
        np.concatenate((chain, chain, chain[last])),
        np.concatenate((begin, clusters.first - gap, clusters.last[last] + 1)),
        np.concatenate(size),
        np.concatenate((core, before, numbers[last, RIGHT])),
        np.concatenate((core, numbers[:, LEFT], none)),
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


# (c, 2) numbers of the different sides, _NONE for none, and (s, 4) what each is: the side, the
# rule, the place, whether it looks.
def _numbered(clusters: Clusters) -> tuple[Integers, Integers]:
    width, there = int(clusters.places.max(initial=0)) + 1, clusters.rules != NO_SIDE
    keys = (clusters.rules * width + clusters.places) * 2 + clusters.looks
    keys = keys * 2 + np.array([LEFT, RIGHT])
    different, inverse = np.unique(keys[there], return_inverse=True)
    numbers = np.full(keys.shape, _NONE)
    numbers[there] = inverse
    rest, side = np.divmod(different, 2)
    rest, sees = np.divmod(rest, 2)
    rule, place = np.divmod(rest, width)
    return numbers, np.stack((side, rule, place, sees), axis=1)


# Sides of rules that are not local.
def _stopping_sides(book: RuleBook, mean: Members, clusters: Clusters) -> _Sides:
    numbers, different = _numbered(clusters)
    order, reaches = clusters.order, np.append(book.reaches[different[:, 1]], 0)
    most = int(reaches.max()) + order
    stopped = np.zeros((len(reaches), most + 1))  # probability of a stop within each distance
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

    def between(pieces: _Pieces, distance: Integers) -> Floats:
        # both stops must leave what the other side may look at
        left, right, size = pieces.left, pieces.right, pieces.size
        by_left = np.minimum(distance + order - 1, size - reaches[right])
        by_right = np.minimum(size - distance + order, size - reaches[left])
        by_left, by_right = (np.clip(by, 0, most) for by in (by_left, by_right))
        return np.asarray(1.0 - stopped[left, by_left] * stopped[right, by_right])

    return _Sides(numbers, reaches, order, alone, between)


# Sides of local rules.
def _local_sides(book: RuleBook, mean: Members, clusters: Clusters) -> _Sides:
    numbers, different = _numbered(clusters)
    reaches = np.append(book.reaches[different[:, 1]], 0)
    most = int(reaches.max()) + 1
    shape = (len(reaches), most + 1, mean.k)
    chances, laws = np.zeros(shape), np.zeros(shape)  # by distance and value
    for number, (side, rule, place, _) in enumerate(different.tolist()):
        redaction = book.local[rule].redaction
        chances[number, 1 : len(redaction) + 1] = redaction
        laws[number] = _value_laws(mean, place, 1 if side == RIGHT else -1, most + 1)
    alone = np.cumsum((chances * laws).sum(axis=2), axis=1)

    def between(pieces: _Pieces, distance: Integers) -> Floats:
        left, right = pieces.left, pieces.right
        near, far = np.minimum(distance, most), np.minimum(pieces.size + 1 - distance, most)
        larger = np.maximum(chances[left, near], chances[right, far])  # which counts (F3)
        # what lies beyond both reaches is not redacted, whatever the law there
        within = (distance <= most)[:, np.newaxis]
        law = np.where(within, laws[left, near], laws[right, far])
        return np.asarray((larger * law).sum(axis=1))

    return _Sides(numbers, reaches, 0, alone, between)


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
