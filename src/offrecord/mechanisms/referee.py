"""The referee: no policy leaves a mechanism unless its exact leakage is within ε, rounding
included.
"""

from __future__ import annotations

from collections.abc import Callable

from offrecord.mechanisms.policy import Policy
from offrecord.theory.leakage import worst_output
from offrecord.theory.problem import Problem
from offrecord.theory.redaction import Redaction


def refereed(problem: Problem, name: str, propose: Callable[[Problem], Redaction]) -> Policy:
    """The policy that `propose` makes of a problem, its exact leakage checked.

    Mechanisms place designs on the edge of the budget, where floating point may land on the wrong
    side. So they are given a budget smaller by the rounding of the leakage they cause; should that
    not do, everything is redacted.
    """
    margin = _first_margin(problem)
    for _ in range(6):
        matrix = propose(problem.with_epsilon(max(problem.epsilon - margin, 0.0)))
        worst = worst_output(problem, matrix)
        if worst.upper <= problem.epsilon:
            return Policy(problem, matrix, name)
        margin = min(
            max(4 * margin, 2 * worst.rounding, 2 * (worst.upper - problem.epsilon)),
            problem.epsilon,
        )
    return Policy(problem, Redaction.everything(problem.n, problem.chain.k), name)


def _first_margin(problem: Problem) -> float:
    """About the rounding of a walk over a window of the usual size."""
    sides = problem.sides(problem.secrets[0])
    window = sum(side.delta_star(problem.epsilon / 2) or 0 for side in sides)
    return 2.0**-46 + 2.0**-50 * (problem.chain.k + 2) * window
