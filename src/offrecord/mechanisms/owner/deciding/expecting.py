"""What stopping is expected to do: laws of where walks stop, by the model, and the records that
leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from offrecord.mechanisms.owner.designing.laws import (
    beyond_stops,
    masses_by_value,
    reached,
    stopping_law,
    stops_by_value,
)
from offrecord.mechanisms.owner.designing.repair import stopped_shares
from offrecord.mechanisms.owner.stopping import StoppingPair, StoppingSide
from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats, Integers


@dataclass(frozen=True, eq=False)
class SideLaw:
    """Where walks of one side stop: chances (m,) at each of the levels (m,), which are distances.

    stops: (m, k) the probability of stopping at a level, given that the walk got there and what it
    shows.
    """

    levels: Integers
    chances: Floats
    stops: Floats

    @cached_property
    def released(self) -> Floats:
        """(deadline + 1,) how likely releasing has begun at a distance, or before."""
        begun = np.zeros(int(self.levels[-1]) + 1)
        begun[self.levels] = self.chances
        begun = np.minimum(np.cumsum(begun), 1.0)
        begun[-1] = 1.0
        return begun

    @cached_property
    def costs(self) -> Floats:
        """(deadline,) expected redactions, by room; any room beyond the last counts as that."""
        return np.concatenate(([0.0], np.cumsum(1.0 - self.released[1:-1])))


def window_law(deadline: int, k: int) -> SideLaw:
    """That of who goes straight to a deadline."""
    return SideLaw(np.array([deadline]), np.ones(1), np.ones((1, k)))


def side_law(side: StoppingSide, way: Way | None) -> SideLaw:
    """The law of an open side; without a way, as the side itself says."""
    k = side.limits.shape[0]
    if len(side.levels) == 1:
        return window_law(side.deadline, k)
    if way is None:
        assert side.law is not None
        assert side.stops is not None
        return SideLaw(side.levels, side.law.sum(axis=1), side.stops)
    law = stopping_law(side, way).sum(axis=1)
    return SideLaw(side.levels, law, stops_by_value(side.levels, side.limits, way))


# ---- pairs


def pair_laws(pair: StoppingPair, first: Way, second: Way) -> tuple[SideLaw, SideLaw]:
    """Of the first side, and of the second over all labels; of that one the levels of all of them.

    Where the second has a level under some labels only, `stops` speaks of these.
    """
    total = StoppingSide(pair.first, 0.0, pair.levels, pair.limits[..., -1])
    mine = side_law(total, first)
    levels = np.unique(np.concatenate([side.levels for side in pair.seconds]))
    chances = np.zeros(len(levels))
    masses = np.zeros((2, len(levels), first.k))
    for side, start in zip(pair.seconds, _label_laws(pair, first), strict=True):
        at = np.searchsorted(levels, side.levels)
        chances[at] += stopping_law(side, second, start).sum(axis=1)
        masses[:, at[:-1]] += masses_by_value(side.levels, side.limits, second, start)
        masses[:, at[-1]] += _at_deadline(side, second, start)
    with np.errstate(divide="ignore", invalid="ignore"):
        stops = np.where(masses[0] > 0, masses[1] / masses[0], 0.0)
    return mine, SideLaw(levels, chances, stops)


def _at_deadline(side: StoppingSide, way: Way, start: Floats) -> Floats:
    """(k,) Pr(reaches its deadline, l there)."""
    last = reached(side.levels, side.limits, way, start)[-1]
    return np.asarray(np.einsum("x,lxl->l", way.weights, last))


def _label_laws(pair: StoppingPair, way: Way) -> Floats:
    """(c + k, x) how likely each label is, and reaching the deadline with each far value."""
    labels = pair.limits.shape[-1]
    laws = np.zeros((labels + way.k, way.k))
    arrived = reached(pair.levels, pair.limits[..., -1], way)
    shares = np.diff(stopped_shares(pair.limits).swapaxes(0, 1), axis=-1, prepend=0.0)
    beyond = beyond_stops(pair.levels, shares.shape[-2], way)
    laws[:labels] = np.einsum("mlxi,mlxijc,mlij->cx", arrived[:-1], shares, beyond, optimize=True)
    far = np.arange(way.k)
    laws[labels:] = arrived[-1][far, :, far]
    return laws
