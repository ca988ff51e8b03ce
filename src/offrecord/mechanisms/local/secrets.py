"""From the sides of each secret to a redaction of the whole chain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from offrecord.mechanisms.local.stretches import Sides, Stretches
from offrecord.models.base import Floats
from offrecord.theory.problem import Problem, Secret
from offrecord.theory.redaction import Redaction
from offrecord.theory.room import forgotten_room
from offrecord.theory.side import Side

#: A mechanism's own mathematics: what it redacts on the two sides of a secret, which begin beyond
#: the records that are redacted with the secret (`Problem.core`).
Around: TypeAlias = Callable[[Problem, Secret, Side, Side], Sides]


def per_secret(problem: Problem, around: Around, *, share: bool = True) -> list[Sides]:
    """The sides of each secret, designed on its own.

    Secrets of a stationary chain share them where they end before either room does (F14): they are
    then the same for more room.
    """
    room = _shared_room(problem) if share and len(problem.secrets) > 1 else None
    shared: dict[tuple[int, int, int], Sides] = {}
    found = []
    for secret in problem.secrets:
        left, right = problem.sides(secret)
        sides = None
        if room is not None:
            key = (min(left.room, room), min(right.room, room), secret.last - secret.first)
            if key not in shared:
                capped = replace(left, room=key[0]), replace(right, room=key[1])
                shared[key] = around(problem, secret, *capped)
            if _ends(shared[key], key[:2], (left.room, right.room)):
                sides = shared[key]
        found.append(_with_core(problem, secret, sides or around(problem, secret, left, right)))
    return found


def composed(problem: Problem, sides: Sequence[Sides]) -> Redaction:
    """The per-value maximum of what is redacted around each secret: private for each (F3)."""
    return Redaction.maximum(
        [
            stamped(problem, secret, around)
            for secret, around in zip(problem.secrets, sides, strict=True)
        ]
    )


def stamped(
    problem: Problem, secret: Secret, sides: Sides, inside: Stretches | None = None
) -> Redaction:
    """A secret always redacted, and its sides. inside: what is redacted instead of all of it, from
    its first record on, where it is a cluster.
    """
    stretches: list[tuple[int, int, Floats]] = []
    end = secret.first - 1
    for row, length in zip(sides[0].rows, sides[0].lengths.tolist(), strict=True):
        stretches.append((end - length, end, row))
        end -= length
    stretches.reverse()
    start = secret.first - 1
    inside = inside or Stretches.always(problem.chain.k, secret.last - start)
    for row, length in zip(inside.rows, inside.lengths.tolist(), strict=True):
        stretches.append((start, start + length, row))
        start += length
    for row, length in zip(sides[1].rows, sides[1].lengths.tolist(), strict=True):
        stretches.append((start, start + length, row))
        start += length
    return Redaction.of(problem.n, problem.chain.k, stretches).compressed()


def cut(problem: Problem, redaction: Redaction) -> Sides:
    """The sides of a problem's one secret, of a redaction that was improved as a whole."""
    first, last = problem.private[0], problem.private[-1]
    low, high = int(redaction.starts[0]), int(redaction.stops[-1])
    return (
        Stretches.of(redaction.matrix(low, first - 1)[::-1]),
        Stretches.of(redaction.matrix(last, high)),
    )


def _with_core(problem: Problem, secret: Secret, sides: Sides) -> Sides:
    """Sides that begin at the secret itself: what is redacted with it comes first."""
    core, k = problem.core(secret), problem.chain.k
    return (
        sides[0].after(Stretches.always(k, secret.first - core.first)),
        sides[1].after(Stretches.always(k, core.last - secret.last)),
    )


def _ends(sides: Sides, limits: tuple[int, int], rooms: tuple[int, int]) -> bool:
    """They end before the rooms they were designed in, or those are all the room there is."""
    return all(
        side.size < limit or limit == room
        for side, limit, room in zip(sides, limits, rooms, strict=True)
    )


def _shared_room(problem: Problem) -> int | None:
    if not problem.chain.is_stationary or problem.chain.has_states:
        return None
    room = forgotten_room(problem.chain, problem.epsilon)
    return None if room is None else 2 * room + 4
