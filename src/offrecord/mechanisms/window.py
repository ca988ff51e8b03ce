"""BestWindow: the best data-independent mechanism, exact."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.local.secrets import cut
from offrecord.mechanisms.local.side_mechanism import SideMechanism
from offrecord.mechanisms.local.stretches import Sides, Stretches
from offrecord.theory.leakage import possible_ends
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.side import Side


@dataclass(frozen=True)
class BestWindow(SideMechanism):
    """Redact the shortest window around the private record that keeps within ε; release everything
    else.

    No data-independent mechanism releases more: whether a record may be released counts, not how
    often, and given the nearest released records on both sides all others are free. Directions add
    (F2), so the window need not be symmetric. Takes every chain; O(window·k³) for each distinct
    pair of rooms.
    """

    name: ClassVar[str] = "window"

    def sides(self, problem: Problem, secret: Secret, left: Side, right: Side) -> Sides:
        """The shortest window."""
        k, epsilon = problem.chain.k, problem.epsilon
        possible = possible_ends(problem, secret)
        reaches = [side.delta_star(epsilon) for side in (left, right)]
        # Without looking at pairs: one side closed altogether and the other within ε, or both
        # within ε/2.
        options = [(left.room, right.room)]
        if reaches[0] is not None:
            options.append((reaches[0] - 1, right.room))
        if reaches[1] is not None:
            options.append((left.room, reaches[1] - 1))
        halves = [side.delta_star(epsilon / 2) for side in (left, right)]
        if halves[0] is not None and halves[1] is not None:
            options.append((halves[0] - 1, halves[1] - 1))
        best = min(options, key=sum)
        if reaches[0] is not None and reaches[1] is not None:
            both = _both_open(left, right, sum(best), possible, epsilon)
            best = both or best
        return Stretches.always(k, best[0]), Stretches.always(k, best[1])

    def window(self, problem: Problem, sides: Sides) -> tuple[int, int]:
        """Its own size."""
        return sides[0].size, sides[1].size


def window_of(problem: Problem) -> tuple[int, int]:
    """How far the best data-independent mechanism redacts around a problem's one secret."""
    left, right = cut(problem, BestWindow().design(problem).sparse)
    return left.size, right.size


def _both_open(
    left: Side, right: Side, limit: int, possible: NDArray[np.bool_], epsilon: float
) -> tuple[int, int] | None:
    """The pair of window sizes with both sides opened and the smallest sum below limit; None if
    there is none.

    Influence never rises with distance. So for each distance at which the left is opened, and each
    pair of left end values, the right is opened at the first distance that keeps the sum of both
    within ε.
    """
    counts = [min(side.room, limit + 1) for side in (left, right)]
    left_pairs, right_pairs = left.pairs(counts[0]), right.pairs(counts[1])
    # For each distance of the left's, from 0, that of the right's.
    opened = np.zeros(counts[0], dtype=np.int64)
    k = len(possible)
    values = left.secret_values
    for a, other in product(range(k), repeat=2):
        if not left.run and values[a] == values[other]:
            continue
        ends = np.ix_(range(counts[1]), possible[a], possible[other])
        if right_pairs[ends].size:
            allowed = -(epsilon - left_pairs[:, a, other])
            np.maximum(
                opened, np.searchsorted(-right_pairs[ends].max(axis=(1, 2)), allowed), out=opened
            )
    sums = np.where(opened < counts[1], np.arange(counts[0]) + opened, limit)
    best = int(np.argmin(sums))
    return (best, int(opened[best])) if sums[best] < limit else None
