"""How many records the next one depends on: orders compared by BIC, on the same records."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.fitting.counting import Codes, Counts, reaching, tuples
from offrecord.models.checking import MAX_ORDER, whole_number

AUTO = "auto"  #: instead of an order: the one that the data speak for
MOST_HISTORIES = 256  #: of a chain that is learned: k to the power of its order
#: Orders up to here are compared for any number of values, to know what a chain misses.
_ALWAYS_COMPARED = 3
_PER_PARAMETER = 10  # transitions that carry a free parameter
_SHARE = 1 / 2  # of all transitions, that orders are compared on


def largest_order(k: int) -> int:
    """The largest order that is learned for k values."""
    return max(order for order in range(1, MAX_ORDER + 1) if k**order <= MOST_HISTORIES)


def checked_order(order: Any, k: int) -> int | None:
    """The order that a person asks for, None where it is left to the data; InputError for one that
    no chain of k values is learned with.
    """
    if isinstance(order, str):
        if order == AUTO:
            return None
        raise InputError(f"order must be {AUTO} or a whole number, got {order!r}")
    number, largest = whole_number("order", order), largest_order(k)
    if not 1 <= number <= largest:
        accepted = "1" if largest == 1 else f"from 1 to {largest}"
        raise InputError(f"order must be {accepted} for {k} values, or {AUTO}, got {number}")
    return number


def chosen_order(bic: dict[int, float], k: int) -> int:
    """The order that BIC prefers among those that are learned; the smaller one of equals."""
    learned = [order for order in bic if 1 <= order <= largest_order(k)]
    return min(learned, key=lambda order: (bic[order], order))


def kernels_used(linked: NDArray[np.bool_], phases: Codes) -> Codes:
    """(n,) the number of the kernel that leads to each record, of those that lead to some: the
    phase of the record before says which.
    """
    used = np.zeros(len(linked), dtype=np.int64)
    used[1:] = phases[:-1]
    found = np.unique(used[linked])
    return np.minimum(np.searchsorted(found, used), len(found) - 1)


def bic_by_order(
    codes: NDArray[np.int8],
    linked: NDArray[np.bool_],
    k: int,
    deepest: int,
    used: Codes | None = None,
) -> tuple[dict[int, float], int]:
    """BIC of each order up to the deepest, and of how many records: those with predecessors enough
    for that. used: which kernel leads to each record; orders are compared given that.
    """
    at, kernels = reaching(linked, deepest), 1
    keys: NDArray[np.integer[Any]] = tuples(codes, at, k, deepest)
    if used is not None:
        kernels = int(used.max()) + 1
        keys = keys + used[at] * k ** (deepest + 1)
    keys, counts = _merged(keys, None, kernels * k ** (deepest + 1))
    records = int(counts.sum())
    bic = {}
    for order in range(deepest, -1, -1):
        _, context_counts = _merged(keys // k, counts, kernels * k**order)
        likelihood = log_powers(counts) - log_powers(context_counts)
        bic[order] = penalty(k, order, records, kernels) - 2 * likelihood
        if order:  # forget the oldest record
            kernel, size = keys // k ** (order + 1), k**order
            keys, counts = _merged(kernel * size + keys % size, counts, kernels * size)
    return dict(sorted(bic.items())), records


def deepest_order(linked: NDArray[np.bool_], k: int, kernels: int = 1) -> int:
    """The largest order that is compared, at least 1: some records for each of its parameters, and
    not so few of all that the comparison would be about others.
    """
    transitions = np.count_nonzero(linked)
    reached, deepest = linked.copy(), 1
    for order in range(2, max(largest_order(k), _ALWAYS_COMPARED) + 1):
        reached[order - 1 :] &= linked[: len(linked) - order + 1]
        least = max(_PER_PARAMETER * kernels * _parameters(k, order), _SHARE * transitions)
        if np.count_nonzero(reached) < least:
            break
        deepest = order
    return deepest


def penalty(k: int, order: int, records: int, kernels: int = 1) -> float:
    """What BIC asks for the free parameters of an order, with so many kernels."""
    return float(kernels * _parameters(k, order) * np.log(records))


def _parameters(k: int, order: int) -> int:
    return int(k**order * (k - 1))


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
