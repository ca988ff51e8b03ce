"""The distribution that a kernel keeps, accurate however rare some values are in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers

#: Probability below which a value is too rare for walks to start from it or end at it.
RAREST = 1e-250
# Weights above this lose too little below the smallest float to count.
_SAFE_WEIGHT = 1e-280
_POWER_OF_ZERO = np.int64(-(2**60))  # below the power of every other number


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
