"""A mechanism of one's own that has but a name and a `design`: its policies are matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from offrecord.errors import InputError
from offrecord.mechanisms.base import Mechanism
from offrecord.mechanisms.local.design import LocalDesign
from offrecord.mechanisms.local.policy import LocalPolicy
from offrecord.mechanisms.local.secrets import cut
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.mechanisms.window import window_of
from offrecord.theory.problem import Problem


@dataclass(frozen=True)
class ByPolicy(Mechanism):
    """For tables, what its policy redacts around a problem's one secret; nobody vouches for that,
    so it passes the referee, or everything is redacted.
    """

    designs: ClassVar[type[LocalDesign]] = LocalDesign
    own: Any

    @property
    def name(self) -> str:
        """The name it gives itself."""
        return str(self.own.name)

    def design(self, problem: Problem) -> LocalPolicy:
        """Its own policy; InputError if that is no matrix."""
        policy = self.own.design(problem)
        if not isinstance(policy, LocalPolicy):
            raise InputError(
                f"mechanism {self.name} must design a LocalPolicy, or have all that"
                " offrecord.Mechanism has"
            )
        return policy

    def around(self, problem: Problem, surrounding: Surrounding) -> LocalDesign:
        """What its policy redacts on both sides."""
        sides = cut(problem, self.design(problem).sparse)
        return LocalDesign.refereed(problem, surrounding, sides, window_of(problem))


def whole_mechanism(given: Any) -> Mechanism:
    """A mechanism as it is if it knows tables, else by its policies."""
    mechanism: Mechanism = given if hasattr(given, "around") else ByPolicy(given)
    return mechanism
