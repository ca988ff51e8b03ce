"""Steps of cones of three states over arrays and lists, to the last bit what filling.py and
planar.py compute: for few of them, which take less time than compiling those does.

Every sum, product, quotient and comparison is that of the loops, in their order.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers
from offrecord.theory.sets import filling, planar

_STATES = 3
_CORNERS = (np.arange(1 << _STATES)[:, np.newaxis] >> np.arange(_STATES)) & 1 > 0


def seen(rays: Floats, row: Floats) -> Floats:
    """As `filling.seen`."""
    beyond = rays * row
    released = np.eye(_STATES)[row < 1.0]
    return np.concatenate((beyond[_sums(beyond) > 0.0], released))


def corners(low: Floats, high: Floats, rays: Floats) -> tuple[Floats, float]:
    """As `filling.corners`."""
    lower, upper = _filled(low, high, rays)
    uncertain = max(_most(rays, lower, lower > 0.0), _most(rays, upper, upper > 0.0))
    points = np.where(_CORNERS, upper[:, np.newaxis], lower[:, np.newaxis]).reshape(-1, _STATES)
    totals = _sums(points)
    positive = totals > 0.0
    if not positive.all():
        points, totals = points[positive], totals[positive]
    return points / totals[:, np.newaxis], filling._hidden.plain(uncertain, _STATES)


def largest_ratios(low: Floats, high: Floats, rays: Floats) -> tuple[Floats, float]:
    """As `filling.largest_ratios`."""
    lower, upper = _filled(low, high, rays)
    worst = np.zeros((_STATES, _STATES))
    reached = upper > 0.0
    uncertain = _most(rays, upper, reached)
    for x in range(_STATES):
        for other in range(_STATES):
            counted = reached[:, x]
            if other == x or not counted.any():
                continue
            below = lower[counted, other]
            uncertain = max(
                uncertain, _most(rays[counted], below[:, np.newaxis], below[:, np.newaxis] > 0)
            )
            ratio = float((upper[counted, x] / below).max()) if below.all() else np.inf
            worst[x, other] = max(0.0, math.log(ratio)) if ratio > 0.0 else 0.0
    return worst, filling._hidden.plain(uncertain, _STATES)


def spread(rays: Floats) -> float:
    """As `filling.spread`."""
    smallest = rays.min(axis=1)
    if not smallest.all():
        return np.inf
    return math.log(max(1.0, float((rays.max(axis=1) / smallest).max(initial=1.0))))


def extreme(points: Floats) -> tuple[Floats, float]:
    """As `planar.extreme`."""
    count = len(points)
    kept = np.zeros(count, dtype=np.bool_)
    if (points > 0.0).all():
        order, least = np.arange(count), float(points.min(initial=np.inf))
    else:
        left = np.empty(count, dtype=np.int64)
        inner, least = planar._by_edges.plain(points, kept, left)
        order = np.concatenate((left[:inner], np.flatnonzero(kept))) if inner else left[:0]
    order = order[np.lexsort((order, points[order, 0]))]
    across, along = points[order, 0].tolist(), points[order, 1].tolist()
    near = 0
    for side in (1.0, -1.0):
        chain, dropped = _chain(across, along, side)
        kept[order[chain]] = True
        near += dropped
    return points[kept], planar.lost_with(near, least)


def _chain(xs: list[float], ys: list[float], side: float) -> tuple[list[int], int]:
    """The points of the upper (side 1) or lower (−1) chain, and how many were dropped as near."""
    stack: list[int] = []
    near, tolerance = 0, planar.NEAR
    for c, (x, y) in enumerate(zip(xs, ys, strict=True)):
        while len(stack) >= 2:
            a, b = stack[-2], stack[-1]
            across, along = x - xs[a], y - ys[a]
            right, up = xs[b] - xs[a], ys[b] - ys[a]
            outside = side * (across * up - along * right)
            margin = tolerance * (abs(across) + abs(along))
            if outside > margin:
                break
            if outside > -margin:
                beyond = (across - right) * across + (along - up) * along
                if right * across + up * along < 0.0 or beyond < 0.0:
                    break
                near += 1 if right != 0.0 or up != 0.0 else 0
            stack.pop()
        stack.append(c)
    return stack, near


def _filled(low: Floats, high: Floats, rays: Floats) -> tuple[Floats, Floats]:
    """(n, rows) the smallest and largest averages of each ray, as `filling.fill`."""
    rising = np.argsort(rays, axis=1, kind="stable")
    base = low[:, 0] * rays[:, :1]
    rest = 1.0 - low[:, 0]
    for j in range(1, _STATES):
        base = base + low[:, j] * rays[:, j : j + 1]
        rest = rest - low[:, j]
    room = (high - low).T
    return _poured(base, rest, room, rays, rising), _poured(base, rest, room, rays, rising[:, ::-1])


def _poured(base: Floats, rest: Floats, room: Floats, rays: Floats, order: Integers) -> Floats:
    """Averages after what is left of each row's mass went to states in an order."""
    found, left = base, np.broadcast_to(rest, base.shape)
    every = np.arange(len(rays))
    for rank in range(_STATES):
        state = order[:, rank]
        added = np.minimum(left, room[state])
        goes_on = left > 0.0
        found = np.where(goes_on, found + added * rays[every, state, np.newaxis], found)
        left = np.where(goes_on, left - added, left)
    return found


def _most(rays: Floats, averages: Floats, counted: NDArray[np.bool_]) -> float:
    """How many times as large as an average that counts the largest number averaged may be."""
    tops = np.broadcast_to(rays.max(axis=1, initial=0.0)[:, np.newaxis], averages.shape)
    return float((tops[counted] / averages[counted]).max(initial=0.0))


def _sums(numbers: Floats) -> Floats:
    return np.asarray(numbers[:, 0] + numbers[:, 1] + numbers[:, 2])
