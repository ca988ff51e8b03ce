"""The referee: nothing leaves a mechanism unless its leakage is within ε, rounding included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from offrecord.theory.leakage import WorstOutput, worst_output
from offrecord.theory.problem import Problem
from offrecord.theory.redaction import Redaction

T = TypeVar("T")
_TRIES = 6


class Passed(NamedTuple, Generic[T]):
    """What was proposed, the redaction it comes to, and what that tells at worst."""

    proposed: T
    redaction: Redaction
    worst: WorstOutput


def passed(problem: Problem, proposed: T, redaction: Redaction) -> Passed[T] | None:
    """A proposal whose redaction keeps within the problem's ε; None if it does not."""
    worst = worst_output(problem, redaction)
    return Passed(proposed, redaction, worst) if worst.upper <= problem.epsilon else None


def refereed(
    problem: Problem,
    propose: Callable[[Problem], T],
    redaction: Callable[[T], Redaction],
    margin: float | None = None,
) -> Passed[T] | None:
    """What `propose` makes of a problem, within ε; None if it makes nothing that is, and everything
    has to be redacted.

    Mechanisms place designs on the edge of the budget, where floating point may land on the wrong
    side. So they are given a budget smaller by the rounding of the leakage they cause. margin: by
    which it is smaller at first.
    """
    margin = _first_margin(problem) if margin is None else margin
    for _ in range(_TRIES):
        proposed = propose(problem.with_epsilon(max(problem.epsilon - margin, 0.0)))
        made = redaction(proposed)
        worst = worst_output(problem, made)
        if worst.upper <= problem.epsilon:
            return Passed(proposed, made, worst)
        excess = max(4 * margin, 2 * worst.rounding, 2 * (worst.upper - problem.epsilon))
        margin = min(excess, problem.epsilon)
    return None


def _first_margin(problem: Problem) -> float:
    """About the rounding of a walk over a window of the usual size."""
    sides = problem.sides(problem.secrets[0])
    # where a side never gets within half of ε, all of it is walked
    window = sum(side.delta_star(problem.epsilon / 2) or side.horizon for side in sides)
    return 2.0**-46 + 2.0**-50 * (problem.chain.k + 2) * window
