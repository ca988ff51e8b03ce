"""What a certificate says about where walks may stop: sides, options, gaps that are held out."""

from __future__ import annotations

from functools import cache, cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from offrecord.release.certificate import (
    Certificate,
    GapStopping,
    OwnerDesigns,
    Stopping,
    StoppingPair,
    StoppingSide,
    spelled_thresholds,
)
from offrecord.verify.table.cells import Integers, Mask
from offrecord.verify.table.channels import Channels

FAR = 1 << 40  #: the last level of a closed side: more than any distance
CLOSED = 0  #: the number of a closed side
_WORTH = 0.25  # records that a gap releases by expectation, to be held out
_NEAR = 1e-6  # to that: it may be held out or not

#: The numbers of a left and a right side.
Option: TypeAlias = tuple[int, int]
#: How far each secret of a cluster is from its left and its right end.
Away: TypeAlias = tuple[tuple[int, int], ...]


class Side(NamedTuple):
    """levels: at which a walk may stop. last: of them, FAR for a closed side. alone: both sides are
    taken in turn, far from all others. made_of: what says how; of a side that goes second, the pair
    that it belongs to.
    """

    levels: tuple[int, ...]
    last: int
    alone: bool
    made_of: StoppingSide | StoppingPair | None
    is_second: bool = False


class Rule:
    """Of one certificate."""

    def __init__(self, certificate: Certificate) -> None:
        designs, model = certificate.designs, certificate.model
        assert isinstance(designs, OwnerDesigns)
        self.certificate, self.designs, self.model = certificate, designs, model
        self.extra = model.order - 1
        self.is_known = (
            model.stationary and model.order == 1 and model.set is None and model.shows is None
        )
        self.sides = [Side((), FAR, False, None)]
        self._numbers: dict[tuple[int, bool], int] = {}

    @cached_property
    def channels(self) -> Channels:
        """What is told inside clusters."""
        return Channels(self.model)

    @property
    def has_pairs(self) -> bool:
        """Whether both sides may be taken in turn."""
        return self.model.stationary and self.model.shows is None

    # ---- sides

    def _number(self, side: Side) -> int:
        """The number of a side, the same for the same one."""
        key = id(side.made_of), side.is_second
        if key not in self._numbers:
            self._numbers[key] = len(self.sides)
            self.sides.append(side)
        return self._numbers[key]

    def _plain(self, side: StoppingSide) -> int:
        levels = tuple(side.levels)
        if not levels:
            return CLOSED
        return self._number(Side(levels, levels[-1], False, side))

    def _pair(self, stopping: Stopping) -> Option:
        """Both sides in turn, the second by any label."""
        pair = stopping.pair
        assert pair is not None
        seconds = [stopping.sides[number].levels for number in set(pair.seconds)]
        levels = sorted({level for one in seconds for level in one})
        last = max(one[-1] if one else FAR for one in seconds)
        first = self._number(Side(tuple(pair.levels), pair.levels[-1], True, pair))
        second = self._number(Side(tuple(levels), last, True, pair, is_second=True))
        return (first, second) if pair.first == "left" else (second, first)

    def last(self) -> Integers:
        """(sides,) the last levels."""
        return np.array([side.last for side in self.sides])

    def alone(self) -> Mask:
        """(sides,) whether they are of a pair."""
        return np.array([side.alone for side in self.sides])

    def levels(self) -> Integers:
        """(sides, most + 1) their levels after a 0, the last of them repeated."""
        most = max(len(side.levels) for side in self.sides)
        rows = [(0, *side.levels) for side in self.sides]
        return np.array([row + row[-1:] * (most + 1 - len(row)) for row in rows])

    def counts(self) -> Integers:
        """(sides, farthest + 1) how many of a side's levels lie within each distance."""
        farthest = max(max(side.levels, default=0) for side in self.sides)
        distances = np.arange(farthest + 1)
        return np.array(
            [np.searchsorted(side.levels, distances, side="right") for side in self.sides]
        )

    # ---- options

    @cache  # noqa: B019 - a rule lives as long as its check
    def options(self, number: int) -> list[tuple[Option, tuple[float, float]]]:
        """All options of a stopping, and their budgets."""
        found = []
        stopping = self.designs.stoppings[number]
        for numbers in stopping.options:
            left, right = (stopping.sides[one] for one in numbers)
            option = self._plain(left), self._plain(right)
            found.append((option, (left.budget, right.budget)))
        return found

    @cached_property
    def bases(self) -> Integers:
        """(stoppings, 2) the last levels that decide which secrets join: of the first options."""
        firsts = [self.options(number)[0][0] for number in range(len(self.designs.stoppings))]
        return np.array([[self.sides[one].last for one in both] for both in firsts]).reshape(-1, 2)

    @cache  # noqa: B019
    def allowed(
        self, ends: tuple[int, int], away: Away, is_single: bool, leaning: bool
    ) -> list[Option]:
        """What a cluster may take, by the stoppings of its first and last secret. away: of several
        secrets of a model that is known. leaning: a gap beside it is held out.
        """
        one, other = ends
        if leaning:
            return [self.options(one)[0][0]]
        epsilon = min(self.designs.stoppings[number].epsilon for number in ends)
        closed = ((CLOSED, CLOSED), (0.0, 0.0))  # everything is redacted, which tells nothing
        both = [*self.options(one), closed]
        if one != other:
            right = [*self.options(other), closed]
            both = [((a[0], b[1]), (s[0], t[1])) for a, s in both for b, t in right]
        found = []
        for option, budgets in both:
            if sum(budgets) <= epsilon or self._keeps(away, budgets):
                found.append(option)
        stopping = self.designs.stoppings[one]
        if is_single and one == other and stopping.pair is not None and self.has_pairs:
            found.append(self._pair(stopping))
        return list(dict.fromkeys(found))

    def _keeps(self, away: Away, budgets: tuple[float, float]) -> bool:
        """Whether larger budgets keep every secret of a cluster within ε."""
        if not self.is_known or len(away) < 2:
            return False
        return self.channels.keeps(sorted(set(away)), budgets, self.designs.epsilon)

    # ---- gaps

    @cached_property
    def held_out(self) -> dict[int, bool | None]:
        """The lengths of gaps that are held out; None: perhaps."""
        if not self.is_known or len(self.designs.stoppings) != 1:
            return {}
        found: dict[int, bool | None] = {}
        for gap in self.designs.stoppings[0].gaps:
            expected = _expected(gap, self.certificate)
            if abs(expected - _WORTH) < _NEAR:
                found[gap.length] = None
            elif expected > _WORTH:
                found[gap.length] = True
        return found


def gap_thresholds(gap: GapStopping, k: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    """(states, k, k, k, k, 2) the thresholds of a gap; the second is no smaller than the first."""
    stop = np.array(spelled_thresholds(gap.stop), dtype=np.uint64).reshape(-1, k, k, k, k, 2)
    return np.maximum.accumulate(stop, axis=-1)


def held_states(length: int) -> list[tuple[int, int]]:
    """The first and the last record that are held out of a gap, by the number of the state."""
    return [
        (first, first + length - 1 - lost) for lost in range(length) for first in range(1, lost + 2)
    ]


def _expected(gap: GapStopping, certificate: Certificate) -> float:
    """How many records of a gap that is held out are released by expectation."""
    P, start = np.array(certificate.model.transition), np.array(certificate.model.start)
    k, n = len(P), gap.length
    below = np.minimum(gap_thresholds(gap, k).astype(np.float64) / 2.0**64, 1.0)
    states = held_states(n)
    held = {state: np.zeros((k, k, k, k)) for state in states}
    held[1, n] = P[:, None, :, None] * P.T[None, :, None, :]
    expected = 0.0
    for (first, last), limits in zip(states, below, strict=True):
        H, release, lose = held[first, last], limits[..., 0], limits[..., 1]
        between = np.linalg.matrix_power(P, last - first)
        mass = np.einsum("x,xbij,ij->", start, H * release, between)
        expected += (last - first + 1) * float(mass)
        if first < last:
            held[first + 1, last] += np.einsum("xbij,ia->xbaj", H * (lose - release), P)
            held[first, last - 1] += np.einsum("xbij,aj->xbia", H * (1 - lose), P)
    return expected
