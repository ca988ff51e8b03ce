"""Completion: values drawn for missing records that walks look at (O9).

A walk must not skip a record that is missing, nor stop being a walk of the model's chain. So the
value that it looks at is drawn from the model's law given the nearest records that have one: of a
stretch from left to right, each given the one before it and the first record after the stretch;
before a chain's first value from right to left. Draws are keyed by the missing place, so both walks
of a gap see the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from offrecord.mechanisms.blocks import Draw, Mask
from offrecord.mechanisms.owner.deciding.ground import Ground, Stretch
from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats, Integers

#: What these draws are for. The counter says where from the row that is named the place lies.
PURPOSE = b"offrecord/absent"
_BEFORE_FIRST = 2**47  # counters of places before a chain's first row
#: Units in the last place that the values drawn in one stretch may be off by, all together: a fifth
#: of what half of the margin of a budget covers.
_UNITS = 400_000


class Places(NamedTuple):
    """(n,) chains and places there, each once, sorted."""

    chain: Integers
    place: Integers

    @classmethod
    def of(cls, chain: Integers, place: Integers) -> Places:
        """Sorted, each once."""
        low = int(place.min(initial=0))
        width = int(place.max(initial=0)) - low + 1
        key = np.unique(chain * width + (place - low))
        return cls(key // width, key % width + low)


@dataclass(frozen=True, eq=False)
class Completion:
    """Values (n,) that were drawn for places; negative where none could be."""

    places: Places
    values: Integers

    def at(self, chain: Integers, place: Integers) -> Integers:
        """(m,) the values drawn for some places; negative where none was."""
        if not len(self.values):
            return np.full(len(chain), -1, dtype=np.int64)
        low, high = int(self.places.place.min()), int(self.places.place.max())
        width = high - low + 3
        keys = self.places.chain * width + (self.places.place - low + 1)
        asked = chain * width + np.clip(place - low + 1, 0, width - 1)
        found = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        return np.where(keys[found] == asked, self.values[found], -1)


def nothing() -> Completion:
    """No value was drawn."""
    none = np.empty(0, dtype=np.int64)
    return Completion(Places(none, none), none)


def joined(parts: Sequence[Completion]) -> Completion:
    """Several completions, of different places, as one."""
    chain = np.concatenate([np.empty(0, dtype=np.int64), *(one.places.chain for one in parts)])
    place = np.concatenate([np.empty(0, dtype=np.int64), *(one.places.place for one in parts)])
    values = np.concatenate([np.empty(0, dtype=np.int64), *(one.values for one in parts)])
    order = np.lexsort((place, chain))
    return Completion(Places(chain[order], place[order]), values[order])


def completed(ground: Ground, places: Places, ways: tuple[Way, Way], draw: Draw) -> Completion:
    """Values of places without one, by the model's law given all values around them.

    ways: to the left and to the right. None is drawn where a private record is missing in the same
    stretch: what is drawn would depend on records beyond it.
    """
    around = ground.stretch(*places)
    values = np.full(len(places.chain), -1, dtype=np.int64)
    drawable = (around.has_before | around.has_after) & ~ground.holds_secret(places.chain, around)
    drawable &= _is_exact_enough(ground, places, around, ways[0].k)
    for index, previous in _in_turn(places, around, np.flatnonzero(drawable)):
        laws = _laws(ground, places, around, ways, index, previous, values)
        some = Places(places.chain[index], places.place[index])
        values[index] = picked(laws, uniform(ground, some, draw))
    return Completion(places, values)


def _is_exact_enough(ground: Ground, places: Places, around: Stretch, k: int) -> Mask:
    """(n,) whether values of the same stretch can be drawn so exactly that the margin of every
    budget covers it: powers of a kernel lose some units with every step (docs/proofs/O-referee.md).
    """
    chain, low, high = places.chain, around.before, around.after
    first = np.where(around.has_before, ground.place_of(chain, np.maximum(low, 0)), places.place)
    inside = np.minimum(high, len(ground.block.chains.codes) - 1)
    last = np.where(around.has_after, ground.place_of(chain, inside), places.place)
    steps = np.abs(last - first)
    stretch = np.cumsum(np.concatenate(([True], (chain[1:] != chain[:-1]) | (low[1:] != low[:-1]))))
    drawn = np.bincount(stretch)[stretch]
    return np.asarray(drawn * (2 * (k + 1) * (steps + 2) + k * k) <= _UNITS)


def beyond_ends(ground: Ground, places: Places) -> Places:
    """Those places that lie beyond the end of a chain whose record at that end has a value."""
    last = ground.last_place(places.chain)
    outside = (places.place < 0) | (places.place > last)
    valued = ground.value_at(places.chain, np.clip(places.place, 0, last)) >= 0
    return Places(*(column[outside & valued] for column in places))


def _in_turn(
    places: Places, around: Stretch, drawable: Integers
) -> Iterator[tuple[Integers, Integers]]:
    """Which places to draw, one of each stretch at a time, and the one drawn before each, or −1."""
    chain, before = places.chain[drawable], around.before[drawable]
    back = ~around.has_before[drawable]  # right to left
    other = (chain[1:] != chain[:-1]) | (before[1:] != before[:-1])
    head = np.flatnonzero(np.concatenate(([True], other)))[: len(drawable)]
    size = np.diff(np.append(head, len(drawable)))
    rank = np.arange(len(drawable)) - np.repeat(head, size)
    rank = np.where(back, np.repeat(size, size) - 1 - rank, rank)
    by_rank = np.argsort(rank, kind="stable")
    ends = np.searchsorted(rank[by_rank], np.arange(int(size.max(initial=0)) + 1))
    for turn in range(len(ends) - 1):
        now = by_rank[ends[turn] : ends[turn + 1]]
        index = drawable[now]
        yield index, np.where(turn > 0, index + np.where(back[now], 1, -1), -1)


def _laws(
    ground: Ground,
    places: Places,
    around: Stretch,
    ways: tuple[Way, Way],
    index: Integers,
    previous: Integers,
    values: Integers,
) -> Floats:
    """(n, k) how likely each value is, up to a factor, given the value drawn or seen before it and,
    from left to right, the first value after the stretch.
    """
    chain, place = places.chain[index], places.place[index]
    before, after = around.before[index], around.after[index]
    back, closed = ~around.has_before[index], around.has_before[index] & around.has_after[index]
    codes, begun = ground.block.chains.codes, previous >= 0
    row = np.where(back, after, before)
    beside = np.where(begun, places.place[previous], ground.place_of(chain, row))
    value = np.where(begun, values[previous], codes[row])
    laws = np.empty((len(index), ways[0].k))
    for way, some in zip(ways, (np.flatnonzero(back), np.flatnonzero(~back)), strict=True):
        hops, which = _hops(way, np.abs(place - beside)[some])
        laws[some] = hops[which, value[some]]
    some = np.flatnonzero(closed)
    hops, which = _hops(ways[1], ground.place_of(chain[some], after[some]) - place[some])
    laws[some] *= hops[which, :, codes[after[some]]]
    return laws


def _hops(way: Way, distances: Integers) -> tuple[Floats, Integers]:
    """(d, k, k) kernels of different distances, and (n,) which of them each one's is."""
    different, which = np.unique(distances, return_inverse=True)
    hops = [way.across(0, int(steps)) for steps in different]
    return np.array(hops).reshape(-1, way.k, way.k), which


# ---- draws


def uniform(ground: Ground, places: Places, draw: Draw) -> Floats:
    """(n,) numbers from 0 to 1 of 128 bits, as exact near 0 as a float is."""
    chains = ground.block.chains
    first = chains.starts[places.chain]
    row = ground.row_before(places.chain, places.place)
    named = np.maximum(row, first)
    away = places.place - ground.place_of(places.chain, named)
    counter = np.where(row >= first, 2 * away, _BEFORE_FIRST - 2 * away)
    order = chains.order[named]
    words = [draw(places.chain, order, PURPOSE, counter + second) for second in (0, 1)]
    high, low = (word.astype(np.float64) for word in words)
    return np.asarray(np.ldexp(high, -64) + np.ldexp(low + 0.5, -128))


def picked(laws: Floats, numbers: Floats) -> Integers:
    """(n,) the value in whose stretch of the cumulated probabilities a number lies.

    laws: (n, k) up to a factor. The least likely values come first, so that each of them has its
    probability to within a few units in the last place.
    """
    order = np.argsort(laws, axis=1, kind="stable")
    cumulated = np.take_along_axis(laws, order, axis=1).cumsum(axis=1)
    # a table that the model holds impossible: any value will do
    total = cumulated[:, -1:]
    place = (cumulated[:, :-1] <= numbers[:, np.newaxis] * total).sum(axis=1)
    return np.take_along_axis(order, place[:, np.newaxis], axis=1)[:, 0]
