"""What attackers who know of a longer memory would gain: a window made for one order, judged by the
next two orders, each learned from data that the window was not made with (R6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from offrecord.fitting.counting import Codes, Counts, counted
from offrecord.fitting.orders import MOST_HISTORIES
from offrecord.models.base import Floats
from offrecord.models.chain import MarkovChain

if TYPE_CHECKING:
    from offrecord.models.records import Chains

EPSILON = 1.0  #: of the window that is judged
FURTHER = 2  #: orders beyond the one that it is made for
_STRETCH = 100  # records of a chain that go to one half of the data
_DRAWN = 20  # times that the same is computed from data that remember no more
_MOST_DRAWN = 64  # histories of an order for which it is
_ROOM = 10**6  # records on each side: more than a window is judged for


@dataclass(frozen=True)
class LongerMemory:
    """What a window around one record leaks to attackers of several orders.

    window: records redacted to its left and right, made for EPSILON and the model's order from one
    half of the data. leakage: by order, the model's own first, each learned from the other half.
    by_chance: by order, the largest that came out of data drawn from the model's order.
    """

    window: tuple[int, int]
    leakage: dict[int, float]
    by_chance: dict[int, float]

    @property
    def further(self) -> dict[int, float]:
        """Of orders beyond the model's."""
        return dict(list(self.leakage.items())[1:])

    @property
    def is_within_chance(self) -> bool:
        """No order beyond the model's tells more than it may by chance."""
        return all(
            order in self.by_chance and leakage <= self.by_chance[order]
            for order, leakage in self.further.items()
        )

    def summary(self) -> dict[str, Any]:
        """For JSON."""
        leakage, by_chance = (
            {str(order): value for order, value in by_order.items()}
            for by_order in (self.leakage, self.by_chance)
        )
        return {
            "epsilon": EPSILON,
            "window": list(self.window),
            "leakage": leakage,
            "by_chance": by_chance,
        }


# ---- data in two halves


def counts_apart(
    codes: Codes, linked: NDArray[np.bool_], chains: Chains, k: int, order: int
) -> Counts | None:
    """(2, k, …, k) transitions with a longer memory than `order`, in two halves of the data: every
    other chain, and of long chains every other stretch, so that both halves see all seasons.

    None where no longer memory is looked at.
    """
    longest = max(
        depth for depth in range(order, order + FURTHER + 1) if k**depth <= MOST_HISTORIES
    )
    if longest == order:
        return None
    chain = np.repeat(np.arange(chains.count), np.diff(chains.starts))
    half = ((chain + chains.places // _STRETCH) % 2).astype(np.int8)
    inside = linked.copy()
    inside[1:] &= half[1:] == half[:-1]  # no record counts for both halves
    return counted(codes, inside, k, longest, half, 2)


# ---- the window, and who attacks it


def judged_by_longer_memory(halves: Counts, order: int) -> LongerMemory | None:
    """A window for the first half of the data, attacked by what the second half teaches.

    None where there is nothing to learn from, or no window to be had.
    """
    from offrecord.mechanisms.window import window_of
    from offrecord.theory.contexts import window_leakage
    from offrecord.theory.problem import Problem

    longest = halves.ndim - 2
    if not all(half.any() for half in halves):
        return None
    made = _chain(_of_order(halves[0], order))
    left, right = window_of(Problem(made, 2 * _ROOM + 1, [_ROOM + 1], EPSILON))
    leakage, by_chance = {}, {}
    for further in range(order, longest + 1):
        seen = _of_order(halves[1], further)
        leakage[further] = window_leakage(_chain(seen), left, right)
        if order < further and seen[..., 0].size <= _MOST_DRAWN:
            remembered = _shares(_of_order(halves.sum(axis=0), order))
            by_chance[further] = max(
                window_leakage(_chain(drawn), left, right)
                for drawn in _drawn(seen, remembered, further)
            )
    numbers = (*leakage.values(), *by_chance.values())
    if not all(math.isfinite(number) for number in numbers):  # too slow a chain to compute with
        return None
    return LongerMemory((left, right), leakage, by_chance)


def _of_order(counts: Counts, order: int) -> Counts:
    """Transitions with no more memory than an order has."""
    return np.asarray(counts.sum(axis=tuple(range(counts.ndim - 1 - order))))


def _shares(counts: Counts) -> Floats:
    """Distributions over the last axis."""
    return np.asarray((counts + 0.5) / (counts + 0.5).sum(axis=-1, keepdims=True))


def _chain(counts: Counts) -> MarkovChain:
    return MarkovChain(_shares(counts), order=counts.ndim - 1)


def _drawn(seen: Counts, remembered: Floats, order: int) -> list[Counts]:
    """Transitions from the same histories, were they followed by what a shorter memory says."""
    rng = np.random.default_rng(order)  # the same data, the same page
    visits = seen.sum(axis=-1)
    shares = np.broadcast_to(remembered, seen.shape)
    return [rng.multinomial(visits, shares) for _ in range(_DRAWN)]
