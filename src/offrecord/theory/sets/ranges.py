"""Bounds over a box of kernels for any number of states, and where transitions were not seen (R5).

One step is events.py, and pairwise.py too where rows touch few states. Where a low is 0 one step
bounds nothing, but several may: the entries of a product of any kernels of the box lie between
T̲^b 1_j and T̄^b 1_j, the greedy fills of each step applied one after the other. Always-redacted
records are crossed in such blocks of b steps, with several b, and the smallest bound counts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats
from offrecord.theory.sets import events, pairwise
from offrecord.theory.sets.walks import FORGOTTEN, Walk, at_step, off_diagonal

Box = tuple[Floats, Floats]

#: A walk is cut beyond this many records.
_MOST_RECORDS = 4096
#: A stretch is crossed in at most this many blocks of one length.
_MOST_BLOCKS = 32
#: Each step of a stretch is looked at up to the first, then that share of them.
_EACH, _SHARE = 64, 32


def side(walk: Walk, low: Floats, high: Floats) -> Floats:
    """(S, S) bounds of the log-ratios of one side. low, high: (1, S, S) or (steps, S, S)."""
    walk = walk.nearest(_MOST_RECORDS)
    states = walk.rows.shape[1]
    bounds: Floats | None = np.zeros((states, states)) if walk.ends else None
    slack = 0.0
    blocks = Blocks(low, high)
    for distance, steps, row in _crossings(walk):
        bounds = _crossed(bounds, row, distance, steps, blocks)[-1]
        if 0.0 < bounds.max() < FORGOTTEN:
            bounds, slack = np.zeros((states, states)), slack + float(bounds.max())
    assert bounds is not None
    return bounds + off_diagonal(states, slack)


def table(count: int, low: Floats, high: Floats, released: NDArray[np.bool_]) -> Floats:
    """(count, S, S) the same of windows: all redacted, then one of these states released.

    Entry d − 1 has the release at distance d. One box, (1, S, S), for every step.
    """
    row = np.where(released, 0.0, 1.0)
    return _crossed(None, row, count, count, Blocks(low, high))


def _crossed(
    bounds: Floats | None, row: Floats, distance: int, steps: int, blocks: Blocks
) -> Floats:
    """(steps, S, S) bounds 1, 2 … steps nearer to the secret than the record with this row.

    Far away not every step is looked at: averages differ by no more than what is averaged.
    """
    states = len(row)
    ones = np.ones(states)
    worst = np.empty((steps, states, states))
    for done in range(1, steps + 1):
        known = worst[done - 2] if done > 1 else np.full((states, states), np.inf)
        if known.max() < FORGOTTEN or not (_is_looked_at(done) or done == steps):
            worst[done - 1] = off_diagonal(states, known.max())
            continue
        best = np.full((states, states), np.inf)
        for size in _sizes(done):
            box = blocks.of(distance - done + size, size)
            before = worst[done - size - 1] if size < done else bounds
            best = np.minimum(best, _advanced(before, ones if size < done else row, box))
        worst[done - 1] = pairwise.closed(best)
    return worst


class Blocks:
    """Boxes of several steps at once; homogeneous ones are made once."""

    def __init__(self, low: Floats, high: Floats) -> None:
        self._low, self._high = low, high
        self._known: dict[int, Box] = {}
        self._longest = 0
        self._last: Box = (np.eye(low.shape[1]), np.eye(low.shape[1]))

    def of(self, distance: int, steps: int) -> Box:
        """From the record this many steps nearer to the one at this distance."""
        if steps == 1:
            return at_step(self._low, self._high, distance)
        if self._low.shape[0] > 1:
            box: Box = (np.eye(self._low.shape[1]), np.eye(self._low.shape[1]))
            for step in range(distance, distance - steps, -1):
                box = events.averaged(*at_step(self._low, self._high, step), *box)
            return box
        while self._longest < steps:
            self._last = events.averaged(self._low[0], self._high[0], *self._last)
            self._longest += 1
            if self._longest & (self._longest - 1) == 0 or self._longest == steps:
                self._known[self._longest] = self._last
        if steps not in self._known:
            box = self._known[1 << (steps.bit_length() - 1)]
            for _ in range(steps - (1 << (steps.bit_length() - 1))):
                box = events.averaged(self._low[0], self._high[0], *box)
            self._known[steps] = box
        return self._known[steps]


def _crossings(walk: Walk) -> Iterator[tuple[int, int, Floats]]:
    """Distance and row of each record that adds something, and the steps to the next such one."""
    ends = np.cumsum(walk.lengths)
    partial = [
        (distance, row)
        for row, length, end in zip(walk.rows, walk.lengths, ends, strict=True)
        if (row < 1.0).any()
        for distance in range(int(end) - int(length) + 1, int(end) + 1)
    ]
    nearer = [0, *(distance for distance, _ in partial)]
    for (distance, row), before in zip(partial[::-1], nearer[-2::-1], strict=True):
        yield distance, distance - before, row


def _sizes(steps: int) -> list[int]:
    """The lengths of blocks tried for so many steps: powers of two, and all at once."""
    powers = (1 << power for power in range(steps.bit_length()))
    return [*(size for size in powers if _MOST_BLOCKS * size >= steps and size < steps), steps]


def _is_looked_at(steps: int) -> bool:
    return steps <= _EACH or steps % (steps // _SHARE) == 0


def _advanced(bounds: Floats | None, row: Floats, box: Box) -> Floats:
    """One step of a box. Bounds of None: there is nothing beyond the record."""
    known = np.zeros((0, 0)) if bounds is None else bounds
    nearer = events.stepped(known, bounds is not None, row, *box)
    groups = pairwise.groups_of(box[1])
    if groups is not None:
        nearer = np.minimum(nearer, pairwise.advanced(bounds, row, groups, *box))
    return pairwise.closed(nearer)
