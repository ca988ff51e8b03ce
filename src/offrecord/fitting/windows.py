"""Windows that a posterior's rule gives, as a yardstick: to test them, and to compare orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from offrecord.models.base import Floats
from offrecord.models.members import Members
from offrecord.models.posterior import Posterior
from offrecord.models.promise import ACCEPTANCE
from offrecord.theory.pairs import record_leakages
from offrecord.theory.sides import local_outcomes, room_beyond

#: Members for windows that are compared or tested, not released by: over 20 seeds the 99.7 %
#: quantile of 400 is within a tenth of that of 8,000.
_DRAWN = 400
_CONTEXTS = 32  # up to which so many are drawn; of more, as many as fit into the same memory
_LONGEST = 20_000  # records on one side: the widest window of section 5 is 7,524
_PLACES = 4  # of those that make a difference, at which windows are looked at

Windows = tuple[int | None, ...]


def windows(posterior: Posterior, epsilons: Sequence[float], seed: int = 0) -> Windows:
    """Records redacted on each side of a lone private one by the windows of a posterior.

    To its left they are order - 1 at least: its core goes whole.

    Args:
        posterior: the plausible chains.
        epsilons: budgets.
        seed: of the draws.

    Returns:
        For each budget the largest over a few places; None if no window is long enough.
    """
    contexts = posterior.counts.shape[0]
    drawn = _DRAWN if contexts <= _CONTEXTS else _DRAWN * _CONTEXTS**2 // contexts**2
    drawn = max(drawn, 100)
    allowed = round((1 - ACCEPTANCE[posterior.coverage].quantile) * drawn)
    return _of_members(posterior.members(drawn, seed), epsilons, allowed)


def mean_windows(posterior: Posterior, epsilons: Sequence[float]) -> Windows:
    """The same for the mean chain alone."""
    return _of_members(posterior.mean, epsilons, 0)


def _of_members(members: Members, epsilons: Sequence[float], allowed: int) -> Windows:
    by_place = [_at(members, place, epsilons, allowed) for place in _looked_at(members)]
    return tuple(
        None if None in sizes else max(size for size in sizes if size is not None)
        for sizes in zip(*by_place, strict=True)
    )


def _at(members: Members, place: int, epsilons: Sequence[float], allowed: int) -> Windows:
    """The smallest sizes at a place that all but `allowed` members keep; by bisection (F3)."""
    leakages = cache(lambda size: np.sort(_leakages(members, place, size))[-1 - allowed])
    found = tuple(_smallest(leakages, epsilon) for epsilon in epsilons)
    members.forget()
    return found


def _smallest(leakage: Callable[[int], float], epsilon: float) -> int | None:
    low, high = -1, 0
    while leakage(high) > epsilon:
        if high >= _LONGEST:
            return None
        low, high = high, max(2 * high, 1)
    while high - low > 1:
        middle = (low + high) // 2
        if leakage(middle) > epsilon:
            low = middle
        else:
            high = middle
    return high


def _leakages(members: Members, place: int, size: int) -> Floats:
    """(M,) leakage about a lone record with so many records redacted on each side of it."""
    # the core of a lone record holds order - 1 records to its left
    left, right = max(size - members.order + 1, 0), size
    before, after = (room_beyond(members, place, side) for side in ("left", "right"))
    left = left if before is None else min(left, before)
    right = right if after is None else min(right, after)
    return record_leakages(
        local_outcomes(np.ones((left, members.k)), members, place, "left"),
        local_outcomes(np.ones((right, members.k)), members, place, "right"),
        members.law(place),
        members.last_value,
    )


def _looked_at(members: Members) -> list[int]:
    count, first = members.place_count, members.order - 1
    if members.places is None:
        return [0]
    if members.places.cyclic:
        return list(range(0, count, max(count // _PLACES, 1)))
    return [first + (count - 1 - first) // 2]
