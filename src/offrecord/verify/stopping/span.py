"""Rays that span a cone, up to what others miss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[np.intp]

#: Of a ratio of two entries: a ray that others miss by no more is left out.
_MISSED = 1e-9
#: Units of 2⁻⁵³ of the quotient of two entries, each over a sum of some products, of which one
#: factor is a sum of quotients for every ray kept.
_COMPARED = 2.0**-53
#: Cones that are so thin in some direction count as flat.
_FLAT = 1e-13
#: Points times faces that are compared at once: few enough to stay near the processor, and for
#: products of matrices by one thread, which is quicker here than several that wait for each other.
_AT_ONCE = 80_000
#: A share that is as little below 0 is one of rounding.
_NONE = -1e-9
#: How many faces are added to a wider cone, each time, by its dimension on the chart.
_ADDED = {2: (4,), 3: (10, 10, 10)}


def spanning(rays: Floats, spare: int = 0) -> tuple[NDArray[np.bool_], float]:
    """Which rays to keep, and by how much the others may lie outside their cone: the log of a ratio
    of two entries.

    spare: so many, the first ones, need not be spanned.
    """
    everything = np.ones(len(rays), dtype=bool), 0.0
    positive = rays[:, rays[0] > 0]
    if not positive.shape[1]:
        return np.arange(len(rays)) == 0, 0.0
    chart = Chart(positive)
    hull = chart.hull()
    if hull is None:
        return everything
    vertices, faces, _ = hull
    kept = np.zeros(len(rays), dtype=bool)
    kept[vertices] = True
    kept[faces] = True  # of which all others are to be sums, whatever a hull calls its vertices
    inner = np.flatnonzero(~kept)
    inner = inner[inner >= spare]
    if not len(inner):
        return kept, 0.0
    missed = _missed(positive, chart, vertices, faces, inner)
    near = missed <= _MISSED
    kept[inner[~near]] = True
    return kept, float(missed[near].max(initial=0.0)) + _COMPARED * 2 * (len(vertices) + 16)


def _missed(
    rays: Floats, chart: Chart, vertices: Numbers, faces: Numbers, inner: Numbers
) -> Floats:
    """How much the largest ratio to a combination of kept rays exceeds the least, less 1."""
    corners, shares = chart.combined(vertices, faces, inner)
    weights = np.maximum(shares[:, 1:], 0.0) / chart.sums[corners]
    # the middle of those that are kept, itself a combination of them
    together = np.maximum(shares[:, :1], 0.0) * (rays[vertices] / chart.sums[vertices, None]).sum(
        axis=0
    )
    for at in range(corners.shape[1]):
        together += weights[:, at, np.newaxis] * rays[corners[:, at]]
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = rays[inner] / together
        spread = quotients.max(axis=1) / quotients.min(axis=1) - 1.0
    # an empty combination, or one with a zero, misses all
    return np.where(np.isfinite(spread), spread, np.inf)


class Chart:
    """Rays as points of a space in which they are spread evenly; a proposal, nothing more.

    sums: by which rays are divided so that they lie in one plane.
    """

    def __init__(self, rays: Floats) -> None:
        self.sizes = np.exp(np.log(rays).mean(axis=0))
        scaled = rays / self.sizes
        self.sums = scaled.sum(axis=1)
        self.scaled = scaled / self.sums[:, np.newaxis]
        self.middle = self.scaled.mean(axis=0)
        apart = self.scaled - self.middle
        axes = np.linalg.svd(np.linalg.qr(apart, mode="r"), full_matrices=False)[2]
        places = apart @ axes.T
        widths = np.abs(places).max(axis=0)
        wide = widths > _FLAT
        wide[3:] = False  # sums are all the same
        self.axes, self.widths = axes[wide], widths[wide]
        self.points = places[:, wide] / self.widths

    def hull(self) -> tuple[Numbers, Numbers, Floats] | None:
        """Numbers of points that span the rest, those of each face, and the faces' normals and
        offsets in two dimensions or more, if any are found.
        """
        from scipy.spatial import ConvexHull, QhullError

        count, dimension = self.points.shape
        none = np.empty((0, dimension + 1))
        if dimension == 0:
            return np.array([0]), np.empty((0, 0), dtype=np.intp), none
        if dimension == 1:
            ends = np.array([self.points[:, 0].argmin(), self.points[:, 0].argmax()])
            return ends, ends[:, np.newaxis], none
        if count <= dimension + 1:
            return None
        try:
            found = ConvexHull(self.points)
        except QhullError:
            return None
        faces = found.simplices.astype(np.intp)
        return np.union1d(found.vertices, faces), faces, found.equations

    def combined(
        self, vertices: Numbers, faces: Numbers, chosen: Numbers
    ) -> tuple[Numbers, Floats]:
        """For each chosen point the corners of the face through which the line from the middle
        leaves; and shares of the sum of all vertices, and of these corners.
        """
        if not len(faces):
            return np.empty((len(chosen), 0), dtype=np.intp), np.ones((len(chosen), 1))
        origin = self.points[vertices].mean(axis=0)
        apart = self.points[chosen] - origin
        inverse = _inverse(self.points[faces] - origin)
        face = _left_through(apart, inverse)
        share = _shares(apart, inverse[face])
        rest = (1.0 - share.sum(axis=1, keepdims=True)) / len(vertices)
        return faces[face], np.hstack((rest, share))

    def planes(self, forms: Floats) -> Floats:
        """Normals and offsets of planes on which linear forms of scaled points vanish."""
        normals = (forms @ self.axes.T) * self.widths
        lengths = np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-30)
        return np.asarray(np.hstack((normals, (forms @ self.middle)[:, np.newaxis])) / lengths)

    def rays(self, points: Floats) -> Floats:
        """Those at some places."""
        return np.asarray((self.middle + (points * self.widths) @ self.axes) * self.sizes)


def _left_through(apart: Floats, inverse: Floats) -> Numbers:
    """(n,) the face through which the line from the middle through a point leaves. inverse: (f, d,
    corners) what shares of the corners of each face in a point come from.

    It is the plane of a face that a point comes nearest to, in parts of the way: there the shares
    of its corners have the largest sum. Of faces in one plane it is the one without a negative
    share.
    """
    planes, corners = inverse.sum(axis=2), inverse.transpose(2, 0, 1)
    size = max(_AT_ONCE // len(inverse), 1)
    face = np.empty(len(apart), dtype=np.intp)
    for start in range(0, len(apart), size):
        face[start : start + size] = (apart[start : start + size] @ planes.T).argmax(axis=1)
    beside = np.flatnonzero(_shares(apart, inverse[face]).min(axis=1) < _NONE)
    for start in range(0, len(beside), size):
        some = beside[start : start + size]
        least = apart[some] @ corners[0].T
        for corner in corners[1:]:
            np.minimum(least, apart[some] @ corner.T, out=least)
        face[some] = least.argmax(axis=1)
    return face


def _inverse(matrices: Floats) -> Floats:
    """(f, d, d) of the corners of each face; what comes near to it where one has none."""
    try:
        return np.asarray(np.linalg.inv(matrices), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(matrices), dtype=np.float64)


def _shares(apart: Floats, inverse: Floats) -> Floats:
    """(n, corners) of the corners of a face in each point; inverse: (n, d, corners)."""
    return np.asarray(np.einsum("nd,ndc->nc", apart, inverse))


def wider(rays: Floats, at: Callable[[Chart], Numbers]) -> tuple[Floats, float] | None:
    """Fewer rays whose cone holds the others, up to what it misses; None where none are found.

    Of the faces of the others' cone it has those at some rays, then those beyond which its own rays
    lie farthest.
    """
    if not np.all(rays[0] > 0):
        return None
    chart = Chart(rays)
    hull = chart.hull()
    if hull is None or not len(hull[2]):
        return None
    _, faces, planes = hull
    chosen: NDArray[np.bool_] = np.asarray(np.isin(faces, at(chart)).any(axis=1))
    least = chart.planes(chart.scaled.min(axis=0)[:, np.newaxis] - np.eye(4))
    corners = _between(np.concatenate((planes[chosen], least)), chart)
    for many in _ADDED[chart.points.shape[1]]:
        if corners is None:
            return None
        beyond = corners @ planes[:, :-1].T + planes[:, -1]
        each = beyond.argmax(axis=1)  # one for a corner: those beside it would cut off little more
        farthest = np.zeros(len(planes))
        np.maximum.at(farthest, each, beyond[np.arange(len(each)), each])
        farthest[chosen] = 0.0
        chosen[np.argsort(-farthest, kind="stable")[:many]] = True
        corners = _between(np.concatenate((planes[chosen], least)), chart)
    proposed = np.empty((0, 4)) if corners is None else chart.rays(corners)
    proposed = proposed[(proposed > 0).all(axis=1)]
    if not len(proposed):
        return None
    together = np.concatenate((proposed, rays))
    kept, missed = spanning(together, len(proposed))
    return together[kept], missed


def worst_rays(chart: Chart, goals: Floats) -> Numbers:
    """Of each outcome farther on, the ray with the largest ratio of how likely it is. goals: (2, f,
    2, 2) what leads from (x, i) to each outcome, by the x above the line.
    """
    found = [np.empty(0, dtype=np.intp)]
    for over, each in enumerate(goals):
        live = each[each.any(axis=(1, 2))] * chart.sizes.reshape(2, 2)
        above, below = (chart.scaled[:, 2 * x : 2 * x + 2] @ live[:, x].T for x in (over, 1 - over))
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(np.nan_to_num(above / below, nan=-1.0).argmax(axis=0))
    return np.concatenate(found)


def nearest_rays(chart: Chart, others: Floats) -> Numbers:
    """The ray that comes nearest to each of some others (n, 4), by its entries."""
    scaled = others / chart.sizes
    scaled /= scaled.sum(axis=1, keepdims=True)
    return np.asarray([np.abs(chart.scaled - one).max(axis=1).argmin() for one in scaled])


def _between(planes: Floats, chart: Chart) -> Floats | None:
    """Corners of what lies inside all planes, if any are found."""
    from scipy.spatial import HalfspaceIntersection, QhullError

    try:
        corners = HalfspaceIntersection(planes, chart.points.mean(axis=0)).intersections
    except QhullError:
        return None
    return np.asarray(corners[np.isfinite(corners).all(axis=1)])
