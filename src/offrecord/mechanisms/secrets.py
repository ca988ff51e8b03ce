"""From a design around one secret to a redaction of the whole chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from offrecord.models.base import Floats, Integers
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.redaction import Redaction
from offrecord.theory.side import Side


@dataclass(frozen=True, eq=False)
class SidePlan:
    """Redaction of one side by distance: stretches of `lengths` records with probabilities `rows`,
    then all is released.
    """

    rows: Floats
    lengths: Integers

    @classmethod
    def always(cls, k: int, count: int) -> SidePlan:
        """The first `count` records always redacted."""
        size = 1 if count else 0
        return cls(np.ones((size, k)), np.full(size, count, dtype=np.int64))

    @property
    def size(self) -> int:
        """How many records have a row."""
        return int(self.lengths.sum())

    def cost(self, side: Side) -> float:
        """Expected number of redacted records."""
        if side.chain.is_stationary:
            return float(self.lengths @ (self.rows @ side.record_chain.marginal(1)))
        rows = np.repeat(self.rows, self.lengths, axis=0)
        return float((rows * side.masses(len(rows))).sum()) if len(rows) else 0.0


#: Two sides in, a plan for each out.
Around: TypeAlias = Callable[[Problem, Secret, Side, Side], tuple[SidePlan, SidePlan]]


def per_secret(problem: Problem, around: Around, *, share: bool = True) -> Redaction:
    """Design around each secret on its own and take the per-value maximum (F3).

    Secrets of a stationary chain share a design where it ends before either room does (F14): it is
    then the same for more room.
    """
    room = _shared_room(problem) if share and len(problem.secrets) > 1 else None
    shared: dict[tuple[int, int, int], tuple[SidePlan, SidePlan]] = {}
    parts = []
    for secret in problem.secrets:
        left, right = problem.sides(secret)
        plans = None
        if room is not None:
            key = (min(left.room, room), min(right.room, room), secret.last - secret.first)
            if key not in shared:
                shared[key] = around(
                    problem,
                    secret,
                    replace(left, room=key[0]),
                    replace(right, room=key[1]),
                )
            ends = all(
                plan.size < limit or limit == side.room
                for plan, limit, side in zip(shared[key], key, (left, right), strict=False)
            )
            plans = shared[key] if ends else None
        left_plan, right_plan = plans or around(problem, secret, left, right)
        parts.append(_stamp(problem, secret, left_plan, right_plan))
    return Redaction.maximum(parts)


def _shared_room(problem: Problem) -> int | None:
    if not problem.chain.is_stationary or problem.chain.order > 1:
        return None
    reaches = [
        Side(problem.chain, problem.n, d, problem.n - 1).delta_star(problem.epsilon / 2)
        for d in (-1, 1)
    ]
    return None if None in reaches else 4 * max(r for r in reaches if r is not None) + 16


def _stamp(problem: Problem, secret: Secret, left: SidePlan, right: SidePlan) -> Redaction:
    stretches: list[tuple[int, int, Floats]] = []
    core = problem.core(secret)
    end = core.first - 1
    for row, length in zip(left.rows, left.lengths, strict=True):
        stretches.append((end - int(length), end, row))
        end -= int(length)
    stretches.reverse()
    stretches.append((core.first - 1, core.last, np.ones(problem.chain.k)))
    start = core.last
    for row, length in zip(right.rows, right.lengths, strict=True):
        stretches.append((start, start + int(length), row))
        start += int(length)
    return Redaction.of(problem.n, problem.chain.k, stretches).compressed()
