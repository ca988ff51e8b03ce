"""MarkovQuilt: Algorithm 1 as printed (paper, App. C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms.policy import Policy
from offrecord.mechanisms.referee import refereed
from offrecord.mechanisms.secrets import SidePlan, per_secret
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.side import Side, binary_influence


@dataclass(frozen=True)
class MarkovQuilt:
    """Redact a window around the private record whose border has little enough max-influence.

    As printed: Δ = Δ*(ε), one record more a side than needed. A private run counts as one record;
    Δ* is capped at n where it does not exist.
    """

    name: ClassVar[str] = "quilt"

    def design(self, problem: Problem) -> Policy:
        """Raises InputError unless the chain has two values and is stationary."""
        if not problem.chain.is_paper_setting:
            raise InputError(
                "quilt takes stationary chains with two values, both of which can change; window"
                " takes every chain"
            )
        return refereed(
            problem, self.name, lambda reduced: per_secret(reduced, _around, share=False)
        )


def _around(problem: Problem, secret: Secret, left: Side, right: Side) -> tuple[SidePlan, SidePlan]:
    near, far = sorted((left.room, right.room))
    n, p = near + far + 1, near + 1  # re-indexed so that p ≤ n/2, as the paper assumes
    epsilon = problem.epsilon

    def high(distance: int) -> float:
        if distance == 0:
            return np.inf
        return float(
            binary_influence(problem.chain.alpha, problem.chain.beta, np.array([distance])).max()
        )

    def delta_star(budget: float) -> int:
        return Side(problem.chain, 1, 1, n).delta_star(budget) or n

    delta, half = delta_star(epsilon), delta_star(epsilon / 2)
    if p == 1 or epsilon < high(n + 1 - p) + high(p - 1) or p + delta - 2 * half < 0:
        near_size, far_size = p - 1, min(delta, n - p)
    else:
        near_size, far_size = min(half, near), min(half, far)
    plans = SidePlan.always(2, near_size), SidePlan.always(2, far_size)
    return plans if left.room <= right.room else plans[::-1]
