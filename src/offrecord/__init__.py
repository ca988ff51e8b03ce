"""Offrecord: take records off the record.

chain = off.MarkovChain.binary(alpha=0.01, beta=0.8)
problem = off.Problem(chain, n=10, private=[1], epsilon=1.0)
policy = off.design(problem)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# `as` says to type checkers that a name is public; a line for each module, not for each name.
# isort: off
if TYPE_CHECKING:
    from offrecord.attacks import Attack as Attack, Attacker as Attacker, attack as attack
    from offrecord.errors import (
        ChosenByValue as ChosenByValue,
        InputError as InputError,
        OffrecordWarning as OffrecordWarning,
    )
    from offrecord.fitting.fit import Fit as Fit
    from offrecord.mechanisms import (
        MECHANISMS as MECHANISMS,
        design as design,
        mechanism_named as mechanism_named,
    )
    from offrecord.mechanisms.answer import answer as answer
    from offrecord.mechanisms.base import Mechanism as Mechanism, Policy as Policy
    from offrecord.mechanisms.best_local.mechanism import BestLocal as BestLocal
    from offrecord.mechanisms.local_policy import LocalPolicy as LocalPolicy
    from offrecord.mechanisms.owner.mechanism import OwnerStopping as OwnerStopping
    from offrecord.mechanisms.quilt import MarkovQuilt as MarkovQuilt
    from offrecord.mechanisms.rules_policy import RulesPolicy as RulesPolicy
    from offrecord.mechanisms.table_policy import TablePolicy as TablePolicy
    from offrecord.mechanisms.three_region import ThreeRegion as ThreeRegion
    from offrecord.mechanisms.window import BestWindow as BestWindow
    from offrecord.models.chain import MarkovChain as MarkovChain
    from offrecord.models.file import Model as Model, load_model as load_model
    from offrecord.models.promise import KnownChains as KnownChains
    from offrecord.models.posterior import Posterior as Posterior
    from offrecord.paper.bounds import (
        data_independent_utility as data_independent_utility,
        quilt_utility_as_printed as quilt_utility_as_printed,
        relaxed_leakage_as_printed as relaxed_leakage_as_printed,
        theorem2_as_printed as theorem2_as_printed,
    )
    from offrecord.paper.comparison import Comparison as Comparison, compare as compare
    from offrecord.release.keys import Key as Key
    from offrecord.reports.report import Report as Report, report as report
    from offrecord.tables.engines.memory import Release as Release, redact as redact
    from offrecord.tables.engines.stream import Streamed as Streamed, redact_file as redact_file
    from offrecord.tables.look import Look as Look, look as look
    from offrecord.tables.reference import fit as fit
    from offrecord.tables.summary import Summary as Summary
    from offrecord.theory.influence import (
        Region as Region,
        influence_by_distance as influence_by_distance,
        max_influence as max_influence,
        pointwise_influence as pointwise_influence,
        regions as regions,
    )
    from offrecord.theory.leakage import leakage as leakage, leakages as leakages
    from offrecord.theory.one_side import delta_star as delta_star
    from offrecord.theory.problem import Problem as Problem, Secret as Secret
    from offrecord.verification import Verdict as Verdict, verify as verify
# isort: on

#: Where each public name is defined: loaded when first used, so that the command line starts fast.
_HOMES = {
    "errors": "ChosenByValue InputError OffrecordWarning",
    "models.chain": "MarkovChain",
    "models.file": "Model load_model",
    "models.promise": "KnownChains",
    "models.posterior": "Posterior",
    "fitting.fit": "Fit",
    "theory.problem": "Problem Secret",
    "theory.influence": "Region influence_by_distance max_influence pointwise_influence regions",
    "theory.leakage": "leakage leakages",
    "theory.one_side": "delta_star",
    "mechanisms": "MECHANISMS design mechanism_named",
    "mechanisms.base": "Mechanism Policy",
    "mechanisms.best_local.mechanism": "BestLocal",
    "mechanisms.quilt": "MarkovQuilt",
    "mechanisms.three_region": "ThreeRegion",
    "mechanisms.window": "BestWindow",
    "mechanisms.owner.mechanism": "OwnerStopping",
    "mechanisms.rules_policy": "RulesPolicy",
    "mechanisms.local_policy": "LocalPolicy",
    "mechanisms.table_policy": "TablePolicy",
    "mechanisms.answer": "answer",
    "release.keys": "Key",
    "tables.look": "Look look",
    "tables.reference": "fit",
    "tables.summary": "Summary",
    "tables.engines.memory": "Release redact",
    "tables.engines.stream": "Streamed redact_file",
    "reports.report": "Report report",
    "verification": "Verdict verify",
    "attacks": "Attack Attacker attack",
    "paper.bounds": "data_independent_utility quilt_utility_as_printed"
    " relaxed_leakage_as_printed theorem2_as_printed",
    "paper.comparison": "Comparison compare",
}
__all__ = [name for names in _HOMES.values() for name in names.split()]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            value = globals()[name] = getattr(import_module(f"offrecord.{module}"), name)
            return value
    raise AttributeError(f"module 'offrecord' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
