"""Meeting: what is released of a gap so short that both of its walks may look at the same record
(O10), by the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from offrecord.mechanisms.owner.designing.laws import outcome_masses, stopping_law
from offrecord.mechanisms.owner.stopping import StoppingSide
from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats


@dataclass(frozen=True, eq=False)
class Gap:
    """`size` records between two clusters: the right side of the one, the left side of the other.

    ways: to the right, and to the left; None where steps differ from place to place.
    """

    size: int
    sides: tuple[StoppingSide, StoppingSide]
    ways: tuple[Way, Way] | None

    def released(self) -> Floats:
        """(size + 1,) how likely the record at each distance from the first cluster leaves."""
        one, other = self._allowed
        levels = [side.levels[:most] for side, most in zip(self.sides, (one, other), strict=True)]
        both = np.zeros((one + 1, other + 1))
        if one and other:
            both[1:, 1:] = self._together(one, other).cumsum(axis=0).cumsum(axis=1)
        distance = np.arange(self.size + 1)
        stopped = np.searchsorted(levels[0], distance, side="right")
        faced = np.searchsorted(levels[1], self.size + 1 - distance, side="right")
        return np.asarray(both[stopped, faced])

    @property
    def _ends(self) -> tuple[int, int]:
        """Where the far values lie, as distances from the first cluster."""
        one, other = self.sides
        return one.deadline, self.size + 1 - other.deadline

    @property
    def _allowed(self) -> tuple[int, int]:
        """How many levels of either side are out of the other one's sight."""
        one, other = self.sides
        mine, theirs = self._ends
        return (
            int(np.searchsorted(one.levels, theirs, side="right")),
            int(np.searchsorted(other.levels, self.size + 1 - mine, side="right")),
        )

    def _together(self, one: int, other: int) -> Floats:
        """(one, other) how likely both walks stop at such levels."""
        if self.ways is None:  # as if they knew nothing of each other
            laws = [side.law for side in self.sides]
            chances = [np.ones(1) if law is None else law.sum(axis=1) for law in laws]
            return np.outer(chances[0][:one], chances[1][:other])
        mine, theirs = self._ends
        if mine <= theirs:
            between = self.ways[0].across(mine, theirs)
            first, second = (
                stopping_law(side, way) for side, way in zip(self.sides, self.ways, strict=True)
            )
            return np.asarray(first[:one] @ between @ self._given(second[:other]).T)
        return self._crossed(one, other)

    def _given(self, law: Floats) -> Floats:
        """A law with some value last, given that value."""
        assert self.ways is not None
        weights = self.ways[0].weights
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(weights > 0, law / weights, 0.0)

    def _crossed(self, one: int, other: int) -> Floats:
        """The same where each far value lies behind the other's: both walks look at records between
        the two.
        """
        assert self.ways is not None
        mine, theirs = self._ends  # the second one's comes first
        first = _seen(self.sides[0], self.ways[0], one, theirs)
        second = _seen(self.sides[1], self.ways[1], other, self.size + 1 - mine)
        k = self.ways[0].k
        between = self.ways[0].across(theirs, mine).T
        found = np.empty((one, other))
        # only the last of the levels may have seen a record further out
        mine_plain, theirs_plain = (
            np.array([stop.masses for stop in stops if stop.masses.ndim == 2]).reshape(-1, k, k)
            for stops in (first, second)
        )
        weighted = (mine_plain * between).reshape(-1, k * k)
        given = np.swapaxes(self._given(theirs_plain), 1, 2).reshape(-1, k * k)
        found[: len(weighted), : len(given)] = weighted @ given.T
        for q, mass in enumerate(first):
            for u, faced in enumerate(second):
                if mass.masses.ndim == 3 or faced.masses.ndim == 3:
                    found[q, u] = self._seen_ahead(mass, faced)
        return found

    def _seen_ahead(self, one: _Stop, other: _Stop) -> float:
        """How likely two stops are together, one of which saw a record between the far values."""
        assert self.ways is not None
        way, (mine, theirs) = self.ways[0], self._ends
        # who saw nothing there is taken to have seen its own far value again
        a = mine if one.masses.ndim == 2 else one.ahead
        b = theirs if other.masses.ndim == 2 else self.size + 1 - other.ahead
        first, second = (
            np.repeat(stop.masses[:, np.newaxis], way.k, axis=1)
            if stop.masses.ndim == 2
            else stop.masses
            for stop in (one, other)
        )
        low, high = min(a, b), max(a, b)
        steps = way.across(theirs, low), way.across(low, high), way.across(high, mine)
        # values at the second far place, low, high, and the first far place
        path = "fus,su,uv,vf,svf->" if a <= b else "fvs,su,uv,vf,suf->"
        return float(np.einsum(path, first, *steps, self._given(second), optimize=True))


class _Stop(NamedTuple):
    """How likely a walk stops at a level, by its far value and the value at another place beyond;
    or by far value, the value `ahead` and the value at that other place.
    """

    masses: Floats
    ahead: int


def _seen(side: StoppingSide, way: Way, count: int, place: int) -> list[_Stop]:
    """Of the first levels, none of which lies beyond the place, which lies before the deadline."""
    stops, _ = outcome_masses(side, way)
    found = []
    for level in range(count):
        here, following = int(side.levels[level]), int(side.levels[level + 1])
        masses = np.einsum("x,lxij->lij", way.weights, stops[level])
        if masses.shape[-1] == 1:
            found.append(_Stop(masses[..., 0] @ way.across(here, place), following))
        elif following <= place:
            moved = np.einsum("lij,ij->lj", masses, way.across(here, following))
            found.append(_Stop(moved @ way.across(following, place), following))
        else:
            moved = np.einsum("lij,ip->ljp", masses, way.across(here, place))
            found.append(_Stop(moved, following))
    return found
