"""The cone of all that a walk may meet over a box of kernels of two values (O-sets, claims 1, 2).

A walk under one sequence of kernels keeps four numbers U(x, i): no stop so far, value i there,
given x at the secret's end. Once kernels are chosen all that is done to them is linear: so the
convex cone of all U is spanned by images of rays that span it, by rays that span the cone of all
products of as many kernels as there are steps from one level to the next (claim 3). That one
begins with the identity, and a step takes it on by the corners of the box.

Rays are doubles, and taken as just these numbers. What steps round off, and what rays that are left
out lie outside the cone of those that are kept, is bounded and added up: `missed` says that every U
is V ≤ U ≤ e^missed·V, entry by entry and after scaling, for some V in the cone. Only additions,
multiplications and divisions of nonnegative doubles count there, each within a unit of 2⁻⁵³, and
nothing underflows. Hulls and searches only propose what to keep: a wrong one costs rays, not truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

import flint
import numpy as np
from numpy.typing import NDArray

from offrecord.verify.balls import Ball, Exact, ball, double, infinite
from offrecord.verify.stopping.outcomes import WHOLE
from offrecord.verify.stopping.search import goals_of
from offrecord.verify.stopping.span import (
    Chart,
    Floats,
    Numbers,
    nearest_rays,
    spanning,
    wider,
    worst_rays,
)

_UNIT = flint.fmpq(1, 2**53)
#: Units of a corner of the box: two entries of a ratio; one spare.
_CORNER = 3 * _UNIT
#: Units of a step: a product and a sum, in two entries of a ratio; one spare.
_STEP = 5 * _UNIT
#: Units of a level: the share that goes on, and the product with it.
_LEVEL = 5 * _UNIT
#: No number is smaller; far above where doubles lose digits.
_LEAST = 2.0**-800
#: No probability of a step is.
_LEAST_STEP = 2.0**-100
#: More are too many.
_MOST = 4000
#: Of products of kernels, where more of them are to come.
_MANY_PRODUCTS = 200


class Effort(NamedTuple):
    """From how many rays on cones are replaced by wider ones with fewer: those of walks, and those
    of products of kernels.
    """

    rays: int
    products: int


class Walk(NamedTuple):
    """corners: of the box, the probabilities of a step from 0 to 1 and from 1 to 0. units:
    thresholds in 2⁻⁶⁴ by level but the last, x and value there. effort: how closely it is looked
    at.
    """

    corners: tuple[tuple[Exact, Exact], ...]
    levels: tuple[int, ...]
    units: tuple[int, ...]
    effort: Effort


@dataclass(frozen=True)
class Extreme:
    """At a level, by value there: the largest U(0, i)/U(1, i) and U(1, i)/U(0, i), None where only
    one of them can be; are: which can.
    """

    most: tuple[tuple[float, float], ...]
    are: tuple[tuple[bool, bool], ...]
    missed: Exact

    def told(self, value: int, *units: int) -> Ball:
        """The largest ratio of stopping with a value, thresholds by x; 0 where nobody does."""
        can = [is_there and unit > 0 for is_there, unit in zip(self.are[value], units, strict=True)]
        if not all(can):
            return infinite() if any(can) else flint.arb(0)
        zero, one = units
        over, under = (ball(double(most) * (1 + 4 * _UNIT)) for most in self.most[value])
        rounded = ball(self.missed).exp()
        return (over * zero / one).max(under * one / zero) * rounded


@lru_cache(maxsize=64)
def extremes(walk: Walk) -> list[Extreme] | None:
    """At each level; None where too little is known of rays."""
    corners, levels, units, effort = walk
    kernels = np.array([_kernel(*corner) for corner in corners])
    if kernels.min() < _LEAST_STEP:
        return None
    rests = [_rest(units[4 * level : 4 * level + 4]) for level in range(len(levels) - 1)]
    goals: list[Floats] = []

    def goals_at(distance: int) -> Floats:
        if not goals:
            goals.append(goals_of(kernels, levels, np.array(rests).reshape(-1, 4)))
        return goals[0][:, :, distance]

    products = _products(kernels.tobytes(), effort.products)
    cone = _Cone.beginning()
    found = []
    for level, (before, stop) in enumerate(pairwise((0, *levels))):
        between = products.of(stop - before)
        if between is None:
            return None
        cone = cone.stepped(between)
        if len(cone.rays) >= max(effort.rays, 2 * cone.narrow):
            cone = cone.widened(partial(worst_rays, goals=goals_at(stop)))
        if not cone.is_sound:
            return None
        found.append(cone.extreme())
        if level < len(rests):
            cone = cone.through(rests[level])
    return found


def _kernel(up: Exact, down: Exact) -> list[list[float]]:
    return [[_float(1 - up), _float(up)], [_float(down), _float(1 - down)]]


def _float(number: Exact) -> float:
    """The nearest double."""
    return float(Fraction(int(number.p), int(number.q)))


def _rest(units: Sequence[int]) -> list[float]:
    """What thresholds leave of 1, to the nearest double."""
    return [float(Fraction(WHOLE - unit, WHOLE)) for unit in units]


@dataclass(frozen=True, eq=False)
class _Cone:
    """rays: (n, 4) U(0, 0), U(0, 1), U(1, 0), U(1, 1). narrow: how many there were when it was last
    made wider.
    """

    rays: Floats
    missed: Exact
    narrow: int

    @classmethod
    def beginning(cls) -> _Cone:
        """Of a walk that has not moved; as a product of kernels, that of none."""
        return cls(np.array([[1.0, 0.0, 0.0, 1.0]]), flint.fmpq(0), 0)

    def stepped(self, kernels: _Cone) -> _Cone:
        """Further by any kernel of a cone of them."""
        a, b, c, d = self.rays.T
        images = [
            np.stack((a * p0 + b * q0, a * p1 + b * q1, c * p0 + d * q0, c * p1 + d * q1))
            for p0, p1, q0, q1 in kernels.rays
        ]
        rays = _scaled(np.concatenate(images, axis=1).T)
        missed = self.missed + kernels.missed + _STEP
        if not _is_sound(rays):
            return _Cone(rays, missed, self.narrow)
        kept, lost = spanning(rays)
        return _Cone(rays[kept], missed + double(lost), self.narrow)

    def widened(self, at: Callable[[Chart], Numbers]) -> _Cone:
        """Of fewer rays, if some are found, which is no wider around those that `at` names."""
        found = wider(self.rays, at) if _is_sound(self.rays) else None
        if found is None or len(found[0]) >= len(self.rays) or not _is_sound(found[0]):
            return self
        rays, lost = found
        return _Cone(rays, self.missed + double(lost), len(rays))

    def through(self, rest: Sequence[float]) -> _Cone:
        """Past a level."""
        return _Cone(_scaled(self.rays * np.array(rest)), self.missed + _LEVEL, self.narrow)

    @property
    def is_sound(self) -> bool:
        """All rays have the same zeros, no number is too small, and there are not too many."""
        return len(self.rays) <= _MOST and _is_sound(self.rays)

    def extreme(self) -> Extreme:
        """What ratios there are."""
        are = tuple((bool(self.rays[0, value]), bool(self.rays[0, 2 + value])) for value in (0, 1))
        most: list[tuple[float, float]] = []
        for value, both in enumerate(are):
            zero, one = self.rays[:, value], self.rays[:, 2 + value]
            quotients = (zero / one, one / zero) if all(both) else (np.zeros(1), np.zeros(1))
            most.append((float(quotients[0].max()), float(quotients[1].max())))
        return Extreme(tuple(most), are, self.missed)


class _Products:
    """Cones of all products of 0, 1, 2, … kernels of a box, by their number, which several threads
    may ask for. most: rays that are not too many.
    """

    def __init__(self, kernels: Floats, most: int) -> None:
        self.corners = _Cone(kernels.reshape(-1, 4), _CORNER, 0)
        self.most, self.found = most, {0: _Cone.beginning()}

    def of(self, count: int) -> _Cone | None:
        """The cone of those of so many kernels, or a wider one; None where there are too many rays,
        or some so small that what they are multiplied with might underflow.
        """
        for fewer in range(count):
            if fewer + 1 not in self.found:
                self.found[fewer + 1] = self._few(fewer, _MANY_PRODUCTS).stepped(self.corners)
            if not self.found[fewer + 1].is_sound:  # where hulls of what is nearly flat fail
                return None
        cone = self._few(count, self.most)
        return cone if cone.rays.min() >= _LEAST_STEP else None

    def _few(self, count: int, most: int) -> _Cone:
        """Worst sequences change their kernel rarely: nothing is wider where none does."""
        cone = self.found[count]
        if len(cone.rays) <= most:
            return cone
        same = [np.linalg.matrix_power(one, count) for one in self.corners.rays.reshape(-1, 2, 2)]
        return cone.widened(partial(nearest_rays, others=np.reshape(same, (-1, 4))))


@lru_cache(maxsize=8)
def _products(spelled_kernels: bytes, most: int) -> _Products:
    """Of the corners of a box, which several sides have in common."""
    return _Products(np.frombuffer(spelled_kernels), most)


def _scaled(rays: Floats) -> Floats:
    """By a power of 2 each, which changes no digit."""
    _, exponents = np.frexp(rays.max(axis=1))
    return np.asarray(np.ldexp(rays, -exponents[:, np.newaxis]))


def _is_sound(rays: Floats) -> bool:
    positive: NDArray[np.bool_] = rays > 0
    same = bool(np.all(positive == positive[0]))
    return same and bool(np.all(rays[positive] >= _LEAST))
