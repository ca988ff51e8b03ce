"""Roles: what stands on either side of each cluster, and the walks that lead away there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.attack.courses import Walker
from offrecord.mechanisms.blocks import Mask
from offrecord.mechanisms.owner.deciding.clusters import LEFT, RIGHT
from offrecord.mechanisms.owner.deciding.decider import OwnerDecider, Plan
from offrecord.mechanisms.owner.deciding.sight import seen
from offrecord.mechanisms.owner.stopping import StoppingSide
from offrecord.models.base import Floats, Integers
from offrecord.release.coins import Draws

#: Nothing walks there; a walk that looks at nothing goes to its deadline; one by a side of the
#: menu; the first or the second one of a pair, which may go straight as well.
IDLE, STRAIGHT, ALONE, FIRST, SECOND, SECOND_STRAIGHT = range(6)


class Roles(NamedTuple):
    """(c, 2) of clusters: what stands on either side, and the number of the side or pair; of a walk
    that goes straight, its deadline.
    """

    role: Integers
    number: Integers


def roles_of(decider: OwnerDecider, plan: Plan) -> Roles:
    """What stands beside the clusters of a block."""
    clusters, kit = plan.clusters, decider.kit
    straight = _are_straight(decider, plan)
    pairs = plan.choice.pairs
    number = plan.choice.sides.copy()
    role = np.full(number.shape, ALONE)
    firsts = np.array([pair.first for pair in kit.pairs] + [-1])[pairs]
    for column in (LEFT, RIGHT):
        paired = pairs >= 0
        role[paired, column] = np.where(firsts[paired] == column, FIRST, SECOND)
        number[paired, column] = pairs[paired]
        first_straight = paired & straight[np.arange(len(pairs)), np.maximum(firsts, 0)]
        alone = straight[:, column] & ~paired
        goes = alone | first_straight
        role[goes, column] = STRAIGHT
        number[goes, column] = plan.deadlines[goes, column]
        role[straight[:, column] & (role[:, column] == SECOND), column] = SECOND_STRAIGHT
    idle = (kit.packed.counts[plan.choice.sides] == 0) & (pairs < 0)[:, np.newaxis]
    idle |= (clusters.gaps == 0) & (role != FIRST)
    role[idle | clusters.bridged] = IDLE
    return Roles(role, np.where(role == IDLE, 0, number))


def _are_straight(decider: OwnerDecider, plan: Plan) -> Mask:
    """(c, 2) which walks go straight to their deadlines: that depends on places alone."""
    completion = decider._completed(plan, _no_draw)
    straight = plan.blocked.copy()
    for view in plan.views:
        sight = seen(view, plan.ground, decider.kit.packed, completion, view.sides)
        straight[view.cluster, view.column] |= sight.straight
    return straight


def _no_draw(
    chain: Integers,
    order: NDArray[np.integer],
    purpose: bytes = b"",
    counter: Integers | int = 0,
) -> Draws:
    """Any value will do: only whether one can be drawn counts."""
    return np.zeros(len(chain), dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Walkers:
    """Those that may walk, by role, number and column. known: so far."""

    decider: OwnerDecider
    known: dict[tuple[int, int, int], tuple[Walker | None, ...]] = field(default_factory=dict)

    def of(self, role: int, number: int, column: int) -> tuple[Walker | None, ...]:
        """One, or of a second side one for each label; None for a closed side."""
        key = role, number, column
        if key not in self.known:
            self.known[key] = tuple(self._of(role, number, column))
        return self.known[key]

    def _of(self, role: int, number: int, column: int) -> Iterator[Walker | None]:
        kit = self.decider.kit
        if role == ALONE:
            yield self._walker(kit.sides[number], column)
        elif role == FIRST:
            pair = kit.made_of[number]
            yield Walker.of(pair.levels, pair.limits, self._hop(column, None), is_endless=True)
        elif role in (SECOND, SECOND_STRAIGHT):
            for side in kit.made_of[number].seconds:
                yield None if side.is_closed else self._walker(side, column)

    def _walker(self, side: StoppingSide, column: int) -> Walker:
        limits = side.limits[..., np.newaxis]
        return Walker.of(side.levels, limits, self._hop(column, side.beyond))

    def _hop(self, column: int, beyond: Floats | None) -> Callable[[int], Floats]:
        """How values are drawn beyond the chain's end; beyond: where all that is drawn is the far
        value, by a law that its side brings with it.
        """
        ways = self.decider.ways
        if ways is not None:
            return lambda steps: ways[column].across(0, steps)
        law = np.eye(self.decider.k) if beyond is None else beyond
        return lambda steps: law

    def deadlines(self, role: int, number: int, column: int) -> tuple[int, ...]:
        """The different distances at which far values are looked up."""
        if role == SECOND_STRAIGHT:
            return ()
        walkers = self.of(role, number, column)
        return tuple(sorted({one.deadline for one in walkers if one is not None}))
