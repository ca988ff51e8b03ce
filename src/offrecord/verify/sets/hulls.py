"""Rays that span a cone of nonnegative vectors, and a proof that the others are not missed.

A hull by doubles says which rays to keep. That is a hint only: for each ray d that is left out, a
sum w of kept ones with nonnegative weights is computed, and d lies between w and e^δ·w, up to a
factor, for a δ that is computed too (docs/proofs/verified-sets.md). A ray for which δ is not small
is kept as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offrecord.verify.sets.boxes import Floats

_UNIT = 2.0**-53
_AT_ONCE = 256  # points that are looked at together
_TRIED = 64  # facets for each of them, at most
_SAME_PLANE = 1e-9
_FLAT = 1e-13  # what spans less has no dimension of its own


def spanning(points: Floats, tolerance: float) -> tuple[Floats, float]:
    """Those of the points (N, S) that are kept, and the largest δ of the others.

    Points with the same zeros are looked at together: no other has any with them as a neighbour.
    """
    powers = 2 ** np.arange(points.shape[1])
    group = (points > 0) @ powers
    kept, lost = [], 0.0
    for number in np.unique(group).tolist():
        support = (number & powers) > 0
        here = points[group == number][:, support]
        rays, more = _of_positive(here, tolerance)
        added = np.zeros((len(rays), points.shape[1]))
        added[:, support] = rays
        kept.append(added)
        lost = max(lost, more)
    return np.concatenate(kept), lost


def _of_positive(points: Floats, tolerance: float) -> tuple[Floats, float]:
    """The same of points without zeros."""
    if points.shape[1] == 1:
        return points[:1], 0.0
    hint = _hint(points) if len(points) > 2 else None
    if hint is None:
        return np.unique(points, axis=0), 0.0
    rest = np.delete(np.arange(len(points)), hint.kept)
    delta = _missed(points[rest], hint, tolerance)
    far = ~(delta <= tolerance)
    return points[np.concatenate((hint.kept, rest[far]))], float(delta[~far].max(initial=0.0))


@dataclass(frozen=True, eq=False)
class _Hint:
    """kept: which points span all of them, it seems. facets: (F, r) those of each facet, as points
    (F, r, S); normals (F, r), offsets (F,): of the facets, in the chart. inner: a ray inside.
    """

    kept: NDArray[np.int64]
    facets: Floats
    normals: Floats
    offsets: Floats
    inner: Floats
    chart: _Chart


@dataclass(frozen=True, eq=False)
class _Chart:
    """Rays as points of as many dimensions as they span."""

    centre: Floats
    axes: Floats  # (r, S)

    @classmethod
    def of(cls, points: Floats) -> _Chart:
        """That of some rays."""
        flat = points / points.sum(axis=1, keepdims=True)
        centre = flat.mean(axis=0)
        _, sizes, axes = np.linalg.svd(flat - centre, full_matrices=False)
        used = sizes > _FLAT * np.sqrt(len(points))
        return cls(centre, axes[used] / (sizes[used, np.newaxis] / np.sqrt(len(points))))

    def __call__(self, points: Floats) -> Floats:
        flat = points / points.sum(axis=1, keepdims=True)
        return np.asarray((flat - self.centre) @ self.axes.T)


def _hint(points: Floats) -> _Hint | None:
    """By a hull of doubles; None where there is none."""
    chart = _Chart.of(points)
    flat = chart(points)
    if flat.shape[1] == 0:
        one = np.array([0])
        return _Hint(one, np.empty((1, 0, points.shape[1])), flat[:1], np.ones(1), points[0], chart)
    if flat.shape[1] == 1:
        ends = np.array([flat.argmin(), flat.argmax()])
        normals, offsets = np.array([[-1.0], [1.0]]), np.array([1.0, -1.0]) * flat[ends, 0]
        simplices = ends[:, np.newaxis]
    else:
        from scipy.spatial import ConvexHull, QhullError

        try:
            hull = ConvexHull(flat)
        except QhullError:
            return None
        ends, simplices = hull.vertices.astype(np.int64), hull.simplices
        normals, offsets = hull.equations[:, :-1], hull.equations[:, -1]
    inner = np.array([math.fsum(column) for column in points[ends].T.tolist()])
    return _Hint(ends, points[simplices], normals, offsets, inner, chart)


def _missed(points: Floats, hint: _Hint, tolerance: float) -> Floats:
    """(N,) for each point how far a sum of kept ones is from it, as a log-ratio.

    From inside through a point one leaves by a facet; of several in one plane each is tried, until
    one serves.
    """
    outward, normals = _outward(points, hint)
    through = np.empty(len(points), dtype=np.int64)
    for at in range(0, len(points), _AT_ONCE):
        part = slice(at, at + _AT_ONCE)
        through[part] = (outward[part] @ normals).argmax(axis=1)
    found = _distances(points, hint.facets[through], hint.inner)
    missed = np.flatnonzero(~(found <= tolerance))
    for at in range(0, len(missed), _AT_ONCE):
        some = missed[at : at + _AT_ONCE]
        found[some] = _tried(points[some], outward[some] @ normals, hint, tolerance)
    return found


def _outward(points: Floats, hint: _Hint) -> tuple[Floats, Floats]:
    """(N, r) from inside to each point, (r, F) the facets: their product says how much of the way
    to a facet that is.
    """
    inner = hint.chart(hint.inner[np.newaxis])
    room = np.maximum(-(inner @ hint.normals.T + hint.offsets), 1e-300)
    return hint.chart(points) - inner, np.ascontiguousarray((hint.normals / room.T).T)


def _tried(points: Floats, leaves: Floats, hint: _Hint, tolerance: float) -> Floats:
    """The same by other facets in the same plane."""
    found = np.full(len(points), np.inf)
    left = np.arange(len(points))
    plane = leaves.max(axis=1) * (1.0 - _SAME_PLANE)
    for _ in range(min(_TRIED, leaves.shape[1])):
        through = leaves[left].argmax(axis=1)
        near = leaves[left, through] >= plane[left]
        left, through = left[near], through[near]
        if not len(left):
            break
        delta = _distances(points[left], hint.facets[through], hint.inner)
        found[left] = np.minimum(found[left], delta)
        leaves[left, through] = -np.inf
        left = left[~(found[left] <= tolerance)]
    return found


def _distances(points: Floats, facets: Floats, inner: Floats) -> Floats:
    """(N,) the log-ratios between each point and a sum of the ray inside and a facet's."""
    terms = np.concatenate((np.broadcast_to(inner, (len(points), 1, len(inner))), facets), axis=1)
    weights = np.maximum(_weights(terms, points), 0.0)
    sums = (weights[:, :, np.newaxis] * terms).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = points / sums
        found = np.log(ratios.max(axis=1) / ratios.min(axis=1))
    # the ray inside was rounded once, then products, sums and quotients
    found = found * (1.0 + 2.0**-40) + 2.1 * _UNIT * (terms.shape[1] + 4.0)
    return np.where(np.isnan(found), np.inf, found)


def _weights(terms: Floats, points: Floats) -> Floats:
    """(N, r + 1) weights of terms (N, r + 1, S) whose sum is about the point."""
    columns = terms.transpose(0, 2, 1)
    if columns.shape[1] == columns.shape[2]:
        try:
            return np.asarray(np.linalg.solve(columns, points[:, :, np.newaxis])[:, :, 0])
        except np.linalg.LinAlgError:
            pass
    inverse = np.linalg.pinv(columns / points[:, :, np.newaxis])
    return np.asarray(inverse.sum(axis=2))
