"""Both sides of a secret designed apart, where they are too large to be improved together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from offrecord.mechanisms.local.design import LocalDesign
from offrecord.mechanisms.local.referee import passed
from offrecord.mechanisms.local.secrets import stamped
from offrecord.mechanisms.local.stretches import Sides, Stretches
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.mechanisms.window import BestWindow, window_of
from offrecord.mechanisms.workshop import Workshop
from offrecord.models.base import Floats
from offrecord.models.chain import MarkovChain
from offrecord.processes.crew import Work
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.room import far_side

if TYPE_CHECKING:
    from offrecord.mechanisms.best_local.mechanism import BestLocal

#: Entries of a redaction matrix above which both sides are designed apart and combined.
JOINT = 500
_SHARES = (0.5, 1.0)  # of ε that a side may have; 0 is a side that is redacted to its end
_EFFORT = 0.07  # of what a design of both sides may take
_LARGE = 2500  # entries of a side for which the window will do: more takes minutes for nothing
_NODES = 12  # rooms that sides are designed for


def is_too_large(room: int, k: int) -> bool:
    """Both sides of a secret with so much room are too large to be improved together."""
    return 2 * room * k > JOINT


class SidesApart(Workshop):
    """Sides for a few rooms and shares of ε, and designs that combine them. For stationary chains.

    room: none needs more.
    """

    def __init__(
        self, mechanism: BestLocal, chain: MarkovChain, epsilon: float, protect: str, room: int
    ) -> None:
        super().__init__(mechanism, chain, epsilon, protect)
        self.chain, self.room, self.best = chain, room, mechanism
        self.masses = chain.marginal(1)
        self._sides: dict[tuple[int, int, float], Floats] = {}

    def rooms(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Few: none, all that F4 forces to be redacted altogether, then growing."""
        return self._nodes(-1), self._nodes(1)

    def _nodes(self, direction: int) -> tuple[int, ...]:
        influence = far_side(self.chain, direction).influence(self.room)
        forced = np.all(influence > self.epsilon, axis=1)
        first = max(int(np.argmin(np.append(forced, False))), 1)
        ratio = max((self.room / first) ** (1 / (_NODES - 2)), 1.01)
        grown = (min(round(first * ratio**i), self.room) for i in range(_NODES - 1))
        return tuple(sorted({0, self.room, *grown}))

    def tasks(self, wanted: Sequence[Surrounding]) -> list[Any]:
        """Every side that some surrounding needs, with every share."""
        sides = {
            (direction, room)
            for around in wanted
            for direction, room in ((-1, around.left), (1, around.right))
            if room
        }
        return sorted((direction, room, share) for direction, room in sides for share in _SHARES)

    def apart(self, task: Any) -> Work:
        """One side."""
        return _designed, (self.best, self.chain, self.protect, self.epsilon, *task)

    def keep(self, task: Any, made: Any) -> None:
        """One side that was designed."""
        self._sides[task] = made

    def work(self, task: Any) -> None:
        """Design one side."""
        self._side(*task)

    def around(self, surrounding: Surrounding) -> LocalDesign:
        """The best of: both sides with half of ε, one with all of it and the other redacted to its
        end, and the window.
        """
        options = []
        for shares in ((0.5, 0.5), (0.0, 1.0), (1.0, 0.0)):
            left, right = self._redacted(surrounding, shares)
            cost = float((left @ self.masses).sum() + (right @ self.masses).sum())
            options.append((cost, (Stretches.of(left), Stretches.of(right))))
        problem = surrounding.problem(self.chain, self.epsilon, self.protect)
        window = window_of(problem)
        k = self.chain.k
        closed: Sides = Stretches.always(k, window[0]), Stretches.always(k, window[1])
        options.append((float(sum(window)), closed))
        if self.chain.order > 1:  # two sides may tell more together than either does alone (F8)
            secret = Secret(problem.private[0], problem.private[-1])
            options = [
                one for one in options if passed(problem, one, stamped(problem, secret, one[1]))
            ]
        _, sides = min(options, key=lambda option: option[0], default=(0.0, closed))
        return LocalDesign.refereed(problem, surrounding, sides, window, surrounding[:2])

    def _redacted(
        self, surrounding: Surrounding, shares: tuple[float, float]
    ) -> tuple[Floats, Floats]:
        """The rows of both sides, each with its share of ε."""
        left, right = (
            self._side(direction, room, share) if share and room else np.ones((room, self.chain.k))
            for direction, room, share in zip((-1, 1), surrounding[:2], shares, strict=True)
        )
        return left, right

    def _side(self, direction: int, room: int, share: float) -> Floats:
        """(room, k) the best redaction of one side that tells at most a share of ε, by distance."""
        key = (direction, room, share)
        if key not in self._sides:
            function, arguments = self.apart(key)
            self._sides[key] = function(*arguments)
        return self._sides[key]


def _designed(
    best: BestLocal,
    chain: MarkovChain,
    protect: str,
    epsilon: float,
    direction: int,
    room: int,
    share: float,
) -> Floats:
    n, secret = max(room + 1, chain.order + 1), room + 1 if direction < 0 else 1
    problem = Problem(chain, n, [secret], epsilon * share, protect)
    mechanism: BestWindow | BestLocal = BestWindow()
    if room * chain.k <= _LARGE:
        mechanism = replace(best, effort=best.effort * _EFFORT)
    matrix = mechanism.design(problem).redaction
    rows = matrix[:room][::-1] if direction < 0 else matrix[1 : room + 1]
    return np.ascontiguousarray(rows)  # sums of it are rounded alike, whoever made it
