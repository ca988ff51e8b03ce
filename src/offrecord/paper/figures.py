"""The figures of the paper: the rows that they are drawn from, computed anew."""

from __future__ import annotations

from typing import Any

import numpy as np

from offrecord.mechanisms import design
from offrecord.mechanisms.best_local.mechanism import BestLocal
from offrecord.mechanisms.three_region import ThreeRegion
from offrecord.mechanisms.window import BestWindow
from offrecord.models.chain import MarkovChain
from offrecord.paper.bounds import theorem2_as_printed
from offrecord.theory.influence import pointwise_influence, regions
from offrecord.theory.problem import Problem

#: Where Fig. 2 is drawn.
FIG2_EPSILONS = [round(0.01 * i, 2) for i in range(1, 351)]
#: What Fig. 2 draws.
FIG2_NAMES = (
    "data-independent bound (Theorem 2)",
    "3R, relaxation",
    "3R, best constant q",
    "best local mechanism (not in the paper)",
)


def fig1() -> tuple[list[dict[str, Any]], float]:
    """Fig. 1: pointwise influence about X_p for α = 0.25, β = 0.5, and a threshold ε′.

    The threshold is one that shows all three regions.
    """
    chain, private, threshold = MarkovChain.binary(0.25, 0.5), 7, 0.15
    records = np.arange(1, 14)
    influence = pointwise_influence(chain, private, records)
    region = regions(chain, private, records, threshold)
    rows = [
        {
            "record": int(t) - private,
            "name": f"value {x}",
            "influence": float(influence[i, x]),
            "region": str(region[i]),
        }
        for i, t in enumerate(records)
        for x in (0, 1)
    ]
    return rows, threshold


def fig2_problem(epsilon: float) -> Problem:
    """The setting of Fig. 2 and 3: p = 1, n = 10, α = 0.01, β = 0.8."""
    return Problem(MarkovChain.binary(0.01, 0.8), n=10, private=[1], epsilon=epsilon)


def fig2_utilities(epsilon: float) -> tuple[float, float, float, float]:
    """The points of Fig. 2 at one ε, in the order of FIG2_NAMES."""
    problem = fig2_problem(epsilon)
    return (
        theorem2_as_printed(problem),
        design(problem, ThreeRegion("relaxed")).utility,
        design(problem, ThreeRegion("constant")).utility,
        design(problem, BestLocal()).utility,
    )


def fig2(epsilons: list[float] | None = None) -> list[dict[str, Any]]:
    """Fig. 2: utility over ε."""
    return [
        {"epsilon": epsilon, "mechanism": name, "utility": utility}
        for epsilon in (FIG2_EPSILONS if epsilons is None else epsilons)
        for name, utility in zip(FIG2_NAMES, fig2_utilities(epsilon), strict=True)
    ]


def fig3() -> tuple[list[dict[str, Any]], list[str]]:
    """Fig. 3: redaction probabilities of the value 0 at ε = 1."""
    problem = fig2_problem(1.0)
    mechanisms: dict[str, BestWindow | ThreeRegion | BestLocal] = {
        "window (MQM)": BestWindow(),
        "3R, relaxation": ThreeRegion("relaxed"),
        "3R, best constant q": ThreeRegion("constant"),
        FIG2_NAMES[-1]: BestLocal(),
    }
    rows = [
        {"record": t + 1, "name": name, "redaction": float(q)}
        for name, mechanism in mechanisms.items()
        for t, q in enumerate(mechanism.design(problem).redaction[:5, 0])
    ]
    return rows, list(mechanisms)
