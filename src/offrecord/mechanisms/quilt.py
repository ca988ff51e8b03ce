"""MarkovQuilt: Algorithm 1 as printed (paper, App. C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms.local_mechanism import LocalMechanism, Sides, always
from offrecord.models.chain import MarkovChain
from offrecord.theory.influence import max_influence
from offrecord.theory.one_side import OneSide
from offrecord.theory.problem import Problem, Secret


@dataclass(frozen=True)
class MarkovQuilt(LocalMechanism):
    """Redact a window around the private record whose border has little enough max-influence.

    As printed: Δ = Δ*(ε), one record more a side than needed. A private run counts as one record;
    Δ* is capped at n where it does not exist.
    """

    name: ClassVar[str] = "quilt"

    def check(self, problem: Problem) -> None:
        """InputError unless the chain has two values and is stationary."""
        if not problem.chain.is_paper_setting:
            raise InputError(
                "quilt takes stationary chains with two values, both of which can change; window"
                " takes every chain"
            )

    def sides(self, problem: Problem, secret: Secret) -> Sides:
        """The window of Algorithm 1, re-indexed so that p ≤ n/2, as the paper assumes."""
        chain, epsilon = problem.chain, problem.epsilon
        margins = secret.first - 1, problem.n - secret.last
        near, far = sorted(margins)
        n, p = near + far + 1, near + 1
        to_right = OneSide(chain, 1, 1, n)
        delta, half = (to_right.delta_star(one) or n for one in (epsilon, epsilon / 2))
        border = _max_influence(chain, n + 1 - p) + _max_influence(chain, p - 1)
        if p == 1 or epsilon < border or p + delta - 2 * half < 0:
            sizes = p - 1, min(delta, n - p)
        else:
            sizes = min(half, near), min(half, far)
        left, right = sizes if margins[0] <= margins[1] else sizes[::-1]
        return always(left, chain.k), always(right, chain.k)


# Of a record at a distance; ∞ for the private record itself.
def _max_influence(chain: MarkovChain, distance: int) -> float:
    return max_influence(chain, 1, 1 + distance) if distance else np.inf
