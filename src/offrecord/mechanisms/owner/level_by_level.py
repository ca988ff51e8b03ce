"""Level by level: at each level a linear program stops as much mass as members let it.

For each far context apart, from the first level on: the most mass under the mean chain such that
no outcome of the level, and not what is left for the deadline either, differs by more than a target
between start contexts, in any member. Members become rows of the program only where they are
violated.
"""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np

from offrecord.mechanisms.owner.law import Steps
from offrecord.mechanisms.owner.side import Pairs, Side
from offrecord.models.base import Floats, Integers, Mask

#: Rows that are added at a time, and the largest violation that stands: ten times the solver's own.
_ADDED, _TOLERANCE = 8, 1e-8
_MOST_ROUNDS = 40
#: A stop probability below it would be noise of the solver.
_LEAST = 1e-9
#: Shares of the stopped mass that wait instead, where what is left differs by too much.
_WAITING = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)


def level_by_level(side: Side, levels: list[int], target: float, patience: float) -> Floats:
    """(n − 1, S, S, S) stop probabilities of one side.

    side: the chains, the place and the direction; each context at the deadline is a class. levels:
    distances; the last one keeps the target by itself. patience: κ, the share of the target that
    what is left may differ by at the start; it grows to all of it at the deadline.
    """
    mean, walk = side.steps(levels, mean=True), side.steps(levels)
    keep = _quickest(side, walk)
    walk = Steps(
        walk.start[keep],
        walk.first[keep],
        [one[keep] for one in walk.between],
        [one[keep] for one in walk.beyond],
    )
    possible = np.isin(np.arange(side.contexts), side.starts)
    stop = np.zeros((len(levels) - 1, side.contexts, side.contexts, side.contexts))
    shares = [patience + (1 - patience) * level / levels[-1] for level in levels]
    for far in range(side.contexts):
        masses, own = walk.first, mean.first
        for level in range(len(stop)):
            if level:
                masses, own = masses @ walk.between[level - 1], own @ mean.between[level - 1]
            gain = mean.start[0][:, np.newaxis] * own[0] * mean.beyond[level][0, :, far]
            seen = np.any(walk.beyond[level][:, :, far] > 0, axis=0)
            left = masses * walk.beyond[level][:, np.newaxis, :, far]
            chances = _most(
                gain, masses, left, side.pairs, (target, target * shares[level]), possible, seen
            )
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


def _most(
    gain: Floats,
    masses: Floats,
    left: Floats,
    pairs: Pairs,
    targets: tuple[float, float],
    possible: Mask,
    seen: Mask,
) -> Floats:
    """(S, S) the stop probabilities of one level that gain the most.

    gain: (S, S) by start context and context. masses: (M, S, S) that have not stopped. left:
    (M, S, S) of these, what reaches the far context. targets: of outcomes, and of what is left.
    """
    contexts = len(gain)
    chances = np.zeros((contexts, contexts))
    used = possible[:, np.newaxis] & seen & (gain > 0)
    limits = _outcome_limits(masses, pairs, targets[0])
    forbidden = (limits <= 0).any(axis=0) | ~seen  # a context where some start can never stop
    used &= ~forbidden
    if not used.any():
        return chances
    totals = left.sum(axis=2)
    # what differs by more already must not differ by more still
    present = totals[:, pairs.more] / totals[:, pairs.less]
    bound = np.maximum(np.exp(targets[1]), present)
    number = np.full((contexts, contexts), -1)
    number[used] = np.arange(used.sum())
    program = _Program(gain[used])
    for context in np.flatnonzero(used.any(axis=0)):
        for pair, (more, less) in enumerate(zip(*pairs, strict=True)):
            limit = limits[pair, context]
            if used[more, context] and limit < 1e12:
                program.add([number[more, context], number[less, context]], [1.0, -limit], 0.0)
    for _ in range(_MOST_ROUNDS):
        solution = program.solve()
        if solution is None:
            return chances
        chances[used] = solution
        rest = (left * (1.0 - chances)).sum(axis=2)
        over = (rest[:, pairs.more] - bound * rest[:, pairs.less]) / totals[:, pairs.less]
        worst = np.argsort(-over, axis=None)[:_ADDED]
        worst = worst[over.ravel()[worst] > _TOLERANCE]
        if not len(worst):
            break
        for member, pair in zip(*np.unravel_index(worst, over.shape), strict=True):
            more, less = pairs.more[pair], pairs.less[pair]
            scale, limit = totals[member, less], bound[member, pair]
            high, low = used[more], used[less]
            columns = np.concatenate([number[more, high], number[less, low]])
            # left(more)(1 − σ) ≤ bound · left(less)(1 − σ)
            entries = np.concatenate([-left[member, more, high], limit * left[member, less, low]])
            margin = limit * totals[member, less] - totals[member, more]
            program.add(columns, entries / scale, margin / scale)
    return _repaired(np.clip(chances, 0.0, 1.0), limits, left, pairs, bound)


# What the solver's tolerance allowed is taken back: outcomes first, then what is left.
def _repaired(chances: Floats, limits: Floats, left: Floats, pairs: Pairs, bound: Floats) -> Floats:
    for _ in range(len(chances)):
        for pair, (more, less) in enumerate(zip(*pairs, strict=True)):
            chances[more] = np.minimum(chances[more], limits[pair] * chances[less])
    starts = np.unique(pairs.more)
    # an outcome that one start context cannot have leaks without limit
    chances[:, (chances[starts] < _LEAST).any(axis=0)] = 0.0  # never for one start alone
    for share in _WAITING:
        tried = (1.0 - share) * chances
        rest = (left * (1.0 - tried)).sum(axis=2)
        if np.all(rest[:, pairs.more] <= bound * rest[:, pairs.less] * (1.0 + 1e-9)):
            return np.asarray(tried)
    return np.zeros_like(chances)


# (pairs, S) how many times as likely one start context may stop at a context as another.
def _outcome_limits(masses: Floats, pairs: Pairs, target: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (masses[:, pairs.less] / masses[:, pairs.more]).min(axis=0)
    return np.asarray(np.nan_to_num(np.exp(target) * ratios, nan=0.0, posinf=1e12))


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
