"""Mechanisms: small frozen objects that make a policy for a problem and side rules for tables.

base.py: what a mechanism and a policy are. rules.py, table_policy.py: side rules and tables' sets
of them; design_table.py makes and validates such a set. quilt.py, window.py, three_region.py,
best_local/, owner/: one mechanism each. deciding/: rules applied to chains. answer.py: the owner of
one record decides alone. A new mechanism is one file, and one line below.
"""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from offrecord.errors import InputError
from offrecord.text import nearest

if TYPE_CHECKING:
    from offrecord.mechanisms.base import Mechanism, Policy
    from offrecord.theory.problem import Problem

#: Every mechanism by its name on the command line, in the order in which the paper meets them: the
#: class, which is imported when it is asked for, and parameters. A module whose name begins with a
#: dot is one of this package.
REGISTRY: dict[str, tuple[str, dict[str, Any]]] = {
    "quilt": (".quilt.MarkovQuilt", {}),
    "window": (".window.BestWindow", {}),
    "3r-relaxed": (".three_region.ThreeRegion", {"tuning": "relaxed"}),
    "3r-convex": (".three_region.ThreeRegion", {"tuning": "convex"}),
    "3r-constant": (".three_region.ThreeRegion", {"tuning": "constant"}),
    "best-local": (".best_local.mechanism.BestLocal", {}),
    "owner": (".owner.mechanism.OwnerStopping", {}),
}
MECHANISMS = tuple(REGISTRY)


def mechanism_named(name: str, **parameters: Any) -> Mechanism:
    """The mechanism of a name.

    Args:
        name: as on the command line, one of MECHANISMS.
        parameters: split, for the 3R mechanisms.

    Returns:
        The mechanism.

    Raises:
        InputError: For another name, or a parameter that the mechanism does not have.
    """
    if name not in REGISTRY:
        meant = nearest(name, REGISTRY)
        hint = "" if meant is None else f"; did you mean {meant}?"
        raise InputError(f"--mechanism must be one of {', '.join(REGISTRY)}, got {name!r}{hint}")
    path, fixed = REGISTRY[name]
    module, _, kind_name = path.rpartition(".")
    kind: Any = getattr(import_module(module, __name__), kind_name)
    known = {one.name for one in fields(kind)}
    for parameter in parameters:
        if parameter not in known:
            raise InputError(f"{parameter} is for the 3R mechanisms, not for {name}")
    made: Mechanism = kind(**fixed, **parameters)
    return made


def compared(protect: str) -> list[Mechanism]:
    """The mechanisms that `redact` considers where none is asked for."""
    every = [mechanism_named(name) for name in REGISTRY]
    return [one for one in every if one.is_compared and (protect == "run" or not one.joins)]


def import_all() -> None:
    """Import every registered mechanism, so that its kinds of rules and policies are known."""
    for path, _ in REGISTRY.values():
        import_module(path.rpartition(".")[0], __name__)


def design(problem: Problem, mechanism: Mechanism | str | None = None) -> Policy:
    """The policy of a mechanism for a problem.

    Args:
        problem: which records are private, under which chains, within which ε.
        mechanism: an object or its name; without it, the best local mechanism.

    Returns:
        The policy, whose leakage is at most ε.

    Raises:
        InputError: For a problem that the mechanism does not take.
    """
    if mechanism is None or isinstance(mechanism, str):
        mechanism = mechanism_named(mechanism or "best-local")
    return mechanism.design(problem)
