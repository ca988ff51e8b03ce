"""The worst case of one side over a box of kernels, for any number of states: the way that serves.

Three and four states: cones, exact. Where each pair of rows touches at most six states: pairwise
bounds. Any number: ranges and blocks. All are upper bounds, so the smallest counts, entry by entry
(R5).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers
from offrecord.theory.sets.walks import Walk

CONES = "cones"
PAIRWISE, RANGES = "pairwise, range and block bounds", "range and block bounds"


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
    if len(low) > 1:
        return _side(walk, low, high)
    spelled = (part.tobytes() for part in (walk.rows, walk.lengths, low, high))
    return _bound(*spelled, walk.ends, states)


@lru_cache(maxsize=1024)
def _bound(rows: bytes, lengths: bytes, low: bytes, high: bytes, ends: bool, states: int) -> Bound:
    """Given by the very numbers, so that it is found once: whoever improves a design changes one
    side and not the other, and asks again about what was just judged.
    """
    # copies, as loops are compiled for arrays that may be written to
    each = np.frombuffer(rows).reshape(-1, states).copy()
    walk = Walk(each, np.frombuffer(lengths, dtype=np.int64), ends)
    box = (np.frombuffer(part).reshape(1, states, states).copy() for part in (low, high))
    found = _side(walk, *box)
    found.worst.setflags(write=False)
    return found


def windows(count: int, low: Floats, high: Floats) -> Floats:
    """(count, S, S) the same where d − 1 records are always redacted and the d-th never, d from 1.

    More redaction never tells more (F3), so each is at most the one before.
    """
    every = np.ones(low.shape[1], dtype=np.bool_)
    return np.asarray(np.minimum.accumulate(_released(count, low, high, every), axis=0))


def influences(count: int, low: Floats, high: Floats) -> Floats:
    """(count, S) the largest log-ratio over all pairs if state v is released at distance d.

    Everything before is redacted: the pointwise influence, at its worst over the set. Under one
    box for every step it never rises with the distance, as averages differ less than what they are
    taken of.
    """
    states = low.shape[1]
    released = np.eye(states, dtype=np.bool_)
    worst = [_released(count, low, high, one).max(axis=(1, 2)) for one in released]
    told = np.stack(worst, axis=1)
    return np.minimum.accumulate(told, axis=0) if low.shape[0] == 1 else told


def _released(count: int, low: Floats, high: Floats, released: NDArray[np.bool_]) -> Floats:
    """(count, S, S) by the distance of a release of one of these states, all before redacted."""
    if low.shape[0] == 1:
        return _table(count, low, high, released)
    walks = (Walk.window(distance, released) for distance in range(1, count + 1))
    return np.stack([_side(walk, low, high).worst for walk in walks])


def _side(walk: Walk, low: Floats, high: Floats) -> Bound:
    from offrecord.theory.sets import cones, ranges

    within = cones.records_within(walk.rows.shape[1])
    exact = cones.side(walk.nearest(within), low, high) if within else None
    if exact is not None and walk.records <= within:
        return Bound(exact, 0.0, CONES)
    bound = Bound(ranges.side(walk, low, high), 0.0, _method(high))
    if exact is None or (bound.worst <= exact).all():
        return bound
    return Bound(np.minimum(exact, bound.worst), 0.0, f"{CONES}, {bound.method}")


def _table(count: int, low: Floats, high: Floats, released: NDArray[np.bool_]) -> Floats:
    from offrecord.theory.sets import cones, ranges

    if not cones.records_within(len(released)):
        return ranges.table(count, low, high, released)
    exact, known = cones.table(count, low, high, released)
    if known == count:
        return exact
    return np.minimum(exact, ranges.table(count, low, high, released))


def _method(high: Floats) -> str:
    from offrecord.theory.sets import pairwise

    return RANGES if any(pairwise.groups_of(step) is None for step in high) else PAIRWISE
