"""The largest ratio of two averages p·v and q·v, v anything between bounds, any number of states.

At its worst v is at its upper bound b on some event and at its lower bound a elsewhere. For any
levels μ and ν

    p·v ≤ μ·rest + Σ low·v + room·max(v − μ, 0)      q·v ≥ ν·rest + Σ low·v − room·max(ν − v, 0)

and then the worst event is found by sorting states by what they add above and below (R5). Every
pair of levels gives a bound, and the least counts. All pairs of rows are looked at together.
Margins are derived in docs/proofs/verified-sets.md.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.verify.sets.boxes import Floats
from offrecord.verify.sets.fills import UNIT, Fill

_ROUNDS = 4  # how often levels are asked for anew


class _Pairs(NamedTuple):
    """Rows p and q of each pair: (P, S) low and room, (P,) rest."""

    low: Floats
    room: Floats
    rest: Floats
    other_low: Floats
    other_room: Floats
    other_rest: Floats


def largest_ratios(ratios: Floats, row: Floats, fill: Fill) -> Floats:
    """(S, S) bounds of the ratios one step nearer to the secret, where a record is redacted.

    ratios: (S, S) bounds of h_i/h_j beyond it; row: its redaction probabilities by state.
    """
    states = len(row)
    x, y = np.nonzero(~np.eye(states, dtype=bool))
    pairs = _Pairs(*(part[at] for at in (x, y) for part in (fill.low, fill.room, fill.rest)))
    count = len(x)
    widest = np.full((count, states), ratios.max())
    choices = [
        (np.ones((count, states)), widest),
        (1.0 / ratios[x], ratios[:, x].T),
        (1.0 / ratios[y], ratios[:, y].T),
    ]
    best = np.full(count, np.inf)
    reached = fill.high[x] > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for least, most in choices:
            above = np.where(reached, most, least)  # nothing to gain elsewhere
            a = np.where(row > 0, least * row, 0.0)
            b = np.where(row > 0, above * row, 0.0)
            counts = (reached | (fill.high[y] > 0)) & (row > 0)
            sound = (np.isfinite(b) | ~counts).all(axis=1)
            if sound.any():
                few = _Pairs(*(part[sound] for part in pairs))
                a, b = (np.where(counts, one, 0.0)[sound] for one in (a, b))
                best[sound] = np.minimum(best[sound], _largest(few, a, b))
    found = np.ones((states, states))
    found[x, y] = best
    return found


def _largest(pairs: _Pairs, a: Floats, b: Floats) -> Floats:
    """(P,) the least bound by several levels."""
    # numbers were rounded a few times: wider by as much
    a, b = a * (1.0 - 8.0 * UNIT), b * (1.0 + 8.0 * UNIT)
    used = (pairs.low + pairs.room + pairs.other_low + pairs.other_room) > 0
    least = np.where(used, a, np.inf).min(axis=1)
    most = np.where(used, b, 0.0).max(axis=1)
    best = np.full(len(a), np.inf)
    for start in product((least, most), repeat=2):
        levels = start
        for _ in range(1 + _ROUNDS):
            found, event = _by_levels(pairs, (a, b), levels)
            best = np.minimum(best, found)
            v = np.where(event, b, a)
            above = -_level(-v, pairs.room, pairs.rest)
            below = _level(v, pairs.other_room, pairs.other_rest)
            levels = (above, below)
        for mixed in ((start[0], below), (above, start[1])):
            best = np.minimum(best, _by_levels(pairs, (a, b), mixed)[0])
    return best


def _level(values: Floats, room: Floats, rest: Floats) -> Floats:
    """(P,) the value at which the mass that is left runs out, the least values first."""
    order = np.argsort(values, axis=1)
    given = np.cumsum(np.take_along_axis(room, order, axis=1), axis=1) >= rest[:, np.newaxis]
    at = np.where(given.any(axis=1), given.argmax(axis=1), values.shape[1] - 1)
    rows = np.arange(len(values))
    return np.asarray(values[rows, order[rows, at]])


def _by_levels(
    pairs: _Pairs, between: tuple[Floats, Floats], levels: tuple[Floats, Floats]
) -> tuple[Floats, NDArray[np.bool_]]:
    """(P,) the largest ratio of the two bounds, (P, S) the event where it is met."""
    (a, b), (mu, nu) = between, (one[:, np.newaxis] for one in levels)
    states = a.shape[1]
    margin = 8.0 * (states + 4.0) * UNIT

    def above(v: Floats) -> Floats:
        return np.asarray(pairs.low * v + pairs.room * np.maximum(v - mu, 0.0))

    def below(v: Floats) -> Floats:
        return np.asarray(pairs.other_low * v - pairs.other_room * np.maximum(nu - v, 0.0))

    first, second = above(a), below(a)
    more_above = np.maximum(above(b) - first, 0.0)
    more_below = np.maximum(below(b) - second, 0.0)
    top = levels[0] * (pairs.rest + (states + 2.0) * UNIT) + first.sum(axis=1)
    size = nu[:, 0] + (pairs.other_low * b + pairs.other_room * nu).sum(axis=1)
    bottom = levels[1] * pairs.other_rest + second.sum(axis=1) - margin * size
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(more_above > 0, more_above / more_below, -1.0)
        order = np.argsort(-gain, axis=1)
        tops = top[:, np.newaxis] + np.cumsum(np.take_along_axis(more_above, order, 1), axis=1)
        bottoms = bottom[:, np.newaxis] + np.cumsum(
            np.take_along_axis(more_below, order, 1), axis=1
        )
        ratios = np.column_stack((top / bottom, tops / bottoms))
    chosen = ratios.argmax(axis=1)
    ranks = np.argsort(order, axis=1)
    found = ratios[np.arange(len(chosen)), chosen] * (1.0 + 2.0 * margin)
    found = np.where(bottom > 0, found, np.inf)
    return np.where(np.isnan(found), np.inf, found), ranks < chosen[:, np.newaxis]
