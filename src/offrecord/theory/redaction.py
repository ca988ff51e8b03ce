"""Redaction matrices: the probability of redaction of each record and value, (n, k)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from offrecord.errors import InputError
from offrecord.models.base import Floats, Mask

if TYPE_CHECKING:
    from offrecord.theory.problem import Problem, Secret

_FIRST_LOOK = 256  # rows: few sides reach further, and long chains have many secrets


def checked_redaction(redaction: ArrayLike, problem: Problem) -> Floats:
    """A redaction matrix of a problem.

    redaction: (n, k) probabilities. Raises InputError for another shape, and numbers that are no
    probabilities.
    """
    shape = (problem.n, problem.chain.k)
    try:
        matrix = np.asarray(redaction, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"redaction must be {shape[0]} × {shape[1]} numbers") from None
    if matrix.shape != shape:
        raise InputError(f"redaction must have shape {shape}, got {matrix.shape}")
    outside = ~((matrix >= 0) & (matrix <= 1))
    if outside.any():
        record, value = np.argwhere(outside)[0]
        raise InputError(
            f"redaction must hold probabilities, got {matrix[record, value]} for record"
            f" {record + 1}"
        )
    return matrix


def rows_beside(matrix: Floats, secret: Secret, order: int) -> tuple[Floats, Floats]:
    """(reach, k) the redaction beside a secret, from it outwards, as far as it makes a difference.

    matrix: (n, k) the whole redaction. For the left and for the right side.
    """
    left, right = matrix[: secret.first - 1][::-1], matrix[secret.last :]
    return _nearest(left, order), _nearest(right, order)


# The rows up to the first `order` rows of zeros.
def _nearest(rows: Floats, order: int) -> Floats:
    count = _FIRST_LOOK
    while True:
        free: Mask = np.logical_not(rows[:count].any(axis=1))
        whole = free.copy()  # whether the next `order` rows are all free
        for further in range(1, order):
            whole[:-further] &= free[further:]
            whole[len(whole) - further :] = False
        found = np.flatnonzero(whole)
        if len(found):
            return rows[: int(found[0])]
        if count >= len(rows):
            used = np.flatnonzero(~free)
            return rows[: int(used[-1]) + 1] if len(used) else rows[:0]
        count *= 8


def released(matrix: Floats, problem: Problem) -> float:
    """Expected number of released records, n·ν (Definition 2), by each record's own law.

    Theorem 1 and Eq. (3) are this sum for a 3R matrix of the paper's chain.

    matrix: (n, k) the redaction.
    """
    return float(((1.0 - matrix) * problem.chain.marginals(1, problem.n)).sum())
