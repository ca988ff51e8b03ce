"""Every number, table and figure of the paper, computed anew and set beside the paper's value."""

from offrecord.paper.errata import Erratum, errata
from offrecord.paper.figures import FIG2_EPSILONS, FIG2_NAMES, fig1, fig2, fig2_problem, fig3
from offrecord.paper.numbers import FIG2_VALUES, Check, checks

__all__ = [
    "FIG2_EPSILONS",
    "FIG2_NAMES",
    "FIG2_VALUES",
    "Check",
    "Erratum",
    "checks",
    "errata",
    "fig1",
    "fig2",
    "fig2_problem",
    "fig3",
]
