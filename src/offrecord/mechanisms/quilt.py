"""MarkovQuilt: Algorithm 1 as printed (paper, App. C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms.local.side_mechanism import SideMechanism
from offrecord.mechanisms.local.stretches import Sides, Stretches
from offrecord.models.chain import MarkovChain
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.side import Side, binary_influence


@dataclass(frozen=True)
class MarkovQuilt(SideMechanism):
    """Redact a window around the private record whose border has little enough max-influence.

    As printed: Δ = Δ*(ε), one record more a side than needed. A private run counts as one record;
    Δ* is capped at n where it does not exist.
    """

    name: ClassVar[str] = "quilt"

    is_sharing: ClassVar[bool] = False

    def check(self, problem: Problem) -> None:
        """InputError unless the chain has two values and is stationary."""
        if problem.corner is None or not problem.corner.is_paper_setting:
            raise InputError(
                "quilt takes stationary chains with two values, both of which can change; window"
                " takes every chain"
            )

    def sides(self, problem: Problem, secret: Secret, left: Side, right: Side) -> Sides:
        """The window of Algorithm 1, re-indexed so that p ≤ n/2, as the paper assumes."""
        near, far = sorted((left.room, right.room))
        n, p = near + far + 1, near + 1
        chain, epsilon = problem.corner or problem.chain, problem.epsilon
        delta, half = (
            Side(chain, 1, 1, n).delta_star(budget) or n for budget in (epsilon, epsilon / 2)
        )
        border = _max_influence(chain, n + 1 - p) + _max_influence(chain, p - 1)
        if p == 1 or epsilon < border or p + delta - 2 * half < 0:
            near_size, far_size = p - 1, min(delta, n - p)
        else:
            near_size, far_size = min(half, near), min(half, far)
        sides = Stretches.always(2, near_size), Stretches.always(2, far_size)
        return sides if left.room <= right.room else (sides[1], sides[0])


def _max_influence(chain: MarkovChain, distance: int) -> float:
    """Of a record at a distance; ∞ for the private record itself."""
    if distance == 0:
        return np.inf
    return float(binary_influence(chain.alpha, chain.beta, np.array([distance])).max())
