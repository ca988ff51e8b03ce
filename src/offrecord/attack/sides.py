"""Sides: how likely what is shown beside clusters is, by the state at the cluster's end, once for
all that look alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from offrecord.attack.courses import Course, Ground, Walker
from offrecord.attack.heldout import Held, held_out, is_too_wide
from offrecord.attack.roles import (
    ALONE,
    FIRST,
    SECOND,
    SECOND_STRAIGHT,
    STRAIGHT,
    Walkers,
)
from offrecord.attack.sights import bounds
from offrecord.attack.steps import Opened
from offrecord.attack.stretches import ABSENT, HIDDEN, NOWHERE, Stretch
from offrecord.mechanisms.owner.deciding.clusters import LEFT, RIGHT
from offrecord.models.base import Floats, Integers

MISSING = "records near them are missing"
CLOSED = "nothing is released between them and the next secrets, and records there are missing"
ODD = "no walk stops where releasing begins beside them"
COUPLED = "less is released between them and the next secrets than the memory holds"
WIDE = "too much would have to be summed over"
_MOST_CELLS = 1 << 22


class UnknownError(Exception):
    """Why something is not computed."""


@dataclass(frozen=True)
class Side:
    """One side of a cluster, with all that its likelihood depends on.

    symbols: by distance from 1, from where the cluster ends. room: records (tuples) up to the
    chain's end or the next cluster, but no more than matter. fars: the values at the deadlines that
    `Walkers.deadlines` lists, end: that at the chain's end, −1 where they are not shown. anchored:
    the outermost symbols are as many released ones as a state holds. kernels: of the steps that
    lead through all of it, from the left to the right. label: of a second side, the one it has.
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
    label: int = -1


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
    """Likelihoods of what is shown beside clusters, by a chain that an attacker believes in, as far
    as somebody asked. is_own: it is the certificate's model.
    """

    walkers: Walkers
    opened: Opened
    is_own: bool
    known: dict[object, Floats | str] = field(default_factory=dict)
    gaps: dict[tuple[int, tuple[int, ...]], dict[Held, Floats]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many records a tuple has."""
        return self.walkers.decider.order

    @cached_property
    def tuples(self) -> Integers:
        """(S,) the tuple that each state ends with."""
        return np.arange(self.opened.states) % self.walkers.decider.k

    def _looked_up(self, key: object, found: Callable[[], Floats]) -> Floats | str:
        if key not in self.known:
            try:
                self.known[key] = found()
            except UnknownError as error:
                self.known[key] = str(error)
        return self.known[key]

    # ---- one side

    def side(self, side: Side) -> Floats | str:
        """(labels, S) how likely what it shows is, to the left together with the state at the
        cluster's end, to the right by it; or why that is not known.
        """
        if side.label < 0 and side.role in (SECOND, SECOND_STRAIGHT):
            return self._looked_up(side, lambda: self._by_labels(side))
        return self._looked_up(side, lambda: self._side(side))

    def _by_labels(self, side: Side) -> Floats:
        """Of a second side, by the label of the first."""
        which = side.role, side.number, side.column
        deadlines, found = self.walkers.deadlines(*which), []
        for label, walker in enumerate(self.walkers.of(*which)):
            fars: tuple[int, ...] = ()
            if walker is not None and deadlines:
                fars = (side.fars[deadlines.index(walker.deadline)],)
            law = self.side(replace(side, fars=fars, label=label))
            if isinstance(law, str) and law != ODD:
                raise UnknownError(law)
            # with some labels no walk stops there
            found.append(np.zeros((1, self.opened.states)) if isinstance(law, str) else law)
        return np.concatenate(found)

    def _side(self, side: Side) -> Floats:
        labels = self._courses(side)
        if not any(labels):
            raise UnknownError(ODD)
        if side.role not in (STRAIGHT, SECOND_STRAIGHT):
            self._check_completed(side.symbols)
        stretch, found = self._stretch(side), np.zeros((len(labels), self.opened.states))
        for label, courses in enumerate(labels):
            if side.column == RIGHT:
                self._check_size(stretch, courses, ())
                found[label] = stretch.likely(courses, [NOWHERE]).sum(axis=1)
            else:
                self._check_size(stretch, (), courses)
                found[label] = stretch.likely([NOWHERE], courses)[0]
        return found

    def _courses(self, side: Side) -> list[list[Course]]:
        """The courses that may have been, by label."""
        first, hidden = bounds(np.array(side.symbols, dtype=np.int64))
        if side.role == STRAIGHT:
            return [[NOWHERE] if self._fits(side.number, first, hidden) else []]
        walker = self.walkers.of(side.role, side.number, side.column)[max(side.label, 0)]
        if walker is None:
            return [[NOWHERE] if first is None else []]
        if side.role == SECOND_STRAIGHT:
            return [[NOWHERE] if self._fits(walker.deadline, first, hidden) else []]
        ground = Ground(side.room, _shown(side.fars[0]), _shown(side.end))
        stops = self._stops(walker, first, hidden, side.room)
        return self._by_label(walker, stops, ground, side.role == FIRST)

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
        if not self.is_own and self.walkers.decider.is_known and ABSENT in symbols:
            raise UnknownError(MISSING)

    def _check_size(
        self, stretch: Stretch, right: Sequence[Course], left: Sequence[Course]
    ) -> None:
        most = max((len(one.fars) for one in right), default=1)
        most *= max((len(one.fars) * self.walkers.decider.k for one in left), default=1)
        if most * stretch.start.size > _MOST_CELLS:
            raise UnknownError(WIDE)

    # ---- between two clusters

    def between(self, gap: Between) -> Floats | str:
        """(S, S) how likely what a gap shows is together with the state at the right cluster's
        first tuple, by that at the left one's last; or why that is not known.
        """
        return self._looked_up(gap, lambda: self._between(gap))

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
            (walker,) = self.walkers.of(role, number, column)
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
        return self.walkers.deadlines(role, number, column)[0]

    def _kept(self, role: int, number: int, column: int, limit: int, room: int) -> Course:
        """That a walk does not stop up to a limit."""
        if role == STRAIGHT:
            return NOWHERE
        (walker,) = self.walkers.of(role, number, column)
        assert walker is not None
        return walker.kept_to(limit, Ground(room))

    def held_out(self, symbols: tuple[int, ...], kernels: tuple[int, ...]) -> Floats | str:
        """(S, S) the same of a gap that one choice serves."""
        opened, steps = self.opened, self.opened.kernels[np.array(kernels)]
        key = len(symbols), kernels
        if key not in self.gaps:
            gap = next(
                one for one in self.walkers.decider.bridges.gaps if one.length == len(symbols)
            )
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
