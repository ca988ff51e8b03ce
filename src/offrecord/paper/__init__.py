"""The paper: what it states and draws, computed anew and set beside the paper's value.

numbers     its numbers beside ours           errata      where it does not hold as printed
figures     the rows of Figs. 1 to 3
bounds      its bounds as printed             comparison  mechanisms side by side
"""

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
