"""Sight: what walks look at, first as places, which tell nothing, then as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.blocks import Mask
from offrecord.mechanisms.owner.deciding.clusters import LEFT, SIGNS, Clusters
from offrecord.mechanisms.owner.deciding.completion import Completion, Places
from offrecord.mechanisms.owner.deciding.ground import Ground
from offrecord.mechanisms.owner.deciding.packed import PackedSides
from offrecord.models.base import Integers
from offrecord.models.records import Codes


@dataclass(frozen=True, eq=False)
class Outlook:
    """Where walks to one side look, from positions alone; (w,) for each walk.

    column: LEFT or RIGHT. cluster: whose walk it is. chain, place, row: of the record at its end,
    which need not be there. room: records on that side, up to the next cluster or the chain's end.
    sides: by number, all of a second side's that a label may choose. endless: it goes on beyond the
    chain's end. apart: (a,) the walks that meet something missing, or look beyond the chain's end
    more than once; levels: (a, most) the distances they look at, 0 for none.
    """

    column: int
    cluster: Integers
    chain: Integers
    place: Integers
    row: Integers
    room: Integers
    sides: Integers
    endless: Mask
    apart: Integers
    levels: Integers

    @property
    def sign(self) -> int:
        """−1 to the left, 1 to the right."""
        return SIGNS[self.column]

    def looks(self, packed: PackedSides) -> Mask:
        """(w,) whether a walk looks at anything: one that only has a deadline does not, unless what
        it finds there is a label for the other side.
        """
        return (packed.counts[self.sides] > 1) | self.endless

    def misses(self, ground: Ground) -> Mask:
        """(w,) which walks look at a record before the chain's end that has no value."""
        near = np.where(self.levels <= self.room[self.apart, np.newaxis], self.levels, 0)
        chain = np.repeat(self.chain[self.apart], near.shape[1])
        place = (self.place[self.apart, np.newaxis] + self.sign * near).ravel()
        absent = (near.ravel() > 0) & (ground.value_at(chain, place) < 0)
        found = np.zeros(len(self.chain), dtype=bool)
        found[self.apart] = absent.reshape(near.shape).any(axis=1)
        return found

    def places(self, ground: Ground, packed: PackedSides) -> tuple[Integers, Integers]:
        """Chains and places that these walks look at and that have no value, some twice."""
        chain = np.repeat(self.chain[self.apart], self.levels.shape[1])
        place = (self.place[self.apart, np.newaxis] + self.sign * self.levels).ravel()
        used = self.levels.ravel() > 0
        chain, place = chain[used], place[used]
        absent = ground.value_at(chain, place) < 0
        far = self.beyond(packed)
        beyond = self.place[far] + self.sign * packed.deadlines[self.sides[far]]
        return (
            np.concatenate((chain[absent], self.chain[far])),
            np.concatenate((place[absent], beyond)),
        )

    def beyond(self, packed: PackedSides) -> Integers:
        """The walks that look beyond the chain's end, at their deadline alone."""
        far = self.looks(packed) & (packed.deadlines[self.sides] > self.room)
        past = self.levels > self.room[self.apart, np.newaxis]
        far[self.apart] &= past.sum(axis=1) == 1
        return np.flatnonzero(far)


def outlook(
    ground: Ground,
    clusters: Clusters,
    cluster: Integers,
    column: int,
    sides: Integers,
    packed: PackedSides,
    endless: Mask,
) -> Outlook:
    """Where the walks to one side of some clusters look. sides, endless: (c,) of all clusters."""
    ends = clusters.ends
    chain, room = ends.chain[cluster], clusters.gaps[cluster, column]
    if column == LEFT:
        place, row = ends.first[cluster], ends.low[cluster]
    else:
        place, row = ends.last[cluster], ends.high[cluster] - 1
    # an end without a row may lie beyond its chain's last one, as that of a tuple
    starts = ground.block.chains.starts
    row = np.clip(row, starts[chain], starts[chain + 1] - 1)
    mine, goes_on = sides[cluster], endless[cluster]
    looks = (packed.counts[mine] > 1) | goes_on
    deadlines = packed.deadlines[mine]
    misses = _meets_missing(ground, (chain, place, row), SIGNS[column], deadlines, room)
    beyond = deadlines > room
    several = goes_on | packed.ahead[mine] | (packed.is_far[mine].sum(axis=1) > 1)
    apart = np.flatnonzero(looks & (misses | (beyond & several)))
    levels = _looked_at(packed, mine[apart], room[apart], goes_on[apart])
    return Outlook(column, cluster, chain, place, row, room, mine, goes_on, apart, levels)


def _meets_missing(
    ground: Ground,
    ends: tuple[Integers, Integers, Integers],
    sign: int,
    deadlines: Integers,
    room: Integers,
) -> Mask:
    """(w,) whether a record up to the deadline, or the chain's end, has no value."""
    chain, place, row = ends
    if ground.is_whole:
        return np.zeros(len(chain), dtype=bool)
    chains = ground.block.chains
    far = np.minimum(deadlines, room)
    target = row + sign * far
    inside = (target >= chains.starts[chain]) & (target < chains.starts[chain + 1])
    target = np.where(inside, target, row)
    target = np.clip(target, chains.starts[chain], chains.starts[chain + 1] - 1)
    complete = inside & (ground.place_of(chain, target) == place + sign * far)
    begin = ground.block.rows.start
    low = np.minimum(row + sign, target) - begin
    high = np.maximum(row + sign, target) - begin + 1
    count = ground.block.size
    valued = ground.valued[np.clip(high, 0, count)] - ground.valued[np.clip(low, 0, count)]
    return np.asarray(~complete | (valued < far))


def _looked_at(packed: PackedSides, sides: Integers, room: Integers, endless: Mask) -> Integers:
    """(a, most) the distances that walks may look at, 0 for none.

    Beyond the chain's end only deadlines, unless a walk goes on there; but who sees the value at
    the next level sees the first one there too.
    """
    levels = packed.levels[sides]
    inside = levels <= room[:, np.newaxis]
    next_one = np.zeros_like(inside)
    next_one[:, 1:] = inside[:, :-1] & packed.ahead[sides, np.newaxis]
    looked = inside | packed.is_far[sides] | next_one | endless[:, np.newaxis]
    used = np.arange(levels.shape[1]) < packed.counts[sides, np.newaxis]
    return np.where(looked & used, levels, 0)


@dataclass(frozen=True, eq=False)
class Sight:
    """What walks see; (w,) for each walk.

    chain, order: of the record at its end, for draws. end, far: the values there and at the
    deadline. straight: it looks at nothing and goes to its deadline.
    """

    chain: Integers
    order: NDArray[np.integer]
    end: Integers
    far: Integers
    straight: Mask
    row: Integers
    sign: int
    codes: Codes
    apart: Integers
    levels: Integers
    values: Integers

    def at(self, walks: Integers, distance: Integers) -> Integers:
        """(m, d) the values that some walks meet at distances (m, d); at 0, none that counts."""
        rows = self.row[walks, np.newaxis] + self.sign * distance
        apart = self.apart[walks]
        others = np.flatnonzero(apart >= 0)
        rows[others] = 0
        found = self.codes[rows].astype(np.int64)
        if len(others):
            levels, values = self.levels[apart[others]], self.values[apart[others]]
            column = np.argmax(levels[:, np.newaxis] == distance[others, :, np.newaxis], axis=2)
            found[others] = np.take_along_axis(values, column, axis=1)
        return np.asarray(found)


def seen(
    outlook: Outlook, ground: Ground, packed: PackedSides, completion: Completion, sides: Integers
) -> Sight:
    """What walks see, with what was drawn for what is missing. sides: the ones that they take.

    Who has no value at its end, or misses one on its way, goes straight to its deadline.
    """
    chains, sign = ground.block.chains, outlook.sign
    chain, place, row = outlook.chain, outlook.place, outlook.row
    there = ground.place_of(chain, row) == place
    end = np.where(there, chains.codes[row].astype(np.int64), -1)
    apart = np.full(len(chain), -1, dtype=np.int64)
    apart[outlook.apart] = np.arange(len(outlook.apart))
    values = _values(outlook, ground, completion)
    straight = end < 0
    straight[outlook.apart] |= np.any((values < 0) & (outlook.levels > 0), axis=1)
    deadlines = packed.deadlines[sides]
    far = np.zeros(len(chain), dtype=np.int64)
    looks = outlook.looks(packed) & ~straight
    plain = np.flatnonzero(looks & (apart < 0) & (deadlines <= outlook.room))
    far[plain] = chains.codes[row[plain] + sign * deadlines[plain]]
    beyond = np.flatnonzero(looks & (apart < 0) & (deadlines > outlook.room))
    far[beyond] = completion.at(chain[beyond], place[beyond] + sign * deadlines[beyond])
    others = np.flatnonzero(looks & (apart >= 0))
    column = np.argmax(outlook.levels[apart[others]] == deadlines[others, np.newaxis], axis=1)
    far[others] = values[apart[others], column]
    straight |= far < 0
    return Sight(
        chain,
        chains.order[row],
        np.maximum(end, 0),
        np.maximum(far, 0),
        straight,
        row,
        sign,
        chains.codes,
        apart,
        outlook.levels,
        values,
    )


def _values(outlook: Outlook, ground: Ground, completion: Completion) -> Integers:
    """(a, most) the values at the distances that walks apart look at, negative where none is."""
    used = outlook.levels.ravel() > 0
    chain = np.repeat(outlook.chain[outlook.apart], outlook.levels.shape[1])[used]
    places = outlook.place[outlook.apart, np.newaxis] + outlook.sign * outlook.levels
    place = places.ravel()[used]
    found = ground.value_at(chain, place)
    absent = np.flatnonzero(found < 0)
    found[absent] = completion.at(chain[absent], place[absent])
    values = np.full(outlook.levels.shape, -1, dtype=np.int64)
    values.ravel()[used] = found
    return values


def all_places(ground: Ground, outlooks: Sequence[Outlook], packed: PackedSides) -> Places:
    """The places without a value that any walk looks at."""
    none = np.empty(0, dtype=np.int64)
    found = [(none, none), *(outlook.places(ground, packed) for outlook in outlooks)]
    chain, place = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Places.of(chain, place)
