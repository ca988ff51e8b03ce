"""What a side of stopping tells at most over a set of models: two values, a box of kernels that may
change with every step (docs/proofs/O-sets.md).

A walk keeps U(x, i): not stopped before, value i there, given x at the run's end. Once kernels are
chosen, all that is done to these four numbers is linear, and an outcome tells a ratio of two of
them: so the convex cone of all U, given by rays that span it, is all that must be kept.

    to a level:  C = cone of all U·Q, Q a product of as many kernels as there are steps
    at a level:  U(x, i) is multiplied by 1 − σ(x, i)

Products of kernels of two values have two numbers each, so that all of them lie in a polygon; one
with few corners around it will do.

Rays inside the cone of others are left out only if they are shown to be combinations of them; what
such a combination misses is added to the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.owner.stopping import StoppingSide
from offrecord.models.base import Floats, Integers
from offrecord.models.box import Box, Intervals
from offrecord.processes import crew
from offrecord.release.coins import ALWAYS, Draws
from offrecord.theory.sets import binary

#: Relative error of one operation on floats.
_UNIT = 2.0**-53
#: Units of a ray's entry at one step: a corner's 1 − p, a product and a sum, 1 − σ and the product
#: with it, the division by the ray's sum; two more are spare.
_STEP = 8
#: Units of the logs of a quotient and of stop probabilities, for each unit of their size.
_LOGS = 64
#: Units for each ray of what compares it with others, whose mean is taken.
_COMPARED = 4
#: A ray is left out if others miss it by no more than this, in the logarithm of a ratio.
_MISSED = 1e-11
#: A cone that is so thin in some direction counts as flat.
_FLAT = 1e-12
#: From so many rays on a cone is replaced by a larger one with fewer, if they have doubled since.
_RAYS = 100
#: Above so many, which only happens where that fails, the cone is given up.
_MOST_RAYS = 2_000
#: So many points are compared with all faces at once.
_AT_ONCE = 1_000
#: Faces that such a cone has beside those that outcomes ask for: so often as many, of those beyond
#: which its corners lie farthest.
_TIMES, _FACES = 3, 10
#: A polygon of products with more corners is replaced by a larger one where it is used, and one
#: with far more where it is stepped; how often sides are added to it.
_CORNERS, _MOST_CORNERS, _CUTS = 12, 160, 1
#: No step is less likely and no product of steps, and no number of a ray is smaller: where some
#: are, nothing is known. So no product of the two, and a share that goes on, underflows.
_LEAST_STEP, _LEAST = 2.0**-100, 2.0**-800
#: Normals that are shorter are those of forms without any slope.
_LEAST_LENGTH = 1e-30

_Numbers: TypeAlias = NDArray[np.intp]
_Rays: TypeAlias = Floats  # (n, 4) U(0, 0), U(0, 1), U(1, 0), U(1, 1)

_Asked: TypeAlias = tuple[bytes, ...]
#: What sides tell by their stops, by far value.
Verdicts: TypeAlias = dict[_Asked, tuple[float, ...]]
#: Of the last sides, by their very numbers: one is asked about when it is made, and again in the
#: proof of each menu that it is part of.
_verdicts: Verdicts = {}
_REMEMBERED = 128


def serves_set(box: Box) -> bool:
    """This referee covers the box: two values of a stationary chain of order 1, one box for every
    step, and every transition seen.
    """
    plain = box.k == 2 and box.order == 1 and box.by_step is None
    return plain and box.start == "stationary" and not box.has_unseen


def leakage_over(box_intervals: Intervals, side: StoppingSide) -> float:
    """The largest log-ratio of an outcome's likelihoods under two values of the run's end, over all
    sequences of kernels in a box (2, 2) that lead away from the run: an upper bound.

    Outcomes are the stops at every level under every far value, and the plain window at the
    deadline, for walks that look at no value. Infinite for what is not served: more than two
    values, sides that look ahead, transitions that may never happen.
    """
    return float(leakages_over(box_intervals, side).max())


def leakages_over(box_intervals: Intervals, side: StoppingSide) -> Floats:
    """(2,) the same by far value."""
    if not len(side.levels):
        return np.zeros(2)
    low, high = box_intervals
    off = np.array([[False, True], [True, False]])
    if low.shape != (2, 2) or side.limits.shape[-1] != 1 or not np.all(low[off] >= _LEAST_STEP):
        return np.full(2, np.inf)
    windows = binary.windows(side.deadline, low[np.newaxis], high[np.newaxis])
    if len(side.levels) == 1:
        return np.full(2, windows[-1].max())
    return np.asarray(np.maximum(_stops(_asked(box_intervals, side)), windows[-1].max()))


def corners_of(box_intervals: Intervals) -> Floats:
    """(4, 2, 2) the kernels at the corners of a box for two values.

    Every kernel of the box has rows (1 − p, p) and (p, 1 − p) with p between the ends for the other
    value, so that all lie in the hull of these.
    """
    low, high = box_intervals
    zero, one = ((low[x, 1 - x], high[x, 1 - x]) for x in range(2))
    return np.array([[[1.0 - a, a], [b, 1.0 - b]] for a in zero for b in one])


def verdict(box_intervals: Intervals, side: StoppingSide) -> Verdicts:
    """What was found of a side, if it was asked about, for another process to `remember`."""
    asked = _asked(box_intervals, side)
    return {asked: _verdicts[asked]} if asked in _verdicts else {}


def remember(found: Verdicts) -> None:
    """Take what another process has found for what this one would find."""
    _verdicts.update(found)
    while len(_verdicts) > _REMEMBERED:
        _verdicts.pop(next(iter(_verdicts)), None)


def _asked(box_intervals: Intervals, side: StoppingSide) -> _Asked:
    """All that a verdict depends on: corners of the box, levels, and thresholds by far value."""
    kernels, levels = corners_of(box_intervals), side.levels.astype(np.int64)
    limits = (side.limits[far, ..., 0].astype(np.uint64).tobytes() for far in range(2))
    return kernels.tobytes(), levels.tobytes(), *limits


def _stops(asked: _Asked) -> Floats:
    """(2,) by all outcomes with each far value."""
    found = _verdicts.get(asked)
    if found is None:
        kernels, levels, *limits = asked
        works = [(_told, (kernels, levels, limits[far], far)) for far in range(2)]
        found = tuple(crew.each(works))
        remember({asked: found})
    return np.array(found)


@lru_cache(maxsize=256)
def _told(spelled_kernels: bytes, spelled_levels: bytes, spelled_limits: bytes, far: int) -> float:
    """By all outcomes with one far value: often one alone is designed anew."""
    kernels = np.frombuffer(spelled_kernels).reshape(4, 2, 2)
    levels = np.frombuffer(spelled_levels, dtype=np.int64)
    stops = np.frombuffer(spelled_limits, dtype=np.uint64).reshape(-1, 2, 2)
    leaps, thinner = _leaps(spelled_kernels), _Thinner(kernels, levels, stops, far)
    cone, most, last = _ONE, 0.0, len(levels) - 1
    for level, steps in enumerate(np.diff(levels, prepend=0).tolist()):
        leap = leaps.over(steps)
        stepped = None if leap is None else cone.stepped(leap)
        if stepped is None:
            return np.inf
        cone = thinner.thinned(stepped, int(levels[level]))
        if level == last:
            break
        for value in range(2):
            most = max(most, cone.told(value, *stops[level, :, value]))
        if most == np.inf:
            return most
        cone = cone.through(stops[level])
    return max(most, cone.told(far, ALWAYS, ALWAYS))


@dataclass(frozen=True, eq=False)
class _Cone:
    """All U of one distance: every one is within `missed`, in the logarithm of a ratio of two
    entries, of a combination of the rays.

    thinned: how many rays there were when the cone was last made thinner.
    """

    rays: _Rays
    missed: float
    thinned: int

    def stepped(self, leap: _Cone) -> _Cone | None:
        """Further by all kernels of a cone of them; None where only some rays have a zero, some are
        too small, or there are too many.
        """
        if not self.rays.any():
            return self
        if len(self.rays) > _MOST_RAYS:
            return None
        apart = self.rays.reshape(-1, 2, 2)
        kernels = leap.rays.reshape(-1, 2, 2)
        images = np.concatenate([(apart @ kernel).reshape(-1, 4) for kernel in kernels])
        positive = images > 0
        if np.any(positive.any(axis=0) != positive.all(axis=0)):
            return None
        images /= images.sum(axis=1, keepdims=True)
        kept, missed = _spanning(images)
        lost = self.missed + leap.missed + missed + 2 * _STEP * _UNIT
        found = _Cone(kept, lost, self.thinned)
        return None if found.has_less_than(_LEAST) else found

    def fewer(self, planes: Callable[[_Chart, _Hull], Floats], times: int) -> _Cone:
        """A larger one of fewer rays, if it is found: with some planes, and as often those beyond
        which its own rays lie farthest.
        """
        proposed = _proposed(self.rays, planes, times)
        if proposed is None:
            return self
        kept, missed = _spanning(np.concatenate((proposed, self.rays)), len(proposed))
        if len(kept) >= len(self.rays):
            return self
        return _Cone(kept, self.missed + missed, len(kept))

    def has_less_than(self, least: float) -> bool:
        """Some entry is positive and smaller."""
        return bool(np.any((self.rays > 0) & (self.rays < least)))

    def told(self, value: int, *limits: np.uint64) -> float:
        """The largest log-ratio of stopping here, given thresholds by x; 0 if nobody does."""
        zero, one = (self.rays[:, 2 * x + value] * _share(limit) for x, limit in enumerate(limits))
        if not (zero.any() or one.any()):
            return 0.0
        if not (zero.all() and one.all()):
            return np.inf
        logs = np.log(zero), np.log(one)
        size = max(float(np.abs(log).max()) for log in logs)
        widest = float(np.abs(logs[0] - logs[1]).max())
        return widest + self.missed + _LOGS * _UNIT * (1.0 + size)

    def through(self, limits: Draws) -> _Cone:
        """Past a level with thresholds by x and value there."""
        keeps = np.array([_rest(limit) for limit in limits.ravel()])
        return _Cone(self.rays * keeps, self.missed, self.thinned)


#: Where walks begin: x is the value there. Also what no step does.
_ONE = _Cone(np.array([[1.0, 0.0, 0.0, 1.0]]), 0.0, 0)


@dataclass(frozen=True, eq=False)
class _Leaps:
    """Cones of all products of 0, 1, 2, … kernels of a set, as far as somebody asked.

    corners: of the set. products: by their number, so that it does not matter if two threads find
    the same; None where nothing is known.
    """

    corners: _Cone
    products: dict[int, _Cone | None] = field(default_factory=lambda: {0: _ONE})

    def over(self, steps: int) -> _Cone | None:
        """All that so many steps may do, or a little more."""
        for count in range(steps):
            if count + 1 not in self.products:
                last = self._rounded(count, _MOST_CORNERS)
                self.products[count + 1] = None if last is None else last.stepped(self.corners)
        found = self._rounded(steps, _CORNERS)
        return None if found is None or found.has_less_than(_LEAST_STEP) else found

    def _rounded(self, steps: int, most: int) -> _Cone | None:
        """With fewer rays if there are more than these. All faces are kept at what one corner
        throughout comes to: few of the worst sequences change between two levels.
        """
        cone = self.products[steps]
        if cone is None or len(cone.rays) <= most:
            return cone
        alike = [np.linalg.matrix_power(one, steps) for one in self.corners.rays.reshape(-1, 2, 2)]

        def planes(chart: _Chart, hull: _Hull) -> Floats:
            return _planes_at(chart.nearest(np.reshape(alike, (-1, 4))), chart, hull)

        return cone.fewer(planes, _CUTS)


@lru_cache(maxsize=8)
def _leaps(spelled_kernels: bytes) -> _Leaps:
    """Of the corners of a box."""
    return _Leaps(_Cone(np.frombuffer(spelled_kernels).reshape(4, 4), 2 * _STEP * _UNIT, 0))


def _share(limit: np.uint64) -> float:
    """A threshold as a probability, to a unit."""
    return 1.0 if limit == ALWAYS else int(limit) / 2**64


def _rest(limit: np.uint64) -> float:
    """What a threshold leaves of 1, to a unit."""
    return 0.0 if limit == ALWAYS else (2**64 - int(limit)) / 2**64


# ---- rays that span


def _spanning(points: _Rays, spare: int = 0) -> tuple[_Rays, float]:
    """Points whose combinations come near to all, and how near: the largest they miss of a
    log-ratio, rounding included.

    spare: so many of the points need not be in the cone, the first ones.
    """
    chart = _Chart.of(points)
    hull = _hull(chart.coordinates)
    if hull is None:
        return points, 0.0
    inner = np.ones(len(points), dtype=bool)
    inner[hull.vertices] = False
    inner[:spare] = False
    combined = _combined(chart, hull, inner)
    logs = np.log(chart.scaled[inner]) - np.log(combined)
    missed = logs.max(axis=1) - logs.min(axis=1)
    left = missed <= _MISSED
    kept = np.zeros(len(points), dtype=bool)
    kept[hull.vertices] = True
    kept[np.flatnonzero(inner)[~left]] = True
    size = float(np.abs(np.log(chart.scaled)).max())
    charged = _COMPARED * _UNIT * (len(points) + 32.0 + size)
    return points[kept], float(missed[left].max(initial=0.0)) + charged


@dataclass(frozen=True, eq=False)
class _Chart:
    """Rays as points of a space in which they are spread evenly.

    scaled: (n, p) their positive entries, each divided by its usual size `sizes` (p,), with sum 1;
    coordinates: (n, d) their places along the axes (d, p) from the middle (p,), in widths (d,).
    """

    scaled: Floats
    sizes: Floats
    middle: Floats
    axes: Floats
    widths: Floats
    coordinates: Floats

    @classmethod
    def of(cls, points: _Rays) -> _Chart:
        """Of rays that all have the same zeros."""
        positive = points[:, points[0] > 0]
        sizes = np.exp(np.log(positive).mean(axis=0))
        scaled = positive / sizes
        scaled /= scaled.sum(axis=1, keepdims=True)
        middle = scaled.mean(axis=0)
        apart = scaled - middle
        axes = np.linalg.svd(np.linalg.qr(apart, mode="r"), full_matrices=False)[2]
        places = apart @ axes.T
        widths = np.abs(places).max(axis=0)
        wide = widths > _FLAT
        coordinates = places[:, wide] / widths[wide]
        return cls(scaled, sizes, middle, axes[wide], widths[wide], coordinates)

    def planes(self, forms: Floats) -> Floats:
        """(f, d + 1) normals and offsets of planes on which linear forms (f, p) of scaled points
        vanish; negative inside where the forms are.
        """
        normals = (forms @ self.axes.T) * self.widths
        sized = np.hstack((normals, (forms @ self.middle)[:, np.newaxis]))
        lengths = np.linalg.norm(normals, axis=1, keepdims=True)
        return np.asarray(sized / np.maximum(lengths, _LEAST_LENGTH))

    def nearest(self, rays: _Rays) -> _Numbers:
        """(n,) which come nearest to others, (n, p)."""
        scaled = rays / self.sizes
        scaled /= scaled.sum(axis=1, keepdims=True)
        places = (scaled - self.middle) @ self.axes.T / self.widths
        apart = np.linalg.norm(self.coordinates[:, np.newaxis] - places, axis=2)
        return np.asarray(apart.argmin(axis=0))

    def rays(self, coordinates: Floats) -> Floats:
        """(n, p) those at some coordinates."""
        return np.asarray((self.middle + (coordinates * self.widths) @ self.axes) * self.sizes)


class _Hull(NamedTuple):
    """vertices: numbers of points that span the rest. faces: (f, d) those of the corners of each.
    planes: (f, d + 1) their normals and offsets, none in fewer than two dimensions.
    """

    vertices: _Numbers
    faces: _Numbers
    planes: Floats


def _hull(coordinates: Floats) -> _Hull | None:
    """None where none is found. Nothing relies on its being right: what it leaves out is compared
    with what it keeps.
    """
    from scipy.spatial import ConvexHull, QhullError

    count, dimension = coordinates.shape
    none = np.empty((0, dimension + 1))
    if dimension == 0:
        return _Hull(np.array([0]), np.empty((0, 0), dtype=np.intp), none)
    if dimension == 1:
        ends = np.array([coordinates[:, 0].argmin(), coordinates[:, 0].argmax()])
        return _Hull(ends, ends[:, np.newaxis], none)
    if count <= dimension + 1:
        return None
    try:
        hull = ConvexHull(coordinates)
    except QhullError:
        return None
    faces = hull.simplices.astype(np.intp)
    return _Hull(np.union1d(hull.vertices, faces), faces, hull.equations)


def _combined(chart: _Chart, hull: _Hull, chosen: NDArray[np.bool_]) -> Floats:
    """(n, p) for each chosen point a combination of spanning points, as near to it as is easily
    found.

    The ray from their mean through the point leaves the hull through a face, the one whose corners
    are needed with no negative share: the point is a combination of them and the mean.
    """
    vertices, faces, _ = hull
    centre = chart.scaled[vertices].mean(axis=0)
    if not len(faces):
        return np.repeat(centre[np.newaxis], int(chosen.sum()), axis=0)
    middle = chart.coordinates[vertices].mean(axis=0)
    apart = chart.coordinates[chosen] - middle
    inverse = _inverse(chart.coordinates[faces] - middle)  # (f, d, corners)
    face = np.concatenate(
        [
            _left_through(apart[start : start + _AT_ONCE], inverse)
            for start in range(0, max(len(apart), 1), _AT_ONCE)
        ]
    )
    shares = np.maximum(_shares(apart, inverse[face]), 0.0)
    rest = np.maximum(1.0 - shares.sum(axis=1), 0.0)
    mixed = np.einsum("nc,ncj->nj", shares, chart.scaled[faces[face]])
    return np.asarray(mixed + rest[:, np.newaxis] * centre)


def _inverse(matrices: Floats) -> Floats:
    """(f, d, d) those of the corners of each face, or what comes near to one that has none."""
    try:
        return np.asarray(np.linalg.inv(matrices), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(matrices), dtype=np.float64)


def _left_through(apart: Floats, inverse: Floats) -> _Numbers:
    """(n,) the face whose corners have the largest least share in each point.

    Where a point leaves through the inside of a face, that is the face in whose corners its shares
    have the largest sum, which is one product to find.
    """
    face = (apart @ inverse.sum(axis=2).T).argmax(axis=1)
    beside = np.flatnonzero(_shares(apart, inverse[face]).min(axis=1) < -_FLAT)
    if len(beside):
        least = apart[beside] @ inverse[:, :, 0].T
        for corner in range(1, inverse.shape[2]):
            np.minimum(least, apart[beside] @ inverse[:, :, corner].T, out=least)
        face[beside] = least.argmax(axis=1)
    return np.asarray(face)


def _shares(apart: Floats, inverse: Floats) -> Floats:
    """(n, corners) of the corners of a face in each point; inverse: (n, d, corners)."""
    return np.asarray(np.einsum("nd,ndc->nc", apart, inverse))


# ---- fewer rays


@dataclass(frozen=True, eq=False)
class _Thinner:
    """Larger cones with fewer rays, bounded by planes that no U crosses.

    kernels: (4, 2, 2) the corners of the box; limits: (m − 1, 2, 2) thresholds under a far value.
    """

    kernels: Floats
    levels: Integers
    limits: Draws
    far: int

    @cached_property
    def goals(self) -> Floats:
        """(outcomes, 2, L + 1, 2, 2) what leads from (x, i) at each distance to an outcome, under
        kernels that are about the worst for it; the second axis is the x whose likelihood is above
        the line. Outcomes are stops that can be, and the far value.
        """
        from offrecord.mechanisms.owner.designing import _set_walk

        stops = np.array([_share(limit) for limit in self.limits.ravel()])
        stops = stops.reshape(self.limits.shape)
        ground = _set_walk.Ground.of(self.kernels, self.levels, walks=4)
        sequences = _set_walk.worst_sequences(ground, stops)
        can_be = np.concatenate((self.limits.any(axis=1), [np.arange(2) == self.far]))
        return np.asarray(_set_walk.goals(ground, stops, sequences)[can_be])

    def thinned(self, cone: _Cone, distance: int) -> _Cone:
        """The cone at a distance, or a larger one. All faces at the rays that are the worst for
        some outcome are kept, so that around these nothing is wider.
        """
        if len(cone.rays) < max(_RAYS, 2 * cone.thinned):
            return cone

        def planes(chart: _Chart, hull: _Hull) -> Floats:
            return _planes_at(self._worst_rays(chart, distance), chart, hull)

        return cone.fewer(planes, _TIMES)

    def _worst_rays(self, chart: _Chart, distance: int) -> _Numbers:
        """Those under which outcomes farther on are the likeliest given one x, in parts of how
        likely they are given the other.
        """
        found = []
        for over in range(2):
            goals = self.goals[:, over, distance]
            goals = goals[goals.any(axis=(1, 2))]
            above, below = np.zeros_like(goals), np.zeros_like(goals)
            above[:, over], below[:, 1 - over] = goals[:, over], goals[:, 1 - over]
            above, below = (part.reshape(-1, 4) * chart.sizes for part in (above, below))
            found.append(((chart.scaled @ above.T) / (chart.scaled @ below.T)).argmax(axis=0))
        return np.unique(np.concatenate(found))


def _proposed(rays: _Rays, planes: Callable[[_Chart, _Hull], Floats], times: int) -> _Rays | None:
    """Rays whose cone holds the others, about; None where these are too flat for that, or have a
    zero.

    Its faces are some planes, which must leave no way out, and so often some more of the faces that
    the others' cone has.
    """
    if not (rays > 0).all():
        return None
    chart = _Chart.of(rays)
    hull = _hull(chart.coordinates)
    if hull is None or not len(hull.planes):
        return None
    chosen = planes(chart, hull)
    for _ in range(times):
        corners = _corners(chosen, chart)
        if corners is None:
            return None
        chosen = np.concatenate((chosen, _farthest(hull.planes, corners)))
    corners = _corners(chosen, chart)
    if corners is None:
        return None
    proposed = chart.rays(corners)
    return proposed[(proposed > 0).all(axis=1)]


def _planes_at(rays: _Numbers, chart: _Chart, hull: _Hull) -> Floats:
    """Those of all faces at some rays, and four beyond which entries would be less than they are:
    between these is no way out.
    """
    least = chart.planes(chart.scaled.min(axis=0)[:, np.newaxis] - np.eye(4))
    return np.concatenate((hull.planes[np.isin(hull.faces, rays).any(axis=1)], least))


def _corners(planes: Floats, chart: _Chart) -> Floats | None:
    """(n, d) of what lies inside all planes; None where none are found."""
    from scipy.spatial import HalfspaceIntersection, QhullError

    try:
        found = HalfspaceIntersection(planes, chart.coordinates.mean(axis=0)).intersections
    except QhullError:
        return None
    return np.asarray(found[np.isfinite(found).all(axis=1)])


def _farthest(planes: Floats, corners: Floats) -> Floats:
    """Planes that some corner lies beyond, the farthest first."""
    beyond = corners @ planes[:, :-1].T + planes[:, -1]
    most, which = beyond.max(axis=1), beyond.argmax(axis=1)
    first = np.argsort(-most, kind="stable")
    chosen = list(dict.fromkeys(which[first[most[first] > _FLAT]].tolist()))
    return planes[chosen[:_FACES]]
