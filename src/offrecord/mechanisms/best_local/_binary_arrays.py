"""Bounds from below for two values, over whole arrays at a time: what `_binary_bounds` does in
loops, to the last bit.

Compiling those loops takes longer than all that few records and few shares of a budget need.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.best_local import _binary_bounds
from offrecord.models.base import Floats, Integers

Grid: TypeAlias = tuple[Floats, Floats, Floats, Floats]


def searched(
    least: Floats,
    lows: Integers,
    grid: Grid,
    rest: _binary_bounds.Rest,
    pi0: float,
    chain: tuple[float, float],
    costs: Floats,
    best: NDArray[np.int32],
) -> None:
    """See `_binary_bounds.searched`: here all nodes of a round are searched for at once."""
    size = len(costs)
    costs[:] = np.inf
    stride = 1 << (size - 1).bit_length()
    while stride >= 1:
        at = np.arange(stride - 1, size, 2 * stride)
        before, after = at - stride, at + stride
        low = np.where(before >= 0, np.maximum(lows[at], best[np.maximum(before, 0)]), lows[at])
        high = np.where(after < size, best[np.minimum(after, size - 1)], size - 2)
        best[at] = np.where(least[at] <= 1.0, low, size - 2)
        # s may not exceed 1: from others no step is open
        some = np.flatnonzero(least[at] <= 1.0)
        at, low = at[some], low[some]
        ranges = _Ranges.of(low, np.maximum(high[some], low))
        cell, own = ranges.cells, at[ranges.own]
        known, slopes, roots, tops = (one[cell] for one in rest)
        state = grid[1][own], grid[3][own], least[own]
        total = _into(cell, state, grid, (known, slopes, roots, tops), pi0, chain)
        costs[at], first = ranges.least(total)
        best[at] = np.where(costs[at] < np.inf, cell[first], low)
        stride //= 2


def least_costs(
    intervals: Floats,
    epsilon: float,
    rooms: tuple[int, int],
    together: bool,
    span: int,
    chain: tuple[float, ...],
    free: Any,
    end: Any,
) -> Floats:
    """See `_binary_bounds.least_costs`."""
    ratio, log_gap, pi0 = chain[0] / chain[1], chain[2], chain[3]
    budgets = epsilon * intervals[:, 1], epsilon * (1.0 - intervals[:, 0])
    left, right = (
        _Costs.of(budget, room, span, chain, free, end)
        for budget, room in zip(budgets, rooms, strict=True)
    )
    earliest = _first_start(epsilon, ratio, log_gap)
    if together or 0 in rooms:
        starts = [np.full(len(intervals), earliest)] * 2
        if together:
            starts = [
                np.array([_first_start(one, ratio, log_gap) for one in budget.tolist()])
                for budget in budgets
            ]
        return left.since(starts[0], pi0) + right.since(starts[1], pi0)
    best = np.full(len(intervals), np.inf)
    start = np.maximum(left.first + 1, earliest)
    least_right = np.maximum(right.first + 1, earliest)
    going = np.arange(len(intervals))
    while len(going):
        here = start[going]
        cost = left.part(going).since(here, pi0)
        needed = _needed(here, epsilon, rooms[0], ratio, log_gap)
        both = cost + right.part(going).since(needed, pi0)
        best[going] = np.minimum(best[going], both)
        over = (here > rooms[0]) | (needed <= least_right[going]) | (cost >= best[going])
        start[going] += 1
        going = going[~over]
    return best


class _Costs(NamedTuple):
    """What one side costs at least with each of n budgets, and from each number of always-redacted
    records on: first … first + counts − 1 of them. suffix: (n, m) the least from each on.
    """

    room: int
    first: Integers
    counts: Integers
    is_open: NDArray[np.bool_]
    suffix: Floats

    @classmethod
    def of(
        cls, budgets: Floats, room: int, span: int, chain: tuple[float, ...], free: Any, end: Any
    ) -> _Costs:
        """See `_binary_bounds._side`."""
        alpha, beta, log_gap = chain[0], chain[1], chain[2]
        ratio, free_state = alpha / beta, alpha / (1.0 - beta)
        until_free = np.array(
            [
                _binary_bounds.free_after.plain(budget, room, ratio, log_gap, free_state)
                for budget in budgets.tolist()
            ]
        )
        last = np.minimum(until_free, room)
        first = last - span
        stages = len(end[2])
        if stages > 1:
            first = np.minimum(first, room - stages + 1)
        first = np.maximum(first, 0)
        counts = last - first + 1
        always = first[:, np.newaxis] + np.arange(int(counts.max()))
        own, column = np.nonzero(always <= last[:, np.newaxis])
        costs = np.full(always.shape, np.inf)
        costs[own, column] = _side_costs(budgets, own, always[own, column], room, chain, free, end)
        suffix = np.minimum.accumulate(costs[:, ::-1], axis=1)[:, ::-1]
        return cls(room, first, counts, until_free <= room, suffix)

    def part(self, some: Integers) -> _Costs:
        """Of some budgets."""
        first, counts = self.first[some], self.counts[some]
        return _Costs(self.room, first, counts, self.is_open[some], self.suffix[some])

    def since(self, start: Integers, pi0: float) -> Floats:
        """(n,) the least of what releases nothing before distance `start`; see
        `_binary_bounds._from`.
        """
        index = np.maximum(start - 1 - self.first, 0)
        rows = np.arange(len(index))
        within = self.suffix[rows, np.minimum(index, self.suffix.shape[1] - 1)]
        last = self.first + self.counts - 1
        waited = last + pi0 * (np.minimum(start - 1, self.room) - last)
        beyond = np.where(self.is_open, waited, float(self.room))
        return np.where(index < self.counts, within, beyond)


def _side_costs(
    budgets: Floats,
    own: Integers,
    always: Integers,
    room: int,
    chain: tuple[float, ...],
    free: Any,
    end: Any,
) -> Floats:
    """See `_binary_bounds.side_costs`; own: of which of the budgets each of `always` is."""
    alpha, beta, log_gap, pi0, pi1 = chain
    free_state = alpha / (1.0 - beta)
    s = _states(budgets, own, always, alpha / beta, log_gap)
    s = s * (1.0 - _binary_bounds._STATE_SLACK)
    remaining = room - always
    rest = np.zeros(len(s))
    some = np.flatnonzero((s > free_state) & (remaining > 0))
    s, remaining = s[some], remaining[some]
    x = np.maximum((s * (1.0 - beta) - alpha) / ((1.0 - alpha) - s * beta), 0.0)
    given = pi0, pi1, (alpha, beta)
    found = _from_first(np.minimum(remaining, len(free[2]) - 1), s, x, True, *given, free)
    near = np.flatnonzero(remaining < len(end[2]))
    ends = _from_first(remaining[near], s[near], x[near], False, *given, end)
    found[near] = np.minimum(found[near], ends)
    rest[some] = found
    return np.asarray(always + rest * (1.0 - _binary_bounds._COST_SLACK))


def _states(
    budgets: Floats, own: Integers, always: Integers, ratio: float, log_gap: float
) -> Floats:
    """See `_binary_bounds.state_after`."""
    begun = [-math.expm1(-one) / (math.exp(-one) + ratio) for one in budgets.tolist()]
    most, low = _binary_bounds.MOST_EXPONENT, int(always.min())
    exponents = [-float(steps) * log_gap for steps in range(low, int(always.max()) + 1)]
    grown = [math.exp(one) if one <= most else np.inf for one in exponents]
    with np.errstate(over="ignore", invalid="ignore"):  # where w is infinite
        w = np.array(begun)[own] * np.array(grown)[always - low]
        far = np.isinf(grown)[always - low] | np.isinf(w)
        return np.where(far, -ratio, (1.0 - w * ratio) / (1.0 + w))


def _from_first(
    j: Integers,
    s: Floats,
    x: Floats,
    free: bool,
    pi0: float,
    pi1: float,
    chain: tuple[float, float],
    tables: Any,
) -> Floats:
    """See `_binary_bounds.from_first`."""
    grid, known, firsts = tables
    nodes = grid[0]
    found = np.full(len(j), known[0][0, 0])
    some = np.flatnonzero(j > 0)
    j, s, x = j[some], s[some], x[some]
    cell = _cells(nodes, s)
    low = np.maximum(firsts[j, cell], _cells(nodes, x))
    ranges = _Ranges.of(low, np.maximum(firsts[j, cell + 1], low))
    other, stage, own = ranges.cells, j[ranges.own] - 1, x[ranges.own]
    values, slopes, roots, tops = (one[stage, other] for one in known)
    state = own, np.sqrt(own), own
    total = _into(other, state, grid, (values, slopes, roots, tops), pi0, chain)
    costs = ranges.least(total)[0]
    if free:
        costs = np.minimum(costs, np.where(x <= nodes[0], pi0 * x / nodes[0], np.inf))
    found[some] = costs + pi1
    return found


def _into(
    cell: Integers,
    state: tuple[Floats, Floats, Floats],
    grid: Grid,
    rest: _binary_bounds.Rest,
    pi0: float,
    chain: tuple[float, float],
) -> Floats:
    """See `_binary_bounds._into`; rest: of these cells."""
    (x, root, least), (nodes, images, inverses, _), (known, slopes, roots, tops) = state, grid, rest
    alpha, beta = chain
    lower, upper = nodes[cell], nodes[cell + 1]
    above, below = (1.0 - alpha) * root, beta * root + roots
    at_top = pi0 * x * inverses[cell + 1] + tops
    at_bottom = pi0 * x * inverses[cell] + known
    with np.errstate(divide="ignore", invalid="ignore"):  # what is met there is not taken
        s = np.maximum(np.maximum(above / below, lower), least)
        image = (s * (1.0 - beta) - alpha) / ((1.0 - alpha) - s * beta)
        inside = pi0 * x / s + (known + slopes * np.maximum(image - images[cell], 0.0))
    within = np.where((above <= lower * below) & (least <= lower), at_bottom, inside)
    return np.where(above >= upper * below, at_top, within)


def _cells(nodes: Floats, s: Floats) -> Integers:
    """See `_binary_bounds._cell`."""
    return np.asarray(np.clip(np.searchsorted(nodes, s) - 1, 0, len(nodes) - 2))


class _Ranges(NamedTuple):
    """Ranges of cells after each other. own: whose each cell is; starts: where each begins."""

    cells: Integers
    own: Integers
    starts: Integers

    @classmethod
    def of(cls, low: Integers, high: Integers) -> _Ranges:
        """From low to high, both included."""
        counts = high.astype(np.int64) - low + 1
        starts = np.cumsum(counts) - counts
        own = np.repeat(np.arange(len(counts)), counts)
        return cls(np.arange(len(own)) + (low - starts)[own], own, starts)

    def least(self, numbers: Floats) -> tuple[Floats, Integers]:
        """The least of each range, and where it stands first."""
        if len(self.starts) == 0:
            return np.empty(0), np.empty(0, dtype=np.int64)
        least = np.minimum.reduceat(numbers, self.starts)
        hits = np.flatnonzero(numbers == least[self.own])
        return least, hits[np.searchsorted(hits, self.starts)]


def _needed(start: Integers, epsilon: float, room: int, ratio: float, log_gap: float) -> Integers:
    """Where the other side may begin if this one does at `start`; one that is redacted whole
    releases nothing, so the other has all of ε.
    """
    asked, which = np.unique(start, return_inverse=True)
    influence = _binary_bounds.low_influence.plain
    spent = [influence(one, ratio, log_gap) if one <= room else 0.0 for one in asked.tolist()]
    found = [_first_start(epsilon - one, ratio, log_gap) for one in spent]
    return np.array(found, dtype=np.int64)[which]


def _first_start(budget: float, ratio: float, log_gap: float) -> int:
    return int(_binary_bounds.first_start.plain(budget, ratio, log_gap))
