"""The paper's bounds as printed, beside the exact values they stand for.

theorem2_as_printed         utility that no data-independent mechanism exceeds (Theorem 2)
                            exact: data_independent_utility
quilt_utility_as_printed    utility that Algorithm 1 reaches (App. C)
                            exact: design(problem, MarkovQuilt()).utility
relaxed_leakage_as_printed  leakage of a 3R mechanism (Sec. IV-C)
                            exact: leakage(problem, redaction)

The printed ones are loose or wrong in places (docs/proofs/errata.md). Nothing in Offrecord relies
on them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from offrecord.errors import InputError
from offrecord.mechanisms import design
from offrecord.mechanisms.window import BestWindow
from offrecord.models.base import Floats
from offrecord.theory.influence import max_influence
from offrecord.theory.leakage import checked_redaction, rows_beside
from offrecord.theory.one_side import OneSide
from offrecord.theory.problem import Problem


def data_independent_utility(problem: Problem) -> float:
    """The largest utility of any data-independent local mechanism, exact."""
    return design(problem, BestWindow()).utility


def theorem2_as_printed(problem: Problem) -> float:
    """Theorem 2: an upper bound on data-independent utility.

    It is off by one record for two-sided releases, by more for α + β > 1.
    """
    return _theorem2(problem, (0, 0))


def quilt_utility_as_printed(problem: Problem) -> float:
    """App. C: a lower bound on the utility of Algorithm 1.

    It is one record below Theorem 2 for a one-sided release, two for a two-sided one.
    """
    # below 0 it would say nothing: utility is a share
    return max(_theorem2(problem, (1, 2)), 0.0)


def _theorem2(problem: Problem, lost: tuple[int, int]) -> float:
    # Theorem 2's three cases, with `lost` records fewer in the one- and the two-sided case.
    chain, n, epsilon = problem.chain, problem.n, problem.epsilon
    if not chain.is_paper_setting or len(problem.private) != 1:
        raise InputError(
            "Theorem 2 is about one private record in a stationary chain with two values"
        )
    p = min(problem.private[0], n + 1 - problem.private[0])  # re-indexed, as the paper assumes
    side = OneSide(chain, 1, 1, n)

    def delta_star(budget: float) -> int:
        return side.delta_star(budget) or n  # none is small enough: the whole chain

    to_end, to_start = (max_influence(chain, p, t) for t in (n, 1))
    if epsilon < to_end:
        return 0.0
    one_sided = delta_star(epsilon) + p - 1
    if epsilon >= to_start + to_end:
        return 1 - (min(one_sided, 2 * delta_star(epsilon / 2) - 1) + lost[1]) / n
    return 1 - (one_sided + lost[0]) / n


def relaxed_leakage_as_printed(problem: Problem, redaction: ArrayLike) -> float:
    """Sec. IV-C: max over t ∈ M of δ_t − Σ_{i ∈ M_t} log q_i, added over the two sides.

    0 for a side without M. Not the leakage, nor above it: the first release in M itself is left
    out. M and S are read off the matrix.
    """
    if len(problem.private) != 1:
        raise InputError("the relaxed leakage bound is about one private record")
    secret = problem.secrets[0]
    rows = rows_beside(checked_redaction(redaction, problem), secret, 1)
    sides = zip(OneSide.both(problem, secret), rows, strict=True)
    return sum((_relaxed_of_side(side, rows) for side, rows in sides if side.margin), 0.0)


def _relaxed_of_side(side: OneSide, rows: Floats) -> float:
    # One side's part of the relaxed bound; rows: up to region S, from the secret outwards.
    if len(rows) < side.margin:  # S begins with the first free record
        rows = np.vstack((rows, np.zeros(rows.shape[1])))
    medium = np.flatnonzero((rows < 1).any(axis=1) & rows.any(axis=1))
    if len(medium) == 0:
        return 0.0
    spent = np.cumsum(-np.log(rows[medium].min(axis=1)))
    released = np.where(rows < 1, side.influence(len(rows)), -np.inf).max(axis=1)
    deltas = [released[t + 1] if t + 1 < len(rows) else 0.0 for t in medium]
    return float(np.max(np.maximum(deltas, 0.0) + spent))
