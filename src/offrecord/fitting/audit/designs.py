"""What an audit is given: designs made from part of the data, by the windows they redact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from offrecord.models.base import Model
from offrecord.models.records import Chains

Window: TypeAlias = tuple[int, int]


class Designs(Protocol):
    """Windows around a secret, made with a model.

    Windows depend on no value, so what is released nearest stands at known distances.
    """

    @property
    def model(self) -> Model:
        """What they were made with."""

    def window(self, epsilon: float, phase: int | None) -> Window | None:
        """How many records are redacted left and right of a secret in a phase, so that no output
        is more than e^epsilon times likelier under one of its values than another; None: all.
        """


#: From records to the designs learned from them.
Learn: TypeAlias = Callable[[Chains], Designs]


@dataclass(frozen=True, eq=False)
class BestWindows:
    """The shortest windows under one stationary chain, in unlimited room (F14).

    share: of ε that is spent; below 1 windows are wider than the model asks for.
    """

    model: Model
    share: float = 1.0

    def window(self, epsilon: float, phase: int | None) -> Window | None:
        """The best window; None for a chain that never forgets so much."""
        from offrecord.mechanisms.window import window_of
        from offrecord.theory.problem import Problem
        from offrecord.theory.room import forgotten_room

        chain, budget = self.model.along(), self.share * epsilon
        room = forgotten_room(chain, budget)
        if room is None:
            return None
        room = max(room, chain.order)
        left, right = window_of(Problem(chain, 2 * room + 1, [room + 1], budget))
        return None if max(left, right) >= room else (left, right)
