"""OwnerStopping: the mechanism of who sees all values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms.base import Design, Mechanism
from offrecord.mechanisms.owner.design import OwnerDesign
from offrecord.mechanisms.owner.designing.labels import LEFT_OVER
from offrecord.mechanisms.owner.menu import Menu
from offrecord.mechanisms.owner.policy import OwnerPolicy, problems
from offrecord.mechanisms.owner.proof import unserved
from offrecord.mechanisms.owner.ways import Ways
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.mechanisms.window import window_of
from offrecord.mechanisms.workshop import Workshop
from offrecord.models.base import Model
from offrecord.models.chain import MarkovChain
from offrecord.processes.crew import Work
from offrecord.theory.problem import Problem
from offrecord.theory.room import forgotten_room

_NEAR = 3  # records within which all walks end, so that designing both sides in turn is quick


@dataclass(frozen=True)
class OwnerStopping(Mechanism):
    """Walk away from each end of a private run, with a look at one far value and at those on the
    way, and stop at a random distance: everything from there on is released (O1 to O11).

    Not local: who redacts must see all values, the private ones too. In slow chains it redacts a
    third to a sixth of what the best local mechanism does.
    """

    name: ClassVar[str] = "owner"
    designs: ClassVar[type[OwnerDesign]] = OwnerDesign

    def unserved(self, model: Model) -> str | None:
        """Why it cannot be proven for a model; None where it can."""
        return unserved(model)

    def design(self, problem: Problem) -> OwnerPolicy:
        """The policy for a problem; InputError where none can be proven for the chain."""
        return self._designed(problem, in_turn=True)

    def at_once(self, problem: Problem) -> OwnerPolicy | None:
        """Around a single record from which walks go far: each side by itself, never one after the
        other (O7), in a sixth of the time.
        """
        if problem.models is not None or not problem.chain.is_stationary:
            return None
        secrets = problem.secrets
        if len(secrets) > 1 or secrets[0].first < secrets[0].last:
            return None
        way = Ways.far(problem.chain).right
        reach = way.deadline(LEFT_OVER * problem.epsilon, np.ones(way.k))
        if reach is not None and reach <= _NEAR:
            return None
        return self._designed(problem, in_turn=False)

    def _designed(self, problem: Problem, *, in_turn: bool) -> OwnerPolicy:
        self._check(problem)
        secrets = problem.secrets
        between = {b.first - a.last - 1 for a, b in pairwise(secrets)}
        chain, epsilon = problem.chain, problem.epsilon
        window = far_window(chain, epsilon) if chain.is_stationary else None
        only = (secrets[0], problem.n) if len(secrets) == 1 else None
        menus = [
            Menu(Ways.around(one), epsilon, window, only, in_turn, lengths=between)
            for one in problems(problem)
        ]
        return OwnerPolicy(problem, self.name, tuple(menu.stopping for menu in menus))

    def around(self, problem: Problem, surrounding: Surrounding) -> OwnerDesign:
        """The design around the one secret of a problem."""
        self._check(problem)
        return _proven(Menu(Ways.around(problem), problem.epsilon), problem, surrounding)

    def workshop(self, model: Model, epsilon: float, protect: str, room: int) -> Workshop:
        """One menu for all secrets of a stationary model."""
        return _OneMenu(self, model, epsilon, protect, room)

    def _check(self, problem: Problem) -> None:
        why = self.unserved(problem.chain)
        if why is not None:
            raise InputError(f"{why}; take best-local, or a model of another kind")


class _OneMenu(Workshop):
    """Makes the sides of one menu, which all surroundings share (O9)."""

    serves_every_room = True

    def __init__(
        self, mechanism: OwnerStopping, model: Model, epsilon: float, protect: str, room: int
    ) -> None:
        super().__init__(mechanism, model, epsilon, protect)
        self.room = room
        chain = model.along()
        self.menu = Menu(Ways.far(chain), epsilon, far_window(chain, epsilon))
        self._proven: OwnerDesign | None = None

    def expect_gaps(self, lengths: Sequence[int]) -> None:
        """Ask for these too."""
        self.menu.lengths.update(lengths)

    def adopt(self, known: Sequence[Design]) -> None:
        """One that is known serves other surroundings too."""
        mine = [design for design in known if isinstance(design, OwnerDesign)]
        if mine:
            self.menu.adopt(mine[0].stopping)

    def rooms(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Whether there is any, and no more."""
        return (0, self.room), (0, self.room)

    def tasks(self, wanted: Sequence[Surrounding]) -> list[Any]:
        """The parts of the menu."""
        return self.menu.tasks

    def apart(self, task: Any) -> Work | None:
        """Both sides with a share of ε."""
        return self.menu.apart(task)

    def keep(self, task: Any, made: Any) -> None:
        """Sides with a share of ε."""
        self.menu.keep(task, made)

    def work(self, task: Any) -> None:
        """Do one of them."""
        self.menu.work(task)

    def around(self, surrounding: Surrounding) -> Design:
        """The menu, as the design for a surrounding; proven once for all of them."""
        if surrounding not in self.made:
            problem = surrounding.problem(self.model, self.epsilon, self.protect)
            if self._proven is None:
                self._proven = _proven(self.menu, problem, surrounding)
            window = window_of(problem)
            self.made[surrounding] = replace(self._proven, surrounding=surrounding, window=window)
        return self.made[surrounding]


def far_window(chain: MarkovChain, epsilon: float) -> tuple[int, int] | None:
    """What the best window redacts in unlimited room around a record of a stationary chain; None
    where it never ends.
    """
    room = forgotten_room(chain, epsilon)
    if room is None:
        return None
    room = max(room, chain.order)
    return window_of(Problem(chain, 2 * room + 1, room + 1, epsilon))


def _proven(menu: Menu, problem: Problem, surrounding: Surrounding) -> OwnerDesign:
    """A menu around the one secret of a problem, proven as it will act."""
    found = OwnerDesign.proven(menu.stopping, menu.ways, problem, surrounding)
    if found is None:  # nothing that is not proven is used
        found = OwnerDesign.proven(menu.everything, menu.ways, problem, surrounding)
    assert found is not None
    return found
