"""What one side tells under the kernels of a set that are about the worst for each output, and how
that changes with its redaction probabilities (F7 under R5).

An output is a first release, of one value at one distance. Its likelihoods under two values of the
secret are products of the same kernels and redaction rows, and rows of kernels are free of each
other: so, all other steps as they are, the ratio is largest where each row of one step takes either
the largest or the smallest average of what lies beyond (filling.py). Steps are improved one by one,
from the release to the secret, for all outputs at once.

Nothing here decides about privacy: what is found is met by some kernels, so it bounds the worst
from below. The referee has the other bound.

Outputs are the last axis of all arrays: sums over the few values of a record are then sums of long
rows, which takes a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers

_SWEEPS = 4  # over the steps of all outputs
_FEW_VALUES = 5  # all orders of so many are few
_STILL = 1e-6  # a gain in every log-ratio that is not worth another sweep


@dataclass(frozen=True, eq=False)
class Outputs:
    """First releases on one side, or nothing released to the chain's end.

    distances: (n,) of the release, from 1, ascending; values: (n,) that is released, −1 for
    nothing, with the distance of the last record; above, below: (n,) the secret's values that are
    compared.
    """

    distances: Integers
    values: Integers
    above: Integers
    below: Integers

    def at(self, numbers: Integers) -> Outputs:
        """Some of them."""
        return Outputs(
            self.distances[numbers], self.values[numbers], self.above[numbers], self.below[numbers]
        )

    @classmethod
    def of(cls, released: NDArray[np.bool_], ends: bool) -> Outputs:
        """Of the values (T, k) that may be released, and of nothing where the chain ends."""
        k = released.shape[1]
        above, below = np.nonzero(~np.eye(k, dtype=bool))
        at, value = np.nonzero(released)
        if ends:
            at, value = np.append(at, len(released) - 1), np.append(value, -1)
        pairs = len(above)
        return cls(
            np.repeat(at + 1, pairs),
            np.repeat(value, pairs),
            np.tile(above, len(at)),
            np.tile(below, len(at)),
        )


def worst_kernels(
    low: Floats, high: Floats, rows: Floats, outputs: Outputs, start: Floats | None = None
) -> Floats:
    """(T, k, k, n) kernels in a box (k, k), by step, under which each output tells about most.

    rows: (T, k) redaction probabilities by distance. start: kernels that were about the worst for
    other rows.
    """
    count, (steps, k) = len(outputs.values), rows.shape
    filled = _fillings(low.tobytes(), high.tobytes(), k)
    if start is None:
        each = np.arange(k)
        staying = filled(np.eye(k))[1, each, :, each]  # values stay for long
        kernels = np.tile(staying[..., np.newaxis], (steps, 1, 1, count))
    else:
        kernels = start.copy()
    steps = _reached(rows)
    begins, goals_at = _begins(outputs, steps), _goals_at(rows, outputs)
    # of each row the smallest average or the largest: (k, 2^k), and the sum of those that are taken
    corners = (np.arange(1 << k) >> np.arange(k)[:, np.newaxis]) & 1 > 0
    taken = np.concatenate((~corners, corners)).T.astype(np.float64)
    told = np.full(count, -np.inf)
    for _ in range(_SWEEPS):
        states = _outwards(kernels[:steps], rows, outputs)
        beyond = np.zeros((k, count))
        for step in range(steps, 0, -1):
            here = slice(begins[step], begins[-1])
            goals = rows[step - 1][:, np.newaxis] * beyond[:, here]
            goals[:, : begins[step + 1] - begins[step]] = goals_at[
                :, begins[step] : begins[step + 1]
            ]
            mixtures = filled(goals)
            averages = np.einsum("aijn,jn->ain", mixtures, goals)
            each_row = averages * states[step - 1][:, np.newaxis, :, here]
            over, under = taken @ each_row.reshape(2, 2 * k, -1)
            ratios = np.where(over > 0.0, np.inf, 0.0)  # where nothing is below the line
            best = np.divide(over, under, out=ratios, where=under > 0.0).argmax(axis=0)
            up = corners[:, best]
            kernels[step - 1, :, :, here] = np.where(up[:, np.newaxis], mixtures[1], mixtures[0])
            beyond[:, here] = np.where(up, averages[1], averages[0])
        found = _log_ratios(beyond, outputs)
        if not np.any(found > told + _STILL):
            break
        told = found
    return kernels


def told_under(kernels: Floats, rows: Floats, outputs: Outputs) -> Floats:
    """(n,) log-ratios of outputs under kernels (T, k, k, n); −∞ for what cannot be released."""
    steps = _reached(rows)
    released = rows[outputs.distances - 1, outputs.values] < 1.0
    here = np.flatnonzero((outputs.distances <= steps) & (released | (outputs.values < 0)))
    told = np.full(len(outputs.values), -np.inf)
    some = outputs.at(here)
    told[here] = _log_ratios(_inwards(kernels[:steps, ..., here], rows[:steps], some)[0], some)
    return told


def _reached(rows: Floats) -> int:
    """How many records can be met before something has been released for certain."""
    free = np.flatnonzero(~rows.any(axis=1))
    return int(free[0]) + 1 if len(free) else len(rows)


@lru_cache(maxsize=16)
def never_released(low: bytes, high: bytes, k: int, steps: int, budget: float) -> NDArray[np.bool_]:
    """(steps, k) values whose release at a distance tells more than a budget although all before it
    is redacted: by F3 no design releases them. low, high: a box (k, k), by its very numbers.
    """
    least, most = (np.frombuffer(part).reshape(k, k) for part in (low, high))
    outputs = Outputs.of(np.ones((steps, k), dtype=bool), ends=False)
    rows = np.ones((steps, k))
    kernels = worst_kernels(least, most, rows, outputs)
    told = _log_ratios(_inwards(kernels, rows, outputs)[0], outputs)
    return np.asarray(told.reshape(steps, k, -1).max(axis=2) > budget)


def slopes_under(kernels: Floats, rows: Floats, outputs: Outputs) -> tuple[Floats, Floats]:
    """(n,) log-ratios of outputs under kernels, released or not, and (n, T, k) their derivatives by
    the rows.
    """
    steps = len(rows)
    beyond = _inwards(kernels, rows, outputs)
    told = _log_ratios(beyond[0], outputs)
    slopes = np.zeros(beyond[1:].shape)
    nothing = np.flatnonzero(outputs.values < 0)
    beyond[outputs.distances[nothing], :, nothing] = 1.0
    states = _outwards(kernels, rows, outputs)
    for sign, side in ((1.0, 0), (-1.0, 1)):
        reached = np.einsum("tin,tijn->tjn", states[:, side], kernels)
        masses = reached * beyond[1:]
        total = (masses * rows[..., np.newaxis]).sum(axis=1, keepdims=True)
        slopes += sign * np.divide(masses, total, out=np.zeros_like(masses), where=total > 0)
    ends = outputs.distances + (outputs.values < 0)
    later = np.arange(1, steps + 1)[:, np.newaxis] >= ends
    slopes = np.where(later[:, np.newaxis], 0.0, slopes)
    return told, np.ascontiguousarray(slopes.transpose(2, 0, 1))


def _inwards(kernels: Floats, rows: Floats, outputs: Outputs) -> Floats:
    """(T + 1, k, n) how likely an output is, given each value at distance 0, 1, …, that record
    redacted.
    """
    count, (steps, k) = len(outputs.values), rows.shape
    begins, goals_at = _begins(outputs, steps), _goals_at(rows, outputs)
    beyond = np.zeros((steps + 1, k, count))
    for step in range(steps, 0, -1):
        here = slice(begins[step], begins[-1])
        goals = rows[step - 1][:, np.newaxis] * beyond[step, :, here]
        goals[:, : begins[step + 1] - begins[step]] = goals_at[:, begins[step] : begins[step + 1]]
        beyond[step - 1, :, here] = np.einsum("ijn,jn->in", kernels[step - 1, ..., here], goals)
    return beyond


def _begins(outputs: Outputs, steps: int) -> list[int]:
    """Where the outputs of each distance begin, up to one more than there are steps."""
    begins: list[int] = np.searchsorted(outputs.distances, np.arange(steps + 2)).tolist()
    return begins


def _goals_at(rows: Floats, outputs: Outputs) -> Floats:
    """(k, n) what leads from each value at its own distance to an output: its release, or being
    redacted.
    """
    released = np.eye(rows.shape[1])[:, outputs.values]
    nothing = outputs.values < 0
    released[:, nothing] = rows[outputs.distances[nothing] - 1].T
    return np.asarray(released)


def _log_ratios(likely: Floats, outputs: Outputs) -> Floats:
    """likely: (k, n) by value of the secret."""
    number = np.arange(likely.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(likely[outputs.above, number] / likely[outputs.below, number])
    return np.asarray(np.where(np.isnan(logs), -np.inf, logs))


def _outwards(kernels: Floats, rows: Floats, outputs: Outputs) -> Floats:
    """(T, 2, k, n) redacted so far, with each value, before the step to distance 1, 2, … as far as
    the release, under the secret's values that are compared; 0 beyond.
    """
    steps, k, _, count = kernels.shape
    begins = _begins(outputs, steps)
    states = np.zeros((steps, 2, k, count))
    states[0] = np.eye(k)[:, np.stack((outputs.above, outputs.below))].swapaxes(0, 1)
    for step in range(1, steps):
        here = slice(begins[step + 1], count)
        before, kernel = states[step - 1, ..., here], kernels[step - 1, ..., here]
        onward = np.einsum("ain,ijn->ajn", before, kernel)
        states[step, ..., here] = onward * rows[step - 1][:, np.newaxis]
    return states


@lru_cache(maxsize=16)
def _fillings(low: bytes, high: bytes, k: int) -> Callable[[Floats], Floats]:
    """What finds, for goals (k, n), the rows (2, k, k, n) of a box that have the smallest and the
    largest averages of them. low, high: the box (k, k), by its very numbers.

    Which rows these are depends on the order of the goals alone, so they are made once for each
    order of a few values.
    """
    least, most = (np.frombuffer(part).reshape(k, k) for part in (low, high))
    spare, rest = most - least, 1.0 - least.sum(axis=1, keepdims=True)

    def filled(rising: Integers) -> Floats:
        """By orders (n, k), from the smallest goal to the largest."""
        mixtures = np.empty((2, len(rising), k, k))
        for mixture, order in zip(mixtures, (rising, rising[:, ::-1]), strict=True):
            room = spare[:, order].transpose(1, 0, 2)  # (n, row, rank)
            before = np.cumsum(room, axis=2) - room
            places = np.broadcast_to(order[:, np.newaxis], room.shape)
            np.put_along_axis(mixture, places, np.clip(rest - before, 0.0, room), axis=2)
        return np.ascontiguousarray((mixtures + least).transpose(0, 2, 3, 1))

    if k > _FEW_VALUES:
        return lambda goals: filled(np.argsort(goals, axis=0).T)
    # which of two is smaller, for all pairs, as the digits of a number
    first, second = np.triu_indices(k, 1)
    digits = 1 << np.arange(len(first))
    orders = np.array(list(permutations(range(k))))
    ranks = np.argsort(orders, axis=1)
    number = np.zeros(1 << len(first), dtype=np.int64)
    number[(ranks[:, first] < ranks[:, second]) @ digits] = np.arange(len(orders))
    table = filled(orders)[..., number]
    return lambda goals: table[..., digits @ (goals[first] < goals[second])]
