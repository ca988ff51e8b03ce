"""The kernel of a chain on hidden states, by expectation–maximisation (Baum and Welch).

A state shows one value for certain, and some records are not seen. Libraries for hidden Markov
models learn what states show and take every step to be seen, so none serves; the algorithm is
short.

Steps that nobody sees are exact too. Given both ends of a gap of g steps, the expected transitions
from a to b within it are P[a, b] times Σ_s (P^s)ᵀ·W·(P^(g−1−s))ᵀ at [a, b], W being what the walks
say of the ends; summed over all gaps that is two Horner schemes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers
from offrecord.models.records import Chains

#: After a longer gap a chain begins anew: by then hardly anything is known of it.
LONGEST_GAP = 1024
#: What every transition counts beyond what is expected, as in fits without hidden states.
HALF = 0.5


@dataclass(frozen=True, eq=False)
class Sightings:
    """The records that are seen, chain after chain.

    values: (n,) from 0. gaps: (n,) steps since the record before, 0 where a chain begins. rows:
    (n,) which of the records they came from each is.
    """

    values: Integers
    gaps: Integers
    rows: Integers

    @classmethod
    def of(cls, chains: Chains, seen: NDArray[np.bool_]) -> Sightings:
        """The records with values among those marked."""
        rows = np.flatnonzero(seen & (chains.codes >= 0))
        chain, place = chains.chain_of[rows], chains.places[rows]
        gaps = np.diff(place, prepend=0)
        gaps[np.diff(chain, prepend=-1) != 0] = 0
        gaps[gaps > LONGEST_GAP] = 0
        return cls(chains.codes[rows].astype(np.int64), gaps, rows)

    @cached_property
    def longest(self) -> int:
        """Steps of the longest gap; 1 at least."""
        return max(int(self.gaps.max(initial=1)), 1)


@dataclass(frozen=True, eq=False)
class HiddenKernel:
    """A chain on states, those of one value side by side, and how likely each is to begin.

    widths: how many states show each value. transition: (h, h). start: (h,).
    """

    widths: tuple[int, ...]
    transition: Floats
    start: Floats

    @property
    def shows(self) -> Integers:
        """(h,) the value that each state shows."""
        return np.repeat(np.arange(len(self.widths)), self.widths)

    @property
    def first(self) -> Integers:
        """(k + 1,) the first state of each value, and the number of states."""
        return np.cumsum([0, *self.widths])

    def powers(self, longest: int) -> Floats:
        """(longest + 1, h, h) the kernel's powers, from the 0th."""
        powers = np.empty((longest + 1, *self.transition.shape))
        powers[0] = np.eye(len(self.transition))
        for gap in range(longest):
            powers[gap + 1] = powers[gap] @ self.transition
        return powers

    def log_chances(self, seen: Sightings) -> Floats:
        """(n,) log Pr(value of each record | those before it in its chain)."""
        from offrecord.fitting import _sighted_walk

        powers = self.powers(seen.longest)
        walked = _sighted_walk.forward(seen.values, seen.gaps, self.first, powers, self.start)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(walked[1]))


@dataclass(frozen=True, eq=False)
class Climb:
    """Where expectation–maximisation came to.

    heights: what it maximised, at the start and after each iteration. converged: the last one
    gained less than was asked for.
    """

    kernel: HiddenKernel
    heights: tuple[float, ...]
    converged: bool

    @property
    def iterations(self) -> int:
        """How many there were."""
        return len(self.heights) - 1


def climbed(
    kernel: HiddenKernel,
    seen: Sightings,
    iterations: int,
    *,
    least_gain: float,
    added: float = HALF,
) -> Climb:
    """The kernel, improved until an iteration gains less than least_gain a record.

    What grows with every iteration is the log-likelihood, and `added` times the logarithm of every
    probability: that many transitions of each kind are counted beyond those expected.
    """
    heights: list[float] = []
    while True:
        height, better = _improved(kernel, seen, added)
        heights.append(height)
        gains = len(heights) < 2 or height - heights[-2] >= least_gain * len(seen.values)
        if not gains or len(heights) > iterations:
            return Climb(kernel, tuple(heights), not gains)
        kernel = better


def _improved(kernel: HiddenKernel, seen: Sightings, added: float) -> tuple[float, HiddenKernel]:
    """How good the kernel is, and a better one."""
    from offrecord.fitting import _sighted_walk

    powers = kernel.powers(seen.longest)
    walk = seen.values, seen.gaps, kernel.first, powers
    weights, chances = _sighted_walk.forward(*walk, kernel.start)
    crossed, begun = _sighted_walk.backward(*walk, weights, chances)
    height = float(np.log(chances).sum())
    if added:
        height += added * float(np.log(kernel.transition).sum() + np.log(kernel.start).sum())
    steps = kernel.transition * _within_gaps(kernel.transition, crossed)
    start = _shares(begun + added, kernel.start)
    return height, HiddenKernel(kernel.widths, _shares(steps + added, kernel.transition), start)


def _within_gaps(transition: Floats, crossed: Floats) -> Floats:
    """(h, h) Σ_g Σ_s A^s·W_g·A^(g−1−s), A the transposed kernel, W_g = crossed[g]."""
    back = transition.T
    rest, total = np.zeros_like(transition), np.zeros_like(transition)
    for gap in range(len(crossed) - 1, 0, -1):
        rest = crossed[gap] + rest @ back  # what is left of gaps of this many steps and more
        total = rest + back @ total
    return total


def _shares(counts: Floats, known: Floats) -> Floats:
    """Distributions along the last axis; as known where nothing was counted."""
    sums = counts.sum(axis=-1, keepdims=True)
    return np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), known)


def random_kernel(widths: Sequence[int], values: Floats, rng: np.random.Generator) -> HiddenKernel:
    """A kernel to climb from: values change as they do in the data, states at random.

    values: (k, k) the kernel on values. Of the states that show one value, some leave it more
    rarely than others: regimes differ in that most often.
    """
    shows = np.repeat(np.arange(len(widths)), widths)
    transition = np.empty((len(shows), len(shows)))
    for state, value in enumerate(shows):
        row = values[value] * 8.0 ** -rng.random()
        row[value] += 1.0 - row.sum()
        for other, width in enumerate(widths):
            transition[state, shows == other] = row[other] * rng.dirichlet(np.ones(width))
    transition /= transition.sum(axis=1, keepdims=True)
    return HiddenKernel(tuple(widths), transition, np.full(len(shows), 1.0 / len(shows)))
