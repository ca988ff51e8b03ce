"""Mechanisms: small frozen objects with one method, a problem in and a redaction out; `design` is the verb.

quilt.py, window.py, three_region.py: one mechanism a file. secrets.py: from one secret to the whole chain.
"""

from __future__ import annotations

import difflib
from typing import Any, Protocol

from offrecord.errors import InputError
from offrecord.exact_leakage import worst_output
from offrecord.mechanisms.quilt import MarkovQuilt
from offrecord.mechanisms.three_region import TUNINGS, ThreeRegion
from offrecord.mechanisms.window import BestWindow
from offrecord.policy import Policy
from offrecord.problem import Problem
from offrecord.redaction import Redaction

__all__ = ["MECHANISMS", "BestWindow", "MarkovQuilt", "Mechanism", "ThreeRegion", "design", "mechanism_named"]

#: Names on the command line, in the order in which the paper meets them.
MECHANISMS = ("quilt", "window", *(f"3r-{tuning}" for tuning in TUNINGS))


class Mechanism(Protocol):
    """What designs: a problem in, a local redaction out that should keep within the problem's ε."""

    @property
    def name(self) -> str:
        """The name on the command line."""
        ...

    def redaction(self, problem: Problem) -> Redaction:
        """The redaction matrix for a problem."""
        ...


def design(problem: Problem, mechanism: Mechanism | None = None) -> Policy:
    """The policy of a mechanism (3r-constant without one), its exact leakage checked: it never exceeds ε, rounding included.

    Mechanisms place designs on the edge of the budget, where floating point may land on the wrong side. So they get a budget
    smaller by the rounding of the leakage they caused; should that not do, everything is redacted.
    """
    mechanism = mechanism if mechanism is not None else ThreeRegion()
    margin = _first_margin(problem)
    for _ in range(6):
        matrix = mechanism.redaction(problem.with_epsilon(max(problem.epsilon - margin, 0.0)))
        worst = worst_output(problem, matrix)
        if worst.upper <= problem.epsilon:
            return Policy(problem, matrix, mechanism.name)
        margin = min(max(4 * margin, 2 * worst.rounding, 2 * (worst.upper - problem.epsilon)), problem.epsilon)
    return Policy(problem, Redaction.everything(problem.n, problem.chain.k), mechanism.name)


def _first_margin(problem: Problem) -> float:
    """About the rounding of a walk over a window of the usual size."""
    sides = problem.sides(problem.secrets[0])
    window = sum(side.reach(problem.epsilon / 2) or 0 for side in sides)
    return 2.0**-46 + 2.0**-50 * (problem.chain.k + 2) * window


def mechanism_named(name: str, **parameters: Any) -> Mechanism:
    """The mechanism the command line knows by this name; InputError with the nearest name otherwise.

    parameters: split, for the mechanisms that have one.
    """
    if name not in MECHANISMS:
        nearest = difflib.get_close_matches(name, MECHANISMS, n=1, cutoff=0.3)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        raise InputError(f"mechanism must be one of {', '.join(MECHANISMS)}, got {name!r}{hint}")
    if name.startswith("3r-"):
        return ThreeRegion(tuning=name.removeprefix("3r-"), **parameters)
    if parameters:
        raise InputError(f"{next(iter(parameters))} is for the 3R mechanisms, not for {name}")
    return MarkovQuilt() if name == "quilt" else BestWindow()
