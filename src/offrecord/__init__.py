"""Offrecord: take records off the record.

chain = off.MarkovChain.binary(alpha=0.01, beta=0.8)
problem = off.Problem(chain, n=10, private=[1], epsilon=1.0)
policy = off.design(problem)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offrecord.attacks import Attack, Attacker, attack
    from offrecord.errors import ChosenByValue, InputError, OffrecordWarning
    from offrecord.fitting.fit import Fit
    from offrecord.mechanisms import MECHANISMS, design, mechanism_named
    from offrecord.mechanisms.answer import answer
    from offrecord.mechanisms.base import Mechanism, Policy
    from offrecord.mechanisms.best_local.mechanism import BestLocal
    from offrecord.mechanisms.local_policy import LocalPolicy
    from offrecord.mechanisms.owner.mechanism import OwnerStopping
    from offrecord.mechanisms.quilt import MarkovQuilt
    from offrecord.mechanisms.rules_policy import RulesPolicy
    from offrecord.mechanisms.table_policy import TablePolicy
    from offrecord.mechanisms.three_region import ThreeRegion
    from offrecord.mechanisms.window import BestWindow
    from offrecord.models.chain import MarkovChain
    from offrecord.models.file import Model, load_model
    from offrecord.models.posterior import Posterior
    from offrecord.models.promise import KnownChains
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
    from offrecord.tables.look import Look, look
    from offrecord.tables.reference import fit
    from offrecord.tables.summary import Summary
    from offrecord.theory.influence import (
        Region,
        delta_star,
        influence_by_distance,
        max_influence,
        pointwise_influence,
        regions,
    )
    from offrecord.theory.leakage import leakage, leakages
    from offrecord.theory.problem import Problem, Secret
    from offrecord.verification import Verdict, verify

__all__ = [
    "MECHANISMS",
    "Attack",
    "Attacker",
    "BestLocal",
    "BestWindow",
    "ChosenByValue",
    "Comparison",
    "Fit",
    "InputError",
    "Key",
    "KnownChains",
    "LocalPolicy",
    "Look",
    "MarkovChain",
    "MarkovQuilt",
    "Mechanism",
    "Model",
    "OffrecordWarning",
    "OwnerStopping",
    "Policy",
    "Posterior",
    "Problem",
    "Region",
    "Release",
    "Report",
    "RulesPolicy",
    "Secret",
    "Streamed",
    "Summary",
    "TablePolicy",
    "ThreeRegion",
    "Verdict",
    "answer",
    "attack",
    "compare",
    "data_independent_utility",
    "delta_star",
    "design",
    "fit",
    "influence_by_distance",
    "leakage",
    "leakages",
    "load_model",
    "look",
    "max_influence",
    "mechanism_named",
    "pointwise_influence",
    "quilt_utility_as_printed",
    "redact",
    "redact_file",
    "regions",
    "relaxed_leakage_as_printed",
    "report",
    "theorem2_as_printed",
    "verify",
]

#: Where each public name is defined: loaded when first used, so that the command line starts fast.
_HOMES = {
    "errors": ("ChosenByValue", "InputError", "OffrecordWarning"),
    "models.chain": ("MarkovChain",),
    "models.file": ("Model", "load_model"),
    "models.posterior": ("Posterior",),
    "models.promise": ("KnownChains",),
    "fitting.fit": ("Fit",),
    "theory.problem": ("Problem", "Secret"),
    "theory.influence": (
        "Region",
        "delta_star",
        "influence_by_distance",
        "max_influence",
        "pointwise_influence",
        "regions",
    ),
    "theory.leakage": ("leakage", "leakages"),
    "mechanisms": ("MECHANISMS", "design", "mechanism_named"),
    "mechanisms.base": ("Mechanism", "Policy"),
    "mechanisms.best_local.mechanism": ("BestLocal",),
    "mechanisms.quilt": ("MarkovQuilt",),
    "mechanisms.three_region": ("ThreeRegion",),
    "mechanisms.window": ("BestWindow",),
    "mechanisms.owner.mechanism": ("OwnerStopping",),
    "mechanisms.rules_policy": ("RulesPolicy",),
    "mechanisms.local_policy": ("LocalPolicy",),
    "mechanisms.table_policy": ("TablePolicy",),
    "mechanisms.answer": ("answer",),
    "release.keys": ("Key",),
    "tables.look": ("Look", "look"),
    "tables.reference": ("fit",),
    "tables.summary": ("Summary",),
    "tables.engines.memory": ("Release", "redact"),
    "tables.engines.stream": ("Streamed", "redact_file"),
    "reports.report": ("Report", "report"),
    "verification": ("Verdict", "verify"),
    "attacks": ("Attack", "Attacker", "attack"),
    "paper.bounds": (
        "data_independent_utility",
        "quilt_utility_as_printed",
        "relaxed_leakage_as_printed",
        "theorem2_as_printed",
    ),
    "paper.comparison": ("Comparison", "compare"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"offrecord.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'offrecord' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
