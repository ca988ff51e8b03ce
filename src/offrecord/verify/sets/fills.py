"""Boxes as doubles, rounded outwards, of one step or of several, and averages under them.

Every margin here is derived in docs/proofs/verified-sets.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from offrecord.verify.sets.boxes import Box, Floats, nearest

UNIT = 2.0**-53
#: No largest probability is smaller but 0: products of several steps must not underflow to it.
_LEAST = 1e-250


@dataclass(frozen=True, eq=False)
class Fill:
    """low, high: (R, S) the least and the largest probabilities of rows that sum to 1."""

    low: Floats
    high: Floats

    @classmethod
    def of(cls, box: Box) -> Fill:
        """Of one step."""
        low = np.array([[nearest(one) for one in row] for row in box.low])
        high = np.array([[nearest(one) for one in row] for row in box.high])
        return cls(low * (1.0 - 2.0 * UNIT), np.minimum(high * (1.0 + 2.0 * UNIT), 1.0))

    @cached_property
    def room(self) -> Floats:
        """How much more than its least each may have."""
        return np.asarray(np.maximum(self.high - self.low, 0.0))

    @cached_property
    def rest(self) -> Floats:
        """(R,) the mass that the least leave."""
        return np.asarray(np.maximum(1.0 - self.low.sum(axis=1), 0.0))

    def of_rows(self, rows: list[int], states: list[int]) -> Fill:
        """Of some rows, which lead to these states alone."""
        square = np.ix_(rows, states)
        return Fill(self.low[square], self.high[square])

    def averages(self, rays: Floats) -> tuple[Floats, Floats]:
        """(N, R) bounds of the least and the largest average of each ray (N, S) by each row.

        As much as can be goes to the smallest, or the largest, numbers first. The mass that is left
        is a difference: averages are uncertain by some units of the largest number.
        """
        order = np.argsort(rays, axis=1)
        rising = np.take_along_axis(rays, order, axis=1)
        base = rays @ self.low.T
        room = self.room[:, order].transpose(1, 0, 2)
        small = base + self._added(room, rising)
        large = base + self._added(room[:, :, ::-1], rising[:, ::-1])
        unsure = (8.0 * rays.shape[1] + 32.0) * UNIT * rays.max(axis=1, keepdims=True)
        possible = (rays > 0).astype(np.float64) @ (self.high > 0).astype(np.float64).T > 0
        return np.maximum(small - unsure, 0.0), np.where(possible, large + unsure, 0.0)

    def _added(self, room: Floats, values: Floats) -> Floats:
        """(N, R) what the mass that is left adds; room: (N, R, S), values: (N, S), in its order."""
        before = np.cumsum(room, axis=2) - room
        given = np.clip(self.rest[np.newaxis, :, np.newaxis] - before, 0.0, room)
        return np.asarray(np.einsum("nrs,ns->nr", given, values))

    def after(self, inner: Fill) -> Fill:
        """Of this step and then those of another box: averages of its columns."""
        low = self.averages(inner.low.T)[0].T
        high = self.averages(inner.high.T)[1].T
        high = np.where(high > 0, np.maximum(high, _LEAST), 0.0)
        return Fill(low, np.minimum(high, 1.0))
