"""The exact worst case over a box of kernels for three and four states: cones (R5).

What can be seen beyond a record is a vector h of Pr(seen | its value), for every output and every
choice of kernels. All that is done to h on the way to the secret is linear once kernels are chosen,
and what counts at the secret is a ratio of two entries: so the convex cone of all h, given by its
extreme rays, is all that must be kept. At each record:

    V = cone{ r∘h : h in C } and e_j for every j that may be released,    C = cone of all P·v

for fixed v the entries of P·v fill intervals (filling.py), whose corners are the extreme images.
The farthest record of a walk that tells all that matters starts from no h at all.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats
from offrecord.theory._compiling import are_few
from offrecord.theory.sets import _cone_arrays, filling, planar
from offrecord.theory.sets.walks import FORGOTTEN, Walk, at_step, off_diagonal

#: Up to how many records, and up to how many rays, cones are worth their time, by states.
_RECORDS = {3: 5_000, 4: 60}
_RAYS = {3: 20_000, 4: 1_500}
#: A hull in space merges facets that differ by rounding: how far outside of what it returns a point
#: may lie, in a chart of size 1 (2e-14 was the largest found), and the least that is added.
_MERGED, _LEAST = 1e-13, 1e-9


def records_within(states: int) -> int:
    """The number of records up to which a walk by cones is worth its time; 0: no cones."""
    return _RECORDS.get(states, 0)


def side(walk: Walk, low: Floats, high: Floats) -> Floats | None:
    """(S, S) the largest log-ratios of one side, rounding included; None if the cone is too large.

    low, high: (1, S, S) or (steps, S, S).
    """
    states = walk.rows.shape[1]
    rays: Floats = np.ones((1 if walk.ends else 0, states))
    slack = 0.0 if states == 3 else _LEAST
    for distance, row in walk.inward():
        if _forgets(rays, row):
            continue
        box = at_step(low, high, distance)
        if distance == 1:
            worst, rounding = _largest_ratios(rays, row, *box)
            return _widened(worst, slack + rounding)
        stepped = _advanced(rays, row, *box)
        if stepped is None:
            return None
        rays, lost = stepped
        slack += lost
        remembered = _spread(rays)
        if remembered < FORGOTTEN:
            rays, slack = np.ones((1, states)), slack + remembered
    return _widened(np.zeros((states, states)), slack)


def table(count: int, low: Floats, high: Floats, released: NDArray[np.bool_]) -> tuple[Floats, int]:
    """(count, S, S) the same of windows: all redacted, then one of these states released.

    Entry d − 1 has the release at distance d. One box, (1, S, S), for every step. Returned with it:
    how many entries are exact. If not all, the cone became too large, and the others are the range
    of the last: averages differ by no more than what is averaged.
    """
    states = len(released)
    rays: Floats = np.empty((0, states))
    row = np.where(released, 0.0, 1.0)
    worst = np.empty((count, states, states))
    slack = 0.0 if states == 3 else _LEAST
    for at in range(count):
        ratios, rounding = _largest_ratios(rays, row, low[0], high[0])
        worst[at] = _widened(ratios, slack + rounding)
        forgotten = worst[at].max() < FORGOTTEN
        ends = forgotten or at + 1 >= min(count, records_within(states))
        stepped = None if ends else _advanced(rays, row, low[0], high[0])
        if stepped is None:
            worst[at + 1 :] = off_diagonal(states, worst[at].max())
            return worst, count if forgotten else at + 1
        rays, lost = stepped
        slack += lost
        row = np.ones(states)
    return worst, count


def _are_few(rays: Floats) -> bool:
    """Of three states, and so few that arrays are quicker than compiling loops would be: that takes
    twice as long as what is elsewhere done at most without.
    """
    return rays.shape[1] == 3 and are_few((len(rays) + 3) // 2, __name__)


def _largest_ratios(rays: Floats, row: Floats, low: Floats, high: Floats) -> tuple[Floats, float]:
    way = _cone_arrays if _are_few(rays) else filling
    worst, rounding = way.largest_ratios(low, high, way.seen(rays, row))
    return np.asarray(worst), float(rounding)


def _spread(rays: Floats) -> float:
    return float((_cone_arrays if _are_few(rays) else filling).spread(rays))


def _forgets(rays: Floats, row: Floats) -> bool:
    """Nothing is known of what lies beyond, and the record adds nothing: averages of 1 are 1."""
    return len(rays) == 1 and bool((row == 1.0).all()) and bool((rays == 1.0).all())


def _widened(worst: Floats, slack: float) -> Floats:
    """With what rounding may have hidden, between different values."""
    return np.asarray(worst + off_diagonal(len(worst), slack))


def _advanced(rays: Floats, row: Floats, low: Floats, high: Floats) -> tuple[Floats, float] | None:
    """The extreme rays one step nearer to the secret, and what may be lost of a log-ratio.

    None: there are too many.
    """
    if _are_few(rays):
        points, rounding = _cone_arrays.corners(low, high, _cone_arrays.seen(rays, row))
        kept, lost = _cone_arrays.extreme(points)
        found = kept, rounding + lost
    elif len(row) == 3:
        points, rounding = filling.corners(low, high, filling.seen(rays, row))
        kept, lost = planar.extreme(points)
        found = kept, rounding + lost
    else:
        found = _advanced_in_space(*(part.tobytes() for part in (rays, row, low, high)))
    return None if len(found[0]) > _RAYS[len(row)] else found


@lru_cache(maxsize=1024)
def _advanced_in_space(rays: bytes, row: bytes, low: bytes, high: bytes) -> tuple[Floats, float]:
    """The same as a hull in space; whoever improves a design asks for most of them again."""
    r = np.frombuffer(row)
    k = len(r)
    seen = filling.seen(np.frombuffer(rays).reshape(-1, k), r)
    square = (k, k)
    points, rounding = filling.corners(
        np.frombuffer(low).reshape(square), np.frombuffer(high).reshape(square), seen
    )
    kept, lost = _extreme(points)
    kept.setflags(write=False)
    return kept, rounding + lost


def _extreme(points: Floats) -> tuple[Floats, float]:
    """The points (n, k) with sum 1 that span the cone, for k > 3, and what was lost.

    Points with the same zeros are looked at together with those that have more of them, so that
    none with a zero is lost to one that has nearly a zero.
    """
    k = points.shape[1]
    positive = points > 0.0
    if positive.all():
        return _spanning(points, points[:0])
    kept, lost = points[:0], 0.0
    for size in range(1, k + 1):
        fresh = [kept]
        for support in combinations(range(k), size):
            mask = np.isin(np.arange(k), support)
            here = points[(positive == mask).all(axis=1)]
            if len(here):
                inside = kept[(kept[:, ~mask] == 0.0).all(axis=1)]
                spanning, missed = _spanning(here[:, mask], inside[:, mask])
                lost = max(lost, missed)
                added = np.zeros((len(spanning), k))
                added[:, mask] = spanning
                fresh.append(added)
        kept = np.concatenate(fresh)
    return kept, lost


def _spanning(points: Floats, others: Floats) -> tuple[Floats, float]:
    """The points without zeros that are needed beside the others to span all."""
    count, k = points.shape
    if k == 1:
        return np.ones((1, 1)), 0.0
    if k == 2:
        ratios = points[:, 0] / points[:, 1]
        return points[[int(ratios.argmin()), int(ratios.argmax())]], 0.0
    if k == 3:
        kept, lost = planar.extreme(np.concatenate((points, others)))
        return kept[(kept > 0.0).all(axis=1)], lost
    every = np.concatenate((points, others))
    chosen, size = _hull(every)
    return points[chosen[chosen < count]], 4.0 * _MERGED * size / float(points.min())


def _hull(points: Floats) -> tuple[NDArray[np.intp], float]:
    """Indices of the points that span the hull, and the chart's size.

    All of them where they are too flat for a hull.
    """
    from scipy.spatial import ConvexHull, QhullError

    chart = points[:, :-1] - points[:, :-1].mean(axis=0)
    scale = np.abs(chart).max(axis=0)
    everything = np.arange(len(points)), 0.0
    if len(points) <= points.shape[1] or not scale.all():
        return everything
    try:
        return ConvexHull(chart / scale).vertices.astype(np.intp), float(scale.sum())
    except QhullError:
        return everything
