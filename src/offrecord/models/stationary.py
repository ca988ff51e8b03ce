"""Laws of a chain's records: the stationary one, those step by step, and a step back in time.

They are accurate however rare some values are. What can occur is read off the zeros of kernels
alone, so that nothing is lost to small numbers.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from typing import TypeVar

import numpy as np

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers, Mask

#: Probability below which a value is too rare for walks to start from it or end at it.
RAREST = 1e-250
# Weights above this lose too little below the smallest float to count.
_SAFE_WEIGHT = 1e-280
# Probability of a step back in time below which it is inexact.
_RAREST_STEP = 1e-300
_TOGETHER = 256  # kernels whose stationary laws are computed at once: 8 MB at 64 contexts

Row = TypeVar("Row", Floats, Mask)


def stationary_laws(kernels: Floats) -> Floats:
    """(M, S) the stationary law of each of (M, S, S) kernels.

    InputError for a kernel with several closed classes of values.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        parts = []
        for begin in range(0, len(kernels), _TOGETHER):
            weights = _eliminated(kernels[begin : begin + _TOGETHER])
            parts.append((weights / weights.sum(axis=0)).T)
    laws = np.concatenate(parts)
    # kernels with values that never occur, such as known chains may have, need their closed class
    for member in np.flatnonzero(~np.all(np.isfinite(laws), axis=1)):
        laws[member] = stationary_distribution(kernels[member])
    return laws


def stationary_distribution(transition: Floats) -> Floats:
    """(k,) the unique π with π = π·P; InputError if there are several."""
    k = len(transition)
    members = closed_class(transition)
    shares = _shares(transition[np.ix_(members, members)])
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


def _shares(reduced: Floats) -> Floats:
    """(k,) the stationary distribution of a chain in which each value leads to each other."""
    try:
        with np.errstate(all="raise"):
            weights = _eliminated(reduced[np.newaxis])[:, 0]
            if weights.min() > _SAFE_WEIGHT:
                return np.asarray(weights / weights.sum())
    except FloatingPointError:
        pass
    # numbers whose exponents have no limit: 0.2 s for 128 values, and few chains need them
    with localcontext(Context(prec=20, Emin=MIN_EMIN, Emax=MAX_EMAX)):
        exact = np.vectorize(Decimal, otypes=[object])(reduced)
        weights = _eliminated(exact[np.newaxis])[:, 0]
        return np.asarray(weights / weights.sum(), dtype=np.float64)


def _eliminated(kernels: Floats) -> Floats:
    """(S, M) weights in proportion to the stationary laws, the first being 1."""
    # members along the last axis: three times as fast at 36 and 64 contexts
    reduced = np.moveaxis(kernels, 0, 2).copy("C")
    through = np.empty_like(reduced)
    # Grassmann, Taksar and Heyman: taking out a value turns walks through it into steps; sums of
    # positive numbers lose nothing, so small entries are accurate
    for last in range(len(reduced) - 1, 0, -1):
        reduced[:last, last] /= reduced[last, :last].sum(axis=0)
        more = through[:last, :last]
        np.multiply(reduced[:last, last, np.newaxis], reduced[last, :last], out=more)
        reduced[:last, :last] += more
    weights = np.zeros(reduced.shape[1:], reduced.dtype)
    weights[0] = 1
    for i in range(1, len(reduced)):
        weights[i] = (weights[:i] * reduced[:i, i]).sum(axis=0)
    return weights


def settled(transition: Floats, start: Floats) -> Floats:
    """The stationary distribution where the start is that but for its last bits, else the start."""
    # Only for rounding: where transitions are rare, reversed kernels differ by whole factors
    # however close the start is to stationary.
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
    """(…, k, k) whether a walk of so many steps leads from i to j; pattern: whether one does."""
    reached: Mask = np.broadcast_to(np.eye(pattern.shape[-1], dtype=bool), pattern.shape)
    base = pattern
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
