"""One side that is to be designed: its chains, its start contexts, its deadline and its levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from offrecord.mechanisms.owner.law import Steps, steps
from offrecord.mechanisms.rules import Direction
from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.members import Members
from offrecord.theory.sides import margin_beyond


class Pairs(NamedTuple):
    """Ordered pairs of start contexts that must look alike."""

    more: Integers
    less: Integers


#: Contexts up to which both sides of a lone record are compared by its value, see `Side.spread`:
#: rules redact a tenth less, but are judged slowly.
_MOST_MIXED = 16
#: Beyond, start contexts that have a smaller share of their value's probability are left out: rules
#: of 32 contexts redact a sixth less.
_RARE = 0.05


@dataclass(eq=False)
class Side:
    """One side of a core.

    mean: the chain (M = 1) that utility is computed under. members: those that judge. exceed: the
    share of them that may exceed a target. by_value: the secret is the last value of the start
    context, and contexts with the same last value need not look alike. far: (S,) the class of each
    context at the deadline.

    Of what both sides leak about a lone record each side knows its own part only. So a target for a
    side is a guide, and the exact leakage of both decides.
    """

    mean: Members
    members: Members
    place: int
    direction: Direction
    exceed: float
    by_value: bool
    far: Integers

    @property
    def contexts(self) -> int:
        """S"""
        return self.mean.contexts

    @property
    def classes(self) -> int:
        """C"""
        return int(self.far.max()) + 1

    @property
    def margin(self) -> int | None:
        """How many records there are beyond the core; None: any number."""
        return margin_beyond(self.mean, self.place, self.direction)

    @cached_property
    def starts(self) -> Integers:
        """The start contexts that must look alike: those that occur, of many the frequent ones."""
        law = self.mean.law(self.place)[0]
        occurs = (self.members.law(self.place) > 0).any(axis=0) | (law > 0)
        if self.by_value and not self._is_mixed:
            of_value = law.reshape(-1, self.mean.k).sum(axis=0)
            occurs &= law >= _RARE * of_value[self.mean.last_value]
        return np.flatnonzero(occurs)

    @cached_property
    def pairs(self) -> Pairs:
        """Of start contexts that occur, those that must look alike."""
        group = self.mean.last_value if self.by_value else np.arange(self.contexts)
        occurs = np.isin(np.arange(self.contexts), self.starts)
        differ = (group[:, np.newaxis] != group) & occurs[:, np.newaxis] & occurs
        return Pairs(*np.nonzero(differ))

    @property
    def _is_mixed(self) -> bool:
        return self.by_value and self.contexts <= _MOST_MIXED

    @cached_property
    def _weights(self) -> Floats:
        """(M, S / k, k) law of the start context given its last value."""
        law = self.members.law(self.place).reshape(self.members.count, -1, self.mean.k)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(law / law.sum(axis=1, keepdims=True))

    @cached_property
    def _absent(self) -> Mask:
        """(M, S) start contexts that need not look alike."""
        absent = self.members.law(self.place) <= 0
        absent[:, np.setdiff1d(np.arange(self.contexts), self.starts)] = True
        return absent

    def steps(self, levels: Sequence[int], *, mean: bool = False) -> Steps:
        """The kernels of the walk."""
        chains = self.mean if mean else self.members
        return steps(chains, self.place, self.direction, levels, self.far)

    @property
    def allowed(self) -> int:
        """How many members may exceed a target."""
        return int(self.exceed * self.members.count)

    def of_mean(self) -> Side:
        """The same side under the mean chain alone."""
        return replace(self, members=self.mean)

    def spread(self, likelihoods: Floats) -> Floats:
        """(M, …, S) log-ratio of (M, …, S, S) between start contexts of different groups.

        About a lone record: between mixtures of start contexts with the same last value, as the
        chain mixes them, which is what this side alone leaks; of many contexts between the contexts
        themselves.
        """
        between = (1,) * (likelihoods.ndim - 3)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self._is_mixed:
                weights = self._weights.reshape(len(likelihoods), *between, -1, self.mean.k, 1)
                of_value = (self._by_value(likelihoods) * weights).sum(axis=-3)
                # values that do not occur compare with none
                ratio = np.fmax.reduce(of_value, axis=-2) / np.fmin.reduce(of_value, axis=-2)
            else:
                ratio = self._ratios(likelihoods, between)
            found = np.log(np.where(np.isnan(ratio), 1.0, ratio))
        return np.asarray(np.maximum(found, 0.0))

    # (M, …, S) the largest ratio between single start contexts.
    def _ratios(self, likelihoods: Floats, between: tuple[int, ...]) -> Floats:
        highest = lowest = likelihoods
        if self._absent.any():
            absent = self._absent.reshape(len(self._absent), *between, self.contexts, 1)
            highest, lowest = np.where(absent, 0.0, highest), np.where(absent, np.inf, lowest)
        if not self.by_value:
            return np.asarray(highest.max(axis=-2) / lowest.min(axis=-2))
        highest = self._by_value(highest).max(axis=-3)
        lowest = self._by_value(lowest).min(axis=-3)
        pairs = [
            highest[..., v, :] / np.delete(lowest, v, axis=-2).min(axis=-2)
            for v in range(self.mean.k)
        ]
        return np.asarray(np.fmax.reduce(pairs))

    # (M, …, S / k, k, S): contexts are numbered with the latest value as the last digit.
    def _by_value(self, likelihoods: Floats) -> Floats:
        *first, contexts, last = likelihoods.shape
        return likelihoods.reshape(*first, contexts // self.mean.k, self.mean.k, last)

    def quantile(self, numbers: Floats) -> Floats:
        """(…) the number that at most `allowed` members exceed, of (M, …)."""
        which = len(numbers) - 1 - min(self.allowed, len(numbers) - 1)
        found: Floats = np.partition(numbers, which, axis=0)[which]
        return found

    def deadline(self, target: float, most: int) -> int | None:
        """The least distance at which what is seen there differs by no more than the target; None
        beyond `most`.
        """
        low, high = 0, self.mean.order
        if high > most:
            return None
        while not self._keeps(high, target):
            if high >= most:
                return None
            low, high = high, min(2 * high, most)
        while high - low > 1 and high > self.mean.order:
            middle = (low + high) // 2
            if self._keeps(middle, target):
                high = middle
            else:
                low = middle
        return high

    def _keeps(self, distance: int, target: float) -> bool:
        walk = self.steps([distance])
        return bool(np.all(self.quantile(self.spread(walk.first)) <= target))
