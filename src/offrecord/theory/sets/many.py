"""The worst case of one side over a box of kernels, for any number of states: the way that serves.

Three and four states: cones, exact. Where each pair of rows touches at most six states: pairwise
bounds. Else ranges and blocks. All are upper bounds, so the smallest counts, entry by entry (R5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers
from offrecord.theory.sets.walks import Walk

CONES, PAIRWISE, RANGES = "cones", "pairwise bounds", "range and block bounds"


@dataclass(frozen=True)
class Bound:
    """What one side may tell, over all models of a set."""

    worst: Floats
    """(S, S) the largest log-ratio of the outputs' probabilities under state x over state x′."""
    rounding: float
    """To be added to it; 0 where it is included."""
    method: str


def bound(rows: Floats, lengths: Integers, opens: bool, low: Floats, high: Floats) -> Bound:
    """The worst directional leakage of one side, kernels free by step in the box.

    rows: (m, S) redaction probabilities by state of stretches of records, nearest first; lengths:
    (m,) how many records each has; opens: a record follows that is never redacted, else the chain
    ends. low, high: (1, S, S) one box for every step, or (steps, S, S); step d leads to the record
    at distance d.
    """
    walk = Walk.of(rows, lengths, opens)
    states = walk.rows.shape[1]
    if walk.records == 0:
        return Bound(np.zeros((states, states)), 0.0, CONES)
    return _smallest(_sides(walk, low, high))


def windows(count: int, low: Floats, high: Floats) -> Floats:
    """(count, S, S) the same where d − 1 records are always redacted and the d-th never, d from 1.

    More redaction never tells more (F3), so each is at most the one before.
    """
    every = np.ones(low.shape[1], dtype=np.bool_)
    return np.asarray(np.minimum.accumulate(_released(count, low, high, every), axis=0))


def influences(count: int, low: Floats, high: Floats) -> Floats:
    """(count, S) the largest log-ratio over all pairs if state v is released at distance d.

    Everything before is redacted: the pointwise influence, at its worst over the set.
    """
    states = low.shape[1]
    released = np.eye(states, dtype=np.bool_)
    worst = [_released(count, low, high, one).max(axis=(1, 2)) for one in released]
    return np.stack(worst, axis=1)


def _released(count: int, low: Floats, high: Floats, released: NDArray[np.bool_]) -> Floats:
    """(count, S, S) by the distance of a release of one of these states, all before redacted."""
    if low.shape[0] == 1:
        return _smallest(_tables(count, low, high, released)).worst
    walks = (Walk.window(distance, released) for distance in range(1, count + 1))
    return np.stack([_smallest(_sides(walk, low, high)).worst for walk in walks])


def _sides(walk: Walk, low: Floats, high: Floats) -> list[tuple[str, Callable[[], Floats | None]]]:
    """The ways to bound one side, each if asked, the best first."""
    from offrecord.theory.sets import cones, pairwise

    within = cones.records_within(walk.rows.shape[1])
    ways: list[tuple[str, Callable[[], Floats | None]]] = []
    if within:
        ways.append((CONES, lambda: cones.side(walk.nearest(within), low, high)))
    ways.append((PAIRWISE, lambda: pairwise.side(walk, low, high)))
    return ways


def _tables(
    count: int, low: Floats, high: Floats, released: NDArray[np.bool_]
) -> list[tuple[str, Callable[[], Floats | None]]]:
    """The ways to bound a table of windows."""
    from offrecord.theory.sets import cones, pairwise

    ways: list[tuple[str, Callable[[], Floats | None]]] = []
    if cones.records_within(len(released)):
        ways.append((CONES, lambda: cones.table(count, low, high, released)))
    ways.append((PAIRWISE, lambda: pairwise.table(count, low, high, released)))
    return ways


def _smallest(ways: list[tuple[str, Callable[[], Floats | None]]]) -> Bound:
    """The first way that gives a finite bound everywhere, or the smallest of all entry by entry."""
    best: Bound | None = None
    for method, way in ways:
        worst = way()
        if worst is None:
            continue
        if best is None or (worst <= best.worst).all():
            best = Bound(worst, 0.0, method)
        elif (worst < best.worst).any():
            both = f"{best.method}, {method}"
            best = Bound(np.minimum(worst, best.worst), 0.0, both)
        if np.isfinite(best.worst).all():
            break
    assert best is not None
    return best
