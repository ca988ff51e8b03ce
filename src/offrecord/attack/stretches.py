"""Stretches: how likely what is shown between two places is, summed over all that is not, together
with the courses of a walk that leads into it from the left and of one from the right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from offrecord.attack.courses import Course
from offrecord.attack.steps import Opened
from offrecord.models.base import Floats, Integers

HIDDEN = -1  #: the symbol of a record that has a value, which is not shown
ABSENT = -2  #: of one that has none


@dataclass(frozen=True, eq=False)
class Stretch:
    """kernels: (n,) the numbers of those of its steps. symbols: (n,) the values shown after each
    step, below 0 where none is. start: (a, S) the states before the first step, each with a weight.
    tuples: (S,) which value a walk sees in each state.
    """

    opened: Opened
    kernels: Integers
    symbols: Integers
    start: Floats
    tuples: Integers

    def likely(self, right: Sequence[Course], left: Sequence[Course]) -> Floats:
        """(a, S) with each start and state after the last step, how likely what is shown is, and
        that the walks went by any of these courses; right: from before the first step, left: from
        after the last one.
        """
        found = np.zeros(self.start.shape)
        for one in right:
            for other in left:
                found += self._passed(one, other)
        return found

    def _passed(self, right: Course, left: Course) -> Floats:
        count, states = self.start.shape
        # by far values of both walks, the value the left one leads away from, start, the values at
        # the last level of either, and state
        away = len(self._values) if left.here or left.across else 1
        shape = len(right.fars), len(left.fars), away, count, 1, 1, states
        weights = np.broadcast_to(self.start[:, np.newaxis, np.newaxis], shape).copy()
        last = len(self.symbols)
        for step in range(last + 1):
            if step:
                weights = weights @ self.opened.kernels[self.kernels[step - 1]]
                if self.symbols[step - 1] >= 0:
                    weights *= self.opened.steps.value == self.symbols[step - 1]
            weights = self._led_right(weights, right, step)
            weights = self._led_left(weights, left, last - step)
        if away > 1:
            weights = (
                weights
                * self._is_value[np.newaxis, np.newaxis, :, np.newaxis, np.newaxis, np.newaxis]
            )
        return np.asarray(weights.sum(axis=(0, 1, 2, 4, 5)))

    @cached_property
    def _values(self) -> Integers:
        return np.arange(int(self.tuples.max()) + 1)

    @cached_property
    def _is_value(self) -> Floats:
        """(k, S) which states show each value."""
        return np.asarray(self.tuples == self._values[:, np.newaxis], dtype=np.float64)

    def _led_right(self, weights: Floats, course: Course, distance: int) -> Floats:
        """With what the walk from the left says about a distance from where it began."""
        x = self.tuples[self.start.argmax(axis=1)] if len(self.start) > 1 else None
        if distance in course.here:
            assert x is not None
            factors = course.here[distance][:, x][:, :, self.tuples]  # (f, a, S)
            weights = weights * factors[:, np.newaxis, np.newaxis, :, np.newaxis, np.newaxis]
        for (_, far), across in course.across.items():
            if far == distance:
                assert x is not None
                factors = across[:, x][..., self.tuples]  # (f, a, i, S)
                factors = factors[:, np.newaxis, np.newaxis, :, :, np.newaxis]
                weights = (weights * factors).sum(axis=4, keepdims=True)
        if distance == course.check:
            is_far = self._is_value[course.fars]
            weights = weights * is_far.reshape(len(course.fars), 1, 1, 1, 1, 1, -1)
        if any(near == distance for near, _ in course.across):
            weights = weights * self._is_value[:, np.newaxis]
        return weights

    def _led_left(self, weights: Floats, course: Course, distance: int) -> Floats:
        """With what the walk from the right says about a distance from where it began."""
        if distance in course.here:
            factors = course.here[distance][..., self.tuples]  # (f, x, S)
            weights = weights * factors[:, :, np.newaxis, np.newaxis, np.newaxis]
        for (near, _), across in course.across.items():
            if near == distance:
                factors = across[:, :, self.tuples]  # (f, x, S, j)
                factors = np.moveaxis(factors, 2, 3)[:, :, np.newaxis, np.newaxis]
                weights = (weights * factors).sum(axis=5, keepdims=True)
        if distance == course.check:
            is_far = self._is_value[course.fars]
            weights = weights * is_far.reshape(1, len(course.fars), 1, 1, 1, 1, -1)
        if any(far == distance for _, far in course.across):
            weights = weights * self._is_value
        return weights


#: The course of a walk that says nothing.
NOWHERE = Course(np.zeros(1, dtype=np.int64))
