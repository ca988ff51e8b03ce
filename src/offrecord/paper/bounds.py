"""The paper's bounds as printed, beside the exact values they stand for.

theorem2_as_printed         utility that no data-independent mechanism exceeds (Theorem 2)
                            exact: data_independent_utility
quilt_utility_as_printed    utility that Algorithm 1 reaches (App. C)
                            exact: design(problem, MarkovQuilt()).utility
relaxed_leakage_as_printed  leakage of a 3R mechanism (Sec. IV-C)
                            exact: leakage(problem, redaction)

The printed ones are loose or wrong in places (docs/errata.md); nothing in Offrecord relies on them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from offrecord.errors import InputError
from offrecord.mechanisms import BestWindow, design
from offrecord.models.base import Floats
from offrecord.theory.influence import max_influence
from offrecord.theory.problem import Problem
from offrecord.theory.redaction import Redaction
from offrecord.theory.side import Side


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
    return max(_theorem2(problem, (1, 2)), 0.0)


def _theorem2(problem: Problem, lost: tuple[int, int]) -> float:
    """Theorem 2's three cases, with `lost` records fewer in the one- and the two-sided case."""
    chain, n, epsilon = problem.chain, problem.n, problem.epsilon
    if not chain.is_paper_setting or len(problem.private) != 1:
        raise InputError(
            "Theorem 2 is about one private record in a stationary chain with two values"
        )
    p = min(problem.private[0], n + 1 - problem.private[0])  # re-indexed, as the paper assumes

    def delta_star(budget: float) -> int:
        return Side(chain.alone, 1, 1, n).delta_star(budget) or n

    to_end, to_start = (float(max_influence(chain, p, t)) for t in (n, 1))
    if epsilon < to_end:
        return 0.0
    one_sided = delta_star(epsilon) + p - 1
    if epsilon >= to_start + to_end:
        return 1 - (min(one_sided, 2 * delta_star(epsilon / 2) - 1) + lost[1]) / n
    return 1 - (one_sided + lost[0]) / n


def relaxed_leakage_as_printed(problem: Problem, redaction: ArrayLike | Redaction) -> float:
    """Sec. IV-C: max over t ∈ M of δ_t − Σ_{i ∈ M_t} log q_i, added over the two sides.

    0 for a side without M. Not the leakage, nor above it: the first release in M itself is left
    out. M and S are read off the matrix.
    """
    if len(problem.private) != 1:
        raise InputError("the relaxed leakage bound is about one private record")
    matrix = (
        redaction
        if isinstance(redaction, Redaction)
        else Redaction.from_matrix(redaction, problem.n, problem.chain.k)
    )
    sides = [side for side in problem.sides(problem.secrets[0]) if side.room]
    return sum((_relaxed_of_side(side, _rows_of_side(side, matrix)) for side in sides), 0.0)


def _rows_of_side(side: Side, matrix: Redaction) -> Floats:
    """(records, k) the redaction of a side, from the secret outwards."""
    origin = side.origin - 1
    if side.direction > 0:
        return matrix.matrix(origin + 1, matrix.n)
    return matrix.matrix(0, origin)[::-1]


def _relaxed_of_side(side: Side, rows: Floats) -> float:
    """One side's part of the relaxed bound."""
    free = np.flatnonzero(~rows.any(axis=1))
    rows = rows[: free[0] + 1] if len(free) else rows  # S begins with the first free record
    medium = np.flatnonzero((rows < 1).any(axis=1) & rows.any(axis=1))
    if len(medium) == 0:
        return 0.0
    spent = np.cumsum(-np.log(rows[medium].min(axis=1)))
    released = np.where(rows < 1, side.influence(len(rows)), -np.inf).max(axis=1)
    deltas = [released[t + 1] if t + 1 < len(rows) else 0.0 for t in medium]
    return float(np.max(np.maximum(deltas, 0.0) + spent))
