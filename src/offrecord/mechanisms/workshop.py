"""Workshops: where the designs for the secrets of one table are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from offrecord.mechanisms.surroundings import Surrounding
from offrecord.models.base import Model
from offrecord.processes.crew import Work
from offrecord.theory.problem import Problem

if TYPE_CHECKING:
    from offrecord.mechanisms.base import Design, Mechanism


class Workshop:
    """Makes designs one by one, and keeps them. A mechanism may have one that does better."""

    #: So many surroundings have a design each before rooms are rounded up: where one takes
    #: milliseconds.
    most = 400
    #: Designs are the same for every room, so that rounding rooms up costs nothing.
    serves_every_room = False

    def __init__(self, mechanism: Mechanism, model: Model, epsilon: float, protect: str) -> None:
        self.mechanism, self.model = mechanism, model
        self.epsilon, self.protect = epsilon, protect
        self.made: dict[Surrounding, Design] = {}

    def adopt(self, known: Sequence[Design]) -> None:
        """Designs for other surroundings are known from before, and stand."""

    def expect_gaps(self, lengths: Sequence[int]) -> None:
        """Neighbouring secrets will have so many records between them, where they are near."""

    def rooms(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """The rooms to the left and right that it would round up to; None where any will do."""
        return None

    def tasks(self, wanted: Sequence[Surrounding]) -> list[Any]:
        """All that takes time on the way to designs for these surroundings."""
        return list(wanted)

    def apart(self, task: Any) -> Work | None:
        """One of the tasks as work that needs nothing of the others; None where it does."""
        if not isinstance(task, Surrounding):
            return None
        return self.mechanism.around, (self._problem(task), task)

    def keep(self, task: Any, made: Any) -> None:
        """What such work has come to."""
        self.made[task] = made

    def work(self, task: Any) -> None:
        """Do one of the tasks, whatever it needs."""
        self.around(task)

    def around(self, surrounding: Surrounding) -> Design:
        """The design for a surrounding."""
        if surrounding not in self.made:
            self.made[surrounding] = self.mechanism.around(self._problem(surrounding), surrounding)
        return self.made[surrounding]

    def _problem(self, surrounding: Surrounding) -> Problem:
        return surrounding.problem(self.model, self.epsilon, self.protect)
