"""All levels at once: the best stopping rule of one known chain, by a linear program (O3).

For each far context apart. Variables are the masses that have not stopped after each level, as
shares of those that never stop, which keeps contexts of small probability above the solver's
tolerance. What the tolerance allowed beyond the target is clipped afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from offrecord.mechanisms.owner.law import Steps
from offrecord.mechanisms.owner.side import Side
from offrecord.models.base import Floats, Integers

#: Shares of the stopped mass that go to the deadline instead, where its outcome exceeds the target.
_WAITING = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
#: A stop probability below it would be noise of the solver.
_LEAST = 1e-9


def all_levels(side: Side, levels: list[int], target: float) -> Floats:
    """(n − 1, S, S, S) stop probabilities of one side for one known chain.

    side: the chain, the place and the direction; each context at the deadline is a class. levels:
    distances; the last one keeps the target by itself.
    """
    walk = side.steps(levels, mean=True)
    stop = np.zeros((len(levels) - 1, side.contexts, side.contexts, side.contexts))
    for far in range(side.contexts if len(stop) else 0):
        stopped = _optimum(side, walk, levels, far, target)
        if stopped is not None:
            stop[:, far] = _as_it_acts(side, walk, far, stopped, target)
    return stop


def _optimum(side: Side, walk: Steps, levels: list[int], far: int, target: float) -> Floats | None:
    """(n − 1, S, S) the mass that stops at each level; None where no walk ends there, and where the
    solver fails.
    """
    free = [walk.first[0]]
    for kernel in walk.between:
        free.append(free[-1] @ kernel[0])
    contexts, count = side.contexts, len(levels) - 1
    number = np.arange(count * contexts**2).reshape(count, contexts, contexts)
    stopping = _Stopping(number, walk, np.array(free), far)
    rows = list(_rows(side, walk, stopping, np.exp(target)))
    if not rows:
        return None
    entries = np.concatenate([one.entries for one in rows])
    where = np.repeat(np.arange(len(rows)), [len(one.entries) for one in rows])
    columns = np.concatenate([one.columns for one in rows])
    matrix = coo_array((entries, (where, columns)), shape=(len(rows), number.size))
    # a mass that waits at a level costs the records up to the next one
    costs = np.zeros(number.shape)
    for level, further in enumerate(np.diff(levels).tolist()):
        reaching = free[level] * walk.beyond[level][0, :, far]
        costs[level] = walk.start[0][:, np.newaxis] * reaching * further
    program: Any = linprog  # its types know no sparse matrices
    most = [one.most for one in rows]
    found = program(costs.ravel(), matrix.tocsr(), most, bounds=(0.0, 1.0), method="highs")
    if found.x is None or found.status != 0:
        return None
    return stopping.all(found.x.reshape(number.shape))


class _Row(NamedTuple):
    """A row of the program: entries · columns ≤ most."""

    columns: Integers
    entries: Floats
    most: float


def _rows(side: Side, walk: Steps, stopping: _Stopping, bound: float) -> Iterator[_Row]:
    """That no mass is negative, and that no outcome is more than `bound` times as likely under one
    start context as under another (O3). Rows are divided by the largest mass of their context.
    """
    contexts, far, last = side.contexts, stopping.far, len(stopping.number)
    for level in range(last + 1):
        seen = range(contexts) if level < last else [far]
        for context in (one for one in seen if walk.beyond[level][0, one, far] > 0):
            scale = stopping.free[level][side.starts, context].max()
            if scale == 0.0:  # no walk is there
                continue
            masses = [stopping.row(level, start, context) for start in range(contexts)]
            if level < last:
                for columns, entries, constant in (masses[start] for start in side.starts):
                    yield _Row(columns, -entries / scale, constant / scale)
            for more, less in zip(*side.pairs, strict=True):
                (high, gains, own), (low, losses, other) = masses[more], masses[less]
                both = np.concatenate([gains, -bound * losses])
                yield _Row(np.concatenate([high, low]), both / scale, (bound * other - own) / scale)


class _Stopping:
    """The mass that stops, as a linear function of the shares that have not stopped."""

    def __init__(self, number: Integers, walk: Steps, free: Floats, far: int) -> None:
        self.number, self.free, self.far = number, free, far
        self.kernels = [one[0] for one in walk.between]

    def row(self, level: int, start: int, context: int) -> tuple[Integers, Floats, float]:
        """Columns, entries and a constant."""
        columns, entries, constant = [], [], 0.0
        if level:
            columns.append(self.number[level - 1, start])
            entries.append(self.free[level - 1, start] * self.kernels[level - 1][:, context])
        else:
            constant = float(self.free[0, start, context])
        if level < len(self.number):
            columns.append(self.number[level, start, context, np.newaxis])
            entries.append(-self.free[level, start, context, np.newaxis])
        return np.concatenate(columns), np.concatenate(entries), constant

    def all(self, shares: Floats) -> Floats:
        """(n − 1, S, S) of a solution."""
        waiting = shares * self.free[:-1]
        before = [self.free[0]]
        before += [one @ kernel for one, kernel in zip(waiting, self.kernels, strict=True)][:-1]
        return np.array(before) - waiting


def _as_it_acts(side: Side, walk: Steps, far: int, stopped: Floats, target: float) -> Floats:
    """(n − 1, S, S) probabilities of stopping whose outcomes all keep the target."""
    bound = np.exp(target)
    for share in _WAITING:
        mass = walk.first[0]
        stop = np.zeros(stopped.shape)
        for level, wanted in enumerate(stopped):
            taken = np.clip((1.0 - share) * wanted, 0.0, mass)
            for _ in range(side.contexts):  # one may lower the next
                for more, less in zip(*side.pairs, strict=True):
                    taken[more] = np.minimum(taken[more], bound * taken[less])
            with np.errstate(divide="ignore", invalid="ignore"):
                chances = np.nan_to_num(taken / mass)
            rare = (chances[side.starts] < _LEAST).any(axis=0)
            stop[level] = np.where(rare, 0.0, np.clip(chances, 0.0, 1.0))
            mass = (mass * (1.0 - stop[level])) @ walk.between[level][0]
        left = mass[:, far]
        if np.all(left[side.pairs.more] <= bound * (1.0 + 1e-9) * left[side.pairs.less]):
            return stop
    return np.zeros(stopped.shape)
