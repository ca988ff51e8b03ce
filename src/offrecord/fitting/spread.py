"""How far groups of records (units, places, blocks of time) differ from what they share.

Rows of a group are Dirichlet(κ·row) around common rows; the likelihood of κ is Pólya's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from offrecord.fitting.counting import Keys, merged
from offrecord.models.base import Floats, Integers

#: Concentrations that are tried; at the largest, groups are as good as alike.
KAPPAS = tuple(2.0**power for power in range(-1, 15))


class Cells(NamedTuple):
    """Counts of all groups, as far as the likelihood depends on them: equal ones are merged.

    cell, times, weight: how often (weight) a group has a count in a cell (context * k + value).
    total: how often it has so many visits of a context (of any), total_weight how often that is.
    """

    cell: Integers
    times: Integers
    weight: Integers
    total: Integers
    total_weight: Integers

    @classmethod
    def of(cls, keys: Keys, groups: Keys, k: int, size: int, seen: Integers | None = None) -> Cells:
        """The cells of transitions.

        Args:
            keys: (n,) context * k + value of each, below `size`.
            groups: (n,) number of the group of each.
            k: number of values.
            size: number of cells.
            seen: (n,) how often each was seen; None: once.
        """
        number = int(groups.max(initial=0)) + 1
        both, counts = merged(groups.astype(np.int64) * size + keys, seen, number * size)
        visits = merged(both // k, counts, number * size // k)[1]
        most = int(counts.max(initial=0)) + 1
        alike, weight = merged(both % size * most + counts, None, size * most)
        return cls(alike // most, alike % most, weight, *np.unique(visits, return_counts=True))

    def likelihood(self, kappa: float, rows: Floats) -> float:
        """Logarithm of the probability of all counts around common rows (S, k)."""
        from scipy.special import gammaln

        share = kappa * rows.ravel()[self.cell]
        own = gammaln(share + self.times) - gammaln(share)
        visits = gammaln(kappa) - gammaln(kappa + self.total)
        return float(self.weight @ own + self.total_weight @ visits)

    def best(self, rows: Floats) -> tuple[float, float]:
        """The likeliest concentration, and the logarithm of the likelihood there."""
        found = [(self.likelihood(kappa, rows), kappa) for kappa in KAPPAS]
        likelihood, kappa = max(found)
        return kappa, likelihood


def shares(counts: Integers) -> Floats:
    """(S, k) shares of counts along the last axis; alike in rows without any."""
    totals = counts.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(totals > 0, counts / np.maximum(totals, 1), 1 / counts.shape[-1]))
