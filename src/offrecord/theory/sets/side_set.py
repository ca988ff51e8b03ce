"""SideSet: the kernels that steps on one side of a secret may have, and what that side leaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from offrecord.models.base import Floats, Integers
from offrecord.models.box import Box, Intervals

#: Larger boxes are followed so many records far; beyond, everything counts as large leakage.
HORIZON = 4096
#: How the leakage of a side was found; the first two are exact.
BY_ONE_WALK, BY_CONES = "one walk (R1)", "cones"
BY_FORWARD_KERNELS = "one walk, start unknown (R4)"
NOWHERE = -2  #: the value of an output that nobody can name
_DOWN, _UP = 1.0 - 2.0**-52, 1.0 + 2.0**-52  # what a division may be off
_EXTREME_ODDS = 1e-50  # odds below, or their inverse above, count as none and infinite


#: The sides of boxes that serve every step, by direction, as long as the box is in use.
_SIDES: WeakKeyDictionary[Box, dict[int, SideSet]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class SideSet:
    """low, high: (1, S, S) the same at every step away from the secret, or one for each step.

    odds: for the left side of a chain whose kernels are known forwards alone, the least and the
    largest odds of value 1 (R4).
    """

    low: Floats
    high: Floats
    odds: tuple[float, float] | None = None

    @classmethod
    def of(cls, box: Box, origin: int, direction: int) -> SideSet:
        """Of the steps away from record `origin` of the lifted chain.

        Where all steps have the same box, wherever that is: what is known of it is found once.
        """
        if box.by_step is not None:
            return cls._of(box, origin, direction)
        known = _SIDES.setdefault(box, {})
        if direction not in known:
            known[direction] = cls._of(box, origin, direction)
        return known[direction]

    @classmethod
    def _of(cls, box: Box, origin: int, direction: int) -> SideSet:
        ahead, back = box.lifted
        if direction > 0:
            return cls(*_steps(ahead, box, slice(origin - 1, None)))
        if box.start != "stationary":
            return cls(*_steps(ahead, box, slice(None)), odds_of(box))
        return cls(*_steps(back, box, slice(origin - 2, None, -1) if origin > 1 else slice(0)))

    @property
    def k(self) -> int:
        """Number of states."""
        return int(self.low.shape[-1])

    @cached_property
    def is_independent(self) -> bool:
        """Whatever the state, the next is alike, to the last bit."""
        first = self.low[0]
        return bool(np.all(self.low == self.high) and np.all(first == first[0]))

    @cached_property
    def stickiest(self) -> Floats:
        """(1 or steps, S, S) the kernels under which states stay as long as can be (R2)."""
        kernels = self.low.copy()
        states = np.arange(self.k)
        room = self.high - self.low
        # of a tuple, the nearest to staying is what has most room
        stays = np.where(room[:, states, states] > 0, states, room.argmax(axis=2))
        rest = 1.0 - kernels.sum(axis=2)
        kernels[np.arange(len(kernels))[:, np.newaxis], states, stays] += rest
        return kernels

    @property
    def horizon(self) -> int | None:
        """How many records are looked at, at most; None where that is cheap."""
        return None if self.k == 2 else HORIZON

    @cached_property
    def _tables(self) -> dict[str, Floats]:
        """What has been computed by distance, as far as it was asked for."""
        return {}

    def _known(self, name: str, count: int, compute: Callable[[int], Floats]) -> Floats:
        """The first `count` entries of a table, computed for more of them where that saves doing it
        again soon.
        """
        known = self._tables.get(name)
        if known is None or len(known) < count:
            size = count if known is None else max(count, 2 * len(known))
            if len(self.low) > 1:
                size = min(size, len(self.low))
            known = self._tables[name] = compute(size)
        return known[:count]

    def windows(self, count: int) -> Floats:
        """(count, S, S) directional leakage by the distance of the first release."""
        return self._known("windows", count, self._windows)

    def influences(self, count: int) -> Floats:
        """(count, S) pointwise influence, the largest over the set."""
        return self._known("influences", count, self._influences)

    def _windows(self, count: int) -> Floats:
        if self.k == 2:
            from offrecord.theory.sets import binary

            return binary.windows(count, self.low, self.high, self.odds)
        from offrecord.theory.sets import many

        return many.windows(count, self.low, self.high)

    def _influences(self, count: int) -> Floats:
        if self.k == 2:
            from offrecord.theory.sets import binary

            return binary.influences(count, self.low, self.high, self.odds)
        from offrecord.theory.sets import many

        return many.influences(count, self.low, self.high)

    def leakage(self, walked: Any) -> tuple[Floats, Integers, Integers, float, str]:
        """Directional leakage, where it is met, its rounding, and how it was found.

        value NOWHERE where nobody can say at which output it is met.
        """
        if self.k == 2:
            from offrecord.theory.sets import binary

            method = BY_ONE_WALK if self.odds is None else BY_FORWARD_KERNELS
            return (*binary.leakage(self.low, self.high, self.odds, walked), method)
        from offrecord.theory.sets import many

        rows, lengths, index, step, count, opens = walked
        visited = slice(index, index + count) if step > 0 else slice(index, None, -1)
        found = many.bound(rows[visited], lengths[visited], opens, self.low, self.high)
        nowhere = np.full((self.k, self.k), NOWHERE, dtype=np.int64)
        return found.worst, np.zeros_like(nowhere), nowhere, found.rounding, found.method


def _steps(intervals: Intervals, box: Box, steps: slice) -> tuple[Floats, Floats]:
    low, high = intervals
    if box.by_step is None:
        return low[np.newaxis], high[np.newaxis]
    return np.ascontiguousarray(low[steps]), np.ascontiguousarray(high[steps])


def odds_of(box: Box) -> tuple[float, float]:
    """The least and largest odds of value 1 that a record may have, for kernels known forwards.

    Settled: the chain has been under way for long, so they lie between those of the box's own
    extreme kernels (for α + β ≤ 1; else anything is possible).
    """
    low, high = box.lifted[0]
    # 1 − α is at least low00: a comparison of numbers as they are, no sum of them
    if box.start == "any" or low[0, 0] < high[1, 0] or low[1, 0] == 0.0:
        return 0.0, np.inf
    least, most = low[0, 1] / high[1, 0] * _DOWN, high[0, 1] / low[1, 0] * _UP
    return (
        0.0 if least < _EXTREME_ODDS else float(least),
        np.inf if most > 1.0 / _EXTREME_ODDS else float(most),
    )
