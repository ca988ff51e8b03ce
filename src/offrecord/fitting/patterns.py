"""Patterns beside values: which a released neighbourhood shows, and how often beside which value.

Occurrences that lie near each other say the same, so only separate ones count. Limits are those of
Clopper and Pearson for so many separate cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from offrecord.fitting.counting import Keys, Reference
from offrecord.models.base import Floats, Integers
from offrecord.models.records import MISSING, Codes

LEAST_CASES = 6  #: separate cases beside a value without which a pattern is not looked at
_NEAREST = 3  # values beyond the window on a side that a pattern holds at most
_LEVEL = 12  # records on a side that make a level
_QUARTERS = (0.25, 0.5, 0.75)
_CONFIDENCE = 0.95  # of each limit: 0 of 2,986 tables that obey the model are called broken


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
            weight[rows] = _balance(reference.codes, place, reference.k)
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


def _balance(codes: Codes, place: Keys, k: int) -> Floats:
    """(n,) weights with which records of each value lie in places as all records do."""
    here = codes >= 0
    count = int(place.max(initial=0)) + 1
    both = place.astype(np.int64) * k + codes
    seen = np.bincount(both[here], minlength=count * k).reshape(count, k)
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / max(int(seen.sum()), 1)
    weight = np.zeros(len(codes))
    weight[here] = (expected / np.maximum(seen, 1)).ravel()[both[here]]
    return weight


class Pattern(NamedTuple):
    """What is looked at beside records. name: in words. key: (n,) what it is there; negative where
    a record of it is missing.
    """

    name: str
    key: Integers


def patterns(line: Line, window: int) -> Iterator[Pattern]:
    """The patterns just beyond a window: nearest values, and levels."""
    nearest: dict[int, list[Integers]] = {-1: [], 1: []}
    for count in range(1, _NEAREST + 1):
        for side, values in nearest.items():
            values.append(line.shifted(side * (window + count)))
        left, right = (_tuple(nearest[side], line.k) for side in (-1, 1))
        many = "value" if count == 1 else f"{count} values"
        yield Pattern(f"the nearest {many} released before it", left)
        yield Pattern(f"the nearest {many} released after it", right)
        yield Pattern(f"the nearest {many} on both sides", _tuple([left, right], line.k**count))
    sums = {side: _level(line, window, side) for side in (-1, 1)}
    yield Pattern("the level before it", _classes(sums[-1]))
    yield Pattern("the level after it", _classes(sums[1]))
    both = np.where(np.minimum(sums[-1], sums[1]) < 0, -1, sums[-1] + sums[1])
    yield Pattern("the level on both sides", _classes(both))


def _tuple(values: list[Integers], base: int) -> Integers:
    """Several values as one number; negative where one is missing."""
    number = np.zeros(len(values[0]), dtype=np.int64)
    for one in values:
        number = np.where((one < 0) | (number < 0), -1, number * base + one)
    return number


def _level(line: Line, window: int, side: int) -> Integers:
    """How many of the nearest records have the most frequent value; -1 if one is missing."""
    total = np.zeros(len(line.codes), dtype=np.int64)
    for distance in range(1, _LEVEL + 1):
        code = line.shifted(side * (window + distance))
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
    share: (k, Y) of the value's records that show it.
    """

    cases: Floats
    trials: Floats
    share: Floats


def counted(line: Line, pattern: Pattern, distance: int) -> Counted | None:
    """Count a pattern; None where no value has enough cases beside it.

    Args:
        line: the records.
        pattern: what is looked at.
        distance: cases nearer to each other than this are not separate.
    """
    valid = np.flatnonzero((line.codes >= 0) & (pattern.key >= 0))
    if len(valid) < LEAST_CASES:
        return None
    value, weight = line.codes[valid], line.weight[valid]
    kinds, kind = np.unique(pattern.key[valid], return_inverse=True)
    shape = (line.k, len(kinds))
    group = value * len(kinds) + kind
    size = shape[0] * shape[1]
    separate, spread = (one.reshape(shape) for one in _separate(line, valid, group, size, distance))
    weights = np.bincount(group, weight, size).reshape(shape)
    all_separate, all_spread = _separate(line, valid, value, line.k, distance)
    totals = weights.sum(axis=1, keepdims=True)
    share = np.divide(weights, totals, out=np.zeros(shape), where=totals > 0)
    cases = separate * spread
    own = (all_separate * all_spread)[:, np.newaxis]
    trials = np.divide(cases, share, out=np.broadcast_to(own, shape).copy(), where=share > 0)
    return Counted(cases, trials, share)


def _separate(
    line: Line, at: Integers, group: Integers, size: int, distance: int
) -> tuple[Floats, Floats]:
    """(size,) how many separate cases each group has, and the share of them that weights leave."""
    order = np.argsort(group, kind="stable")
    groups, rows = group[order], at[order]
    begins = np.searchsorted(groups, np.arange(size + 1))
    if line.once:
        chains = groups * (int(line.chain[-1]) + 1) + line.chain[rows]
        new = np.diff(chains, prepend=-1) != 0
        found = np.bincount(groups[new], minlength=size).astype(np.float64)
    else:
        found = _hops(groups, rows + line.chain[rows] * distance, begins, distance)
    weight = line.weight[rows]
    squares = np.bincount(groups, weight**2, size) * np.diff(begins)
    sums = np.bincount(groups, weight, size) ** 2
    return found, np.divide(sums, squares, out=np.zeros(size), where=squares > 0)


def _hops(groups: Integers, rows: Integers, begins: Integers, distance: int) -> Floats:
    """How many rows of each group are left if each one drops those nearer than `distance` after it.

    By repeated doubling: hops[r][i] is 2**r cases further than i.
    """
    end = len(rows)
    span = int(rows.max(initial=0)) + distance + 1
    keys = groups * span + rows
    following = np.searchsorted(keys, keys + distance)
    following = np.minimum(following, begins[groups + 1])
    # the end of a group leads nowhere
    stop = np.append(np.where(following == begins[groups + 1], end, following), end)
    hops = [stop]
    while np.any(hops[-1] < end):
        hops.append(hops[-1][hops[-1]])
    here = begins[:-1].copy()
    found = (np.diff(begins) > 0).astype(np.float64)
    here[found == 0] = end
    for power in range(len(hops) - 1, -1, -1):
        there = hops[power][here]
        go = there < end
        found[go] += 2**power
        here[go] = there[go]
    return found


def limits(cases: Floats, trials: Floats) -> tuple[Floats, Floats]:
    """Clopper–Pearson lower and upper limits of a share; cases need not be whole numbers."""
    from scipy.special import betaincinv

    rest = np.maximum(trials - cases, 0.0)
    with np.errstate(invalid="ignore"):
        lower = betaincinv(np.maximum(cases, 1e-9), rest + 1, 1 - _CONFIDENCE)
        upper = betaincinv(cases + 1, np.maximum(rest, 1e-9), _CONFIDENCE)
    return np.where(cases > 0, lower, 0.0), np.where(rest > 0, upper, 1.0)


def odds(found: Counted) -> tuple[float, tuple[int, int, int]] | None:
    """The largest lower limit of odds between two values, and (value, other value, what it is).

    None where no value has enough cases.
    """
    enough = found.cases >= LEAST_CASES
    if not enough.any():
        return None
    lower, upper = limits(found.cases, found.trials)
    lower = np.where(enough, lower, 0.0)
    upper = np.where(found.trials > 0, upper, 1.0)
    # the least upper limit of any value: of the same value it is above the lower limit
    value, other = lower.argmax(axis=0), upper.argmin(axis=0)
    ratios = lower.max(axis=0) / upper.min(axis=0)
    best = int(ratios.argmax())
    return float(ratios[best]), (int(value[best]), int(other[best]), best)


def visible(found: Counted, promised: float) -> float:
    """The least true odds that cases like these would show to exceed `promised`; ∞ if none.

    Of the patterns with most cases; by what the limits would be if shares were as true odds make
    them, which is so in about half of all tables.
    """
    tried = promised * np.geomspace(1.0, 1e3, 61)
    least = np.inf
    pooled = (found.share * found.trials).sum(axis=0) / np.maximum(found.trials.sum(axis=0), 1)
    likely = np.argsort(-np.minimum(pooled, 1 - pooled) * found.trials.min(axis=0))[:8]
    for what in likely.tolist():
        first, second = np.argsort(-found.trials[:, what])[:2]
        for one, other in ((first, second), (second, first)):
            trials = found.trials[one, what], found.trials[other, what]
            share = pooled[what] * sum(trials) / (trials[0] * tried + trials[1])
            beside = np.minimum(share * tried, 1.0)
            cases = beside * trials[0]
            lower = limits(cases, np.full(len(tried), trials[0]))[0]
            upper = limits(share * trials[1], np.full(len(tried), trials[1]))[1]
            seen = (lower > promised * upper) & (cases >= LEAST_CASES) & (beside < 1)
            if seen.any():
                least = min(least, float(tried[seen.argmax()]))
    return least
