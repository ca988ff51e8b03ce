"""Offrecord: take records off the record.

chain = off.MarkovChain.binary(alpha=0.01, beta=0.8)
problem = off.Problem(chain, n=10, private=[1], epsilon=1.0)
policy = off.design(problem)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from offrecord._moved import install

if TYPE_CHECKING:
    from offrecord.designs.library import Designs
    from offrecord.errors import ChosenByValue, InputError, OffrecordWarning
    from offrecord.fitting.fit import Fit
    from offrecord.mechanisms import (
        MECHANISMS,
        BestLocal,
        BestWindow,
        MarkovQuilt,
        Mechanism,
        OwnerStopping,
        ThreeRegion,
        design,
        mechanism_named,
    )
    from offrecord.mechanisms.answer import answer
    from offrecord.mechanisms.base import Policy
    from offrecord.mechanisms.local.policy import LocalPolicy
    from offrecord.mechanisms.owner.policy import OwnerPolicy
    from offrecord.models.box import Box
    from offrecord.models.chain import MarkovChain
    from offrecord.models.loading import load_model
    from offrecord.models.phased import PhasedChain
    from offrecord.paper.bounds import (
        data_independent_utility,
        quilt_utility_as_printed,
        relaxed_leakage_as_printed,
        theorem2_as_printed,
    )
    from offrecord.paper.comparison import Comparison, compare
    from offrecord.release.keys import Key
    from offrecord.reports.report import Report, report
    from offrecord.tables.engines.memory import Release, redact
    from offrecord.tables.engines.stream import Streamed, redact_file
    from offrecord.tables.reference import fit
    from offrecord.tables.summary import Summary
    from offrecord.theory.influence import (
        Region,
        delta_star,
        max_influence,
        max_set_influence,
        pointwise_influence,
        regions,
        set_influence,
    )
    from offrecord.theory.leakage import FirstRelease, WorstOutput, leakage, worst_output
    from offrecord.theory.problem import Problem, Secret
    from offrecord.theory.redaction import Redaction

__all__ = [
    "MECHANISMS",
    "BestLocal",
    "BestWindow",
    "Box",
    "ChosenByValue",
    "Comparison",
    "Designs",
    "FirstRelease",
    "Fit",
    "InputError",
    "Key",
    "LocalPolicy",
    "MarkovChain",
    "MarkovQuilt",
    "Mechanism",
    "OffrecordWarning",
    "OwnerPolicy",
    "OwnerStopping",
    "PhasedChain",
    "Policy",
    "Problem",
    "Redaction",
    "Region",
    "Release",
    "Report",
    "Secret",
    "Streamed",
    "Summary",
    "ThreeRegion",
    "WorstOutput",
    "answer",
    "compare",
    "data_independent_utility",
    "delta_star",
    "design",
    "fit",
    "leakage",
    "load_model",
    "max_influence",
    "max_set_influence",
    "mechanism_named",
    "pointwise_influence",
    "quilt_utility_as_printed",
    "redact",
    "redact_file",
    "regions",
    "relaxed_leakage_as_printed",
    "report",
    "set_influence",
    "theorem2_as_printed",
    "worst_output",
]

#: Where each public name lives: loaded when first used, so that the command line starts at once.
_ROOMS = {
    "errors": ("ChosenByValue", "InputError", "OffrecordWarning"),
    "models.box": ("Box",),
    "models.chain": ("MarkovChain",),
    "models.loading": ("load_model",),
    "models.phased": ("PhasedChain",),
    "fitting.fit": ("Fit",),
    "theory.problem": ("Problem", "Secret"),
    "theory.redaction": ("Redaction",),
    "theory.influence": (
        "Region",
        "delta_star",
        "max_influence",
        "max_set_influence",
        "pointwise_influence",
        "regions",
        "set_influence",
    ),
    "theory.leakage": ("FirstRelease", "WorstOutput", "leakage", "worst_output"),
    "mechanisms": (
        "MECHANISMS",
        "BestLocal",
        "BestWindow",
        "MarkovQuilt",
        "Mechanism",
        "OwnerStopping",
        "ThreeRegion",
        "design",
        "mechanism_named",
    ),
    "mechanisms.answer": ("answer",),
    "mechanisms.base": ("Policy",),
    "mechanisms.local.policy": ("LocalPolicy",),
    "mechanisms.owner.policy": ("OwnerPolicy",),
    "designs.library": ("Designs",),
    "release.keys": ("Key",),
    "tables.reference": ("fit",),
    "tables.summary": ("Summary",),
    "tables.engines.memory": ("Release", "redact"),
    "tables.engines.stream": ("Streamed", "redact_file"),
    "reports.report": ("Report", "report"),
    "paper.bounds": (
        "data_independent_utility",
        "quilt_utility_as_printed",
        "relaxed_leakage_as_printed",
        "theorem2_as_printed",
    ),
    "paper.comparison": ("Comparison", "compare"),
}

install()


def __getattr__(name: str) -> Any:
    for room, names in _ROOMS.items():
        if name in names:
            value = getattr(import_module(f"offrecord.{room}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'offrecord' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
