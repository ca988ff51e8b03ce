"""Mechanisms: small frozen objects, a problem in and a policy out; `design` is the verb.

base.py: the three protocols. blocks.py, surroundings.py: what they speak of. workshop.py: designs
for a whole table. quilt.py, window.py, three_region.py, best_local/: one mechanism each. local/:
what mechanisms share that redact record by record. owner/: the one of who sees all values.
answer.py: one record's owner decides alone. A new mechanism is one file, and one line below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, Protocol, TypeVar, overload

from offrecord.errors import InputError
from offrecord.mechanisms.base import Mechanism, Policy
from offrecord.mechanisms.best_local import BestLocal
from offrecord.mechanisms.local.policy import LocalPolicy
from offrecord.mechanisms.owner import OwnerStopping
from offrecord.mechanisms.quilt import MarkovQuilt
from offrecord.mechanisms.three_region import ThreeRegion
from offrecord.mechanisms.window import BestWindow
from offrecord.text import nearest
from offrecord.theory.problem import Problem

__all__ = [
    "MECHANISMS",
    "REGISTRY",
    "BestLocal",
    "BestWindow",
    "MarkovQuilt",
    "Mechanism",
    "OwnerStopping",
    "ThreeRegion",
    "design",
    "mechanism_named",
]

#: Every mechanism by its name on the command line, in the order in which the paper meets them.
REGISTRY: dict[str, Callable[..., Mechanism]] = {
    "quilt": MarkovQuilt,
    "window": BestWindow,
    "3r-relaxed": partial(ThreeRegion, "relaxed"),
    "3r-convex": partial(ThreeRegion, "convex"),
    "3r-constant": partial(ThreeRegion, "constant"),
    "best-local": BestLocal,
    "owner": OwnerStopping,
}
MECHANISMS = tuple(REGISTRY)

P_co = TypeVar("P_co", bound=Policy, covariant=True)


class _Designing(Protocol[P_co]):
    """A mechanism whose policies are of one kind."""

    def design(self, problem: Problem) -> P_co: ...


@overload
def design(problem: Problem, mechanism: None = None) -> LocalPolicy: ...
@overload
def design(problem: Problem, mechanism: _Designing[P_co]) -> P_co: ...
@overload
def design(problem: Problem, mechanism: str) -> Any: ...
def design(problem: Problem, mechanism: _Designing[Policy] | str | None = None) -> Policy:
    """The policy of a mechanism (an object or its name), of the best local one without it. Its
    leakage never exceeds ε.
    """
    if isinstance(mechanism, str):
        mechanism = mechanism_named(mechanism)
    return (mechanism if mechanism is not None else BestLocal()).design(problem)


def mechanism_named(name: str, **parameters: Any) -> Mechanism:
    """The mechanism of this name; InputError with the nearest name otherwise.

    parameters: split, for the mechanisms that have one.
    """
    if name not in REGISTRY:
        meant = nearest(name, REGISTRY)
        hint = "" if meant is None else f"; did you mean {meant}?"
        raise InputError(f"mechanism must be one of {', '.join(REGISTRY)}, got {name!r}{hint}")
    made = REGISTRY[name]()
    known: set[str] = {one.name for one in fields(made)} if is_dataclass(made) else set()
    for parameter in parameters:
        if parameter not in known:
            raise InputError(f"{parameter} is for the 3R mechanisms, not for {name}")
    return REGISTRY[name](**parameters)
