"""Bounds of all pairs of ratios, over a box of kernels, where rows touch few states (R5, R6).

Instead of the cone of all h, only D_ij ≥ log h_i − log h_j is kept: the smallest such cone has few
extreme rays, which are known without a hull (polytropes.py). The ratio of two rows of P·h depends
on the states that these two rows can lead to and on no others, so bounds for many states work as
well as for few, as long as each pair of rows touches at most six: dense boxes up to six states,
histories of any length of two values (four states a pair) or three (six).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers
from offrecord.theory.sets import polytropes
from offrecord.theory.sets.walks import FORGOTTEN, Walk, at_step

#: The largest number of states that one pair of rows may touch: 2 · 6⁴ trees.
_MOST_TOUCHED = 6
#: Log-ratios above count as infinite: products of a few such ratios are still numbers.
_INFINITE = 100.0


@dataclass(frozen=True)
class Group:
    """Rows of a box that lead to few states together."""

    rows: Integers
    states: Integers


@lru_cache(maxsize=64)
def _groups(support: bytes, states: int) -> tuple[Group, ...] | None:
    touched = np.frombuffer(support, dtype=np.bool_).reshape(states, states)
    each = {frozenset(np.flatnonzero(row).tolist()) for row in touched}
    unions = {one | other for one, other in combinations(each, 2)} or each
    if max(map(len, unions)) > _MOST_TOUCHED:
        return None
    largest = [one for one in unions if not any(one < other for other in unions)]
    columns = [np.array(sorted(one)) for one in sorted(largest, key=sorted)]
    return tuple(
        Group(np.flatnonzero(~np.delete(touched, states_of, axis=1).any(axis=1)), states_of)
        for states_of in columns
    )


def groups_of(high: Floats) -> tuple[Group, ...] | None:
    """The rows of the box by the states that they touch; None if some pair touches too many."""
    touched = np.ascontiguousarray((high > 0.0).any(axis=0))
    return _groups(touched.tobytes(), len(touched))


def side(walk: Walk, low: Floats, high: Floats) -> Floats | None:
    """(S, S) bounds of the log-ratios of one side; None if a pair of rows touches too many states.

    low, high: (1, S, S) or (steps, S, S).
    """
    groups = groups_of(high)
    if groups is None:
        return None
    states = walk.rows.shape[1]
    bounds: Floats | None = np.zeros((states, states)) if walk.ends else None
    slack = 0.0
    for distance, row in walk.inward():
        if bounds is not None and not bounds.any() and bool((row == 1.0).all()):
            continue
        bounds = _advanced(bounds, row, groups, *at_step(low, high, distance))
        if 0.0 < bounds.max() < FORGOTTEN:
            bounds, slack = np.zeros((states, states)), slack + float(bounds.max())
    assert bounds is not None
    return bounds + slack * (1.0 - np.eye(states))


def table(count: int, low: Floats, high: Floats, released: NDArray[np.bool_]) -> Floats | None:
    """(count, S, S) the same of windows: all redacted, then one of these states released.

    Entry d − 1 has the release at distance d. One box, (1, S, S), for every step.
    """
    groups = groups_of(high)
    if groups is None:
        return None
    states = len(released)
    row = np.where(released, 0.0, 1.0)
    bounds: Floats | None = None
    worst = np.empty((count, states, states))
    for at in range(count):
        bounds = _advanced(bounds, row, groups, low[0], high[0])
        worst[at] = bounds
        if bounds.max() < FORGOTTEN:
            worst[at + 1 :] = bounds.max() * (1.0 - np.eye(states))
            break
        row = np.ones(states)
    return worst


def _advanced(
    bounds: Floats | None, row: Floats, groups: tuple[Group, ...], low: Floats, high: Floats
) -> Floats:
    """Bounds one step nearer to the secret. Bounds of None: there is nothing beyond the record."""
    states = len(row)
    nearer = np.full((states, states), np.inf)
    for group in groups:
        square = np.ix_(group.states, group.states)
        links, above, full = polytropes.trees(len(group.states))
        worst = polytropes.ratios_within(
            np.zeros((0, 0)) if bounds is None else bounds[square],
            bounds is not None,
            row[group.states],
            low[np.ix_(group.rows, group.states)],
            high[np.ix_(group.rows, group.states)],
            links,
            above,
            full,
        )
        rows = np.ix_(group.rows, group.rows)
        nearer[rows] = np.minimum(nearer[rows], worst)
    return closed(nearer)


def closed(bounds: Floats) -> Floats:
    """With all that follows: h_i/h_l = h_i/h_j · h_j/h_l; at least 0, none beyond what counts."""
    bounds = np.where(bounds > _INFINITE, np.inf, np.maximum(bounds, 0.0))
    np.fill_diagonal(bounds, 0.0)
    for j in range(len(bounds)):
        bounds = np.minimum(bounds, bounds[:, j : j + 1] + bounds[j])
    return bounds
