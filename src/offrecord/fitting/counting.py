"""Counting transitions: of records that have values and stand one step apart in one chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from offrecord.models.records import Chains

Codes: TypeAlias = NDArray[np.integer[Any]]
Counts: TypeAlias = NDArray[np.int64]

_FEW = 3  # values


def linked_records(
    codes: Codes, starts: NDArray[np.int64], steps: NDArray[np.int64] | None
) -> NDArray[np.bool_]:
    """(n,) whether a record and the one before it have values and stand one step apart.

    codes: from 0 for values. starts: where chains begin, and the end. steps: places in chains,
    None where records stand one step apart.
    """
    linked = np.zeros(len(codes), dtype=bool)
    present = codes >= 0
    np.logical_and(present[1:], present[:-1], out=linked[1:])
    if steps is not None:
        linked[1:] &= np.diff(steps) == 1
    linked[starts[:-1]] = False
    return linked


def reaching(linked: NDArray[np.bool_], order: int) -> NDArray[np.bool_]:
    """(n,) whether a record has `order` predecessors, each linked to the next."""
    reached = linked.copy() if order > 1 else linked
    for shift in range(1, order):
        reached[shift:] &= linked[:-shift]
    return reached


def tuples(codes: Codes, at: NDArray[np.bool_], k: int, order: int) -> NDArray[np.int32]:
    """The records marked in `at`, each with `order` predecessors as one number in base k.

    The oldest record's value leads.
    """
    length = len(codes) - order
    found = codes[:length].astype(np.int32)
    for i in range(1, order + 1):
        found *= k
        found += codes[i : i + length]
    return found[at[order:]]


def counted(
    codes: Codes,
    linked: NDArray[np.bool_],
    k: int,
    order: int,
    context: Codes | None = None,
    contexts: int = 1,
) -> Counts:
    """(contexts, k, …, k) how often each tuple occurs, the next record's value last.

    context: (n,) of the record that a tuple ends at, from 0 to contexts − 1.
    """
    shape = (contexts, *(k,) * (order + 1))
    if len(codes) <= order:
        return np.zeros(shape, dtype=np.int64)
    # truth values are counted several times as fast as numbers
    if order == 1 and context is None and k <= _FEW:
        before = [linked[1:] & (codes[:-1] == i) for i in range(k)]
        after = [codes[1:] == j for j in range(k)]
        return np.array(
            [np.count_nonzero(one & other) for one in before for other in after]
        ).reshape(shape)
    at = reaching(linked, order)
    keys: NDArray[np.integer[Any]] = tuples(codes, at, k, order)
    if context is not None:
        keys = keys + k ** (order + 1) * context[at].astype(np.int64)
    return binned(keys, contexts * k ** (order + 1)).reshape(shape)


def half_counts(
    codes: Codes,
    linked: NDArray[np.bool_],
    chains: Chains,
    k: int,
    order: int,
    phases: tuple[Codes, int] | None,
) -> Counts:
    """(2, k, …, k), or (2, P, k, k), transitions in the first and second halves of chains.

    phases: (n,) the phase of each record, and how many phases P there are.
    """
    places = chains.places
    last = np.repeat(places[chains.starts[1:] - 1], np.diff(chains.starts))
    # where the middle of the transition that ends at a record lies
    context = (2 * places - order > last).astype(np.int16)
    if phases is None:
        return counted(codes, linked, k, order, context, 2)
    told, count = phases
    context[1:] = context[1:] * count + told[:-1]  # the record before says which kernel is used
    return counted(codes, linked, k, order, context, 2 * count).reshape(2, count, k, k)


def binned(keys: NDArray[np.integer[Any]], size: int) -> Counts:
    """(size,) how often each number occurs."""
    return np.bincount(keys, minlength=size).astype(np.int64, copy=False)
