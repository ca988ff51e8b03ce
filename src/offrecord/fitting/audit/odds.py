"""How much likelier something is under one value than under another, with exact limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.fitting.counting import Counts
from offrecord.models.base import Floats

_Cells: TypeAlias = tuple[NDArray[np.intp], ...]

SEPARATE = 6  #: separate cases under the likelier value without which a cell is left out
ERROR = 0.1  #: that a limit of one probability may be wrong
SURE = 0.025  #: that any of all limits of a kind may be wrong, where no chance is to be left


def lower(seen: Floats, total: Floats, error: float) -> Floats:
    """The exact lower limit of a probability (Clopper–Pearson); 0 where nothing was seen."""
    from scipy.special import betaincinv

    some = np.maximum(seen, 1e-300)
    return np.where(seen > 0, betaincinv(some, total - seen + 1, error), 0.0)


def upper(seen: Floats, total: Floats, error: float) -> Floats:
    """The exact upper limit of a probability (Clopper–Pearson); 1 where all was seen."""
    from scipy.special import betaincinv

    rest = np.maximum(total - seen, 1e-300)
    return np.where(seen < total, betaincinv(seen + 1, rest, 1 - error), 1.0)


def error_together(cells: int) -> float:
    """That one limit may be wrong, if those of so many cells are to hold together (Bonferroni)."""
    return SURE / (2 * max(cells, 1))


class Worst(NamedTuple):
    """The cell of a table with the largest odds.

    at_least: their lower limit. odds: as counted. likelier, other: the secret's values.
    """

    at_least: float
    odds: float
    group: int
    pattern: int
    likelier: int
    other: int


@dataclass(frozen=True, eq=False)
class Table:
    """(groups, patterns, k) how often a pattern was seen with each value of the secret.

    separate: how many of these cases stand further apart than what is looked at.
    """

    counts: Counts
    separate: Counts

    @property
    def enough(self) -> NDArray[np.bool_]:
        """(groups, patterns, k) cells with cases enough."""
        return self.separate >= SEPARATE

    @property
    def left_out(self) -> int:
        """How many patterns were seen, but too seldom."""
        return int(np.count_nonzero((self.counts > 0).any(-1) & ~self.enough.any(-1)))

    @property
    def looked_at(self) -> int:
        """How many patterns have cases enough."""
        return int(np.count_nonzero(self.enough.any(-1)))

    @property
    def cells(self) -> int:
        """How many limits are looked at: one for each value of those patterns."""
        return self.looked_at * int(self.counts.shape[-1])

    def worst(self, error: float) -> Worst | None:
        """The largest odds that the data show; None where cases are too few everywhere."""
        at = np.nonzero(self.enough.any(-1))
        if not len(at[0]):
            return None
        lows, highs = self._limits(at, error)
        ratios = lows.max(-1) / highs.min(-1)
        best = int(ratios.argmax())
        likelier, other = int(lows[best].argmax()), int(highs[best].argmin())
        group, pattern = (int(where[best]) for where in at)
        with np.errstate(divide="ignore"):
            shares = self.counts[group, pattern] / np.maximum(self.counts[group].sum(0), 1)
            odds = float(shares[likelier] / shares[other])
        # one of two values is always at least as likely as the other
        return Worst(max(float(ratios[best]), 1.0), odds, group, pattern, likelier, other)

    def worst_by_group(self, error: float) -> list[Worst]:
        """The largest odds of each group that has cases enough."""
        found = []
        for group in range(len(self.counts)):
            one = slice(group, group + 1)
            worst = Table(self.counts[one], self.separate[one]).worst(error)
            if worst is not None:
                found.append(worst._replace(group=group))
        return found

    def at_least(self, error: float) -> float:
        """The lower limit of the largest odds; 1 where cases are too few everywhere."""
        at = np.nonzero(self.enough.any(-1))
        lows, highs = self._limits(at, error)
        return float((lows.max(-1) / highs.min(-1)).max(initial=1.0))

    def _limits(self, at: _Cells, error: float) -> tuple[Floats, Floats]:
        """(cells, k) lower limits, 0 for values with too few cases, and upper limits."""
        counts, totals = self.counts[at].astype(np.float64), self.counts.sum(axis=1)[at[0]]
        separate = self.separate[at]
        # cases that overlap say much the same: as many count as are separate
        overlap = np.where(separate > 0, counts / np.maximum(separate, 1), 0.0)
        overlap = np.where(separate > 0, overlap, overlap.max(-1, keepdims=True))
        seen, total = counts / overlap, totals / overlap
        lows = np.where(self.enough[at], lower(seen, total, error), 0.0)
        return lows, upper(seen, total, error)
