"""What stopping is expected to do: laws of where walks stop, by the model, and the records that
leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from offrecord.mechanisms.owner.designing.laws import stopping_law
from offrecord.mechanisms.owner.designing.repair import kept_shares, stopped_shares
from offrecord.mechanisms.owner.stopping import StoppingPair, StoppingSide
from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats, Integers
from offrecord.release.coins import Draws


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


def stops_by_value(
    levels: Integers, limits: Draws, way: Way, start: Floats | None = None
) -> Floats:
    """(m, k) Pr(stop at a level | got there, i there), whatever end, far value and next value."""
    found = []
    for reached, stopped in _masses(levels, limits, way, start):
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(np.where(reached > 0, stopped / reached, 0.0))
    return np.array([*found, np.ones(way.k)])


def _masses(
    levels: Integers, limits: Draws, way: Way, start: Floats | None
) -> Iterator[tuple[Floats, Floats]]:
    """(k,) by value at each level but the last: Pr(got there, i), and Pr(stops there, i)."""
    jumps, rests = way.jumps(levels), _rests(levels, way)
    everywhere = list(_reached(levels, limits, way, start))
    for level, reached in enumerate(everywhere[:-1]):
        shares = stopped_shares(limits[:, level])
        masses = np.einsum("x,lxi->li", way.weights, reached)
        stopped = np.einsum("x,lxi,lxij->lij", way.weights, reached, shares)
        if shares.shape[-1] == 1:
            ended = np.einsum("li,il->i", stopped[..., 0], rests[level])
        else:
            ended = np.einsum("lij,ij,jl->i", stopped, jumps[level + 1], rests[level + 1])
        yield np.einsum("li,il->i", masses, rests[level]), ended


def _rests(levels: Integers, way: Way) -> list[Floats]:
    """(k, k) from each level to the deadline."""
    return [way.across(int(level), int(levels[-1])) for level in levels]


def _reached(levels: Integers, limits: Draws, way: Way, start: Floats | None) -> Iterator[Floats]:
    """(l, x, i) of each level but the last: the likelihood of getting there, and i, by the plan of
    each far value and without regard to it.
    """
    jumps = way.jumps(levels)
    begun = np.where(way.possible, 1.0 if start is None else start, 0.0)
    reached = np.repeat((begun[:, np.newaxis] * jumps[0])[np.newaxis], way.k, axis=0)
    for level, jump in enumerate(jumps[1:]):
        yield reached
        kept = kept_shares(limits[:, level])
        if kept.shape[-1] == 1:
            reached = (reached * kept[..., 0]) @ jump
        else:
            reached = (reached[..., np.newaxis] * kept * jump).sum(axis=2)
    yield reached


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
        for number, found in enumerate(_masses(side.levels, side.limits, second, start)):
            masses[:, at[number]] += found
        masses[:, at[-1]] += _at_deadline(side, second, start)
    with np.errstate(divide="ignore", invalid="ignore"):
        stops = np.where(masses[0] > 0, masses[1] / masses[0], 0.0)
    return mine, SideLaw(levels, chances, stops)


def _at_deadline(side: StoppingSide, way: Way, start: Floats) -> Floats:
    """(k,) Pr(reaches its deadline, l there)."""
    *_, last = _reached(side.levels, side.limits, way, start)
    return np.asarray(np.einsum("x,lxl->l", way.weights, last))


def _label_laws(pair: StoppingPair, way: Way) -> Floats:
    """(c + k, x) how likely each label is, and reaching the deadline with each far value."""
    labels = pair.limits.shape[-1]
    laws = np.zeros((labels + way.k, way.k))
    jumps, rests = way.jumps(pair.levels), _rests(pair.levels, way)
    total = pair.limits[..., -1]
    reached = list(_reached(pair.levels, total, way, None))
    for level, masses in enumerate(reached[:-1]):
        shares = np.diff(stopped_shares(pair.limits[:, level]), axis=-1, prepend=0.0)
        if shares.shape[-2] == 1:
            rest = rests[level]
            laws[:labels] += np.einsum("lxi,lxic,il->cx", masses, shares[..., 0, :], rest)
        else:
            step, rest = jumps[level + 1], rests[level + 1]
            laws[:labels] += np.einsum("lxi,lxijc,ij,jl->cx", masses, shares, step, rest)
    far = np.arange(way.k)
    laws[labels:] = reached[-1][far, :, far]
    return laws
