"""How many records the next one depends on: orders compared by BIC, on the same records."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from offrecord.fitting.counting import Counts, reaching, tuples

LARGEST_ORDER = 3  #: of the orders that BIC compares


def bic_by_order(
    codes: NDArray[np.int8], linked: NDArray[np.bool_], k: int
) -> tuple[dict[int, float], int]:
    """BIC of each order, and of how many records: those with LARGEST_ORDER predecessors.

    Where no record has so many, those with as many as any has.
    """
    deepest = next(order for order in range(LARGEST_ORDER, 0, -1) if reaching(linked, order).any())
    keys: NDArray[np.integer[Any]]
    keys, counts = _merged(
        tuples(codes, reaching(linked, deepest), k, deepest), None, k ** (deepest + 1)
    )
    records = int(counts.sum())
    bic = {}
    for order in range(deepest, -1, -1):
        _, context_counts = _merged(keys // k, counts, k**order)
        likelihood = log_powers(counts) - log_powers(context_counts)
        bic[order] = penalty(k, order, records) - 2 * likelihood
        if order:  # forget the oldest record
            keys, counts = _merged(keys % k**order, counts, k**order)
    return dict(sorted(bic.items())), records


def penalty(k: int, order: int, records: int) -> float:
    """What BIC asks for the free parameters of an order."""
    return float(k**order * (k - 1) * np.log(records))


def log_powers(counts: Counts) -> float:
    """The sum of c·log c: log-likelihoods are differences of these."""
    from scipy.special import xlogy

    return float(xlogy(counts, counts).sum())


def _merged(
    keys: NDArray[np.integer[Any]], counts: Counts | None, size: int
) -> tuple[NDArray[np.integer[Any]], Counts]:
    """Equal keys below size become one, with the sum of their counts (or of ones)."""
    if size <= max(4 * len(keys), 1 << 16):  # a bin for each possible key is faster than sorting
        dense = np.bincount(keys, counts, minlength=size)
        found = np.flatnonzero(dense)
        return found, dense[found].astype(np.int64)
    if counts is None:
        return np.unique(keys, return_counts=True)
    found, where = np.unique(keys, return_inverse=True)
    return found, np.bincount(where, counts).astype(np.int64)
