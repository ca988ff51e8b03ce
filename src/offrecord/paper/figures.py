"""The figures of the paper: the rows that they are drawn from, computed anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from offrecord.mechanisms import design
from offrecord.mechanisms.base import Mechanism
from offrecord.mechanisms.best_local.mechanism import BestLocal
from offrecord.mechanisms.local_policy import LocalPolicy
from offrecord.mechanisms.three_region import ThreeRegion
from offrecord.mechanisms.window import BestWindow
from offrecord.models.base import Floats
from offrecord.models.chain import MarkovChain
from offrecord.paper.bounds import theorem2_as_printed
from offrecord.theory.influence import pointwise_influence, regions
from offrecord.theory.problem import Problem

#: Where Fig. 2 is drawn.
# rounded, as 0.01 * i ends in digits that no label should show
FIG2_EPSILONS = [round(0.01 * i, 2) for i in range(1, 351)]
_DESIGNS: dict[str, Mechanism] = {
    "3R, relaxation": ThreeRegion("relaxed"),
    "3R, best constant q": ThreeRegion("constant"),
    "best local mechanism (not in the paper)": BestLocal(),
}
#: What Fig. 2 draws.
FIG2_NAMES = ("data-independent bound (Theorem 2)", *_DESIGNS)


def fig1() -> tuple[list[dict[str, Any]], float]:
    """Fig. 1: pointwise influence about X_p for α = 0.25, β = 0.5, and a threshold ε′.

    The threshold is one that shows all three regions.
    """
    # in the middle of 13 records, so that both sides are seen
    chain, private, threshold = MarkovChain.binary(0.25, 0.5), 7, 0.15
    records = np.arange(1, 14)
    influence = pointwise_influence(chain, private, records)
    region = regions(chain, private, records, threshold)
    rows = [
        {"record": t - private, "name": f"value {x}", "influence": one, "region": name}
        for t, both, name in zip(records.tolist(), influence.tolist(), region.tolist(), strict=True)
        for x, one in enumerate(both)
    ]
    return rows, threshold


def fig2_problem(epsilon: float) -> Problem:
    """The setting of Fig. 2 and 3: p = 1, n = 10, α = 0.01, β = 0.8."""
    return Problem(MarkovChain.binary(0.01, 0.8), n=10, private=[1], epsilon=epsilon)


def fig2_utilities(epsilon: float) -> list[float]:
    """The points of Fig. 2 at one ε, in the order of FIG2_NAMES."""
    problem = fig2_problem(epsilon)
    designed = [design(problem, mechanism).utility for mechanism in _DESIGNS.values()]
    return [theorem2_as_printed(problem), *designed]


def fig2(epsilons: Iterable[float] = FIG2_EPSILONS) -> list[dict[str, Any]]:
    """Fig. 2: utility over ε."""
    return [
        {"epsilon": epsilon, "mechanism": name, "utility": utility}
        for epsilon in epsilons
        for name, utility in zip(FIG2_NAMES, fig2_utilities(epsilon), strict=True)
    ]


def fig3() -> tuple[list[dict[str, Any]], list[str]]:
    """Fig. 3: redaction probabilities of the value 0 at ε = 1."""
    problem = fig2_problem(1.0)
    designs = {"window (MQM)": BestWindow(), **_DESIGNS}
    rows = [
        {"record": t, "name": name, "redaction": float(q)}
        for name, mechanism in designs.items()
        for t, q in enumerate(_first_rows(mechanism, problem), start=1)
    ]
    return rows, list(designs)


def _first_rows(mechanism: Mechanism, problem: Problem) -> Floats:
    policy = mechanism.design(problem)
    assert isinstance(policy, LocalPolicy)
    return policy.redaction[:5, 0]  # no mechanism redacts beyond the fifth record here
