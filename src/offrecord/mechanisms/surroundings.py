"""Surroundings: what lies around a secret, which is all that a design for it depends on (F14)."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from offrecord.models.base import Integers, Model
from offrecord.theory.problem import Problem


class Surrounding(NamedTuple):
    """Records to the left and to the right of a secret, and how long it is.

    phases: where the model has a clock, those of all these records in order, a byte each. inside:
    of a cluster of near secrets, which is as long as its span, whether each of its records is
    private, a byte each; of one secret nothing.
    """

    left: int
    right: int
    length: int
    phases: bytes = b""
    inside: bytes = b""

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
        """How many records its problem has: one more than the chain's order, if these are fewer;
        with phases those that have one, one more where a chain ends with the secret.
        """
        if self.phases:
            return len(self.along)
        return max(self.left + self.length + self.right, order + 1, 2)

    @property
    def private(self) -> list[int]:
        """The private records of its problem, counted from 1."""
        inside = self.inside or b"\1" * self.length
        return [self.left + at for at, is_private in enumerate(inside, start=1) if is_private]

    def problem(self, model: Model, epsilon: float, protect: str) -> Problem:
        """The secret, or all of a cluster, in as much chain as there is around."""
        private = self.private
        chain = model.along() if model.clock is None else model.along(self.along)
        return Problem(chain, self.records(model.order), private, epsilon, protect)


class Nearness(NamedTuple):
    """Which secrets of a chain are designed together: neighbours with at most `gap` records between
    them, as long as no cluster has more than `secrets` of them or is longer than `span` records.

    rooms: to the left and right of a cluster, to which they are rounded up; beyond the last one
    more makes no difference (F14).
    """

    gap: int
    secrets: int
    span: int
    rooms: tuple[int, ...]


def context_of(phases: Integers) -> int:
    """The number that stands for the phases along a chain."""
    digest = hashlib.sha256(phases.astype(np.int16).tobytes()).digest()
    return int.from_bytes(digest[:8]) >> 1
