"""Mechanisms: small frozen objects with one method, a problem in and a policy out; `design` is the
verb.

quilt.py, window.py, three_region.py, best_local.py: one mechanism a file. binary_optimum.py and
sequential_lp.py: the two ways in which best_local finds its own. secrets.py: from one secret to the
whole chain. referee.py: what every policy has to pass.
"""

from __future__ import annotations

import difflib
from typing import Any, Protocol

from offrecord.errors import InputError
from offrecord.mechanisms.best_local.mechanism import BestLocal
from offrecord.mechanisms.policy import Policy
from offrecord.mechanisms.quilt import MarkovQuilt
from offrecord.mechanisms.three_region import TUNINGS, ThreeRegion
from offrecord.mechanisms.window import BestWindow
from offrecord.theory.problem import Problem

__all__ = [
    "MECHANISMS",
    "BestLocal",
    "BestWindow",
    "MarkovQuilt",
    "Mechanism",
    "ThreeRegion",
    "design",
    "mechanism_named",
]

#: Names on the command line, in the order in which the paper meets them.
MECHANISMS = ("quilt", "window", *(f"3r-{tuning}" for tuning in TUNINGS), "best-local")


class Mechanism(Protocol):
    """What designs: a small frozen object with one method, a problem in and a policy out."""

    @property
    def name(self) -> str:
        """The name on the command line."""
        ...

    def design(self, problem: Problem) -> Policy:
        """The policy for a problem; its exact leakage is at most ε."""
        ...


def design(problem: Problem, mechanism: Mechanism | str | None = None) -> Policy:
    """The policy of a mechanism (an object or its name), of the best local one without it. Its
    leakage never exceeds ε.
    """
    if isinstance(mechanism, str):
        mechanism = mechanism_named(mechanism)
    return (mechanism if mechanism is not None else BestLocal()).design(problem)


def mechanism_named(name: str, **parameters: Any) -> Mechanism:
    """The mechanism the command line knows by this name; InputError with the nearest name
    otherwise.

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
    simple: dict[str, Mechanism] = {
        "quilt": MarkovQuilt(),
        "window": BestWindow(),
        "best-local": BestLocal(),
    }
    return simple[name]
