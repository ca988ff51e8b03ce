"""OneSide: the records on one side of a secret under one chain, by distance; what designs ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from offrecord.errors import InputError
from offrecord.models.base import Floats, Mask
from offrecord.models.chain import MarkovChain
from offrecord.models.checking import whole_number
from offrecord.theory.influence import influence_beside
from offrecord.theory.pairs import ratios
from offrecord.theory.problem import Problem, Secret, budget
from offrecord.theory.sides import scaled

_MOST_STEPS = 1_000_000  # records that a chain which forgets slowly is followed: a minute


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
        """Whether nothing on this side depends on the record at the edge, to the last bit."""
        if self.margin == 0:
            return True
        rows = self.kernels(1)[0][self.chain.support(self.edge)]
        return bool(np.all(rows == rows[0]))

    def influence(self, count: int) -> Floats:
        """(count, k) pointwise influence by distance; −∞ for a value that is never taken."""
        known = self._known.get("influence")
        if known is None or len(known) < count:
            # twice as many at a time, so that longer and longer looks cost one long one
            size = min(max(count, 64 if known is None else 2 * len(known)), self.margin)
            known = influence_beside(self.chain, self.edge, self.direction, size)
            self._known["influence"] = known
        return known[:count]

    def delta_star(self, epsilon: float) -> int | None:
        """Δ*: the smallest distance with max-influence at most ε, None beyond the margin."""
        if self.margin == 0 or self.is_independent:
            return 1 if self.margin else None
        if epsilon <= 0:
            return None
        count = min(64, self.margin)
        # a record further off says no more than one nearer (data processing): the last is the least
        while (largest := self.influence(count).max(axis=1))[-1] > epsilon:
            if count >= min(self.margin, _MOST_STEPS) or _is_constant(largest[-32:]):
                return None
            count = min(4 * count, self.margin)
        return int(np.argmax(largest <= epsilon)) + 1

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
        # one record more, which is released: nothing beyond it says more (F1)
        if rows.shape[1] < self.margin:
            rows = np.pad(rows, ((0, 0), (0, 1), (0, 0)))
        start = np.eye(self.chain.k)[self.chain.support(self.edge)]
        state, found = np.broadcast_to(start, (len(rows), *start.shape)), np.ones(len(rows))
        for step, kernel in enumerate(self.kernels(rows.shape[1])):
            reached, row = state @ kernel, rows[:, step]
            found = np.maximum(found, _ratios(reached, row < 1))
            state = scaled(reached * row[:, np.newaxis])
            if not state.any():
                break
        nothing = state.sum(axis=2)[:, :, np.newaxis]
        found = np.maximum(found, _ratios(nothing, np.ones((len(rows), 1), dtype=bool)))
        return np.asarray(np.log(found))


def _is_constant(last: Floats) -> bool:
    # an influence that no longer falls, to the last bit, is that of a chain that never forgets
    return len(last) == 32 and (bool(np.all(last == last[0])) or not np.isfinite(last).any())


def _ratios(likely: Floats, shown: Mask) -> Floats:
    """(B,) the largest ratio of rows within a column of (B, x, values), of columns that count."""
    largest = np.where(shown, ratios(likely.max(axis=1), likely.min(axis=1)), 1.0)
    return np.asarray(largest.max(axis=1, initial=1.0))


def delta_star(chain: MarkovChain, epsilon: float, limit: int) -> int | None:
    """Δ*(ε), the smallest distance with max-influence at most ε (Theorem 2).

    Args:
        chain: stationary, of order 1.
        epsilon: the budget.
        limit: how far to look.

    Returns:
        The distance to the right; None beyond the limit.

    Raises:
        InputError: For another chain, and a limit below 1.
    """
    if not chain.is_stationary or chain.order > 1:
        raise InputError("delta_star needs a stationary chain of order 1")
    if whole_number("limit", limit) < 1:
        raise InputError(f"limit must be at least 1, got {limit}")
    return OneSide(chain, 1, 1, limit).delta_star(budget(epsilon))
