"""Offrecord: take records off the record.

chain = off.MarkovChain.binary(alpha=0.01, beta=0.8)
problem = off.Problem(chain, n=10, private=[1], epsilon=1.0)
policy = off.design(problem)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offrecord.bounds import (
        data_independent_utility,
        quilt_utility_as_printed,
        relaxed_leakage_as_printed,
        theorem2_as_printed,
    )
    from offrecord.chain import MarkovChain
    from offrecord.errors import InputError
    from offrecord.exact_leakage import FirstRelease, WorstOutput, leakage, worst_output
    from offrecord.influence import (
        Region,
        delta_star,
        max_influence,
        max_set_influence,
        pointwise_influence,
        regions,
        set_influence,
    )
    from offrecord.mechanisms import (
        MECHANISMS,
        BestLocal,
        BestWindow,
        MarkovQuilt,
        Mechanism,
        ThreeRegion,
        design,
        mechanism_named,
    )
    from offrecord.policy import Policy
    from offrecord.problem import Problem, Secret
    from offrecord.redaction import Redaction

__all__ = [
    "MECHANISMS",
    "BestLocal",
    "BestWindow",
    "FirstRelease",
    "InputError",
    "MarkovChain",
    "MarkovQuilt",
    "Mechanism",
    "Policy",
    "Problem",
    "Redaction",
    "Region",
    "Secret",
    "ThreeRegion",
    "WorstOutput",
    "data_independent_utility",
    "delta_star",
    "design",
    "leakage",
    "max_influence",
    "max_set_influence",
    "mechanism_named",
    "pointwise_influence",
    "quilt_utility_as_printed",
    "regions",
    "relaxed_leakage_as_printed",
    "set_influence",
    "theorem2_as_printed",
    "worst_output",
]

#: Where each public name lives: loaded when first used, so that the command line starts at once.
_ROOMS = {
    "bounds": ("data_independent_utility", "quilt_utility_as_printed", "relaxed_leakage_as_printed", "theorem2_as_printed"),
    "chain": ("MarkovChain",),
    "errors": ("InputError",),
    "influence": (
        "Region",
        "delta_star",
        "max_influence",
        "max_set_influence",
        "pointwise_influence",
        "regions",
        "set_influence",
    ),
    "exact_leakage": ("FirstRelease", "WorstOutput", "leakage", "worst_output"),
    "mechanisms": (
        "MECHANISMS",
        "BestLocal",
        "BestWindow",
        "MarkovQuilt",
        "Mechanism",
        "ThreeRegion",
        "design",
        "mechanism_named",
    ),
    "policy": ("Policy",),
    "problem": ("Problem", "Secret"),
    "redaction": ("Redaction",),
}


def __getattr__(name: str) -> Any:
    for room, names in _ROOMS.items():
        if name in names:
            value = getattr(import_module(f"offrecord.{room}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'offrecord' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
