"""The law of a walk that stops: masses that have not stopped, likelihoods of outcomes, the stop.

Given the start context x, the walk of one side passes the levels t_1 < … < t_n = L and stops at
level q, where it sees context i, with probability σ(c, q, x, i), c being the class of the context
at L. U_1 = P^{t_1}, U_{q+1} = (U_q ∘ (1 − σ_q)) P^{t_{q+1} − t_q} is the mass that has not stopped,
without regard to L: the factor for what lies beyond i is the same for every x (O3). An observer
sees "stop at t_q at i, with c beyond" with likelihood σ(c, q, x, i) U_q(x, i), and "stop at L at l"
with likelihood U_n(x, l).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers
from offrecord.models.members import Members
from offrecord.theory.sides import margin_beyond

if TYPE_CHECKING:
    from offrecord.mechanisms.rules import Direction, StoppingRule

#: Bytes that the masses of all levels take for one part of the members: those of a level stay in
#: the processor's cache, which is 1.4 times as fast at 64 contexts as with 128 MB.
_PART = 2**25


class Steps(NamedTuple):
    """Kernels of one side between its levels, and what is beyond each level.

    start: (M, S) law of the start context. first: (M, S, S) from it to the first level. between:
    n - 1 kernels (M, S, S), each from one level to the next. beyond: n arrays (M, S, C), the
    probability of each far class given the context at a level.
    """

    start: Floats
    first: Floats
    between: list[Floats]
    beyond: list[Floats]


def steps(
    members: Members, place: int, direction: Direction, levels: Sequence[int], far: Integers
) -> Steps:
    """The kernels of the walk of one side.

    far: (S,) the class of each context at the last level.
    """
    kernel, sign = (members.ahead, 1) if direction == "right" else (members.back, -1)
    distances = [0, *(int(level) for level in levels)]
    found = [
        kernel(members.place_after(place, sign * near), beyond - near)
        for near, beyond in pairwise(distances)
    ]
    classes = np.zeros((members.contexts, int(far.max()) + 1))
    classes[np.arange(members.contexts), far] = 1.0
    beyond = [np.broadcast_to(classes, (members.count, *classes.shape))]
    for one in reversed(found[1:]):
        beyond.append(one @ beyond[-1])
    return Steps(members.law(place), found[0], found[1:], beyond[::-1])


def unstopped(walk: Steps, stop: Floats) -> Iterator[Floats]:
    """(M, C, S, S) at each level: by far class, start context and context, the mass that has not
    stopped before.
    """
    members, contexts, classes = (*walk.first.shape[:2], walk.beyond[0].shape[2])
    mass = np.broadcast_to(walk.first[:, np.newaxis], (members, classes, contexts, contexts))
    yield mass
    for kernel, chances in zip(walk.between, stop, strict=True):
        # U_{q+1} = (U_q ∘ (1 − σ_q)) P (S1); 1 − σ loses nothing (docs/proofs/rounding.md)
        left = (mass * (1.0 - chances)).reshape(members, -1, contexts)
        mass = (left @ kernel).reshape(members, classes, contexts, contexts)
        yield mass


def outcomes(rule: StoppingRule, members: Members, place: int, direction: Direction) -> Floats:
    """(M, O, S) likelihood of each outcome of a side given the start context.

    First the stops before the deadline, then one outcome for each context there. Stops that have
    probability 0 under every start context are left out, the same for all members. A side whose
    deadline lies a whole context beyond a known end of the chain is redacted whatever it holds.
    """
    if is_closed(rule, members, place, direction):
        return np.ones((members.count, 1, members.contexts))
    # a walk passes levels at which nothing stops: a third of those of 64 contexts
    stops = rule.stop.any(axis=(1, 2, 3))
    levels, stop = rule.levels[np.append(stops, True)].tolist(), rule.stop[stops]
    parts = [
        _outcomes(rule.far, stop, steps(part, place, direction, levels, rule.far))
        for part in members.parts(_size(members, rule))
    ]
    return np.concatenate(parts)


def _outcomes(classes: Integers, stop: Floats, walk: Steps) -> Floats:
    found, at_deadline = [], np.empty(0)
    for level, mass in enumerate(unstopped(walk, stop)):
        if level == len(stop):  # the deadline: far context l has a walk of its own class
            at_deadline = mass[:, classes, :, np.arange(len(classes))].swapaxes(0, 1)
            break
        far, context = np.nonzero(stop[level].any(axis=1))
        # a context from which no context of the far class is reached is no outcome there
        seen = walk.beyond[level][:, context, far] > 0
        chances = stop[level][far, :, context]
        # the factor for what lies beyond is the same for every start context (S1)
        found.append(mass[:, far, :, context].swapaxes(0, 1) * chances * seen[:, :, np.newaxis])
    return np.concatenate([*found, at_deadline], axis=1)


def stop_law(rule: StoppingRule, members: Members, place: int, direction: Direction) -> Floats:
    """(M, n) probability that the walk stops at each level."""
    if is_closed(rule, members, place, direction):
        law = np.zeros((members.count, len(rule.levels)))
        law[:, -1] = 1.0
        return law
    parts = []
    for part in members.parts(_size(members, rule)):
        walk = steps(part, place, direction, rule.levels.tolist(), rule.far)
        waiting = [
            np.einsum("mx,mcxi,mic->m", walk.start, mass, beyond)
            for mass, beyond in zip(unstopped(walk, rule.stop), walk.beyond, strict=True)
        ]
        parts.append(-np.diff([*waiting, np.zeros(part.count)], axis=0).T)
    return np.concatenate(parts)


def is_closed(rule: StoppingRule, members: Members, place: int, direction: Direction) -> bool:
    """Whether a side is redacted to the chain's end for certain, as its deadline lies beyond.

    Raises InputError where the deadline's context is beyond the end, but its first records are not:
    what is left of it would be released, and no kernel says how likely it is.
    """
    margin = margin_beyond(members, place, direction)
    if margin is None or rule.deadline <= margin:
        return False
    if rule.deadline < margin + rule.order:
        raise InputError(f"a deadline of {rule.deadline} does not close a side of {margin} records")
    return True


# How many members are walked at a time.
def _size(members: Members, rule: StoppingRule) -> int:
    one = 8 * members.contexts**2 * (int(rule.far.max()) + 1) * (len(rule.levels) + 2)
    return max(_PART // one, 1)
