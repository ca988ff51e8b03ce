"""Stopping rules by linear programs: all levels at once for one known chain, else level by level.

For each far context apart. What the solver's tolerance allowed beyond the target is taken back
afterwards, so that every outcome keeps it.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import highspy
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from offrecord.mechanisms.owner.law import Steps
from offrecord.mechanisms.owner.side import Pairs, Side
from offrecord.models.base import Floats, Integers, Mask

#: Shares of the stopped mass that wait instead, where what is left for the deadline exceeds the
#: target.
_WAITING = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)
#: A stop probability below it would be noise of the solver.
_LEAST = 1e-9
#: What rounding may add to a likelihood, relative.
_ROUNDED = 1.0 + 1e-9
#: Rows that are added at a time, and the largest violation that stands: ten times the solver's own.
_ADDED, _TOLERANCE = 8, 1e-8
_MOST_ROUNDS = 40
#: A ratio from which on a row would say nothing.
_ANY = 1e12


# Stop probabilities lowered until none exceeds that of another start context beyond its limit.
def _lowered(chances: Floats, pairs: Pairs, limits: Floats) -> Floats:
    for _ in range(len(chances)):  # one may lower the next
        for pair, (more, less) in enumerate(zip(*pairs, strict=True)):
            chances[more] = np.minimum(chances[more], limits[pair] * chances[less])
    return chances


# ---- all levels at once


def all_levels(side: Side, levels: list[int], target: float) -> Floats:
    """(n − 1, S, S, S) stop probabilities of the best rule for one known chain (O3).

    side: the chain, the place and the direction; each context at the deadline is a class. levels:
    distances; the last one keeps the target by itself.
    """
    walk = side.steps(levels, mean=True)
    stop = np.zeros((len(levels) - 1, side.contexts, side.contexts, side.contexts))
    for far in range(side.contexts if len(stop) else 0):
        stopped = _best_stopped(side, walk, levels, far, target)
        if stopped is not None:
            stop[:, far] = _as_it_acts(side, walk, far, stopped, target)
    return stop


# (n − 1, S, S) the mass that stops at each level; None where no walk ends there, and where the
# solver fails. Variables are the masses that wait at each level, as shares of those that never
# stop, which keeps contexts of small probability above the solver's tolerance.
def _best_stopped(
    side: Side, walk: Steps, levels: list[int], far: int, target: float
) -> Floats | None:
    kernels = np.array([one[0] for one in walk.between])
    passing = accumulate(kernels, np.matmul, initial=walk.first[0])
    free = np.array(list(passing))
    stops, constant = _stopping(free, kernels)
    chosen, scales = _chosen(side, free, walk.beyond, far, np.exp(target))
    if not len(scales):
        return None
    table, most = chosen @ stops, -(chosen @ constant) / scales
    table.data /= np.repeat(scales, np.diff(table.indptr))
    # a mass that waits at a level costs the records up to the next one
    reaching = free[:-1] * np.array([one[0, :, far] for one in walk.beyond[:-1]])[:, None]
    costs = walk.start[0][:, np.newaxis] * reaching * np.diff(levels)[:, None, None]
    program: Any = linprog  # its types know no sparse matrices
    found = program(costs.ravel(), table, most, bounds=(0.0, 1.0), method="highs")
    if found.x is None or found.status != 0:
        return None
    waiting = found.x.reshape(costs.shape) * free[:-1]
    before = np.concatenate([free[:1], (waiting @ kernels)[:-1]])
    return np.asarray(before - waiting)


# What stops at each level, start context and context (the deadline too), as a linear function of
# the shares that wait: what waited before and came on, less what waits.
def _stopping(free: Floats, kernels: Floats) -> tuple[Any, Floats]:
    number = np.arange(free.size).reshape(free.shape)
    onward = free[:-1, :, :, np.newaxis] * kernels[:, np.newaxis]
    rows = np.broadcast_to(number[1:, :, np.newaxis], onward.shape)
    columns = np.broadcast_to(number[:-1, :, :, np.newaxis], onward.shape)
    entries = np.concatenate([-free[:-1].ravel(), onward.ravel()])
    waits = number[:-1].ravel()
    where = np.concatenate([waits, rows.ravel()]), np.concatenate([waits, columns.ravel()])
    constant = np.where(number < free[0].size, free, 0.0).ravel()
    return coo_array((entries, where), shape=(free.size, waits.size)).tocsr(), constant


# Combinations of these masses that are at most 0, and by what rows are divided, the largest mass of
# their context: no mass is negative, and no outcome is more than `bound` times as likely under one
# start context as under another (O3).
def _chosen(
    side: Side, free: Floats, beyond: list[Floats], far: int, bound: float
) -> tuple[Any, Floats]:
    number, last = np.arange(free.size).reshape(free.shape), len(free) - 1
    columns, entries, sizes, scales = [], [], [], []
    for level, at in enumerate(number):
        for context in range(side.contexts) if level < last else [far]:
            scale = free[level][side.starts, context].max()
            if beyond[level][0, context, far] <= 0 or scale == 0.0:  # no walk is there
                continue
            own = at[side.starts, context] if level < last else at[:0, context]
            pairs = at[np.stack(side.pairs, axis=1), context]
            columns += [own, pairs.ravel()]
            entries += [np.full(len(own), -1.0), np.tile([1.0, -bound], len(pairs))]
            sizes += [1] * len(own) + [2] * len(pairs)
            scales += [scale] * (len(own) + len(pairs))
    if not scales:
        return None, np.empty(0)
    where = np.repeat(np.arange(len(sizes)), sizes), np.concatenate(columns)
    chosen = coo_array((np.concatenate(entries), where), shape=(len(sizes), free.size))
    return chosen.tocsr(), np.array(scales)


# (n − 1, S, S) probabilities of stopping whose outcomes all keep the target.
def _as_it_acts(side: Side, walk: Steps, far: int, stopped: Floats, target: float) -> Floats:
    bound = np.exp(target)
    for share in (*_WAITING, 1.0):
        mass = walk.first[0]
        stop = np.zeros(stopped.shape)
        for level, wanted in enumerate(stopped):
            taken = np.clip((1.0 - share) * wanted, 0.0, mass)
            taken = _lowered(taken, side.pairs, np.full(len(side.pairs.more), bound))
            with np.errstate(divide="ignore", invalid="ignore"):
                chances = np.nan_to_num(taken / mass)
            rare = (chances[side.starts] < _LEAST).any(axis=0)
            stop[level] = np.where(rare, 0.0, np.clip(chances, 0.0, 1.0))
            mass = (mass * (1.0 - stop[level])) @ walk.between[level][0]
        left = mass[:, far]
        if np.all(left[side.pairs.more] <= bound * _ROUNDED * left[side.pairs.less]):
            return stop
    return np.zeros(stopped.shape)


# ---- level by level


def level_by_level(side: Side, levels: list[int], target: float, patience: float) -> Floats:
    """(n − 1, S, S, S) stop probabilities of one side, under many chains.

    At each level the most mass under the mean chain stops such that no outcome of the level, and
    not what is left for the deadline either, differs by more than a target between start contexts,
    in any member.

    side: the chains, the place and the direction; each context at the deadline is a class. levels:
    distances; the last one keeps the target by itself. patience: κ, the share of the target that
    what is left may differ by at the start; it grows to all of it at the deadline.
    """
    mean, walk = side.steps(levels, mean=True), side.steps(levels)
    keep = _quickest(side, walk)
    first, between = walk.first[keep], [one[keep] for one in walk.between]
    beyond = [one[keep] for one in walk.beyond]
    stop = np.zeros((len(levels) - 1, side.contexts, side.contexts, side.contexts))
    for far in range(side.contexts):
        masses, own = first, mean.first
        for level in range(len(stop)):
            if level:
                masses, own = masses @ between[level - 1], own @ mean.between[level - 1]
            gain = mean.start[0][:, np.newaxis] * own[0] * mean.beyond[level][0, :, far]
            reaching = beyond[level][:, :, far]
            share = patience + (1 - patience) * levels[level] / levels[-1]
            chances = _Level(side, masses, reaching, target, target * share).most(gain)
            stop[level, far] = chances
            masses, own = masses * (1.0 - chances), own * (1.0 - chances)
    return stop


# All members but those few that forget the slowest, which may exceed the target.
def _quickest(side: Side, walk: Steps) -> Integers:
    kernel = walk.first
    for between in walk.between:
        kernel = kernel @ between
    slowness = side.spread(kernel).max(axis=1)
    return np.sort(np.argsort(slowness, kind="stable")[: len(slowness) - side.allowed])


class _Level:
    """One level for one far context.

    limits: (pairs, S) how many times as likely one start context may stop at a context as another.
    left: (M, S, S) of the masses that have not stopped, what reaches the far context. bound:
    (M, pairs) how many times as much may be left. used: (S, S) where the walk may stop.
    """

    def __init__(
        self, side: Side, masses: Floats, reaching: Floats, target: float, of_rest: float
    ) -> None:
        self.pairs, starts = side.pairs, np.isin(np.arange(side.contexts), side.starts)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = (masses[:, self.pairs.less] / masses[:, self.pairs.more]).min(axis=0)
        self.limits = np.nan_to_num(np.exp(target) * ratios, nan=0.0, posinf=_ANY)
        # a context where some start can never stop would leak without limit
        seen = np.any(reaching > 0, axis=0) & (self.limits > 0).all(axis=0)
        self.used: Mask = starts[:, np.newaxis] & seen
        self.left = masses * reaching[:, np.newaxis]
        self.totals = self.left.sum(axis=2)
        self.of_rest = of_rest

    # (M, pairs) what differs by more already must not differ by more still.
    def _bound(self) -> Floats:
        present = self.totals[:, self.pairs.more] / self.totals[:, self.pairs.less]
        return np.asarray(np.maximum(np.exp(self.of_rest), present))

    def most(self, gain: Floats) -> Floats:
        """(S, S) the stop probabilities that gain the most, by start context and context."""
        self.used &= gain > 0
        chances = np.zeros(gain.shape)
        if not self.used.any():
            return chances
        bound = self._bound()
        number = np.full(gain.shape, -1)
        number[self.used] = np.arange(self.used.sum())
        program = _Program(gain[self.used])
        self._add_outcomes(program, number)
        for _ in range(_MOST_ROUNDS):
            solution = program.solve()
            if solution is None:
                return chances
            chances[self.used] = solution
            if not self._add_violated(program, number, chances, bound):
                break
        return self._repaired(np.clip(chances, 0.0, 1.0), bound)

    def _add_outcomes(self, program: _Program, number: Integers) -> None:
        for context in np.flatnonzero(self.used.any(axis=0)):
            for pair, (more, less) in enumerate(zip(*self.pairs, strict=True)):
                limit = self.limits[pair, context]
                if self.used[more, context] and limit < _ANY:
                    program.add([number[more, context], number[less, context]], [1.0, -limit], 0.0)

    # Members become rows only where they are violated; whether any was.
    def _add_violated(
        self, program: _Program, number: Integers, chances: Floats, bound: Floats
    ) -> bool:
        left, totals, pairs = self.left, self.totals, self.pairs
        rest = (left * (1.0 - chances)).sum(axis=2)
        over = (rest[:, pairs.more] - bound * rest[:, pairs.less]) / totals[:, pairs.less]
        worst = np.argsort(-over, axis=None)[:_ADDED]
        worst = worst[over.ravel()[worst] > _TOLERANCE]
        for member, pair in zip(*np.unravel_index(worst, over.shape), strict=True):
            more, less = pairs.more[pair], pairs.less[pair]
            scale, limit = totals[member, less], bound[member, pair]
            high, low = self.used[more], self.used[less]
            columns = np.concatenate([number[more, high], number[less, low]])
            # left(more)(1 − σ) ≤ bound · left(less)(1 − σ)
            entries = np.concatenate([-left[member, more, high], limit * left[member, less, low]])
            margin = limit * totals[member, less] - totals[member, more]
            program.add(columns, entries / scale, margin / scale)
        return bool(len(worst))

    # Outcomes first, then what is left.
    def _repaired(self, chances: Floats, bound: Floats) -> Floats:
        chances = _lowered(chances, self.pairs, self.limits)
        # an outcome that one start context cannot have leaks without limit
        chances[:, (chances[np.unique(self.pairs.more)] < _LEAST).any(axis=0)] = 0.0
        for share in _WAITING:
            tried = (1.0 - share) * chances
            rest = (self.left * (1.0 - tried)).sum(axis=2)
            if np.all(rest[:, self.pairs.more] <= bound * rest[:, self.pairs.less] * _ROUNDED):
                return np.asarray(tried)
        return np.zeros_like(chances)


class _Program:
    """A linear program over probabilities, to which rows are added until it holds."""

    def __init__(self, gain: Floats) -> None:
        self._solver: Any = highspy.Highs()  # type: ignore[no-untyped-call] # its own
        self._solver.setOptionValue("output_flag", False)
        self._solver.setOptionValue("parallel", "off")
        self._solver.setOptionValue("primal_feasibility_tolerance", 1e-9)
        self._solver.setOptionValue("dual_feasibility_tolerance", 1e-9)
        count = len(gain)
        self._solver.addVars(count, np.zeros(count), np.ones(count))
        costs = -gain / gain.max()
        self._solver.changeColsCost(count, np.arange(count, dtype=np.int32), costs)

    def add(
        self, columns: Integers | list[int], entries: Floats | list[float], most: float
    ) -> None:
        """A row: entries · columns ≤ most."""
        where = np.asarray(columns, dtype=np.int32)
        self._solver.addRow(-highspy.kHighsInf, most, len(where), where, np.asarray(entries))

    def solve(self) -> Floats | None:
        """The best probabilities; None where the solver fails."""
        self._solver.run()
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        return np.array(self._solver.getSolution().col_value)
