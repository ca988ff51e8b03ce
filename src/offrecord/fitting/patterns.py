"""Patterns beside values: which ones a released neighbourhood shows, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from offrecord.fitting.counting import Keys, Reference, numbered
from offrecord.models.base import Floats, Integers
from offrecord.models.records import MISSING, Codes

LEAST_CASES = 6  #: separate cases beside a value without which a pattern is not looked at
_NEAREST = 3  # values beyond the window on a side that a pattern holds at most
_LEVEL = 12  # records on a side that make a level
_QUARTERS = (0.25, 0.5, 0.75)
_LEVEL_OF_LIMITS = 0.05
_PAIRS = 128  # of patterns and values, as many as two values have: they set the level
_MOST_ODDS = 1e3  # times the promised ones, up to which odds count as visible


@dataclass(frozen=True, eq=False, repr=False)
class Line:
    """Records of chains laid out by step, one chain after the other.

    codes: (n,) values, MISSING where there is none to look at. chain: (n,) number of the chain.
    weight: (n,) of a record among those of its value, so that places count alike beside all values.
    once: of a chain, cases count once.
    """

    codes: Integers
    chain: Integers
    k: int
    weight: Floats
    once: bool

    @classmethod
    def of(cls, reference: Reference, margin: int, place: Keys | None, once: bool) -> Line:
        """The records of a reference; gaps longer than `margin` are as good as that long."""
        chains = reference.chains
        rows = np.arange(len(chains.codes))
        chain = chains.chain_of
        if chains.steps is not None and len(rows):
            apart = np.minimum(np.diff(chains.steps, prepend=0), margin)
            apart[chains.starts[:-1][np.diff(chains.starts) > 0]] = 1
            rows = np.cumsum(apart) - apart[0]
        size = int(rows[-1]) + 1 if len(rows) else 0
        codes = np.full(size, MISSING, dtype=np.int64)
        codes[rows] = np.maximum(chains.codes, MISSING)
        numbers = np.full(size, -1, dtype=np.int64)
        numbers[rows] = chain
        weight = np.ones(size)
        if place is not None:
            weight[rows] = balance(reference.codes, place, reference.k)
        # what lies in a gap belongs to the chain before it
        return cls(codes, np.maximum.accumulate(numbers), reference.k, weight, once)

    def shifted(self, distance: int) -> Integers:
        """(n,) the code of the record so many steps after each; MISSING beyond its chain."""
        found = np.full(len(self.codes), MISSING, dtype=np.int64)
        if abs(distance) >= len(found):
            return found
        here = slice(max(-distance, 0), len(found) - max(distance, 0))
        there = slice(max(distance, 0), len(found) - max(-distance, 0))
        same = self.chain[here] == self.chain[there]
        found[here] = np.where(same, self.codes[there], MISSING)
        return found

    @cached_property
    def frequent(self) -> int:
        """The most frequent value."""
        seen = self.codes[self.codes >= 0]
        return int(np.bincount(seen, minlength=self.k).argmax()) if len(seen) else 0


def balance(codes: Codes, place: Keys, k: int, before: Floats | float = 1.0) -> Floats:
    """(n,) weights with which records of each value lie in places as all records do.

    before: (n,) weights that they have already.
    """
    here = codes >= 0
    count = int(place.max(initial=0)) + 1
    both = place.astype(np.int64)[here] * k + codes[here]
    weight = np.broadcast_to(before, len(codes)) * here
    seen = np.bincount(both, weight[here], minlength=count * k).reshape(count, k)
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / max(float(seen.sum()), 1e-9)
    factor = np.divide(expected, seen, out=np.zeros_like(expected), where=seen > 0)
    weight[here] *= factor.ravel()[both]
    return np.asarray(weight)


class Pattern(NamedTuple):
    """What is looked at beside records. name: in words. key: (n,) what it is there; negative where
    a record of it is missing.
    """

    name: str
    key: Integers


def patterns(line: Line, left_window: int, right_window: int) -> Iterator[Pattern]:
    """The patterns just beyond a window: nearest values, and levels."""
    before: list[Integers] = []
    after: list[Integers] = []
    for count in range(1, _NEAREST + 1):
        before.append(line.shifted(-left_window - count))
        after.append(line.shifted(right_window + count))
        left, right = _tuple(before, line.k), _tuple(after, line.k)
        nearest = "the nearest value"
        if count > 1:
            nearest = f"the pattern of the nearest {count} values"
        yield Pattern(f"{nearest} before a record", left)
        yield Pattern(f"{nearest} after a record", right)
        yield Pattern(f"{nearest} on both sides of a record", _tuple([left, right], line.k**count))
    left, right = _level(line, -left_window, -1), _level(line, right_window, 1)
    yield Pattern("the level before a record", _classes(left))
    yield Pattern("the level after a record", _classes(right))
    both = np.where(np.minimum(left, right) < 0, -1, left + right)
    yield Pattern("the level on both sides of a record", _classes(both))


def _tuple(values: list[Integers], base: int) -> Integers:
    """Several values as one number; negative where one is missing."""
    number = np.zeros(len(values[0]), dtype=np.int64)
    for one in values:
        number = np.where((one < 0) | (number < 0), -1, number * base + one)
    return number


def _level(line: Line, offset: int, side: int) -> Integers:
    """How many of the nearest records have the most frequent value; -1 if one is missing."""
    total = np.zeros(len(line.codes), dtype=np.int64)
    for distance in range(1, _LEVEL + 1):
        code = line.shifted(offset + side * distance)
        total = np.where((code < 0) | (total < 0), -1, total + (code == line.frequent))
    return total


def _classes(level: Integers) -> Integers:
    known = level[level >= 0]
    if len(known) == 0:
        return level
    cuts = np.unique(np.quantile(known, _QUARTERS, method="higher"))
    return np.where(level < 0, -1, np.searchsorted(cuts, level))


class Counted(NamedTuple):
    """Cases of a pattern, by value beside it (k,) and by what it is (Y).

    cases: (k, Y) separate ones. trials: (k, Y) records with the value that so many cases stand for.
    share: (k, Y) of the value's records that show it. own: (k, 1) separate records with the value.
    """

    cases: Floats
    trials: Floats
    share: Floats
    own: Floats


def counted(line: Line, pattern: Pattern, distance: int) -> Counted | None:
    """Count a pattern, cases within `distance` steps as one; None where there are too few."""
    valid = np.flatnonzero((line.codes >= 0) & (pattern.key >= 0))
    if len(valid) < LEAST_CASES:
        return None
    value, weight = line.codes[valid], line.weight[valid]
    clump = line.chain[valid]
    if not line.once:
        # cases nearer than the distance share neighbours, so they count once
        clump = (valid + clump * distance) // distance
    kinds, kind = numbered(pattern.key[valid])
    shape = line.k, len(kinds)
    sums, cases = (
        one.reshape(shape)
        for one in _separate(value * len(kinds) + kind, clump, weight, shape[0] * shape[1])
    )
    totals, own = (one[:, np.newaxis] for one in _separate(value, clump, weight, line.k))
    share = np.divide(sums, totals, out=np.zeros(shape), where=totals > 0)
    trials = np.divide(cases, share, out=np.broadcast_to(own, shape).copy(), where=share > 0)
    return Counted(cases, trials, share, own)


def _separate(group: Integers, clump: Integers, weight: Floats, size: int) -> tuple[Floats, Floats]:
    """(size,) weight of each group, and as how many clumps of equal weight it counts (Kish)."""
    # occurrences that lie near each other say the same, so only separate ones count
    clumps = int(clump.max()) + 1
    keys, where = numbered(group * clumps + clump)
    weights, groups = np.bincount(where, weight), keys // clumps
    sums: Floats = np.bincount(groups, weights, size).astype(np.float64)
    squares: Floats = np.bincount(groups, weights**2, size).astype(np.float64)
    return sums, np.divide(sums**2, squares, out=np.zeros(size), where=squares > 0)


def limits(found: Counted) -> tuple[Floats, Floats]:
    """Lower and upper limits of each share, by Clopper and Pearson, of cases that may be parts."""
    from scipy.special import betaincinv

    enough = int(np.count_nonzero(found.cases >= LEAST_CASES)) * (len(found.cases) - 1)
    # of so many pairs some exceed their limits by chance: Bonferroni beyond those of two values
    level = _LEVEL_OF_LIMITS * min(_PAIRS / max(enough, 1), 1.0)
    rest = np.maximum(found.trials - found.cases, 0.0)
    lower = betaincinv(np.maximum(found.cases, 1e-9), rest + 1, level)
    # few cases may be few because the value comes in few clumps: no more trials than these
    trials = np.minimum(found.trials, found.own)
    cases = found.share * trials
    upper = betaincinv(cases + 1, np.maximum(trials - cases, 1e-9), 1 - level)
    return np.where(found.cases > 0, lower, 0.0), np.where(trials > cases, upper, 1.0)


def odds(found: Counted) -> tuple[float, tuple[int, int, int]] | None:
    """The largest lower limit of odds between two values, and (value, other value, what it is).

    None where no value has enough cases.
    """
    enough = found.cases >= LEAST_CASES
    if not enough.any():
        return None
    lower, upper = limits(found)
    lower = np.where(enough, lower, 0.0)
    # the least upper limit of any value: of the same value it is above the lower limit
    value, other = lower.argmax(axis=0), upper.argmin(axis=0)
    ratios = lower.max(axis=0) / upper.min(axis=0)
    best = int(ratios.argmax())
    return float(ratios[best]), (int(value[best]), int(other[best]), best)


def visible(found: Counted, promised: float) -> float:
    """The least true odds that cases like these would show to exceed `promised`; ∞ if none."""
    # By what the limits would be if shares were as true odds make them, which is so in about half
    # of all tables; of the commonest patterns, between the two values with most records.
    tried = promised * np.geomspace(1.0, _MOST_ODDS, 61)
    seen = found.share * found.trials
    pooled = seen.sum(axis=0) / np.maximum(found.trials.sum(axis=0), 1e-9)
    likely = np.argsort(-np.minimum(pooled, 1 - pooled) * found.trials.min(axis=0))[:8]
    least = np.inf
    for what in likely.tolist():
        pair = np.argsort(-found.trials[:, what])[:2]
        for both in (pair, pair[::-1]):
            trials = found.trials[both, what]
            less = pooled[what] * trials.sum() / (trials[0] * tried + trials[1])
            share = np.array([np.minimum(less * tried, 1.0), less])
            many = np.repeat(trials[:, np.newaxis], len(tried), axis=1)
            like = Counted(share * many, many, share, found.own[both])
            lower, upper = limits(like)
            ok = (lower[0] > promised * upper[1]) & (like.cases[0] >= LEAST_CASES) & (share[0] < 1)
            if ok.any():
                least = min(least, float(tried[ok.argmax()]))
    return least
