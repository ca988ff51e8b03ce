"""What a side aims at: how much to stop at each level, the walk being pinned to its far value (O3).

Two ways there: `bridges`, in closed form (O5), and `programme`, the best by a linear programme.
Masses are those of outcomes with the far value l, Pr(T = level, X there = i, X at the deadline = l
| x), times the start; aims are masses without what every x meets alike beyond the level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats, Integers


@dataclass(frozen=True, eq=False)
class Pinned:
    """A side that is to be designed: its way, its levels, the likelihoods it begins with.

    ahead: the walk sees the value at the next level, too.
    """

    way: Way
    levels: Integers
    start: Floats
    ahead: bool = False

    @property
    def k(self) -> int:
        """Number of values."""
        return self.way.k

    @cached_property
    def jumps(self) -> list[Floats]:
        """(k, k) to the first level, and from each to the next."""
        return self.way.jumps(self.levels)

    @cached_property
    def rests(self) -> list[Floats]:
        """(k, k) from each level to the deadline."""
        rests = [np.eye(self.k)]
        for jump in self.jumps[:0:-1]:
            rests.append(jump @ rests[-1])
        return rests[::-1]

    @cached_property
    def free(self) -> list[Floats]:
        """(k, k) the start and the way to each level, without any stop."""
        reached = [self.start[:, np.newaxis] * self.jumps[0]]
        for jump in self.jumps[1:]:
            reached.append(reached[-1] @ jump)
        return reached

    @cached_property
    def waits(self) -> Floats:
        """(m − 1,) records that not stopping at a level costs."""
        return np.diff(self.levels).astype(np.float64)

    def pinned_step(self, level: int, far: int) -> Floats:
        """(k, k) from a level to the next, given the far value; 0 where that cannot be reached."""
        here, there = self.rests[level][:, far], self.rests[level + 1][:, far]
        step = self.jumps[level + 1] * there
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(here[:, np.newaxis] > 0, step / here[:, np.newaxis], 0.0)


def bridges(side: Pinned, far: int) -> Floats:
    """(m − 1, k, k, 1) aims of the maximal coupling of the bridges to a far value (O5)."""
    possible = side.way.possible
    ends = side.free[-1][:, far]
    aims = np.zeros((len(side.levels) - 1, side.k, side.k, 1))
    if not np.all(ends[possible] > 0):
        return aims
    before = np.zeros(side.k)
    for level, reached in enumerate(side.free[:-1]):
        beyond = side.rests[level][:, far]
        common = (reached[possible] * beyond / ends[possible, np.newaxis]).min(axis=0)
        new = np.maximum(common - before, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            aims[level, :, :, 0] = np.where(beyond > 0, np.outer(ends, new) / beyond, 0.0)
        before = common @ side.pinned_step(level, far)
    return aims


def places(way: Way, deadline: int, count: int, start: Floats) -> Integers:
    """Levels up to a deadline: all distances if they are few, else at equal steps of the running
    sum of √Pr(T = t) by the closed form (O6).
    """
    every = np.arange(way.nearest, deadline + 1)
    if len(every) <= count:
        return every
    side = Pinned(way, every, start)
    stops = np.zeros(len(every))
    for far in range(way.k):
        aims = bridges(side, far)[..., 0]
        beyond = np.array([rest[:, far] for rest in side.rests[:-1]])
        stops[:-1] += np.einsum("x,txi,ti->t", way.weights, aims, beyond)
    stops[-1] = max(1.0 - stops[:-1].sum(), 0.0)
    running = np.cumsum(np.sqrt(np.maximum(stops, 0.0)))
    if not running[-1] > 0:
        return np.unique(np.linspace(way.nearest, deadline, count).round().astype(np.int64))
    marks = np.linspace(running[0], running[-1], count)
    found = np.searchsorted(running, marks * (1 - 1e-12)) + way.nearest
    return np.unique(np.append(np.minimum(found, deadline), deadline))


# ---- the programme


def programme(side: Pinned, far: int, budget: float) -> Floats | None:
    """(m − 1, k, k, 1 or k) aims of least expected redactions; None where the solver fails.

    Its variables are what has not stopped, by level, x and context, each divided by the largest
    free probability of its context: a solver's tolerance is then relative. One more for each
    outcome lies below all its likelihoods, which lie below e^budget times it.
    """
    return _Bounded(Unstopped(side, far), budget).solved()


def least(
    costs: Floats, right: Floats, most: Any = None, equal: Any = None, method: str = "highs-ds"
) -> Floats | None:
    """The columns of least cost that are not negative: most · columns ≤ right, or equal · columns =
    right; None where the solver fails.
    """
    from scipy.optimize import linprog

    solve: Any = linprog
    sides = {"A_ub": most, "b_ub": right} if equal is None else {"A_eq": equal, "b_eq": right}
    solved = solve(costs / costs.max(), **sides, method=method)
    return np.asarray(solved.x) if solved.status == 0 else None


class Entries(NamedTuple):
    """Where a sparse matrix is not 0."""

    row: Integers
    column: Integers
    number: Floats

    @classmethod
    def blocks(cls, block: Floats, count: int) -> Entries:
        """The same block `count` times along the diagonal."""
        row, column = np.nonzero(block)
        first = np.repeat(np.arange(count), len(row))
        height, width = block.shape
        return cls(
            np.tile(row, count) + height * first,
            np.tile(column, count) + width * first,
            np.tile(block[row, column], count),
        )

    @classmethod
    def together(cls, parts: Sequence[Entries]) -> Entries:
        """All of several."""
        return cls(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def moved(self, rows: int, columns: int) -> Entries:
        """The same further down and to the right."""
        return Entries(self.row + rows, self.column + columns, self.number)

    def times(self, number: float) -> Entries:
        """All multiplied."""
        return self._replace(number=number * self.number)

    def matrix(self, height: int, width: int) -> Any:
        """As solvers take it."""
        from scipy import sparse

        return sparse.csc_array((self.number, (self.row, self.column)), shape=(height, width))

    def of(self, columns: Floats, height: int) -> Floats:
        """(height,) the product with a column."""
        found = np.bincount(self.row, self.number * columns[self.column], minlength=height)
        return found.astype(np.float64)


class Unstopped:
    """What has not stopped, as columns of a programme: by level but the last, x and context.

    values: of the run's end that are possible. contexts: of each level, (c, 2) i, and j or 0, those
    that some x can meet. scales: of each level (c,) how likely they are at most, and of the
    deadline.
    """

    def __init__(self, side: Pinned, far: int) -> None:
        self.side, self.far = side, far
        self.values = np.flatnonzero(side.way.possible)
        self.count = len(side.levels) - 1
        self.steps = [side.pinned_step(level, far) for level in range(self.count)]
        self.contexts = [self._contexts(level) for level in range(self.count)]
        self.free = [self._free(level) for level in range(self.count)]
        self.ends = side.free[-1][self.values, far]
        self.scales = [*(one.max(axis=0) for one in self.free), np.array([self.ends.max()])]
        sizes = [one.size for one in self.free]
        self.offsets = [0, *np.cumsum(sizes, dtype=np.int64).tolist()]

    @property
    def width(self) -> int:
        """How many columns there are."""
        return int(self.offsets[-1])

    @property
    def is_possible(self) -> bool:
        """There is a level before the deadline, and the far value may follow every x."""
        return self.count > 0 and bool(np.all(self.ends > 0))

    def _reached(self, level: int) -> Floats:
        """(x, i) free masses."""
        return self.side.free[level][self.values] * self.side.rests[level][:, self.far]

    def _contexts(self, level: int) -> Integers:
        reached = self._reached(level).max(axis=0)
        if self.side.ahead:
            return np.argwhere(reached[:, np.newaxis] * self.steps[level] > 0)
        found = np.flatnonzero(reached > 0)
        return np.stack((found, np.zeros_like(found)), axis=1)

    def _free(self, level: int) -> Floats:
        """(x, c) free masses of contexts."""
        i, j = self.contexts[level].T
        masses = self._reached(level)[:, i]
        return masses * self.steps[level][i, j] if self.side.ahead else masses

    def _carried(self, level: int) -> Floats:
        """(c before, c) how much of the contexts before a level comes into its own."""
        before = self.contexts[level - 1]
        if level == self.count:
            return np.ones((len(before), 1))
        here, step = self.contexts[level], self.steps[level - 1]
        if not self.side.ahead:
            return np.asarray(step[np.ix_(before[:, 0], here[:, 0])])
        further = self.steps[level][here[:, 0], here[:, 1]]
        return np.asarray((before[:, 1][:, np.newaxis] == here[:, 0]) * further)

    def stopped(self, level: int) -> tuple[Entries, Floats]:
        """What stops at a level, by x and context and divided by the context's scale: rows of
        columns, and what is added to them.
        """
        scale, count = self.scales[level], len(self.values)
        size = count * len(scale)
        parts = []
        if level:
            share = self.scales[level - 1][:, np.newaxis] * self._carried(level) / scale
            parts.append(Entries.blocks(share.T, count).moved(0, self.offsets[level - 1]))
        if level < self.count:
            parts.append(Entries.blocks(-np.ones((1, 1)), size).moved(0, self.offsets[level]))
        given = np.zeros(size) if level else (self.free[0] / scale).ravel()
        return Entries.together(parts), given

    def costs(self) -> Floats:
        """(width,) expected redactions that each column causes."""
        weights = self.side.way.weights[self.values]
        return np.concatenate(
            [
                np.outer(weights * wait, scale).ravel()
                for wait, scale in zip(self.side.waits, self.scales, strict=False)
            ]
        )

    def common(self, level: int) -> Floats:
        """(c,) what every x meets alike beyond a level, in each context."""
        i, j = self.contexts[level].T
        beyond = self.side.rests[level][i, self.far]
        return np.asarray(beyond * self.steps[level][i, j] if self.side.ahead else beyond)

    @property
    def seen_ahead(self) -> int:
        """How many values of the next level a stop may depend on."""
        return self.side.k if self.side.ahead else 1


class _Bounded:
    """A programme for one budget: after what has not stopped, the least of each outcome."""

    def __init__(self, masses: Unstopped, budget: float) -> None:
        self.masses, self.factor = masses, float(np.exp(budget))
        self.leasts = np.cumsum([masses.width, *map(len, masses.scales)])

    def solved(self) -> Floats | None:
        masses, k = self.masses, self.masses.side.k
        aims = np.zeros((masses.count, k, k, masses.seen_ahead))
        if not masses.is_possible:
            return aims
        rows, right = self._rows()
        costs = np.zeros(rows.shape[1])
        costs[: masses.width] = masses.costs()
        solved = least(costs, right, most=rows, method="highs-ds" if k <= 6 else "highs-ipm")
        if solved is None:
            return None
        for level in range(masses.count):
            stopped, given = masses.stopped(level)
            found = np.maximum(stopped.of(solved, len(given)) + given, 0.0)
            found = found.reshape(len(masses.values), -1)
            i, j = masses.contexts[level].T
            found = found * masses.scales[level] / masses.common(level)
            aims[level, masses.values[:, np.newaxis], i, j] = found
        return aims

    def _rows(self) -> tuple[Any, Floats]:
        """Rows · columns ≤ right: least ≤ stopped ≤ factor · least, for each outcome and x."""
        count, height = len(self.masses.values), 0
        parts, right = [], []
        for level, scale in enumerate(self.masses.scales):
            stopped, given = self.masses.stopped(level)
            ones = np.tile(np.eye(len(scale)), (count, 1))
            least = Entries.blocks(ones, 1).moved(0, int(self.leasts[level]))
            for sign, factor in ((-1.0, 1.0), (1.0, -self.factor)):
                parts += [
                    stopped.times(sign).moved(height, 0),
                    least.times(factor).moved(height, 0),
                ]
                right.append(-sign * given)
                height += len(given)
        matrix = Entries.together(parts).matrix(height, int(self.leasts[-1]))
        return matrix, np.concatenate(right)
