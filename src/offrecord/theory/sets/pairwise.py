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

from offrecord.models.base import Floats, Integers
from offrecord.theory.sets import polytropes

#: The largest number of states that one pair of rows may touch: 2 · 6⁴ trees.
_MOST_TOUCHED = 6
#: Log-ratios above count as infinite: products of a few such ratios are still numbers.
_INFINITE = 100.0
_UP = 1.0 + 2.0**-52  # so that a sum of two is no less than it should be


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
    """The rows of a box (S, S) by the states they touch; None if some pair touches too many."""
    return _groups((high > 0.0).tobytes(), len(high))


def advanced(
    bounds: Floats | None, row: Floats, groups: tuple[Group, ...], low: Floats, high: Floats
) -> Floats:
    """(S, S) bounds one step nearer to the secret.

    bounds: those beyond a record with this row; None: there is nothing beyond it that matters.
    """
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
        through = (bounds[:, j : j + 1] + bounds[j]) * _UP
        bounds = np.minimum(bounds, through)
    return bounds
