"""Windows that a posterior's rule gives, as a yardstick: to test them, and to compare orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from offrecord.models.base import Floats, Integers
from offrecord.models.members import Members
from offrecord.models.posterior import Posterior
from offrecord.models.promise import ACCEPTANCE
from offrecord.theory.sides import Direction, local_outcomes, margin_beyond

#: Members for windows that are compared or tested, not released by: over 20 seeds the 99.7 %
#: quantile of 400 is within a tenth of that of 8,000.
_DRAWN = 400
_CONTEXTS = 32  # up to which so many are drawn; of more, as many as fit into the same memory
LONGEST = 20_000  #: records on one side: the widest window of section 5 is 7,524
_LEAST_DRAWN = 100  # of any number of contexts: 128 take 2 s of CPU a budget
_SIDES: tuple[Direction, Direction] = ("left", "right")
_PLACES = 4  # of those that make a difference, at which windows are looked at

Windows = tuple[int | None, ...]


def windows(
    posterior: Posterior, epsilons: Sequence[float], seed: int = 0, longest: int = LONGEST
) -> Windows:
    """Records redacted on each side of a lone private one by the windows of a posterior.

    To its left they are order - 1 at least: its core goes whole.
    """
    contexts = posterior.counts.shape[0]
    drawn = _DRAWN if contexts <= _CONTEXTS else _DRAWN * _CONTEXTS**2 // contexts**2
    drawn = max(drawn, _LEAST_DRAWN)
    allowed = round((1 - ACCEPTANCE[posterior.coverage].quantile) * drawn)
    guesses = mean_windows(posterior, epsilons, longest)
    members = posterior.members(drawn, seed)
    return _of_members(members, epsilons, allowed, longest, guesses)


def mean_windows(
    posterior: Posterior, epsilons: Sequence[float], longest: int = LONGEST
) -> Windows:
    """The same for the mean chain alone."""
    return _of_members(posterior.mean, epsilons, 0, longest, (1,) * len(epsilons))


def _of_members(
    members: Members,
    epsilons: Sequence[float],
    allowed: int,
    longest: int,
    guesses: Windows,
) -> Windows:
    found: list[int | None] = [0] * len(epsilons)
    for place in _looked_at(members):
        leakages = cache(partial(_quantile, members, place, allowed))
        for number, epsilon in enumerate(epsilons):
            guess, known = guesses[number], found[number]
            if guess is None or known is None:
                found[number] = None
                continue
            size = _smallest(leakages, epsilon, longest, guess)
            found[number] = None if size is None else max(size, known)
        members.forget()
    return tuple(found)


def _smallest(
    leakage: Callable[[int], float], epsilon: float, longest: int, guess: int
) -> int | None:
    """The smallest size within a budget, by bisection from a guess on (F3)."""
    low, high = -1, min(guess, longest)
    while leakage(high) > epsilon:
        if high >= longest:
            return None
        low, high = high, min(high + high // 2 + 1, longest)
    while high - low > 1:  # more redaction never leaks more (F3)
        middle = (low + high) // 2
        if leakage(middle) > epsilon:
            low = middle
        else:
            high = middle
    return high


def _quantile(members: Members, place: int, allowed: int, size: int) -> float:
    """Leakage about a lone record that `allowed` members exceed, with so many records redacted on
    each side of it.
    """
    # the core of a lone record holds order - 1 records to its left
    left, right = max(size - members.order + 1, 0), size
    before, after = (margin_beyond(members, place, side) for side in _SIDES)
    left = left if before is None else min(left, before)
    right = right if after is None else min(right, after)
    seen_left, seen_right = (
        local_outcomes(np.ones((count, members.k)), members, place, side)
        for count, side in zip((left, right), _SIDES, strict=True)
    )
    leakages = _leakages(seen_left, seen_right, members.law(place), members.last_value)
    return float(np.sort(leakages)[-1 - allowed])


def _leakages(left: Floats, right: Floats, law: Floats, last_value: Integers) -> Floats:
    """(M,) largest log-ratio of two values over pairs of outcomes; see `record_leakages`, which is
    slower here, as windows have few outcomes that others do not exceed.
    """
    likely, unlikely = np.float64(0.0), np.float64(np.inf)
    for value in np.unique(last_value):
        chosen = last_value == value
        share = law[:, chosen] / law[:, chosen].sum(axis=1, keepdims=True)
        given = (left[:, :, chosen] * share[:, np.newaxis]) @ right[:, :, chosen].swapaxes(1, 2)
        likely, unlikely = np.maximum(likely, given), np.minimum(unlikely, given)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(likely > 0, likely / unlikely, 1.0)
    return np.asarray(np.log(ratios.max(axis=(1, 2))))


def _looked_at(members: Members) -> list[int]:
    count, first = members.place_count, members.order - 1
    if members.places is None:
        return [0]
    if members.places.cyclic:
        return list(range(0, count, max(count // _PLACES, 1)))
    return [first + (count - 1 - first) // 2]
