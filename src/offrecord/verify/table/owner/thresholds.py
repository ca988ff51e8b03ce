"""What draws let a walk do, of whose values some may not be known.

A walk stops at a level if its draw there lies below the threshold for its far value, its end's
value, the value there and, looking ahead, the next one. A value that is not known may be any: a
stop is possible if some values go on at every level before it and stop there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.release.certificate import StoppingPair, StoppingSide, spelled_thresholds
from offrecord.verify.table.cells import Integers, Mask
from offrecord.verify.table.coins import ALWAYS

Draws = NDArray[np.uint64]
Values = NDArray[np.signedinteger[Any]]
ANY = -1  #: a value that is not known
_CELLS = 1 << 18  # that are looked at at once


class Possible(NamedTuple):
    """(n, m) at which levels walks may stop; (n, labels + k) with which labels: those of stops,
    then those of far values.
    """

    stops: Mask
    labels: Mask


class Walks(NamedTuple):
    """(n,) the value of their ends, (n, m) those at levels, the far value last, ANY if not known;
    draws: (n, m − 1); reach: (n,) beyond which no level but the last is a stop.
    """

    end: Values
    values: Values
    draws: Draws
    reach: Integers


def below(draws: Draws, limits: Draws) -> Mask:
    """Whether draws lie below thresholds, of which the largest stands for 1."""
    return np.asarray((limits == ALWAYS) | (draws < limits))


def allowed(values: Values, k: int) -> Mask:
    """(k, n) which each may be."""
    return np.asarray((values == np.arange(k)[:, None]) | (values == ANY))


@dataclass(frozen=True, eq=False)
class Thresholds:
    """levels: (m,). limits: (k, m − 1, k, k, w, labels) by far value, level, end, value there, next
    one and label.
    """

    levels: Integers
    limits: Draws

    @classmethod
    def of(cls, made_of: StoppingSide | StoppingPair, k: int) -> Thresholds:
        """Of a side, or of a pair's side that goes first."""
        levels = np.array(made_of.levels)
        labels = made_of.labels if isinstance(made_of, StoppingPair) else 1
        width = k if made_of.ahead else 1
        limits = np.array(spelled_thresholds(made_of.stop), dtype=np.uint64)
        return cls(levels, limits.reshape(k, len(levels) - 1, k, k, width, labels))

    @property
    def ahead(self) -> bool:
        """They depend on the value at the next level too."""
        return bool(self.limits.shape[4] > 1)

    def possible(self, walks: Walks) -> Possible:
        """What walks may have done."""
        count, k, labels = len(walks.end), self.limits.shape[0], self.limits.shape[-1]
        found = Possible(
            np.zeros((count, len(self.levels)), dtype=bool),
            np.zeros((count, labels + k), dtype=bool),
        )
        is_known = (walks.end != ANY) & np.all(walks.values != ANY, axis=1)
        self._followed(walks, np.flatnonzero(is_known), found)
        others = np.flatnonzero(~is_known)
        size = max(_CELLS // (k * k * self.limits.shape[4]), 1)
        for at in range(0, len(others), size):
            for far in range(k):
                self._searched(walks, others[at : at + size], far, found)
        return found

    def _followed(self, walks: Walks, some: Integers, found: Possible) -> None:
        """Of walks that are known: what they did."""
        for level in range(len(self.levels) - 1):
            ahead = walks.values[some, level + 1] if self.ahead else 0
            at = walks.values[some, -1], level, walks.end[some], walks.values[some, level], ahead
            lies = below(walks.draws[some, level][:, None], self.limits[at])
            stops = lies[:, -1] & (self.levels[level] <= walks.reach[some])
            here = some[stops]
            found.stops[here, level] = True
            found.labels[here, np.argmax(lies[stops], axis=1)] = True
            some = some[~stops]
        found.stops[some, -1] = True
        found.labels[some, self.limits.shape[-1] + walks.values[some, -1]] = True

    def _searched(self, walks: Walks, some: Integers, far: int, found: Possible) -> None:
        """Of walks whose far value may be this one: what they may have done.

        alive: (end, value there, n) what goes with having come so far. Walks come last, so that
        few and long stretches of memory are gone through.
        """
        k, labels, last = self.limits.shape[0], self.limits.shape[-1], len(self.levels) - 1
        some = some[allowed(walks.values[some, -1], k)[far]]
        alive = allowed(walks.end[some], k)[:, None] & self._there(walks, some, 0, far)
        for level in range(last):
            keep = _some(alive)
            if not keep.all():
                some, alive = some[keep], alive[..., keep]
            following = self._there(walks, some, level + 1, far)
            both = alive[:, :, None]
            if self.ahead:
                both = both & following
            drawn = walks.draws[some, level]
            near = self.levels[level] <= walks.reach[some]
            before = np.False_
            for label in range(labels):
                lies = below(drawn, self.limits[far, level, ..., label, None]) & near
                found.labels[some, label] |= _some(both & lies & ~before)
                before = lies
            found.stops[some, level] |= _some(both & before)
            goes_on = (both & ~before).any(axis=1)
            alive = goes_on & following
        here = _some(alive)
        found.stops[some, last] |= here
        found.labels[some, labels + far] |= here

    def _there(self, walks: Walks, some: Integers, level: int, far: int) -> Mask:
        """(k, n) which values may stand at a level."""
        k = self.limits.shape[0]
        if level < len(self.levels) - 1:
            return allowed(walks.values[some, level], k)
        return np.broadcast_to((np.arange(k) == far)[:, None], (k, len(some)))


def _some(cells: Mask) -> Mask:
    """(n,) whether some cell of each is true; they come last."""
    return np.asarray(cells.any(axis=tuple(range(cells.ndim - 1))))
