"""Linear programmes, by HiGHS.

The mechanisms solve many that are alike: other budgets, other starting likelihoods, the next step
of a search. What is best in one of them is so in the next but for a few exchanges, so each begins
where the last one of its kind ended. That is what makes them quick: hundreds of exchanges become
none or some tens.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from offrecord.models.base import Floats, Integers

if TYPE_CHECKING:
    import highspy


_LARGEST = 1e15  # entries beyond are refused by HiGHS


class Entries(NamedTuple):
    """Where a sparse matrix is not 0, each place once."""

    row: Integers
    column: Integers
    number: Floats

    @classmethod
    def together(cls, parts: Sequence[Entries]) -> Entries:
        """All of several."""
        return cls(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def moved(self, rows: int, columns: int) -> Entries:
        """The same further down and to the right."""
        return Entries(self.row + rows, self.column + columns, self.number)

    def times(self, number: float) -> Entries:
        """All multiplied."""
        return self._replace(number=number * self.number)

    def summed(self) -> Entries:
        """The same where places came more than once."""
        width = int(self.column.max(initial=0)) + 1
        places, which = np.unique(self.row * width + self.column, return_inverse=True)
        numbers = np.bincount(which, self.number, minlength=len(places)).astype(np.float64)
        return Entries(*np.divmod(places, width), numbers)

    def of(self, columns: Floats, height: int) -> Floats:
        """(height,) the product with a column."""
        found = np.bincount(self.row, self.number * columns[self.column], minlength=height)
        return found.astype(np.float64)


class Solver:
    """Solves programmes one after the other. What it finds depends on those before, so whoever
    wants the same designs everywhere gives it the same ones in the same order.

    even: rows and columns are of much the same size already; scaling them anew, and weighing edges
    exactly, would take about as long again.
    """

    def __init__(self, *, even: bool = False) -> None:
        self._ends: dict[Hashable, highspy.HighsBasis] = {}
        self._even = even

    def least(
        self,
        costs: Floats,
        rows: Entries,
        low: Floats | float,
        high: Floats | float,
        *,
        columns: tuple[Floats, Floats] | None = None,
        like: Hashable = None,
        inside: bool = False,
    ) -> Floats | None:
        """The columns of least cost with low ≤ rows · columns ≤ high; None where the solver fails.

        columns: their least and largest numbers; without them none is negative. like: what
        programmes of its kind have in common; it begins where the last one of that kind and shape
        ended. inside: by an interior point, which many columns need.
        """
        import highspy

        if not _are_taken(costs, rows, low, high):
            return None
        height = max(np.size(low), np.size(high))
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        # not by a number of threads: HiGHS refuses another one than whoever asked it first
        solver.setOptionValue("parallel", "off")
        solver.setOptionValue("solver", "ipm" if inside else "simplex")
        if self._even:
            solver.setOptionValue("simplex_scale_strategy", 0)
            solver.setOptionValue("simplex_dual_edge_weight_strategy", 1)  # Devex
        scaled = costs / (np.abs(costs).max(initial=0.0) or 1.0)
        model = _model(scaled, rows, (low, high), height, columns or (0.0, np.inf))
        if solver.passModel(model) == highspy.HighsStatus.kError:
            raise ValueError("rows of a programme name a place twice, or one that is not there")
        kind, best = (like, height, len(costs)), highspy.HighsModelStatus.kOptimal
        if kind in self._ends:
            solver.setBasis(self._ends[kind])
        solver.run()
        if kind in self._ends and solver.getModelStatus() != best:
            solver.clearSolver()  # from there it may get lost where it would not from nowhere
            solver.run()
        if solver.getModelStatus() != best:
            return None
        self._ends[kind] = solver.getBasis()
        return np.array(solver.getSolution().col_value)


def _are_taken(costs: Floats, rows: Entries, low: Floats | float, high: Floats | float) -> bool:
    """Whether all numbers are such that HiGHS takes them for what they are."""
    entries = bool(np.abs(rows.number).max(initial=0.0) <= _LARGEST)
    limits = bool(np.all(np.less(low, np.inf)) and np.all(np.greater(high, -np.inf)))
    return entries and limits and bool(np.isfinite(costs).all())


_Limits: TypeAlias = tuple[Floats | float, Floats | float]


def _model(
    costs: Floats, rows: Entries, limits: _Limits, height: int, columns: _Limits
) -> highspy.HighsLp:
    """A programme as HiGHS takes it: column by column."""
    import highspy

    width = len(costs)
    order = np.argsort(rows.column, kind="stable")
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = width, height
    model.col_cost_ = costs
    model.col_lower_, model.col_upper_ = (np.broadcast_to(one, width) for one in columns)
    model.row_lower_, model.row_upper_ = (np.broadcast_to(one, height) for one in limits)
    matrix = model.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    starts = np.searchsorted(rows.column[order], np.arange(width + 1))
    matrix.start_ = starts.astype(np.int32)
    matrix.index_ = rows.row[order].astype(np.int32)
    matrix.value_ = rows.number[order]
    return model
