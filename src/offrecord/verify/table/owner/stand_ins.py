"""Values that stood in for missing ones, drawn again from the model's law (O9).

Several of one stretch depend on which of them walks look at, and so on what clusters took. So those
inside a chain are drawn again where one record alone is missing between two values; beyond a
chain's end, one after the other for each walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from offrecord.release.certificate import Model
from offrecord.verify.table.cells import Integers
from offrecord.verify.table.coins import Coins
from offrecord.verify.table.rows import Table

Floats = NDArray[np.float64]
_PURPOSE = b"offrecord/absent"
_BEFORE_FIRST = 2**47  # counters of places before a chain's first row


@dataclass(frozen=True, eq=False)
class StandIns:
    """Of a stationary model of order 1."""

    model: Model
    coins: Coins

    @cached_property
    def _kernels(self) -> dict[int, Floats]:
        """By direction: to the right, and back in time."""
        forward, start = np.array(self.model.transition), np.array(self.model.start)
        with np.errstate(divide="ignore", invalid="ignore"):
            back = (start[:, None] * forward).T / start[:, None]
        return {1: forward, -1: np.where(start[:, None] > 0, back, 0.0)}

    def between(
        self, chain: Integers, place: Integers, before: Integers, after: Integers
    ) -> Integers:
        """(n,) values of single places, given those right before and after."""
        kernel = self._kernels[1]
        laws = kernel[before] * kernel[:, after].T
        return _picked(laws, self._uniform(chain, place))

    def beyond(self, chain: Integers, place: Integers, steps: int, value: Integers) -> Integers:
        """(n,) values of places beyond a chain's end, so many steps (negative to the left) from one
        with a value.
        """
        kernel = np.linalg.matrix_power(self._kernels[1 if steps > 0 else -1], abs(steps))
        return _picked(kernel[value], self._uniform(chain, place))

    def _uniform(self, chain: Integers, place: Integers) -> Floats:
        """(n,) numbers from 0 to 1, as exact near 0 as a float is."""
        table = self.coins.table
        row, away, is_before = _named(table, chain, place)
        counter = np.where(is_before, _BEFORE_FIRST + 2 * away, 2 * away)
        high, low = (
            self.coins.draws(chain, table.order[row], _PURPOSE, counter + second).astype(np.float64)
            for second in (0, 1)
        )
        return np.asarray(np.ldexp(high, -64) + np.ldexp(low + 0.5, -128))


def _named(
    table: Table, chain: Integers, place: Integers
) -> tuple[Integers, Integers, NDArray[np.bool_]]:
    """The last row at or before each place and how many steps that is; before the chain's first
    row that row.
    """
    row = table.row_from(chain, np.maximum(place + 1, 0)) - 1
    row = np.where(place >= table.lengths[chain], table.starts[chain + 1] - 1, row)
    is_before = place < 0
    row = np.where(is_before, table.starts[chain], row)
    return row, np.abs(place - table.place_of(row)), is_before


def _picked(laws: Floats, numbers: Floats) -> Integers:
    """(n,) the value in whose stretch of the cumulated probabilities a number lies, the least
    likely first.
    """
    order = np.argsort(laws, axis=1, kind="stable")
    summed = np.take_along_axis(laws, order, axis=1).cumsum(axis=1)
    at = (summed[:, :-1] <= numbers[:, None] * summed[:, -1:]).sum(axis=1)
    return np.asarray(np.take_along_axis(order, at[:, None], axis=1)[:, 0])
