"""SideMechanism: what mechanisms share that design each side of a secret by itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from offrecord.mechanisms.base import Mechanism
from offrecord.mechanisms.local.design import LocalDesign
from offrecord.mechanisms.local.policy import LocalPolicy
from offrecord.mechanisms.local.referee import Passed, refereed
from offrecord.mechanisms.local.secrets import composed, cut, per_secret
from offrecord.mechanisms.local.stretches import Sides
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.theory.leakage import worst_output
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.redaction import Redaction
from offrecord.theory.side import Side


class SideMechanism(Mechanism, ABC):
    """Designs the two sides of each secret, and passes the referee with them.

    is_sharing: secrets with the same surroundings may share their sides (F14).
    """

    designs: ClassVar[type[LocalDesign]] = LocalDesign
    is_sharing: ClassVar[bool] = True

    @abstractmethod
    def sides(self, problem: Problem, secret: Secret, left: Side, right: Side) -> Sides:
        """What is redacted to the left and right of a secret, within the problem's ε."""

    def check(self, problem: Problem) -> None:
        """InputError for a problem that it does not take."""

    def design(self, problem: Problem) -> LocalPolicy:
        """The policy for a problem, its exact leakage within ε."""
        return LocalPolicy.of(problem, self._refereed(problem), self.name)

    def around(self, problem: Problem, surrounding: Surrounding) -> LocalDesign:
        """The design around the one secret of a problem."""
        found = self._refereed(problem)
        if found is None:
            everything = Redaction.everything(problem.n, problem.chain.k)
            sides = cut(problem, everything)
            worst = worst_output(problem, everything)
        else:
            (sides,), worst = found.proposed, found.worst
        return LocalDesign.made(problem, surrounding, sides, worst, self.window(problem, sides))

    def window(self, problem: Problem, sides: Sides) -> tuple[int, int]:
        """How far the best window redacts around a problem's one secret, where this does so."""
        from offrecord.mechanisms.window import window_of

        return window_of(problem)

    def _refereed(self, problem: Problem) -> Passed[list[Sides]] | None:
        self.check(problem)
        return refereed(
            problem,
            lambda reduced: per_secret(reduced, self.sides, share=self.is_sharing),
            lambda sides: composed(problem, sides),
        )
