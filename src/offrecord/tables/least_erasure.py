"""What erasing the private records alone would leak at least, whichever model of a set is right.

Likelihoods that count for a value are taken at the least that the set leaves them, those against it
at the largest: so a transition that was never seen, and may be as rare as one likes, adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats
from offrecord.models.box import Box
from offrecord.models.lifted import lifted_kernel, onward
from offrecord.models.stationary import closed_class
from offrecord.models.walks import pattern_power
from offrecord.theory.leakage import combine

_SWEEPS = 50  # of policy iteration: a few are needed
_ROUNDING = 1e-12  # by which a mean may be off


def least_erasure(box: Box, around: Iterable[tuple[int, int, int]]) -> float | None:
    """A log-ratio about some secret that every stationary chain in the set gives if private records
    alone are redacted.

    around: how many records, up to the order, lie to the left and right of secrets, and how many
    each of these holds. None for nothing but runs in chains of higher order.
    """
    if box.order == 1:
        return max(_about_run(box, *one) for one in around)
    singles = [(left, right) for left, right, length in around if length == 1]
    if not singles:
        return None
    masses = _mass_bounds(box)
    return max(_about_record(box, left, right, masses) for left, right in singles)


def _sure(low: Floats) -> NDArray[np.bool_]:
    """(states,) which occur in every chain whose one-step probabilities are at least these."""
    sure = np.zeros(len(low), dtype=bool)
    with suppress(InputError):  # where a chain may stay in one part or in another, none is
        sure[closed_class(low)] = True
    return sure


def _about_run(box: Box, left: int, right: int, length: int) -> float:
    """About a run in chains of order 1, its neighbours (if any) released."""
    ahead, back = box.lifted
    sides = []
    # what lies back in time is known of stationary chains alone
    for present, (low, high) in ((left and box.start == "stationary", back), (right, ahead)):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.log(low)[:, None] - np.log(high)[None]
            ratios = np.where(low[:, None] > 0, ratios, -np.inf).max(axis=2)
        # over all that a neighbour may show, some of it is no less likely by x than by x'
        sides.append(np.maximum(ratios, 0.0) if present else np.zeros_like(ratios))
    ends = np.diag(_sure(ahead.low)) @ pattern_power(ahead.low > 0, length - 1)
    return combine(sides[0], sides[1], ends)[0] if ends.any() else 0.0


def _about_record(box: Box, left: int, right: int, masses: tuple[Floats, Floats]) -> float:
    """About one record of chains of order m whose `left` and `right` neighbours are released.

    Pr(neighbours | x) is a product of one-step probabilities and of what does not depend on x,
    divided by how likely x is. masses: the least and the largest of that.
    """
    (low, high), order, k = box.forward, box.order, box.k
    n = left + 1 + right
    least, most = np.zeros((k,) * n), np.zeros((k,) * n)
    with np.errstate(divide="ignore"):
        for t in range(left, n):
            # histories that reach beyond the chain's start: whatever they were
            unknown = tuple(range(max(order - t, 0)))
            shape = (1,) * max(t - order, 0) + (k,) * (min(t, order) + 1) + (1,) * (n - 1 - t)
            least = least + np.log(low.min(axis=unknown)).reshape(shape)
            most = most + np.log(high.max(axis=unknown)).reshape(shape)
        sure = _sure(box.lifted[0].low).reshape((k,) * order)
        before = sure.any(axis=tuple(range(order - left))).reshape((k,) * left + (1,) * (n - left))
        least = np.where(before, least, -np.inf)
        occurs = sure.any(axis=tuple(range(order - 1)))
        less, more = np.log(masses[0]), np.log(masses[1])
    least, most = (np.moveaxis(logs, left, 0).reshape(k, -1) for logs in (least, most))
    best = 0.0
    for value in np.flatnonzero(occurs):
        for other in np.flatnonzero(occurs & (np.arange(k) != value)):
            seen = np.isfinite(least[value])
            ratios = least[value, seen] - most[other, seen] + less[other] - more[value]
            best = max(best, float(ratios.max(initial=0.0)))
    return best


def _mass_bounds(box: Box) -> tuple[Floats, Floats]:
    """(k,) the least and the largest probability of each value in a stationary chain of the set."""
    low, high = (ends.reshape(-1, box.k) for ends in box.forward)
    earns = np.eye(box.k)
    least = np.array([_least_mean(low, high, one) for one in earns])
    most = -np.array([_least_mean(low, high, -one) for one in earns])
    return np.clip(least, 0.0, 1.0), np.clip(most, 0.0, 1.0)


def _least_mean(low: Floats, high: Floats, earns: Floats) -> float:
    """No stationary chain with such rows has a smaller mean of what its values earn; earns: (k,).

    Which kernel earns least is a decision process, as rows are free of each other. Whatever v is,
    the least of Tv − v is a bound; policy iteration finds v for which it is tight.
    """
    states, k = low.shape
    after = onward(k, states)
    v, rows, best = np.zeros(states), low, -np.inf
    for _ in range(_SWEEPS):
        before, ahead = rows, earns + v[after]
        rows = _least_rows(low, high, ahead)
        best = max(best, float(((rows * ahead).sum(axis=1) - v).min()) - _ROUNDING)
        if np.array_equal(rows, before):
            break
        system = np.ones((states + 1, states + 1))  # the mean is the last unknown
        system[:-1, :-1] = np.eye(states) - lifted_kernel(rows)
        system[-1] = np.eye(states + 1)[0]
        try:
            v = np.linalg.solve(system, np.append(rows @ earns, 0.0))[:-1]
        except np.linalg.LinAlgError:  # several closed classes
            break
    return best


def _least_rows(low: Floats, high: Floats, ahead: Floats) -> Floats:
    """(states, k) the rows within an interval each that give the least average of `ahead`."""
    order = np.argsort(ahead, axis=1, kind="stable")
    spare = np.take_along_axis(high - low, order, axis=1)
    rest = 1.0 - low.sum(axis=1, keepdims=True)
    given = np.clip(rest - (np.cumsum(spare, axis=1) - spare), 0.0, spare)
    rows = low.copy()
    np.put_along_axis(rows, order, np.take_along_axis(low, order, axis=1) + given, axis=1)
    return rows
