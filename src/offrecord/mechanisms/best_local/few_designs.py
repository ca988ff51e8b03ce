"""Where a design takes seconds, fewer surroundings have one each, and rooms share them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from offrecord.mechanisms.local.design import LocalDesign
from offrecord.mechanisms.local.stretches import Stretches
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.mechanisms.window import window_of
from offrecord.mechanisms.workshop import Workshop
from offrecord.models.base import Model
from offrecord.theory.problem import Problem

if TYPE_CHECKING:
    from offrecord.mechanisms.best_local.mechanism import BestLocal


class FewDesigns(Workshop):
    """A design that releases some record of a room entirely tells the same in a smaller room that
    has this record, too: nothing beyond it counts (F1, F14). So a smaller room takes the design of
    the largest one, judged there, unless its end is near enough to be of use: if it is not to the
    best window, which is exact, it is taken not to be to a design. Where the window redacts all of
    one side, what is redacted to the other depends on that one alone: a room that is smaller there
    than the window of the largest one takes the design of a secret without records on that side, or
    that of the largest room if it ends in time and redacts less.

    In sets of models, that is: a design for one of them takes a part of a second, and every room
    has its own.

    room: none needs more.
    """

    most = 40

    def __init__(
        self, mechanism: BestLocal, model: Model, epsilon: float, protect: str, room: int
    ) -> None:
        super().__init__(mechanism, model, epsilon, protect)
        self.best, self.room = mechanism, room
        self._designs: dict[Surrounding, LocalDesign] = {}
        self._windows: dict[Surrounding, tuple[int, int]] = {}

    def around(self, surrounding: Surrounding) -> LocalDesign:
        """The design for a surrounding, or that of a larger one where it serves as well."""
        if surrounding not in self._designs:
            problem = self._problem(surrounding)
            shared = self._shared(surrounding, problem)
            self._designs[surrounding] = shared or self.best.around(problem, surrounding)
        return self._designs[surrounding]

    def _shared(self, surrounding: Surrounding, problem: Problem) -> LocalDesign | None:
        """That of a larger room, or of one without its closed side; None where there is none, or it
        does not end in time.
        """
        for wider in self._wider(surrounding):
            if self._window(wider) == self._window(surrounding):
                design = self.around(wider)
                if self._ends_within(design, surrounding):
                    return self._judged(design, surrounding, problem)
        closed = self._beside_closed(surrounding, problem)
        if closed is None:
            return None
        widest = self.around(Surrounding(self.room, self.room, surrounding.length))
        judged = None
        if self._ends_within(widest, surrounding):
            judged = self._judged(widest, surrounding, problem)
        masses = self.model.along().marginal(1)
        found = [one for one in (closed, judged) if one is not None]
        return min(found, key=lambda one: one.cost(masses, *surrounding[:2]))

    def _judged(
        self, design: LocalDesign, surrounding: Surrounding, problem: Problem
    ) -> LocalDesign | None:
        judged = design.judged(problem)
        return None if judged is None else replace(judged, surrounding=surrounding)

    def _beside_closed(self, surrounding: Surrounding, problem: Problem) -> LocalDesign | None:
        """Where the window redacts all records of one side, and not of the other: that side, and
        the design of a secret that has no record there.
        """
        if self.model.box is None:
            return None
        left, right, length = surrounding[:3]
        widest = self._window(Surrounding(self.room, self.room, length))
        windows = zip(self._window(surrounding), widest, (left, right), strict=True)
        is_closed = [0 < room <= size and room < wide for size, wide, room in windows]
        if is_closed[0] == is_closed[1] or not (left and right):
            return None
        k = problem.chain.k
        if is_closed[0]:
            design = self.around(Surrounding(0, right, length))
            whole = replace(design, left=Stretches.always(k, left))
        else:
            design = self.around(Surrounding(left, 0, length))
            whole = replace(design, right=Stretches.always(k, right))
        return self._judged(whole, surrounding, problem)

    def _wider(self, surrounding: Surrounding) -> list[Surrounding]:
        """With all the room that makes a difference: on both sides, or on one."""
        if self.model.box is None:
            return []
        left, right, length = surrounding[:3]
        rooms = (self.room, self.room), (self.room, right), (left, self.room)
        wider = (Surrounding(*both, length) for both in rooms)
        return [one for one in dict.fromkeys(wider) if one != surrounding]

    def _ends_within(self, design: LocalDesign, surrounding: Surrounding) -> bool:
        """On sides with less room than it was made for, as many records are released entirely as
        the chain remembers.
        """
        sides = zip(design.sides, design.surrounding[:2], surrounding[:2], strict=True)
        order = self.model.order
        return all(room == made or side.size + order <= room for side, made, room in sides)

    def _window(self, surrounding: Surrounding) -> tuple[int, int]:
        if surrounding not in self._windows:
            self._windows[surrounding] = window_of(self._problem(surrounding))
        return self._windows[surrounding]

    def _problem(self, surrounding: Surrounding) -> Problem:
        return surrounding.problem(self.model, self.epsilon, self.protect)
