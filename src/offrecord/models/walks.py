"""Walks along a chain, record by record: how likely values get, which can occur, and back in time.

What can occur is told from the zeros of kernels alone, so that nothing is lost to small numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats

Pattern = NDArray[np.bool_]
Row = TypeVar("Row", Floats, Pattern)

# Probability of a step back in time below which it is inexact.
_RAREST_STEP = 1e-300


def walked(row: Row, kernels: Row, count: int) -> Row:
    """(count, k) a distribution (or which values can occur) at the first `count` records.

    row: at the first. kernels: (1, k, k), one for every step, or (count − 1, k, k).
    """
    rows = np.empty((count, len(row)), dtype=row.dtype)
    rows[0] = row
    for i in range(1, count):
        rows[i] = rows[i - 1] @ kernels[0 if len(kernels) == 1 else i - 1]
    return rows


def pattern_power(pattern: Pattern, steps: int) -> Pattern:
    """(k, k) whether a walk of so many steps leads from i to j; pattern: whether one step does."""
    reached, base = np.eye(len(pattern), dtype=bool), pattern
    while steps:
        if steps & 1:
            reached = _followed(reached, base)
        steps >>= 1
        if steps:
            base = _followed(base, base)
    return reached


def pattern_powers(pattern: Pattern) -> Iterator[Pattern]:
    """`pattern_power` of 0, 1, 2, … steps, without end."""
    reached = np.eye(len(pattern), dtype=bool)
    while True:
        yield reached
        reached = _followed(reached, pattern)


def _followed(first: Pattern, then: Pattern) -> Pattern:
    """Which pairs two walks, one after the other, lead between."""
    # whole numbers below 2^24: exact in these floats, whose product is many times as fast
    return (first.astype(np.float32) @ then.astype(np.float32)) > 0


def step_back(before: Floats, kernel: Floats, here: Floats) -> Floats:
    """(k, k) Pr(X_{t−1} = i | X_t = j) in row j, by Bayes; 0 for values that never occur (F7).

    before, here: the distributions of X_{t−1} and X_t. kernel: from the one to the other.
    """
    joint = before[:, np.newaxis] * kernel
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        back = np.where(here > 0, joint / here, 0.0)
        small = (joint < _RAREST_STEP) & (before > 0)[:, np.newaxis] & (kernel > 0) & (here > 0)
        if np.any(small):  # the product is too small for a float, the quotient need not be
            back = np.where(small, kernel * (before[:, np.newaxis] / here), back)
            if np.any(back[small] < _RAREST_STEP):
                raise InputError(
                    f"a step that is taken back in time with probability below {_RAREST_STEP:g}"
                    " makes walks to the left inexact; make transitions this rare 0, or likelier"
                )
    return np.ascontiguousarray(back.T)
