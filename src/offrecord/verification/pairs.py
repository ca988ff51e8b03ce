"""What both sides of a lone record show together, and the largest ratio of one side.

Exact leakage about the record is the largest log-ratio, over two of its values and over an outcome
a on the left and b on the right, of Σ_z Pr(z | value)·a(z)·b(z) (S3). Walks have thousands of
outcomes a side, so pairs that cannot be the largest are left out by two upper bounds each.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from offrecord.models.base import Floats, Integers, Mask

_DIRECT = 1 << 14  # pairs of outcomes that are all computed: faster than leaving out some
_BEST = 24  # outcomes of each side that are tried first, by either bound
_TILE = 1 << 11  # outcomes of one side that are multiplied at a time


def largest_ratio(outcomes: Floats, law: Floats) -> Floats:
    """(M,) the largest log-ratio of outcomes (M, O, S) between start contexts that occur."""
    occurs = (law > 0)[:, np.newaxis]
    most = np.where(occurs, outcomes, 0.0).max(axis=2)
    least = np.where(occurs, outcomes, np.inf).min(axis=2)
    return _log(most, least)


def _log(most: Floats, least: Floats) -> Floats:
    """(M,) the largest log(most / least) over outcomes, of those that can occur."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(most) - np.log(least)
    return np.asarray(np.where(most > 0, found, 0.0).max(axis=1, initial=0.0))


def joint_leakage(left: Floats, right: Floats, law: Floats, k: int) -> Floats:
    """(M,) leakage about the last record of the start context, from outcomes (M, O, S)."""
    members, contexts = law.shape
    shares = law.reshape(members, contexts // k, k)
    total = shares.sum(axis=1, keepdims=True)
    shares = shares / np.where(total > 0, total, 1.0)
    before = left.reshape(members, -1, contexts // k, k)
    after = right.reshape(members, -1, contexts // k, k)
    if contexts == k:
        return _of_values(before[:, :, 0], after[:, :, 0], law > 0)
    if before.shape[1] * after.shape[1] <= _DIRECT:
        return _all_pairs(before, after, shares, total[:, 0] > 0)
    # one by one, as the pairs that are left out differ
    each = zip(before, after, shares, total[:, 0] > 0, strict=True)
    return np.array([_of_member(*one) for one in each])


def _of_member(before: Floats, after: Floats, shares: Floats, occurs: Mask) -> float:
    given, found = (before * shares, after), 0.0
    sides = _Side(given[0], before), _Side(after * shares, after)
    for one, other in permutations(np.flatnonzero(occurs).tolist(), 2):
        found = _largest(given, sides, one, other, found)
    return found


def _of_values(before: Floats, after: Floats, occurs: Mask) -> Floats:
    """(M,) of order 1, where the sides' ratios for two values add (F2)."""
    found = np.zeros(len(before))
    with np.errstate(divide="ignore"):
        sides = np.log(before), np.log(after)
    for one, other in permutations(range(before.shape[2]), 2):
        left, right = (_apart(side[:, :, one], side[:, :, other]).max(axis=1) for side in sides)
        found = np.maximum(found, np.where(occurs[:, one] & occurs[:, other], left + right, 0.0))
    return found


def _all_pairs(before: Floats, after: Floats, shares: Floats, occurs: Mask) -> Floats:
    """(M,) by every pair of outcomes."""
    weighed = before * shares[:, np.newaxis]
    shape = before.shape[0], before.shape[1] * after.shape[1]
    most, least = np.zeros(shape), np.full(shape, np.inf)
    for value in range(shares.shape[2]):
        given = (weighed[:, :, :, value] @ after[:, :, :, value].swapaxes(1, 2)).reshape(shape)
        here = occurs[:, value, np.newaxis]
        most = np.maximum(most, np.where(here, given, 0.0))
        least = np.minimum(least, np.where(here, given, np.inf))
    return _log(most, least)


class _Side:
    """Of one side's outcomes: their likelihood given each value, and the range over contexts."""

    def __init__(self, weighed: Floats, plain: Floats) -> None:
        with np.errstate(divide="ignore"):
            self.given = np.log(weighed.sum(axis=1))  # (O, k)
            self.most, self.least = np.log(plain.max(axis=1)), np.log(plain.min(axis=1))

    def mean(self, one: int, other: int) -> Floats:
        """(O,) log-ratio of two values, for an observer of this side alone."""
        return _apart(self.given[:, one], self.given[:, other])

    def range(self, one: int, other: int) -> Floats:
        """(O,) the most that it can be, whatever is known about the context."""
        return _apart(self.most[:, one], self.least[:, other])


def _apart(one: Floats, other: Floats) -> Floats:
    """one - other, by outcome; outcomes that do not occur under the first are never the largest."""
    return np.where(np.isneginf(one), -np.inf, one - np.where(np.isneginf(one), 0.0, other))


def _largest(
    given: tuple[Floats, Floats], sides: tuple[_Side, _Side], one: int, other: int, least: float
) -> float:
    """The largest log-ratio of two values over pairs of outcomes, or `least` if that is larger."""
    # a pair (a, b) is at most mean(a) + range(b), and at most range(a) + mean(b)
    means = [side.mean(one, other) for side in sides]
    ranges = [side.range(one, other) for side in sides]
    tried = [_first(*both) for both in zip(means, ranges, strict=True)]
    least = max(least, _block(given, tried[0], tried[1], one, other))
    kept = [np.arange(len(mean)) for mean in means]
    for _ in range(2):  # fewer on one side lower the other side's bounds
        for here, there in ((0, 1), (1, 0)):
            if not len(kept[there]):
                return least
            top_range = ranges[there][kept[there]].max()
            top_mean = means[there][kept[there]].max()
            bound = np.minimum(means[here] + top_range, ranges[here] + top_mean)
            kept[here] = np.flatnonzero(bound > least)
    for at in range(0, len(kept[0]), _TILE):
        some = kept[0][at : at + _TILE]
        least = max(least, _block(given, some, kept[1], one, other))
    return least


def _first(mean: Floats, most: Floats) -> Integers:
    """The outcomes that are tried first."""
    return np.unique(np.concatenate([np.argsort(by)[-_BEST:] for by in (mean, most)]))


def _block(
    given: tuple[Floats, Floats], some: Integers, others: Integers, one: int, other: int
) -> float:
    """The largest log-ratio over all pairs of some outcomes."""
    likely, unlikely = (
        given[0][some][:, :, value] @ given[1][others][:, :, value].T for value in (one, other)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(likely > 0, likely / unlikely, 0.0)
    most = float(ratios.max(initial=0.0))
    return float(np.log(most)) if most > 0 else 0.0
