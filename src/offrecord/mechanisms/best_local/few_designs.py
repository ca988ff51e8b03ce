"""Where a design takes seconds, fewer surroundings have one each, and rooms share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from offrecord.mechanisms.local.design import LocalDesign
from offrecord.mechanisms.local.stretches import Stretches
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.mechanisms.window import window_of
from offrecord.mechanisms.workshop import Workshop
from offrecord.models.base import Model
from offrecord.processes.crew import Work
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

    def tasks(self, wanted: Sequence[Surrounding]) -> list[Any]:
        """These, and what they ask for, which comes first."""
        found: dict[Surrounding, None] = {}
        for surrounding in wanted:
            found.update(dict.fromkeys(self.tasks(self._asked(surrounding))))
            found[surrounding] = None
        return list(found)

    def apart(self, task: Any) -> Work | None:
        """The design of a surrounding that asks for no other."""
        return None if self._asked(task) else super().apart(task)

    def keep(self, task: Any, made: Any) -> None:
        """One that was designed."""
        self._designs[task] = made

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
            design = self.around(wider)
            if self._ends_within(design, surrounding):
                return self._judged(design, surrounding, problem)
        closed = self._beside_closed(surrounding, problem)
        if closed is None:
            return None
        widest = self.around(self._widest(surrounding))
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
        """A side that is closed, and the design of a secret that has no record there."""
        one_sided = self._one_sided(surrounding)
        if one_sided is None:
            return None
        design, k = self.around(one_sided), problem.chain.k
        if one_sided.left == 0:
            whole = replace(design, left=Stretches.always(k, surrounding.left))
        else:
            whole = replace(design, right=Stretches.always(k, surrounding.right))
        return self._judged(whole, surrounding, problem)

    def _asked(self, surrounding: Surrounding) -> list[Surrounding]:
        """Whose designs it may take, and asks for before it has one of its own."""
        wider, one_sided = self._wider(surrounding), self._one_sided(surrounding)
        if wider or one_sided is None:
            return wider[:1]
        return [one_sided, self._widest(surrounding)]

    def _one_sided(self, surrounding: Surrounding) -> Surrounding | None:
        """Where the window redacts all records of one side, and not of the other: the surrounding
        without that side.
        """
        if self.model.box is None:
            return None
        left, right, length = surrounding[:3]
        windows = self._window(surrounding), self._window(self._widest(surrounding))
        sides = zip(*windows, (left, right), strict=True)
        is_closed = [0 < room <= size and room < wide for size, wide, room in sides]
        if is_closed[0] == is_closed[1] or not (left and right):
            return None
        return Surrounding(0, right, length) if is_closed[0] else Surrounding(left, 0, length)

    def _wider(self, surrounding: Surrounding) -> list[Surrounding]:
        """With the same window, and all the room that makes a difference: on both sides, or one."""
        if self.model.box is None:
            return []
        left, right, length = surrounding[:3]
        rooms = (self.room, self.room), (self.room, right), (left, self.room)
        wider = dict.fromkeys(Surrounding(*both, length) for both in rooms)
        window = self._window(surrounding)
        return [one for one in wider if one != surrounding and self._window(one) == window]

    def _widest(self, surrounding: Surrounding) -> Surrounding:
        return Surrounding(self.room, self.room, surrounding.length)

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
