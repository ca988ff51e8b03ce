"""Ways: what lies on both sides of a secret, and what stopping there tells about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from offrecord.mechanisms.owner.designing.between import released_law
from offrecord.mechanisms.owner.designing.laws import expected_redactions, with_laws
from offrecord.mechanisms.owner.designing.referee import told_by, told_by_pair
from offrecord.mechanisms.owner.stopping import Stopping, StoppingPair, StoppingSide
from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats
from offrecord.models.box import Box, Intervals
from offrecord.models.chain import MarkovChain
from offrecord.theory.problem import Problem

_FAR = 10**6  # records on both sides, where that makes no difference


@dataclass(frozen=True, eq=False)
class Ways:
    """The ways to the left and to the right of a secret.

    rooms: records on both sides. models: the set of models that all is proven for, None for the
    chain of these ways alone.
    """

    left: Way
    right: Way
    rooms: tuple[int, int] = (_FAR, _FAR)
    models: Box | None = None

    @classmethod
    def around(cls, problem: Problem) -> Ways:
        """Around the one secret of a problem; in a stationary chain with unlimited room, as one
        menu serves every room (O9).
        """
        chain = problem.chain
        if chain.is_stationary:
            return cls.far(chain)
        first, last = problem.private[0], problem.private[-1]
        rooms = first - 1, problem.n - last
        return cls(Way.of(chain, -1, first, rooms[0]), Way.of(chain, 1, last, rooms[1]), rooms)

    @classmethod
    def far(cls, chain: MarkovChain) -> Ways:
        """In a stationary chain; of order m, of tuples of m records."""
        lifted, nearest = chain.lifted, chain.order
        left, right = (Way.of(lifted, direction, _FAR, _FAR, nearest) for direction in (-1, 1))
        return cls(left, right, models=chain.box)

    @property
    def are_even(self) -> bool:
        """All steps of a side are alike, and there is room for any number of them."""
        return self.left.chain.is_stationary

    @property
    def serve_gaps(self) -> bool:
        """Gaps between near runs can be designed: steps are those of single records."""
        return self.are_even and self.left.nearest == 1 and self.models is None

    @cached_property
    def are_alike(self) -> bool:
        """Both sides are the same to a walk: a stationary chain that is its own reverse."""
        if self.models is not None and not self.models.is_its_own_reverse:
            return False
        return self.are_even and np.array_equal(self.left.kernels, self.right.kernels)

    def intervals(self, direction: int) -> Intervals:
        """The intervals of a set of models, of steps to one side."""
        assert self.models is not None
        return self.models.lifted[direction < 0]

    def of(self, side: StoppingSide) -> Way:
        """The way of a side."""
        return self.left if side.direction < 0 else self.right

    def told(self, side: StoppingSide) -> Floats:
        """(k, k) what a side tells at most, x over x'; of a set of models, under any of them."""
        if self.models is None:
            return told_by(side, self.of(side))
        from offrecord.mechanisms.owner.designing.set_referee import leakage_over

        told = 0.0 if side.is_closed else leakage_over(self.intervals(side.direction), side)
        return told * (1.0 - np.eye(self.right.k))

    def told_by_pair(self, pair: StoppingPair) -> Floats:
        """(k, k) what both sides in turn tell at most."""
        first, second = (self.left, self.right)[:: -pair.first]
        return told_by_pair(pair, first, [told_by(side, second) for side in pair.seconds])

    def cost(self, left: StoppingSide, right: StoppingSide) -> float:
        """Expected redactions beside the secret, in unlimited room."""
        return expected_redactions(left, self.left) + expected_redactions(right, self.right)

    def told_of(self, stopping: Stopping) -> Stopping:
        """A menu with what the model says of its sides."""
        known: dict[int, StoppingSide] = {}

        def told(side: StoppingSide) -> StoppingSide:
            if id(side) not in known:
                room = self.rooms[side.direction > 0]
                known[id(side)] = with_laws(side, self.of(side), room)
            return known[id(side)]

        options = tuple((told(left), told(right)) for left, right in stopping.options)
        gaps = tuple(replace(gap, law=released_law(gap, self.left.chain)) for gap in stopping.gaps)
        return replace(stopping, options=options, gaps=gaps)
