"""What a local design tells of its secrets under every model of a set (R5).

The kernel of each step lies in a box, and may be another one at every step. On each side of a
secret the worst case is bounded by a walk towards it; of order m above 1 states are tuples of m
records, and who sees a record is taken to see a whole tuple (F8).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import flint
import numpy as np

from offrecord.verify.balls import Ball, infinite, largest
from offrecord.verify.problem import Problem, Secret, Stretch
from offrecord.verify.sets import bounds, cones
from offrecord.verify.sets.boxes import SMALLEST, Box, Boxes, Floats, boxes_of
from offrecord.verify.sets.walks import Walk
from offrecord.verify.states import Follows, combined, shown_by_states


def told(problem: Problem) -> Ball:
    """A bound of the largest log-ratio of an output under two values of a secret, over all models.

    Infinite for sets in which kernels are known forwards alone: those are another matter.
    """
    models = problem.model.set
    assert models is not None
    if models.start != "stationary":
        return infinite()
    boxes = boxes_of(problem.model)
    return largest(_told_of(problem, boxes, secret) for secret in problem.secrets)


def _told_of(problem: Problem, boxes: Boxes, secret: Secret) -> Ball:
    k, m = problem.model.k, problem.model.order
    first = max(secret.first - m + 1, 0)
    last = max(secret.last, first + m - 1)
    if not problem.is_redacted(first, last):
        return infinite()
    codes = range(k**m)
    oldest, newest = [code // k ** (m - 1) for code in codes], [code % k for code in codes]
    left = list(shown_by_states(problem.outward(first, -1), oldest))
    right = list(shown_by_states(problem.outward(last, 1), newest))
    ratios = [
        _side(left, [_of_step(problem, boxes.backward, t) for t in _back(boxes, first)], k**m),
        _side(
            right, [_of_step(problem, boxes.forward, t) for t in _on(boxes, last, problem.n)], k**m
        ),
    ]
    if secret.first == secret.last:
        value = [code // k ** (m - 1 - (secret.first - first)) % k for code in codes]
        pairs = [(a, b) for a, b in product(codes, repeat=2) if value[a] != value[b]]
        found = largest(_ball(ratios[0][a, b]) * _ball(ratios[1][a, b]) for a, b in pairs)
        return flint.arb(1).max(found).log()
    after = _follows(problem, boxes, first, last - m + 1)
    left_balls, right_balls = (
        [[_ball(one) for one in row] for row in side.tolist()] for side in ratios
    )
    return combined(left_balls, right_balls, after)


def _ball(number: float) -> Ball:
    return flint.arb(number) if np.isfinite(number) else infinite()


def _back(boxes: Boxes, first: int) -> Sequence[int]:
    """The earlier records of the steps to the left, the nearest first; one of them if all steps are
    alike.
    """
    return range(1) if len(boxes.backward) == 1 else range(first - 1, -1, -1)


def _on(boxes: Boxes, last: int, n: int) -> Sequence[int]:
    """Those of the steps to the right."""
    return range(1) if len(boxes.forward) == 1 else range(last, n - 1)


def _of_step(problem: Problem, boxes: list[Box], record: int) -> Box:
    """The box of the step between a record and the next."""
    if len(boxes) == 1:
        return boxes[0]
    return boxes[record if problem.phases is None else problem.phases[record]]


def _follows(problem: Problem, boxes: Boxes, first: int, last: int) -> Follows:
    """Which states may come at one record after those at another, in some model."""
    states = boxes.forward[0].states
    reached = [frozenset([state]) for state in range(states)]
    for record in range(first, last):
        touched = _of_step(problem, boxes.forward, record).touched
        before = reached
        reached = [frozenset(j for i in row for j in touched[i]) for row in reached]
        if len(boxes.forward) == 1 and reached == before:
            break
    return reached


def _side(stretches: list[Stretch], boxes: list[Box], states: int) -> Floats:
    """(S, S) upper bounds of the largest ratios that one side can show."""
    # a number that is too small to compute with counts as 0, which only tells more (F3)
    sound = [
        Stretch(count, tuple(share if share > SMALLEST else 0.0 for share in row))
        for count, row in stretches
    ]
    walk = Walk.of(sound, boxes)
    if walk.records == 0:
        return np.ones((states, states))
    return _of_walk(walk.stretches, walk.ends, tuple(boxes[: walk.records]))


@lru_cache(maxsize=4096)
def _of_walk(stretches: tuple[Stretch, ...], ends: bool, boxes: tuple[Box, ...]) -> Floats:
    """The same, once for all designs that have this side."""
    walk = Walk(stretches, ends, boxes)
    states = boxes[0].states
    within = cones.RECORDS.get(states, 0)
    exact = cones.side(walk.nearest(within), states) if within else None
    if exact is not None and walk.records <= within:
        return exact
    found = bounds.side(walk)
    return found if exact is None else np.minimum(exact, found)
