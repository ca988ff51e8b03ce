"""The owner's referee: what the very thresholds that act can tell, in whole numbers.

The walk of F1 with a stop that depends on x: U(x, i) is the likelihood of not having stopped before
a level and of showing i there, without regard to the far value, which every x meets alike from
there on (O3). All numbers are bounded from below and above (way.Bounds), so what is found is never
too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from offrecord.mechanisms.owner.stopping import StoppingPair, StoppingSide
from offrecord.mechanisms.owner.way import Bounds, Way, Wholes
from offrecord.models.base import Floats
from offrecord.release.coins import ALWAYS, Draws

_WHOLE = 1 << 64
#: What turning bounds into floats, dividing and taking a logarithm may change.
_SLACK = 2.0**-48


def told_by(side: StoppingSide, way: Way) -> Floats:
    """(k, k) upper bounds of the log-ratio of x over x' of any outcome, 0 where one is impossible.

    A side without levels tells nothing.
    """
    if not len(side.levels):
        return np.zeros((way.k, way.k))
    found = _Found(way)
    jumps = list(way.exact_jumps(side.levels))
    reached = _at_first(way, jumps[0])
    for level, jump in enumerate(jumps[1:]):
        stops = _shares(side.limits[:, level])
        found.meet(Bounds(*(each[..., np.newaxis] * stops for each in reached)))
        reached = _going_on(reached, _WHOLE - stops, jump)
    found.meet(_at_the_deadline(reached))
    return np.maximum(found.worst(), 0.0)


def told_by_pair(pair: StoppingPair, first: Way, seconds: Sequence[Floats]) -> Floats:
    """(k, k) upper bounds of the log-ratio of x over x' of any label with what follows it.

    seconds: what `told_by` says of each second side.
    """
    labels = pair.limits.shape[-1]
    by_label = [_Found(first) for _ in range(labels + first.k)]
    jumps = list(first.exact_jumps(pair.levels))
    reached = _at_first(first, jumps[0])
    for level, jump in enumerate(jumps[1:]):
        limits = _shares(pair.limits[:, level])
        shares = np.diff(limits, axis=-1, prepend=0)
        for label in range(labels):
            stops = shares[..., label]
            by_label[label].meet(Bounds(*(each[..., np.newaxis] * stops for each in reached)))
        reached = _going_on(reached, _WHOLE - limits[..., -1], jump)
    ends = _at_the_deadline(reached)
    for far in range(first.k):
        by_label[labels + far].meet(Bounds(*(each[far : far + 1] for each in ends)))
    worst = np.zeros((first.k, first.k))
    for found, told in zip(by_label, seconds, strict=True):
        if found.is_met:
            worst = np.maximum(worst, found.worst() + told)
    return worst


class _Found:
    """The largest ratios of outcomes met so far, among values that the run's end may have."""

    def __init__(self, way: Way) -> None:
        self.k, self.possible = way.k, np.flatnonzero(way.possible)
        nothing = np.zeros((len(self.possible), 0))
        self.met: list[tuple[Floats, Floats]] = [(nothing, nothing)]

    def meet(self, outcomes: Bounds) -> None:
        """Outcomes (…, x, context…), the x axis second."""
        low, high = (each[:, self.possible].astype(np.float64) for each in outcomes)
        size = len(self.possible)
        self.met.append(
            (low.swapaxes(0, 1).reshape(size, -1), high.swapaxes(0, 1).reshape(size, -1))
        )

    @cached_property
    def ratios(self) -> Floats:
        """(x, x') of all outcomes, once they are met; 0 where none is possible."""
        low, high = (np.concatenate(each, axis=1) for each in zip(*self.met, strict=True))
        some = high.any(axis=0)
        low, high = low[:, some], high[:, some]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = [
                (tops / low).max(axis=1, initial=0.0, where=~((tops == 0) & (low == 0)))
                for tops in high
            ]
        return np.array(found)

    @property
    def is_met(self) -> bool:
        """Some outcome was possible."""
        return bool(self.ratios.any())

    def worst(self) -> Floats:
        """(k, k) logarithms, rounded up; of one label they may be negative, of all outcomes not."""
        full = np.zeros((self.k, self.k))
        with np.errstate(divide="ignore"):
            logs = np.log(self.ratios)
        full[np.ix_(self.possible, self.possible)] = logs + (1.0 + np.abs(logs)) * _SLACK
        np.fill_diagonal(full, 0.0)
        return full


def _at_first(way: Way, jump: Bounds) -> Bounds:
    """(l, x, i) likelihoods at the first level, the same for each far value."""
    begun = (start[:, np.newaxis] * step for start, step in zip(way.start, jump, strict=True))
    return Bounds(*(np.repeat(each[np.newaxis], way.k, axis=0) for each in begun)).short()


def _going_on(reached: Bounds, rest: Wholes, jump: Bounds) -> Bounds:
    """What has not stopped, at the next level: (l, x, j) from (l, x, i) and `rest` (l, x, i, j)."""
    if rest.shape[-1] == 1:
        kept = (each * rest[..., 0] for each in reached)
        return Bounds(*(each @ step for each, step in zip(kept, jump, strict=True))).short()
    moved = (
        (each[..., np.newaxis] * rest * step).sum(axis=-2)
        for each, step in zip(reached, jump, strict=True)
    )
    return Bounds(*moved).short()


def _at_the_deadline(reached: Bounds) -> Bounds:
    """(l, x, 1) the far value itself, for each plan."""
    far = np.arange(len(reached.low))
    return Bounds(*(each[far, :, far][..., np.newaxis] for each in reached))


def _shares(limits: Draws) -> Wholes:
    """Thresholds as whole numbers of 2⁻⁶⁴."""
    numbers = limits.astype(object)
    numbers[limits == ALWAYS] = _WHOLE
    return np.asarray(numbers)
