"""Surroundings: what lies around a secret, which is all that a design for it depends on (F14)."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from offrecord.models.base import Integers, Model
from offrecord.theory.problem import Problem


class Surrounding(NamedTuple):
    """Records to the left and to the right of a secret, and how long it is.

    phases: where the model has a clock, those of all these records in order, a byte each.
    """

    left: int
    right: int
    length: int
    phases: bytes = b""

    @property
    def context(self) -> str:
        """A short name for the phases."""
        phases = np.frombuffer(self.phases, dtype=np.int8).astype(np.int64)
        return f"{context_of(phases):016x}" if self.phases else ""

    @property
    def along(self) -> Integers:
        """(n,) the phases of its problem's records, of which a lone one has a second after it."""
        phases = np.frombuffer(self.phases, dtype=np.int8).astype(np.int64)
        return phases if len(phases) > 1 else np.repeat(phases, 2)

    def records(self, order: int) -> int:
        """How many records its problem has: one more than the chain's order, if these are fewer."""
        return max(self.left + self.length + self.right, order + 1, 2)

    def problem(self, model: Model, epsilon: float, protect: str) -> Problem:
        """The secret in as much chain as it has around it."""
        private = range(self.left + 1, self.left + self.length + 1)
        if model.clock is None:
            return Problem(model.along(), self.records(model.order), private, epsilon, protect)
        return Problem(model.along(self.along), len(self.along), private, epsilon, protect)


def context_of(phases: Integers) -> int:
    """The number that stands for the phases along a chain."""
    digest = hashlib.sha256(phases.astype(np.int16).tobytes()).digest()
    return int.from_bytes(digest[:8]) >> 1
