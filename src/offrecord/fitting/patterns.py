"""Patterns beside values: which ones a released neighbourhood shows, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from offrecord.fitting.counting import Keys, Reference, numbered
from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.records import MISSING, Chains, Codes

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
        chains, k = reference.chains, reference.k
        rows = _rows(chains, margin)
        size = int(rows.max(initial=-1)) + 1
        codes = np.full(size, MISSING, dtype=np.int64)
        codes[rows] = np.maximum(chains.codes, MISSING)
        chain, weight = np.full(size, -1, dtype=np.int64), np.ones(size)
        chain[rows] = chains.chain_of
        if place is not None:
            weight[rows] = balance(reference.codes, place, k)
        # what lies in a gap belongs to the chain before it
        return cls(codes, np.maximum.accumulate(chain), k, weight, once)

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


def _rows(chains: Chains, margin: int) -> Integers:
    """(n,) where on a line each record lies."""
    if chains.steps is None or len(chains.codes) == 0:
        return np.arange(len(chains.codes))
    apart = np.minimum(np.diff(chains.steps, prepend=0), margin)
    apart[chains.starts[:-1][np.diff(chains.starts) > 0]] = 1
    return np.asarray(np.cumsum(apart) - apart[0])


def balance(codes: Codes, place: Keys, k: int, before: Floats | float = 1.0) -> Floats:
    """(n,) weights with which records of each value lie in places as all records do.

    before: (n,) weights that they have already.
    """
    here = codes >= 0
    count = int(place.max(initial=0)) + 1
    both = place.astype(np.int64)[here] * k + codes[here]
    weight = np.broadcast_to(before, len(codes)) * here
    seen = np.bincount(both, weight[here], count * k).reshape(count, k).astype(np.float64)
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / max(float(seen.sum()), 1e-9)
    weight[here] *= quotient(expected, seen).ravel()[both]
    return np.asarray(weight)


class Pattern(NamedTuple):
    """What is looked at beside records. name: in words. key: (n,) what it is there; negative where
    a record of it is missing.
    """

    name: str
    key: Integers


def patterns(line: Line, left_window: int, right_window: int) -> Iterator[Pattern]:
    """The patterns just beyond a window: nearest values, and levels."""
    for count in range(1, _NEAREST + 1):
        steps = range(1, count + 1)
        left = _tuple([line.shifted(-left_window - step) for step in steps], line.k)
        right = _tuple([line.shifted(right_window + step) for step in steps], line.k)
        what = "nearest value" if count == 1 else f"pattern of the nearest {count} values"
        yield from _beside(what, left, right, _tuple([left, right], line.k**count))
    left, right = _level(line, -left_window, -1), _level(line, right_window, 1)
    both = np.where(np.minimum(left, right) < 0, -1, left + right)
    yield from _beside("level", *map(_classes, (left, right, both)))


def _beside(what: str, *keys: Integers) -> Iterator[Pattern]:
    """A pattern before a record, after it, and on both sides."""
    sides = ("before a record", "after a record", "on both sides of a record")
    for key, side in zip(keys, sides, strict=True):
        yield Pattern(f"the {what} {side}", key)


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
    # a level of its own for each count would have too few cases
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

    @classmethod
    def of(cls, sums: Floats, cases: Floats, totals: Floats, own: Floats) -> Counted:
        """From (k, Y) weights and cases, and (k, 1) those of all records with the value."""
        share = quotient(sums, totals)
        trials = np.where(share > 0, quotient(cases, share), own)
        return cls(cases, trials, share, own)


def quotient(above: Floats, below: Floats) -> Floats:
    """One array over another; 0 where the other is 0."""
    size = np.broadcast_shapes(above.shape, below.shape)
    return np.divide(above, below, out=np.zeros(size), where=below > 0)


def counted(line: Line, pattern: Pattern, distance: int) -> Counted | None:
    """Count a pattern, cases within `distance` steps as one; None where there are too few."""
    valid = np.flatnonzero((line.codes >= 0) & (pattern.key >= 0))
    if len(valid) < LEAST_CASES:
        return None
    value, weight, clump = line.codes[valid], line.weight[valid], line.chain[valid]
    if not line.once:
        # cases nearer than the distance share neighbours, so they count once
        clump = (valid + clump * distance) // distance
    kinds, kind = numbered(pattern.key[valid])
    cells = value * len(kinds) + kind
    sums, cases = _separate(cells, clump, weight, line.k * len(kinds))
    totals, own = _separate(value, clump, weight, line.k)
    return Counted.of(*(one.reshape(line.k, -1) for one in (sums, cases, totals, own)))


def _separate(group: Integers, clump: Integers, weight: Floats, size: int) -> tuple[Floats, Floats]:
    """(size,) weight of each group, and as how many clumps of equal weight it counts (Kish)."""
    # occurrences that lie near each other say the same, so only separate ones count
    clumps = int(clump.max()) + 1
    keys, where = numbered(group * clumps + clump)
    weights, groups = np.bincount(where, weight), keys // clumps
    sums: Floats = np.bincount(groups, weights, size).astype(np.float64)
    squares: Floats = np.bincount(groups, weights**2, size).astype(np.float64)
    return sums, quotient(sums**2, squares)


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
            trials, own = found.trials[both, what], found.own[both]
            shown = tried[_is_shown(tried, promised, pooled[what], trials, own)]
            least = min(least, float(shown.min(initial=np.inf)))
    return least


def _is_shown(tried: Floats, promised: float, pooled: float, trials: Floats, own: Floats) -> Mask:
    """Which true odds between two values the limits of their cases would show.

    pooled: share of both values' records that show the pattern. trials, own: of the two.
    """
    less = pooled * trials.sum() / (trials[0] * tried + trials[1])
    share = np.array([np.minimum(less * tried, 1.0), less])
    many = np.repeat(trials[:, np.newaxis], len(tried), axis=1)
    like = Counted(share * many, many, share, own)
    lower, upper = limits(like)
    shown = (lower[0] > promised * upper[1]) & (like.cases[0] >= LEAST_CASES) & (share[0] < 1)
    return np.asarray(shown)
