"""Sides: what walks beside clusters, and how likely what is shown there is by the state at the
cluster's end, once for all that look alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.attack.courses import Course, Ground, Walker
from offrecord.attack.heldout import Held, held_out, is_too_wide
from offrecord.attack.sights import bounds
from offrecord.attack.steps import Opened
from offrecord.attack.stretches import ABSENT, HIDDEN, NOWHERE, Stretch
from offrecord.mechanisms.blocks import Mask
from offrecord.mechanisms.owner.deciding.clusters import LEFT, RIGHT
from offrecord.mechanisms.owner.deciding.decider import OwnerDecider, Plan
from offrecord.mechanisms.owner.deciding.sight import seen
from offrecord.mechanisms.owner.stopping import NEVER_REACHED, StoppingSide
from offrecord.models.base import Floats, Integers
from offrecord.release.coins import Draws

#: What stands on one side of a cluster: nothing walks there, a walk that looks at nothing goes to
#: its deadline, one by a side of the menu, or the first or second one of a pair.
IDLE, STRAIGHT, ALONE, FIRST, SECOND, SECOND_STRAIGHT = range(6)

MISSING = "records near them are missing"
CLOSED = "nothing is released between them and the next secrets, and records there are missing"
ODD = "no walk stops where releasing begins beside them"
COUPLED = "less is released between them and the next secrets than the memory holds"
WIDE = "too much would have to be summed over"
_MOST_CELLS = 1 << 22


class UnknownError(Exception):
    """Why something is not computed."""


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


@dataclass(frozen=True)
class Side:
    """One side of a cluster, with all that its likelihood depends on.

    symbols: by distance from 1, from where the cluster ends. room: records (tuples) up to the
    chain's end or the next cluster, but no more than matter. fars: the values at the deadlines that
    `Laws.deadlines` lists, end: that at the chain's end, −1 where they are not shown. anchored: the
    outermost symbols are as many released ones as a state holds. kernels: of the steps that lead
    through all of it, from the left to the right.
    """

    column: int
    role: int
    number: int
    symbols: tuple[int, ...]
    room: int
    fars: tuple[int, ...]
    end: int
    anchored: bool
    kernels: tuple[int, ...]


@dataclass(frozen=True)
class Between:
    """What lies between two clusters that is not walked from either side alone: roles and numbers
    of the right side of the one and of the left side of the other.
    """

    right: tuple[int, int]
    left: tuple[int, int]
    room: int
    symbols: tuple[int, ...]
    kernels: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Laws:
    """Likelihoods of what is shown beside clusters, as far as somebody asked."""

    decider: OwnerDecider
    opened: Opened
    is_own: bool
    known: dict[object, Floats | str] = field(default_factory=dict)
    walkers: dict[tuple[int, int, int], tuple[Walker | None, ...]] = field(default_factory=dict)
    gaps: dict[tuple[int, tuple[int, ...]], dict[Held, Floats]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many records a tuple has."""
        return self.decider.order

    @property
    def tuples(self) -> Integers:
        """(S,) the tuple that each state ends with."""
        return np.arange(self.opened.states) % self.decider.k

    def walks(self, role: int, number: int, column: int) -> tuple[Walker | None, ...]:
        """Those that may have walked: one, or one for each label; None for a closed side."""
        key = role, number, column
        if key not in self.walkers:
            self.walkers[key] = tuple(self._walks(role, number, column))
        return self.walkers[key]

    def _walks(self, role: int, number: int, column: int) -> Iterator[Walker | None]:
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
        if role in (IDLE, STRAIGHT, SECOND_STRAIGHT):
            return ()
        walkers = self.walks(role, number, column)
        return tuple(sorted({one.deadline for one in walkers if one is not None}))

    # ---- one side

    def side(self, side: Side) -> Floats | str:
        """(labels, S) how likely what it shows is, to the left together with the state at the
        cluster's end, to the right by it; or why that is not known.
        """
        if side not in self.known:
            try:
                self.known[side] = self._side(side)
            except UnknownError as error:
                self.known[side] = str(error)
        return self.known[side]

    def _side(self, side: Side) -> Floats:
        labels = self._labels(side)
        if side.role not in (IDLE, STRAIGHT, SECOND_STRAIGHT):
            self._check_completed(side.symbols)
        stretch = self._stretch(side)
        found = []
        for courses in labels:
            if not courses:
                found.append(np.zeros(self.opened.states))
                continue
            self._check_size(stretch, courses, ())
            if side.column == RIGHT:
                found.append(stretch.likely(courses, [NOWHERE]).sum(axis=1))
            else:
                found.append(stretch.likely([NOWHERE], courses)[0])
        if not any(labels):
            raise UnknownError(ODD)
        return np.stack(found)

    def _labels(self, side: Side) -> list[list[Course]]:
        """The courses that may have been, by label."""
        symbols = np.array(side.symbols, dtype=np.int64)
        first, hidden = bounds(symbols)
        if side.role == IDLE:
            return [[NOWHERE]] if first is None else [[]]
        if side.role == STRAIGHT:
            return [[NOWHERE] if self._fits(side.number, first, hidden) else []]
        deadlines = self.deadlines(side.role, side.number, side.column)
        found: list[list[Course]] = []
        for walker in self.walks(side.role, side.number, side.column):
            if walker is None:
                found.append([NOWHERE] if first is None else [])
            elif side.role == SECOND_STRAIGHT:
                found.append([NOWHERE] if self._fits(walker.deadline, first, hidden) else [])
            else:
                far = side.fars[deadlines.index(walker.deadline)]
                ground = Ground(side.room, _shown(far), _shown(side.end))
                stops = self._stops(walker, first, hidden, side.room)
                found += self._by_label(walker, stops, ground, side.role == FIRST)
        return found

    @staticmethod
    def _by_label(
        walker: Walker, stops: Sequence[int | None], ground: Ground, labelled: bool
    ) -> list[list[Course]]:
        found: list[list[Course]] = [[] for _ in range(walker.labels + walker.k)]
        for stop in stops:
            for label, course in walker.stopped_at(stop, ground):
                found[label].append(course)
        return found if labelled else [[course for courses in found for course in courses]]

    def _fits(self, stop: int, first: int | None, hidden: int) -> bool:
        """Whether releasing may have begun with a stop, from what is shown and what is not."""
        begin = stop - self.size + 1
        return hidden < begin and (first is None or begin <= first)

    def _stops(self, walker: Walker, first: int | None, hidden: int, room: int) -> list[int | None]:
        """Where a walk may have stopped."""
        inside = [level for level in walker.levels if level <= room]
        found: list[int | None] = [one for one in inside if self._fits(one, first, hidden)]
        if first is None and walker.deadline > room:
            found.append(None)
        return found

    def _stretch(self, side: Side) -> Stretch:
        states = self.opened.states
        kernels = np.array(side.kernels, dtype=np.int64)
        if side.column == RIGHT:
            symbols = np.array(side.symbols, dtype=np.int64)
            return Stretch(self.opened, kernels, symbols, np.eye(states), self.tuples)
        symbols = np.array([*side.symbols[::-1], *[HIDDEN] * self.size], dtype=np.int64)
        start, state = np.zeros((1, states)), 0
        if side.anchored:
            for value in symbols[: self.opened.order].tolist():
                state = state * self.opened.steps.k + value
            symbols = symbols[self.opened.order :]
        start[0, state] = 1.0
        return Stretch(self.opened, kernels, symbols, start, self.tuples)

    def _check_completed(self, symbols: Sequence[int]) -> None:
        """Values that were drawn for missing records follow the certificate's model: who believes
        in another would have to sum over both.
        """
        if not self.is_own and self.decider.is_known and ABSENT in symbols:
            raise UnknownError(MISSING)

    def _check_size(
        self, stretch: Stretch, right: Sequence[Course], left: Sequence[Course]
    ) -> None:
        most = max((len(one.fars) for one in right), default=1)
        most *= max((len(one.fars) * self.decider.k for one in left), default=1)
        if most * stretch.start.size > _MOST_CELLS:
            raise UnknownError(WIDE)

    # ---- between two clusters

    def between(self, gap: Between) -> Floats | str:
        """(S, S) how likely what a gap shows is together with the state at the right cluster's
        first tuple, by that at the left one's last; or why that is not known.
        """
        if gap not in self.known:
            try:
                self.known[gap] = self._between(gap)
            except UnknownError as error:
                self.known[gap] = str(error)
        return self.known[gap]

    def _between(self, gap: Between) -> Floats:
        symbols = np.array(gap.symbols, dtype=np.int64)
        if not {gap.right[0], gap.left[0]} <= {ALONE, STRAIGHT}:
            raise UnknownError(COUPLED if np.any(symbols >= 0) else CLOSED)
        if ALONE in (gap.right[0], gap.left[0]):
            self._check_completed(gap.symbols)
        kernels = np.array(gap.kernels, dtype=np.int64)
        shown = np.concatenate((symbols, np.full(self.size, HIDDEN)))
        start = np.eye(self.opened.states)
        stretch = Stretch(self.opened, kernels, shown, start, self.tuples)
        ends = self._deadline(*gap.right, RIGHT), self._deadline(*gap.left, LEFT)
        # as far as either may go without what the other looks up
        limits = gap.room + 1 - ends[1], gap.room + 1 - ends[0]
        if np.any(symbols >= 0):
            return self._parted(gap, symbols, stretch, limits)
        least = symbols[max(limits[0] - self.size, 0) : ends[0]]
        if limits[0] >= ends[0] or not np.any(least == HIDDEN):
            raise UnknownError(CLOSED)
        right = self._kept(*gap.right, RIGHT, limits[0], gap.room)
        left = self._kept(*gap.left, LEFT, limits[1], gap.room)
        self._check_size(stretch, [right], [left])
        # 1 − (1 − a)(1 − b), where a and b are the chances that the walks do not stop in time
        return np.asarray(
            stretch.likely([right], [NOWHERE])
            + stretch.likely([NOWHERE], [left])
            - stretch.likely([right], [left])
        )

    def _parted(
        self, gap: Between, symbols: Integers, stretch: Stretch, limits: tuple[int, int]
    ) -> Floats:
        """Where something is released, too little of it to part the two sides."""
        both = []
        for (role, number), column, limit in (
            (gap.right, RIGHT, limits[0]),
            (gap.left, LEFT, limits[1]),
        ):
            first, hidden = bounds(symbols if column == RIGHT else symbols[::-1])
            if role == STRAIGHT:
                fits = number <= limit and self._fits(number, first, hidden)
                both.append([NOWHERE] if fits else [])
                continue
            (walker,) = self.walks(role, number, column)
            assert walker is not None
            stops = [
                one
                for one in self._stops(walker, first, hidden, gap.room)
                if one is not None and one <= limit
            ]
            both += self._by_label(walker, stops, Ground(gap.room), labelled=False)
        if not all(both):
            raise UnknownError(ODD)
        self._check_size(stretch, *both)
        return stretch.likely(*both)

    def _deadline(self, role: int, number: int, column: int) -> int:
        if role == STRAIGHT:
            return number
        (walker,) = self.walks(role, number, column)
        return NEVER_REACHED if walker is None else walker.deadline

    def _kept(self, role: int, number: int, column: int, limit: int, room: int) -> Course:
        """That a walk does not stop up to a limit."""
        if role == STRAIGHT:
            return NOWHERE
        (walker,) = self.walks(role, number, column)
        assert walker is not None
        return walker.kept_to(limit, Ground(room))

    def held_out(self, symbols: tuple[int, ...], kernels: tuple[int, ...]) -> Floats | str:
        """(S, S) the same of a gap that one choice serves."""
        opened, steps = self.opened, self.opened.kernels[np.array(kernels)]
        key = len(symbols), kernels
        if key not in self.gaps:
            gap = next(one for one in self.decider.bridges.gaps if one.length == len(symbols))
            if is_too_wide(gap, opened.states):
                return WIDE
            self.gaps[key] = held_out(gap, steps, opened.steps.value)
        shown = np.flatnonzero(np.array(symbols) >= 0)
        if not len(shown):
            return self.gaps[key][None]
        first, last = int(shown[0]), int(shown[-1])
        if len(shown) != last - first + 1:
            return ODD
        through = np.diag((opened.steps.value == symbols[first]).astype(np.float64))
        for at in range(first + 1, last + 1):
            through = through @ (steps[at] * (opened.steps.value == symbols[at]))
            through /= max(float(through.max()), np.finfo(np.float64).tiny)
        return np.asarray(np.einsum("stij,ij->st", self.gaps[key][first + 1, last + 1], through))


def _shown(value: int) -> int | None:
    return None if value < 0 else value
