"""One side that is to be designed: its chains, its start contexts, its deadline and its levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from offrecord.mechanisms.owner.law import Steps, records_beyond, steps
from offrecord.mechanisms.rules import Direction
from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.members import Members


class Pairs(NamedTuple):
    """Ordered pairs of start contexts that must look alike."""

    more: Integers
    less: Integers


@dataclass(eq=False)
class Side:
    """One side of a core.

    mean: the chain (M = 1) that utility is computed under. members: those that judge. exceed: the
    share of them that may exceed a target. by_value: the secret is the last value of the start
    context, and contexts with the same last value need not look alike. far: (S,) the class of each
    context at the deadline.
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
    def room(self) -> int | None:
        """How many records there are beyond the core; None: any number."""
        return records_beyond(self.mean, self.place, self.direction)

    @cached_property
    def starts(self) -> Integers:
        """The start contexts that occur."""
        occurs = (self.members.law(self.place) > 0).any(axis=0)
        return np.flatnonzero(occurs | (self.mean.law(self.place)[0] > 0))

    @cached_property
    def pairs(self) -> Pairs:
        """Of start contexts that occur, those that must look alike."""
        group = self.mean.last_value if self.by_value else np.arange(self.contexts)
        occurs = np.isin(np.arange(self.contexts), self.starts)
        differ = (group[:, np.newaxis] != group) & occurs[:, np.newaxis] & occurs
        return Pairs(*np.nonzero(differ))

    @cached_property
    def _absent(self) -> Mask | None:
        absent = self.members.law(self.place) <= 0
        return absent if absent.any() else None

    def steps(self, levels: Sequence[int], *, mean: bool = False) -> Steps:
        """The kernels of the walk."""
        chains = self.mean if mean else self.members
        return steps(chains, self.place, self.direction, levels, self.far)

    @property
    def allowed(self) -> int:
        """How many members may exceed a target."""
        return int(self.exceed * self.members.count)

    def first_members(self, count: int) -> Side:
        """The same side under fewer members."""
        return replace(self, members=self.members.part(slice(0, count)))

    def spread(self, likelihoods: Floats) -> Floats:
        """(M, …, S) log-ratio of (M, …, S, S) between start contexts of different groups."""
        highest = lowest = likelihoods
        if self._absent is not None:
            shape = (len(self._absent),) + (1,) * (likelihoods.ndim - 3) + (self.contexts, 1)
            absent = self._absent.reshape(shape)
            highest, lowest = np.where(absent, 0.0, highest), np.where(absent, np.inf, lowest)
        if self.by_value:  # contexts are numbered with the latest value as the last digit
            shape = likelihoods.shape
            apart = (*shape[:-2], shape[-2] // self.mean.k, self.mean.k, shape[-1])
            highest = highest.reshape(apart).max(axis=-3)
            lowest = lowest.reshape(apart).min(axis=-3)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.by_value:
                pairs = [
                    highest[..., v, :] / np.delete(lowest, v, axis=-2).min(axis=-2)
                    for v in range(self.mean.k)
                ]
                ratio = np.fmax.reduce(pairs)
            else:
                ratio = highest.max(axis=-2) / lowest.min(axis=-2)
            found: Floats = np.log(np.where(np.isnan(ratio), 1.0, ratio))
        return np.maximum(found, 0.0)

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
