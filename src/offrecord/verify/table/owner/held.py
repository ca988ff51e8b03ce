"""Gaps that are held out, with the key: whether draws let what is released of them be.

Values that are not known may be any. State by state of what is held out it is kept which values of
the two secrets, and at its two ends, go with having come so far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offrecord.release.certificate import GapStopping
from offrecord.verify.table.cells import Integers, Mask
from offrecord.verify.table.owner.rule import gap_thresholds, held_states
from offrecord.verify.table.owner.thresholds import Draws, Values, allowed, below

_CELLS = 1 << 18  # that are looked at at once
_STATES = (0, 1, 2, 3)  # axes
_Alive = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Gaps of one length, (g,) each: the values of the secrets beside them and (g, n) their own,
    ANY where not known; draws: (g, n) of each step. first, last: what is released of them, 0 for
    nothing.
    """

    left: Values
    right: Values
    values: Values
    draws: Draws
    first: Integers
    last: Integers

    def part(self, some: slice) -> HeldOut:
        """Some of them."""
        return HeldOut(*(one[some] for one in vars(self).values()))

    def possible(self, gap: GapStopping, k: int) -> Mask:
        """(g,) whether draws allow what is released of each."""
        found = np.zeros(len(self.left), dtype=bool)
        size = max(_CELLS // k**4, 1)
        limits = gap_thresholds(gap, k)
        for at in range(0, len(found), size):
            part = slice(at, at + size)
            found[part] = self.part(part)._possible(gap.length, limits, k)
        return found

    def _possible(self, length: int, limits: Draws, k: int) -> Mask:
        states = held_states(length)
        alive: dict[tuple[int, int], _Alive] = {states[0]: self._start(length, k)}
        found = np.zeros(len(self.left), dtype=bool)
        for (first, last), thresholds in zip(states, limits, strict=True):
            here = alive.pop((first, last), None)
            if here is None or not here.any():
                continue
            step = length - (last - first + 1)
            drawn = self.draws[:, step]
            released = below(drawn, thresholds[..., 0, None])
            loses = below(drawn, thresholds[..., 1, None]) & ~released
            shown = (self.first == first) & (self.last == last)
            found |= shown & (here & released).any(axis=_STATES)
            if first == last:
                nothing = (here & ~released).any(axis=_STATES)
                found |= (self.first == 0) & nothing
                continue
            for is_first, lost in ((True, here & loses), (False, here & ~(released | loses))):
                state = (first + 1, last) if is_first else (first, last - 1)
                after = self._moved(lost, state, k, is_first=is_first)
                alive[state] = alive[state] | after if state in alive else after
        return found

    def _start(self, length: int, k: int) -> _Alive:
        """(k, k, k, k, g) by the two secrets and the first and last value; gaps come last, so that
        few and long stretches of memory are gone through.
        """
        ends = (self.left, self.right, self.values[:, 0], self.values[:, -1])
        left, right, first, last = (allowed(values, k) for values in ends)
        found = (
            left[:, None, None, None]
            & right[None, :, None, None]
            & first[None, None, :, None]
            & last[None, None, None, :]
        )
        return found & _equal(k) if length == 1 else found

    def _moved(self, lost: _Alive, state: tuple[int, int], k: int, *, is_first: bool) -> _Alive:
        """Once the first or the last record is lost: the next one may be anything that it can."""
        first, last = state
        record, axis = (first, 2) if is_first else (last, 3)
        there = allowed(self.values[:, record - 1], k)
        there = there[:, None] if is_first else there
        found = lost.any(axis=axis, keepdims=True) & there
        return found & _equal(k) if first == last else found


def _equal(k: int) -> Mask:
    """(k, k, 1) where two values are one."""
    return np.eye(k, dtype=bool)[:, :, None]
