"""Where a design takes seconds, fewer surroundings have one each, and rooms share them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from offrecord.mechanisms.local.design import LocalDesign
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
    best window, which is exact, it is taken not to be to a design. In sets of models, that is: a
    design for one of them takes a part of a second, and every room has its own.

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
        """That of a larger room; None where there is none, or it does not end in time."""
        for wider in self._wider(surrounding):
            if self._window(wider) == self._window(surrounding):
                design = self.around(wider)
                if self._ends_within(design, surrounding):
                    judged = design.judged(problem)
                    return None if judged is None else replace(judged, surrounding=surrounding)
        return None

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
