"""The numbers of the paper, computed anew and set beside the paper's value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.three_region import ThreeRegion
from offrecord.mechanisms.window import BestWindow
from offrecord.models.base import Floats
from offrecord.models.chain import MarkovChain
from offrecord.paper.figures import FIG2_NAMES, fig2_problem, fig2_utilities
from offrecord.theory.influence import pointwise_influence, regions
from offrecord.theory.leakage import leakage
from offrecord.theory.problem import Problem

#: Utility by ε in the setting of Fig. 2, which prints no numbers: computed to four digits by two
#: other implementations, in the order of FIG2_NAMES.
FIG2_VALUES = {
    0.1: (0.500, 0.5078, 0.6162, 0.6290),
    0.5: (0.700, 0.7054, 0.7134, 0.7384),
    1.0: (0.700, 0.7479, 0.7895, 0.7957),
    1.5: (0.800, 0.8099, 0.8145, 0.8337),
    2.0: (0.800, 0.8449, 0.8605, 0.8618),
    3.0: (0.900, 0.900, 0.900, 0.900),
}


@dataclass(frozen=True)
class Check:
    """One number: where the paper has it, its value there, ours, and how far apart they may be.

    source: "printed" in the paper, "plotted" (the data of a figure in the paper's source), or
    "independent": Fig. 2 comes without numbers, so two other implementations of the same formulas
    serve there, and for the best local mechanism, which the paper does not have.
    """

    place: str
    what: str
    paper: float
    ours: float
    tolerance: float
    source: str = "printed"

    @property
    def difference(self) -> float:
        """Ours less the paper's."""
        return self.ours - self.paper

    @property
    def agrees(self) -> bool:
        """Within the tolerance; never true for NaN."""
        return abs(self.difference) <= self.tolerance

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "difference": self.difference, "agrees": self.agrees}


def checks() -> Iterator[Check]:
    """Every number the paper states or plots, and Fig. 2 by independent ones."""
    for part in (_table1, _example1, _fig3, _fig2):
        yield from part()


def _table1() -> Iterator[Check]:
    # Likelihood ratios of one transition, α = 0.25, β = 0.5.
    kernel = MarkovChain.binary(0.25, 0.5).kernel(1)
    for x, x2, value in ((0, 0, 3 / 2), (0, 1, 1 / 2), (1, 0, 2 / 3), (1, 1, 2.0)):
        ratio = float(kernel[x, x2] / kernel[1 - x, x2])
        yield Check("Table I", f"likelihood ratio, x = {x}, x₂ = {x2}", value, ratio, 1e-12)


def _example1() -> Iterator[Check]:
    # Two records of the same chain, the first one private, ε = 1/2.
    chain = MarkovChain.binary(0.25, 0.5)
    low, high = pointwise_influence(chain, 1, 2)
    yield Check("Example 1", "i(X₁ ⇝ X₂ = 0) = log 3/2", math.log(1.5), float(low), 1e-12)
    yield Check("Example 1", "i(X₁ ⇝ X₂ = 1) = log 2", math.log(2), float(high), 1e-12)
    problem = Problem(chain, n=2, private=[1], epsilon=0.5)
    eighth = np.array([[1, 1], [1 / 8, 1]])
    utility = float(1 - (eighth @ chain.start).mean())
    yield Check("Example 1", "utility at q₂ = 1/8", 7 / 24, utility, 1e-12)
    # as a number, so that all checks are compared alike
    is_private = float(leakage(problem, eighth) <= 0.5)
    yield Check("Example 1", "q₂ = 1/8 is ε-private (1 = yes)", 1.0, is_private, 0.0)
    window = BestWindow().design(problem).utility
    yield Check("Example 1", "data-independent utility", 0.0, window, 1e-12)


def _fig3() -> Iterator[Check]:
    # What Fig. 3 plots: the redaction probabilities of the value 0 at ε = 1.
    problem = fig2_problem(1.0)
    designs = (ThreeRegion("relaxed"), ThreeRegion("convex"), ThreeRegion("constant"), BestWindow())
    relaxed, convex, constant, window = (
        design.design(problem).redaction[:, 0] for design in designs
    )
    for t, redacted in enumerate([1, 1, 1, 0, 0, 0, 0, 0, 0, 0]):
        yield _plotted(f"MQM, t = {t + 1} (the tight window)", redacted, window[t], 0.0)
    for t, value in ((1, 0.757414764826369), (2, 0.757414731740435)):
        yield _plotted(f"3R (relaxation), closed form, t = {t + 1}", value, relaxed[t], 1e-7)
        yield _plotted(f"3R (relaxation), App. A, t = {t + 1}", value, convex[t], 1e-7)
    grid = _grid_search(problem)
    for t in (1, 2):
        what = f"3R (numerical), grid of 1,000, t = {t + 1}"
        yield _plotted(what, 0.547547547547548, grid, 1e-12)
    # the grid's point may lie up to one step above the smallest q
    yield _plotted("3R (numerical) against the smallest q", 547 / 999, constant[1], 1 / 999)
    for t in range(3, 10):
        yield _plotted(f"3R, t = {t + 1}", 0.0, max(relaxed[t], constant[t]), 0.0)


def _plotted(what: str, paper: float, ours: float, tolerance: float) -> Check:
    return Check("Fig. 3", what, paper, float(ours), tolerance, "plotted")


def _fig2() -> Iterator[Check]:
    for epsilon, values in FIG2_VALUES.items():
        for name, value, ours in zip(FIG2_NAMES, values, fig2_utilities(epsilon), strict=True):
            # four digits, rounded by others: half of the last one apart
            place = "beyond" if name == FIG2_NAMES[-1] else "Fig. 2"
            yield Check(place, f"{name}, ε = {epsilon:g}", value, ours, 5.1e-5, "independent")


def _grid_search(problem: Problem) -> float:
    # The paper's numerical q: the smallest private one of 1,000 evenly spaced points in [0, 1].
    region = regions(problem.chain, 1, np.arange(1, problem.n + 1), problem.epsilon)
    for q in np.linspace(0, 1, 1000):
        if leakage(problem, _constant(region, q)) <= problem.epsilon:
            return float(q)
    return math.nan


def _constant(region: NDArray[np.str_], q: float) -> Floats:
    # All of L, and in M every value 1 and the value 0 with probability q.
    matrix = np.zeros((len(region), 2))
    matrix[region == "L"] = 1
    matrix[region == "M"] = [q, 1]
    return matrix
