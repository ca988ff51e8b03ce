"""The outcome that tells most about a secret that stands alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from offrecord.mechanisms.owner.designing.laws import outcome_masses
from offrecord.mechanisms.owner.proof import METHOD
from offrecord.mechanisms.owner.stopping import Option, StoppingSide
from offrecord.mechanisms.owner.way import Way
from offrecord.mechanisms.owner.ways import Ways
from offrecord.models.base import Floats
from offrecord.theory.leakage import FirstRelease, WorstOutput
from offrecord.theory.problem import Problem, Secret


class Sight(NamedTuple):
    """What an outcome shows first: a value at a distance, and the far one at the deadline."""

    distance: int
    value: int
    deadline: int
    far: int


@dataclass(eq=False)
class Found:
    """(k, k) the largest log-ratio of x over x', and the outcome that has it."""

    ratios: Floats
    sights: dict[tuple[int, int], Sight | None]

    @classmethod
    def none(cls, k: int) -> Found:
        """Before any outcome."""
        return cls(np.full((k, k), -np.inf), {})

    def meet(self, masses: Floats, distance: int, deadline: int) -> None:
        """masses: (l, x, i) of stopping at a distance."""
        k = masses.shape[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(masses)
            for x in range(k):
                for other in range(k):
                    here = np.where(masses[:, x] > 0, logs[:, x] - logs[:, other], -np.inf)
                    far, value = np.unravel_index(int(np.argmax(here)), here.shape)
                    if here[far, value] > self.ratios[x, other]:
                        self.ratios[x, other] = here[far, value]
                        seen = Sight(distance, int(value), deadline, int(far))
                        self.sights[x, other] = seen


def told_alone(side: StoppingSide, way: Way) -> Found:
    """Of one side."""
    found = Found.none(way.k)
    if side.is_closed:
        found.ratios[:] = 0.0
        return found
    stops, ends = outcome_masses(side, way)
    for masses, distance in zip(stops, side.levels.tolist(), strict=False):
        for j in range(masses.shape[-1]):
            found.meet(masses[..., j], distance, side.deadline)
    at_deadline = np.zeros((way.k, way.k, way.k))
    at_deadline[np.arange(way.k), :, np.arange(way.k)] = ends
    found.meet(at_deadline, side.deadline, side.deadline)
    return found


def worst_of(problem: Problem, secret: Secret, ways: Ways, option: Option) -> WorstOutput:
    """Of an option, around a secret with enough room."""
    left, right = (told_alone(side, ways.of(side)) for side in option)
    total = left.ratios + right.ratios
    np.fill_diagonal(total, -np.inf)
    x, other = (int(one) for one in np.unravel_index(int(np.argmax(total)), total.shape))
    labels = problem.chain.labels

    def seen(found: Found, sign: int) -> FirstRelease | None:
        sight = found.sights.get((x, other))
        if sight is None:
            return None
        edge = secret.first if sign < 0 else secret.last
        if not 1 <= edge + sign * sight.distance <= problem.n:
            return None
        first = edge + sign * sight.distance, labels[sight.value]
        far = edge + sign * sight.deadline, labels[sight.far]
        return FirstRelease(*first, () if sight.distance == sight.deadline else (far,))

    both = (labels[x], labels[x]), (labels[other], labels[other])
    leakage = max(float(total[x, other]), 0.0)
    return WorstOutput(leakage, 0.0, secret, *both, seen(left, -1), seen(right, 1), method=METHOD)
