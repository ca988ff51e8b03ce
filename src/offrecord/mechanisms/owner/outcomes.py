"""Every outcome of the owner's mechanism for one sequence of values, with its probability.

The decider's plan says who walks where; here every walk takes every branch. For few records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from offrecord.mechanisms.blocks import Block, Mask
from offrecord.mechanisms.owner.deciding.clusters import LEFT, RIGHT, SIGNS
from offrecord.mechanisms.owner.deciding.decider import OwnerDecider, Plan
from offrecord.mechanisms.owner.designing.repair import stopped_shares
from offrecord.mechanisms.owner.designing.sides import closed_side
from offrecord.mechanisms.owner.stopping import StoppingSide
from offrecord.models.base import Floats, Integers
from offrecord.release.coins import Draws


class Stop(NamedTuple):
    """Where a walk stops, with which label, and how likely."""

    distance: int
    label: int
    chance: float


class View(NamedTuple):
    """What a walk sees: values (room,) by distance from 1, and beyond the chain's end steps of
    `kernel`; None where only far values are drawn there, by a law that its side knows. k: how many
    values there are.
    """

    end: int
    values: Integers
    kernel: Floats | None
    k: int

    @property
    def last(self) -> int:
        """The chain's last value on this side."""
        return int(self.values[-1]) if len(self.values) else self.end

    def far_law(self, side_levels: Integers, beyond: Floats | None) -> Floats:
        """(k,) how likely each far value is."""
        deadline, room = int(side_levels[-1]), len(self.values)
        if deadline <= room:
            return self._seen(deadline)
        law = self._power(deadline - room) if self.kernel is not None else beyond
        assert law is not None
        return np.asarray(law[self.last])

    def step(self, first: int, second: int, far: int, deadline: int) -> Floats:
        """(k, k) from the value at one distance to that at a further one, given the far value."""
        room = len(self.values)
        if second <= room:
            return np.tile(self._seen(second), (self.k, 1))
        if self.kernel is None:  # nobody looks there
            return np.eye(self.k)
        near = max(first, room)
        step = self._power(second - near) * self._power(deadline - second)[:, far]
        step = step if first >= room else np.tile(step[self.last], (len(step), 1))
        total = step.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(step, total, out=np.zeros_like(step), where=total > 0))

    def _seen(self, distance: int) -> Floats:
        return np.asarray(np.eye(self.k)[self.values[distance - 1]])

    def _power(self, steps: int) -> Floats:
        assert self.kernel is not None
        return np.linalg.matrix_power(self.kernel, steps)


def outcomes_of(decider: OwnerDecider, block: Block) -> Iterator[tuple[Mask, float]]:
    """Masks of released records; the same mask may come more than once."""
    plan = decider.planned(block)
    views = [
        [_view(decider, plan, cluster, column) for column in (LEFT, RIGHT)]
        for cluster in range(plan.clusters.count)
    ]
    choices = [list(_stops(decider, plan, cluster, both)) for cluster, both in enumerate(views)]
    bridged = decider.bridges.gaps_of(plan.clusters)
    spans = [
        list(_bridged_stops(decider, plan, int(cluster), int(length)))
        for cluster, length in zip(bridged.cluster, bridged.length, strict=True)
    ]
    for taken in product(*choices):
        alone = np.array([both for both, _ in taken], dtype=np.int64).reshape(-1, 2)
        for across in product(*spans):
            stops = alone.copy()
            for cluster, (both, _) in zip(bridged.cluster.tolist(), across, strict=True):
                stops[cluster, RIGHT], stops[cluster + 1, LEFT] = both
            chance = float(np.prod([chance for _, chance in (*taken, *across)]))
            yield ~decider.redacted(plan, stops), chance


def _bridged_stops(
    decider: OwnerDecider, plan: Plan, cluster: int, length: int
) -> Iterator[tuple[tuple[int, int], float]]:
    """Where releasing begins on both sides of a gap that one choice serves, and how likely."""
    gap = next(one for one in decider.bridges.gaps if one.length == length)
    codes, left = plan.ground.block.codes, int(plan.clusters.ends.last[cluster])
    x, b = int(codes[left]), int(codes[left + length + 1])
    held = {(1, length): 1.0}
    for number, (first, last) in enumerate(gap.states):
        going = held.pop((first, last), 0.0)
        i, j = int(codes[left + first]), int(codes[left + last])
        stop, lose = stopped_shares(gap.limits[number, x, b, i, j]).tolist()
        lose = max(stop, lose)
        if going * stop > 0:
            yield (first, length + 1 - last), going * stop
        if first == last:
            if going * (1 - stop) > 0:
                yield (length + 1, length + 1), going * (1 - stop)
            continue
        for target, share in (((first + 1, last), lose - stop), ((first, last - 1), 1 - lose)):
            held[target] = held.get(target, 0.0) + going * share


def _view(decider: OwnerDecider, plan: Plan, cluster: int, column: int) -> View:
    clusters, codes = plan.clusters, plan.ground.block.codes
    ends = clusters.ends
    room = int(clusters.gaps[cluster, column])
    end = int(ends.first[cluster] if column == LEFT else ends.last[cluster])
    places = end + SIGNS[column] * np.arange(1, room + 1)
    way = decider.ways[column] if decider.ways is not None else None
    kernel = None if way is None else way.kernels[0]
    return View(int(codes[end]), codes[places].astype(np.int64), kernel, decider.k)


def _stops(
    decider: OwnerDecider, plan: Plan, cluster: int, views: Sequence[View]
) -> Iterator[tuple[tuple[int, int], float]]:
    """Stops to the left and right of a cluster, and how likely."""
    kit, number = decider.kit, int(plan.choice.pairs[cluster])
    if number >= 0:
        pair = kit.made_of[number]
        first = SIGNS.index(pair.first)
        for stop in _walk(pair.levels, pair.limits, views[first], endless=True):
            second = pair.seconds[stop.label]
            for other in _side_stops(second, views[1 - first]):
                both = (stop.distance, other.distance)
                yield (both if first == LEFT else both[::-1]), stop.chance * other.chance
        return
    left, right = (
        closed_side(SIGNS[column], decider.k)
        if plan.clusters.bridged[cluster, column]
        else kit.sides[int(plan.choice.sides[cluster, column])]
        for column in (LEFT, RIGHT)
    )
    for one, other in product(_side_stops(left, views[LEFT]), _side_stops(right, views[RIGHT])):
        yield (one.distance, other.distance), one.chance * other.chance


def _side_stops(side: StoppingSide, view: View) -> list[Stop]:
    if side.is_closed:
        return [Stop(side.deadline, 0, 1.0)]
    limits = side.limits[..., np.newaxis]
    return list(_walk(side.levels, limits, view, beyond=side.beyond))


def _walk(
    levels: Integers,
    limits: Draws,
    view: View,
    *,
    beyond: Floats | None = None,
    endless: bool = False,
) -> Iterator[Stop]:
    """Every branch of a walk. limits: (l, level, x, i, 1 or j, label).

    endless: it goes on beyond the chain's end, for the sake of its label.
    """
    deadline, labels = int(levels[-1]), limits.shape[-1]
    for far, likely in enumerate(view.far_law(levels, beyond).tolist()):
        if not likely:
            continue
        going = likely * view.step(0, int(levels[0]), far, deadline)[view.end]
        for level, distance in enumerate(levels[:-1].tolist()):
            if distance > len(view.values) and not endless:
                break
            shares = stopped_shares(limits[far, level, view.end])
            step = view.step(distance, int(levels[level + 1]), far, deadline)
            masses = going[:, np.newaxis] * step
            parts = np.diff(shares, axis=-1, prepend=0.0)
            for label in range(labels):
                chance = float((masses * parts[..., label]).sum())
                if chance > 0:
                    yield Stop(distance, label, chance)
            going = (masses * (1.0 - shares[..., -1])).sum(axis=0)
        chance = float(going.sum())
        if chance > 0:
            yield Stop(deadline, labels + far, chance)
