"""What a side aims at: how much to stop at each level, the walk being pinned to its far value (O3).

Two ways there: `bridges`, in closed form (O5), and `programme`, the best by a linear programme.
Masses are those of outcomes with the far value l, Pr(T = level, X there = i, X at the deadline = l
| x), times the start; aims are masses without what every x meets alike beyond the level.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats, Integers
from offrecord.theory.programmes import Entries, Solver


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
    def jumps(self) -> Floats:
        """(m, k, k) to the first level, and from each to the next."""
        return self.way.jumps(self.levels)

    @cached_property
    def rests(self) -> Floats:
        """(m, k, k) from each level to the deadline."""
        return self.way.rests(self.levels)

    @cached_property
    def free(self) -> Floats:
        """(m, k, k) the start and the way to each level, without any stop."""
        return self.start[:, np.newaxis] * self.way.reaches(self.levels)

    @cached_property
    def waits(self) -> Floats:
        """(m − 1,) records that not stopping at a level costs."""
        return np.diff(self.levels).astype(np.float64)

    def pinned_steps(self, far: int) -> Floats:
        """(m − 1, k, k) from each level to the next, given the far value; 0 where that cannot be
        reached.
        """
        here, there = self.rests[:-1, :, far], self.rests[1:, :, far]
        return _over(self.jumps[1:] * there[:, np.newaxis], here[..., np.newaxis])


def _over(numbers: Floats, others: Floats) -> Floats:
    """Divided, and 0 where the others are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(others > 0, numbers / others, 0.0)


def bridges(side: Pinned, far: int) -> Floats:
    """(m − 1, k, k, 1) aims of the maximal coupling of the bridges to a far value (O5)."""
    possible = side.way.possible
    ends = side.free[-1][:, far]
    if not np.all(ends[possible] > 0):
        return np.zeros((len(side.levels) - 1, side.k, side.k, 1))
    beyond = side.rests[:-1, :, far]
    reached = side.free[:-1, possible] * beyond[:, np.newaxis]
    common = (reached / ends[possible, np.newaxis]).min(axis=1)
    before = np.zeros_like(common)
    before[1:] = np.einsum("ti,tij->tj", common[:-1], side.pinned_steps(far)[:-1])
    new = np.maximum(common - before, 0.0)
    aims = _over(ends[:, np.newaxis] * new[:, np.newaxis], beyond[:, np.newaxis])
    return aims[..., np.newaxis]


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
        beyond = side.rests[:-1, :, far]
        stops[:-1] += np.einsum("x,txi,ti->t", way.weights, aims, beyond)
    stops[-1] = max(1.0 - stops[:-1].sum(), 0.0)
    running = np.cumsum(np.sqrt(np.maximum(stops, 0.0)))
    if not running[-1] > 0:
        return np.unique(np.linspace(way.nearest, deadline, count).round().astype(np.int64))
    marks = np.linspace(running[0], running[-1], count)
    found = np.searchsorted(running, marks * (1 - 1e-12)) + way.nearest
    return np.unique(np.append(np.minimum(found, deadline), deadline))


# ---- the programme

_BY_SIMPLEX = 6  # values up to which the simplex method is quicker


def programme(side: Pinned, far: int, budget: float, solver: Solver) -> Floats | None:
    """(m − 1, k, k, 1 or k) aims of least expected redactions; None where the solver fails.

    Its variables are what has not stopped, by level, x and context, each divided by the largest
    free probability of its context: a solver's tolerance is then relative. One more for each
    outcome lies below all its likelihoods, which lie below e^budget times it.
    """
    return _Bounded(Unstopped(side, far), budget).solved(solver)


class Unstopped:
    """What has not stopped, as columns of a programme: by level but the last, x and context; its
    rows are outcomes, by level, x and context, those of the deadline last.

    A context is i, or i and j where the walk sees ahead; the deadline has the first one alone.
    values: of the run's end that are possible. free: (m, x, c) how likely outcomes are if nothing
    stops before. scales: (m, c) the largest of these, met: whether some x can meet it.
    numbers: (m, x, c) of rows and columns, where they are met.
    """

    def __init__(self, side: Pinned, far: int) -> None:
        self.side, self.far = side, far
        self.values = np.flatnonzero(side.way.possible)
        self.steps = side.pinned_steps(far)
        self.ends = side.free[-1, self.values, far]
        reached = side.free[:-1, self.values] * side.rests[:-1, np.newaxis, :, far]
        if side.ahead:
            reached = reached[..., np.newaxis] * self.steps[:, np.newaxis]
        reached = reached.reshape(len(reached), len(self.values), side.k * self.seen_ahead)
        self.free = np.concatenate((reached, np.zeros((1, *reached.shape[1:]))))
        self.free[-1, :, 0] = self.ends
        self.scales = self.free.max(axis=1)
        self.met = self.scales > 0
        self.of_any = np.broadcast_to(self.met[:, np.newaxis], self.free.shape)
        self.numbers = np.cumsum(self.of_any).reshape(self.free.shape) - 1

    @property
    def width(self) -> int:
        """How many columns there are."""
        return int(self.of_any[:-1].sum())

    @property
    def height(self) -> int:
        """How many rows there are."""
        return int(self.of_any.sum())

    @property
    def is_possible(self) -> bool:
        """There is a level before the deadline, and the far value may follow every x."""
        return len(self.free) > 1 and bool(np.all(self.ends > 0))

    @property
    def seen_ahead(self) -> int:
        """How many values of the next level a stop may depend on."""
        return self.side.k if self.side.ahead else 1

    @cached_property
    def _carried(self) -> Floats:
        """(m − 1, c, c) how much of each context comes into those of the next level."""
        count, contexts = len(self.steps), self.met.shape[1]
        carried = np.zeros((count, contexts, contexts))
        if self.side.ahead:
            k = self.side.k
            further = np.eye(k)[:, :, np.newaxis] * self.steps[1:, np.newaxis]  # (…, j, i', j')
            shape = (count - 1, k, k, k, k)
            further = np.broadcast_to(further[:, np.newaxis], shape)
            carried[:-1] = further.reshape(count - 1, contexts, contexts)
        else:
            carried[:-1] = self.steps[:-1]
        carried[-1, :, 0] = 1.0
        return carried

    @cached_property
    def stopped(self) -> Entries:
        """What stops, outcome by outcome and divided by its scale, but for what is `given`."""
        shares = _over(self.scales[:-1, :, np.newaxis] * self._carried, self.scales[1:, np.newaxis])
        level, before, here = np.nonzero(shares)
        number = np.tile(shares[level, before, here], len(self.values))
        row, column = self.numbers[level + 1, :, here], self.numbers[level, :, before]
        own = np.arange(self.width)
        return Entries(
            np.concatenate((row.T.ravel(), own)),
            np.concatenate((column.T.ravel(), own)),
            np.concatenate((number, -np.ones(self.width))),
        )

    @cached_property
    def given(self) -> Floats:
        """(height,) what is added to it: at the first level everything."""
        given = np.zeros(self.free.shape)
        given[0] = _over(self.free[0], self.scales[0])
        return np.asarray(given[self.of_any])

    @cached_property
    def contexts(self) -> Integers:
        """(height,) a number of each row's level and context, whatever its x."""
        numbers = np.cumsum(self.met).reshape(self.met.shape) - 1
        spread = np.broadcast_to(numbers[:, np.newaxis], self.free.shape)
        return np.asarray(spread[self.of_any])

    def costs(self) -> Floats:
        """(width,) expected redactions that each column causes."""
        weights = self.side.way.weights[self.values]
        waiting = np.outer(self.side.waits, weights)[..., np.newaxis]
        found = waiting * self.scales[:-1, np.newaxis]
        return np.asarray(found[self.of_any[:-1]])

    def aims(self, masses: Floats) -> Floats:
        """(m − 1, …, i, 1 or j) aims for masses (m, …, c) that are divided by their scales."""
        common = self.side.rests[:-1, :, self.far]
        if self.side.ahead:
            common = (common[..., np.newaxis] * self.steps).reshape(len(common), -1)
        factors = _over(self.scales[:-1], common)
        found = np.maximum(masses[:-1], 0.0) * factors[:, np.newaxis]
        return found.reshape(*found.shape[:-1], self.side.k, self.seen_ahead)


class _Bounded:
    """A programme for one budget: after what has not stopped, the least of each outcome."""

    def __init__(self, masses: Unstopped, budget: float) -> None:
        self.masses, self.factor = masses, float(np.exp(budget))

    def solved(self, solver: Solver) -> Floats | None:
        masses, k = self.masses, self.masses.side.k
        aims = np.zeros((len(masses.steps), k, k, masses.seen_ahead))
        if not masses.is_possible:
            return aims
        rows, right = self._rows()
        costs = np.concatenate((masses.costs(), np.zeros(int(masses.met.sum()))))
        solved = solver.least(costs, rows, -np.inf, right, like=masses.far, inside=k > _BY_SIMPLEX)
        if solved is None:
            return None
        found = np.zeros(masses.free.shape)
        found[masses.of_any] = masses.stopped.of(solved, masses.height) + masses.given
        aims[:, masses.values] = masses.aims(found)
        return aims

    def _rows(self) -> tuple[Entries, Floats]:
        """Rows · columns ≤ right: least ≤ stopped ≤ factor · least, for each outcome and x."""
        masses = self.masses
        height, stopped = masses.height, masses.stopped
        each = np.arange(height)
        below = Entries(each, masses.width + masses.contexts, np.ones(height))
        parts = [
            stopped.times(-1.0), below, stopped.moved(height, 0),
            below.times(-self.factor).moved(height, 0),
        ]  # fmt: skip
        return Entries.together(parts), np.concatenate((masses.given, -masses.given))
