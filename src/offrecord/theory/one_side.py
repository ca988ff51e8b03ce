"""OneSide: the records on one side of a secret under one chain, by distance; what designs ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from offrecord.models.base import Floats, Mask
from offrecord.models.chain import MarkovChain
from offrecord.theory.influence import first_small, influence_beside, is_independent
from offrecord.theory.pairs import ratios
from offrecord.theory.problem import Problem, Secret


@dataclass(frozen=True, eq=False)
class OneSide:
    """The records at distances 1 … margin from record `edge`, for a chain of order 1.

    direction: 1 to the right, −1 to the left.
    """

    chain: MarkovChain
    edge: int
    direction: int
    margin: int
    _known: dict[str, Floats] = field(default_factory=dict, repr=False)

    @classmethod
    def both(cls, problem: Problem, secret: Secret) -> tuple[OneSide, OneSide]:
        """The left and the right side of a secret."""
        left = cls(problem.chain, secret.first, -1, secret.first - 1)
        return left, cls(problem.chain, secret.last, 1, problem.n - secret.last)

    @cached_property
    def is_independent(self) -> bool:
        """Whether nothing on this side depends on the record at the edge."""
        return self.margin == 0 or is_independent(self.chain, self.edge, self.direction)

    def influence(self, count: int) -> Floats:
        """(count, k) pointwise influence by distance; −∞ for a value that is never taken."""
        known = self._known.get("influence")
        if known is None or len(known) < count:
            size = min(max(count, 64 if known is None else 2 * len(known)), self.margin)
            known = influence_beside(self.chain, self.edge, self.direction, size)
            self._known["influence"] = known
        return known[:count]

    def delta_star(self, epsilon: float) -> int | None:
        """Δ*: the smallest distance with max-influence at most ε, None beyond the margin."""
        where = self.chain, self.edge, self.direction
        return first_small(*where, epsilon, self.margin, self.influence)

    def kernels(self, count: int) -> Floats:
        """(count, k, k) the kernels of the first steps away from the edge."""
        ends = self.edge, self.edge + self.direction * count
        return np.broadcast_to(self.chain.kernels(*ends), (count, self.chain.k, self.chain.k))

    def masses(self, count: int) -> Floats:
        """(count, k) the laws of the records at distances 1 … count."""
        if self.chain.is_stationary:
            return np.broadcast_to(self.chain.start, (count, self.chain.k))
        if self.direction > 0:
            return self.chain.marginals(self.edge + 1, self.edge + count)
        return self.chain.marginals(self.edge - count, self.edge - 1)[::-1]

    def cost(self, rows: Floats) -> float:
        """Expected number of redacted records of (reach, k) rows by distance."""
        return float((rows * self.masses(len(rows))).sum()) if len(rows) else 0.0

    def worst(self, rows: Floats) -> Floats:
        """(B,) the leakage of this side, of several redactions at once (F1).

        rows: (B, R, k) by distance; if R is less than the margin, all is released beyond. Returns
        the largest log-ratio of an outcome's likelihood, ∞ included.
        """
        count, reach, k = rows.shape
        support = self.chain.support(self.edge)
        state = np.broadcast_to(np.eye(k)[support], (count, int(support.sum()), k))
        steps = reach + (reach < self.margin)
        kernels = self.kernels(steps)
        found = np.ones(count)
        for step in range(steps):
            reached = state @ kernels[step]
            row = rows[:, step] if step < reach else np.zeros((count, k))
            found = np.maximum(found, _ratios(reached, row < 1))
            state = reached * row[:, np.newaxis]
            largest = state.max(axis=(1, 2), keepdims=True)
            if not largest.any():
                break
            state = state / np.where(largest > 0, largest, 1.0)
        nothing = state.sum(axis=2)[:, :, np.newaxis]
        found = np.maximum(found, _ratios(nothing, np.ones((count, 1), dtype=bool)))
        return np.asarray(np.log(found))


def _ratios(likely: Floats, shown: Mask) -> Floats:
    """(B,) the largest ratio of rows within a column of (B, x, values), of columns that count."""
    largest = np.where(shown, ratios(likely.max(axis=1), likely.min(axis=1)), 1.0)
    return np.asarray(largest.max(axis=1, initial=1.0))
