"""The menu: all sides that the secrets of one model and budget may take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from offrecord.mechanisms.owner.labels import stopping_pair
from offrecord.mechanisms.owner.laws import expected_redactions
from offrecord.mechanisms.owner.referee import told_by, told_by_pair
from offrecord.mechanisms.owner.sides import (
    Effort,
    closed_side,
    effort_for,
    stopping_side,
    window_side,
)
from offrecord.mechanisms.owner.stopping import Stopping, StoppingPair, StoppingSide
from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats

#: Shares of ε that a side may have: half of it serves every cluster, more those in which no secret
#: is near both ends (O11).
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_FEW_VALUES = 3  # up to which clusters have all shares, and rays all strengths
_PAIRED_VALUES = 5  # up to which both sides may go in turn
#: For more values than a few, pairs are made where no walk is longer than this.
_PAIRED_REACH = 12
_STRENGTHS = (0.45, 0.9)


@dataclass(frozen=True, eq=False)
class Ways:
    """The ways to the left and to the right of a secret."""

    left: Way
    right: Way

    @cached_property
    def are_alike(self) -> bool:
        """Both sides are the same to a walk: a stationary chain that is its own reverse."""
        return (
            self.left.is_even
            and self.right.is_even
            and np.array_equal(self.left.kernels, self.right.kernels)
        )

    def told(self, left: StoppingSide, right: StoppingSide) -> Floats:
        """(k, k) what both sides together tell about a single record at most."""
        return told_by(left, self.left) + told_by(right, self.right)

    def told_by_pair(self, pair: StoppingPair) -> Floats:
        """(k, k) what both sides in turn tell at most."""
        ways = (self.left, self.right) if pair.first < 0 else (self.right, self.left)
        return told_by_pair(pair, *ways)

    def cost(self, left: StoppingSide, right: StoppingSide) -> float:
        """Expected redactions beside the secret, in unlimited room."""
        return expected_redactions(left, self.left) + expected_redactions(right, self.right)


def stopping_for(ways: Ways, epsilon: float, window: tuple[int, int] | None) -> Stopping:
    """The menu for a budget. window: what the best data-independent mechanism redacts in unlimited
    room, None where that is everything on a side; nothing here redacts more.
    """
    return _Menu(ways, epsilon, window).made


class _Menu:
    def __init__(self, ways: Ways, epsilon: float, window: tuple[int, int] | None) -> None:
        self.ways, self.epsilon, self.window = ways, epsilon, window
        self.effort = effort_for(ways.right.k)
        self.closed = tuple(closed_side(direction, ways.right.k) for direction in (-1, 1))
        self.known: dict[float, tuple[StoppingSide | None, StoppingSide | None]] = {}

    @property
    def made(self) -> Stopping:
        base = self._base()
        options = [base]
        lasts = [side.deadline for side in base]
        for share in self._shares:
            left, right = self._both(share)
            if left is not None and right is not None:
                options.append((left, right))
        alone = self._both(1.0)
        options += [
            (
                self.closed[0] if side.direction > 0 else side,
                self.closed[1] if side.direction < 0 else side,
            )
            for side in alone
            if side is not None
        ]
        kept = [
            option
            for option in options[1:]
            if all(
                not len(side.levels) or side.deadline <= last
                for side, last in zip(option, lasts, strict=True)
            )
        ]
        return Stopping(self.epsilon, (base, *kept), self._pair(base))

    @property
    def _shares(self) -> tuple[float, ...]:
        return SHARES[1:] if self.ways.right.k <= _FEW_VALUES else SHARES[-1:]

    def _both(self, share: float) -> tuple[StoppingSide | None, StoppingSide | None]:
        """Sides with a share of ε; None where no window keeps within it."""
        if share not in self.known:
            right = stopping_side(self.ways.right, share * self.epsilon, self.effort)
            if self.ways.are_alike:
                left = None if right is None else replace(right, direction=-1)
            else:
                left = stopping_side(self.ways.left, share * self.epsilon, self.effort)
            self.known[share] = left, right
        return self.known[share]

    def _base(self) -> tuple[StoppingSide, StoppingSide]:
        """What serves every cluster: half of ε on either side, or all of it where the other has to
        be closed; the window where that costs less.
        """
        found: list[tuple[StoppingSide, StoppingSide]] = []
        left, right = self._both(0.5)
        if left is not None and right is not None:
            found.append((left, right))
            found += self._as_window()
            return min(found, key=lambda sides: self.ways.cost(*sides))
        left, right = self._both(1.0)
        if right is not None:
            return self.closed[0], right
        return (left or self.closed[0]), self.closed[1]

    def _as_window(self) -> list[tuple[StoppingSide, StoppingSide]]:
        """The window as a pair of sides, where its two influences sum to at most ε."""
        if self.window is None:
            return []
        k = self.ways.right.k
        sides = []
        for direction, way, size in zip(
            (-1, 1), (self.ways.left, self.ways.right), self.window, strict=True
        ):
            told = float(told_by(window_side(direction, k, 0.0, size + 1), way).max())
            sides.append(window_side(direction, k, told, size + 1))
        left, right = sides
        return [(left, right)] if left.budget + right.budget <= self.epsilon else []

    def _pair(self, base: tuple[StoppingSide, StoppingSide]) -> StoppingPair | None:
        """Both sides in turn, where that pays."""
        k = self.ways.right.k
        few = k <= _FEW_VALUES
        longest = max(side.deadline for side in base)
        if k > _PAIRED_VALUES or longest == 1 or not (few or longest <= _PAIRED_REACH):
            return None
        effort = Effort(self.effort.levels, ahead=few)
        return stopping_pair(self.ways.right, self.ways.left, self.epsilon, effort, _STRENGTHS)
