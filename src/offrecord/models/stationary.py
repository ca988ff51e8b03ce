"""Laws of a chain's records: the stationary one, those step by step, and a step back in time.

They are accurate however rare some values are. What can occur is read off the zeros of kernels
alone, so that nothing is lost to small numbers.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers, Mask

#: Probability below which a value is too rare for walks to start from it or end at it.
RAREST = 1e-250
# Weights above this lose too little below the smallest float to count.
_SAFE_WEIGHT = 1e-280
_POWER_OF_ZERO = np.int64(-(2**60))  # below the power of every other number
# Probability of a step back in time below which it is inexact.
_RAREST_STEP = 1e-300

Row = TypeVar("Row", Floats, Mask)


def stationary_distribution(transition: Floats) -> Floats:
    """(k,) the unique π with π = π·P; InputError if there are several.

    By Grassmann–Taksar–Heyman elimination: it subtracts nothing, so small entries are accurate.
    """
    k = len(transition)
    members = closed_class(transition)
    reduced = transition[np.ix_(members, members)]
    try:
        with np.errstate(all="raise"):
            weights = _eliminated(reduced.copy())
            if not weights.min() > _SAFE_WEIGHT:
                raise FloatingPointError
            shares = weights / weights.sum()
    except FloatingPointError:
        shares = _eliminated_apart(reduced)
    # two values are their own reverse, however rare one of them is
    if k > 2 and np.any(shares < RAREST):
        raise InputError(
            "start must be given: in the long run a value is taken with probability below"
            f" {RAREST:g}, too rare to compute with; or make the transitions to it 0, or"
            " likelier"
        )
    result = np.zeros(k)
    result[members] = shares
    return result


def settled(transition: Floats, start: Floats) -> Floats:
    """The stationary distribution where the start is that but for its last bits, else the start."""
    try:
        stationary = stationary_distribution(transition)
    except InputError:
        return start
    return stationary if np.all(np.abs(start - stationary) <= 2.0**-50 * stationary) else start


def closed_class(transition: Floats) -> Integers:
    """The values that the chain never leaves once it is among them; InputError if it may choose."""
    if np.all(transition > 0):
        return np.arange(len(transition))
    from scipy.sparse.csgraph import connected_components

    count, component = connected_components(transition > 0, directed=True, connection="strong")
    closed = [
        c for c in range(count) if not np.any(transition[component == c][:, component != c] > 0)
    ]
    if len(closed) > 1:
        raise InputError(
            f"start must be given: the chain has {len(closed)} separate closed classes of values"
        )
    return np.flatnonzero(component == closed[0])


def _eliminated(reduced: Floats) -> Floats:
    """(k,) weights in proportion to π, the first being 1; FloatingPointError if one is too small.

    Values are taken out from the last to the first: walks through a value that is taken out
    become steps of their own. Then weights follow in the other direction.
    """
    for last in range(len(reduced) - 1, 0, -1):
        reduced[:last, last] /= reduced[last, :last].sum()
        reduced[:last, :last] += np.outer(reduced[:last, last], reduced[last, :last])
    weights = np.zeros(len(reduced))
    weights[0] = 1.0
    for i in range(1, len(reduced)):
        weights[i] = weights[:i] @ reduced[:i, i]
    return weights


# ---- the same elimination with exponents apart from the numbers, so that none is too small


def _eliminated_apart(reduced: Floats) -> Floats:
    """(k,) the stationary distribution π, step by step as in `_eliminated`."""
    parts, powers = _apart(*np.frexp(reduced))
    for last in range(len(reduced) - 1, 0, -1):
        total, power = _sum_apart(parts[last, :last], powers[last, :last])
        parts[:last, last], powers[:last, last] = _apart(
            parts[:last, last] / total, powers[:last, last] - power
        )
        through_parts, through_powers = _apart(
            np.outer(parts[:last, last], parts[last, :last]),
            np.add.outer(powers[:last, last], powers[last, :last]),
        )
        parts[:last, :last], powers[:last, :last] = _sum_apart(
            np.stack((parts[:last, :last], through_parts)),
            np.stack((powers[:last, :last], through_powers)),
        )
    weights, scales = np.ones(len(reduced)), np.zeros(len(reduced), dtype=np.int64)
    for i in range(1, len(reduced)):
        steps = _apart(weights[:i] * parts[:i, i], scales[:i] + powers[:i, i])
        weights[i], scales[i] = _sum_apart(*steps)
    total, power = _sum_apart(*_apart(weights, scales))
    return np.asarray(np.ldexp(weights / total, np.clip(scales - power, -5000, 5000)))


def _apart(parts: Any, powers: Any) -> tuple[Any, Any]:
    """Numbers parts·2^powers with parts from ½ to 1; 0 with a power below all others."""
    parts, more = np.frexp(parts)
    return parts, np.where(parts == 0, _POWER_OF_ZERO, powers + more.astype(np.int64))


def _sum_apart(parts: Any, powers: Any) -> tuple[Any, Any]:
    """The sum over the first axis."""
    top = powers.max(axis=0)
    return _apart(np.ldexp(parts, np.maximum(powers - top, -2000)).sum(axis=0), top)


# ---- record by record


def walked(row: Row, kernels: Row, count: int) -> Row:
    """(count, k) a distribution (or which values can occur) at the first `count` records.

    row: at the first. kernels: (1, k, k), one for every step, or (count − 1, k, k).
    """
    rows = np.empty((count, len(row)), dtype=row.dtype)
    rows[0] = row
    for i in range(1, count):
        rows[i] = rows[i - 1] @ kernels[0 if len(kernels) == 1 else i - 1]
    return rows


def pattern_power(pattern: Mask, steps: int) -> Mask:
    """(k, k) whether a walk of so many steps leads from i to j; pattern: whether one step does."""
    reached, base = np.eye(len(pattern), dtype=bool), pattern
    while steps:
        if steps & 1:
            reached = _followed(reached, base)
        steps >>= 1
        if steps:
            base = _followed(base, base)
    return reached


def _followed(first: Mask, then: Mask) -> Mask:
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
