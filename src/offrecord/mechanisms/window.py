"""BestWindow: the best data-independent mechanism, exact."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.local.policy import LocalPolicy
from offrecord.mechanisms.local.referee import Passed, refereed
from offrecord.mechanisms.local.secrets import composed, cut
from offrecord.mechanisms.local.side_mechanism import SideMechanism
from offrecord.mechanisms.local.stretches import Sides, Stretches
from offrecord.theory.contexts import context_windows
from offrecord.theory.leakage import is_judged_by_outputs, possible_ends
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.side import Side

_MARGIN = 2.0**-46  # of ε, for rounding: contexts and outputs are summed in another order
_FEW = 4  # secrets that are not worth knowing how much room makes a difference


@dataclass(frozen=True)
class BestWindow(SideMechanism):
    """Redact the shortest window around the private record that keeps within ε; release everything
    else.

    No data-independent mechanism releases more: whether a record may be released counts, not how
    often, and given the nearest released records on both sides all others are free. Directions add
    (F2), so the window need not be symmetric. In a stationary chain of order m it is the m nearest
    released records on each side that count (R6). Takes every chain; O(window·k³) for each distinct
    pair of rooms, with k^m tuples for k values.
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

    def walked(self, problem: Problem) -> LocalPolicy:
        """The shortest window that walks to the first release allow: of order above 1, F8's."""
        return LocalPolicy.of(problem, super()._refereed(problem), self.name)

    def _refereed(self, problem: Problem) -> Passed[list[Sides]] | None:
        if not is_judged_by_outputs(problem):
            return super()._refereed(problem)
        return refereed(problem, _by_contexts, lambda sides: composed(problem, sides), _MARGIN)

    def window(self, problem: Problem, sides: Sides) -> tuple[int, int]:
        """Its own size."""
        return sides[0].size, sides[1].size


def window_of(problem: Problem) -> tuple[int, int]:
    """How far the best data-independent mechanism redacts around a problem's one secret."""
    left, right = cut(problem, BestWindow().design(problem).sparse)
    return left.size, right.size


def _by_contexts(problem: Problem) -> list[Sides]:
    """The shortest window around each secret of a chain of order above 1 (R6)."""
    known: dict[tuple[int, int, int], tuple[int, int]] = {}
    k, limits = problem.chain.k, _useful_rooms(problem)
    found: list[Sides] = []
    for first, last in problem.secrets:
        length = last - first + 1
        limit = limits.get(length, problem.n)
        rooms = min(first - 1, limit), min(problem.n - last, limit)
        if (*rooms, length) not in known:
            window = context_windows(problem.chain, problem.epsilon, *rooms, length)
            known[*rooms, length] = window or rooms
        left, right = known[*rooms, length]
        found.append((Stretches.always(k, left), Stretches.always(k, right)))
    return found


def _useful_rooms(problem: Problem) -> dict[int, int]:
    """By the length of secrets: beyond so much room the shortest window is the same.

    No window that redacts less than the shortest one in unlimited room keeps within ε in a room
    that leaves it a whole context, and the latter keeps within ε there.
    """
    if len(problem.secrets) <= _FEW:
        return {}
    lengths = {last - first + 1 for first, last in problem.secrets}
    windows = {one: context_windows(problem.chain, problem.epsilon, length=one) for one in lengths}
    return {one: sum(found) + problem.chain.order for one, found in windows.items() if found}


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
