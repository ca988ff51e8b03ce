"""Sequences of kernels under which outcomes tell about the most: where to bound cones tightly.

A proposal: nothing relies on its being right.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from offrecord.verify.stopping.span import Floats

_SWEEPS = 20


def goals_of(kernels: Floats, levels: Sequence[int], rests: Floats) -> Floats:
    """(2, f, L + 1, 2, 2) what leads from (x, i) at each distance, before its stop, to each outcome
    under its worst sequence, by the x above the line; 0 beyond it.

    rests: (m − 1, 4) shares that go on by level. An outcome is a level and a value with which some
    stop there. A kernel at a time is changed for the better, forth and back along all walks at
    once, from each corner throughout.
    """
    last, count = levels[-1], len(kernels)
    keeps = np.ones((last + 1, 2, 2))
    keeps[list(levels[:-1])] = rests.reshape(-1, 2, 2)
    ends = [(d, value) for d in levels for value in (0, 1)]
    ends = [(d, value) for d, value in ends if d == last or keeps[d, :, value].min() < 1.0]
    targets = [(d, value, over) for over in (0, 1) for d, value in ends]
    distance, value, over = (np.repeat(one, count) for one in np.array(targets).T)
    batch = np.arange(len(distance))
    walks = np.repeat(np.tile(np.arange(count), len(targets))[:, np.newaxis], last + 1, axis=1)
    steps = kernels.reshape(-1, 2).T  # to all choices of a kernel at once
    goals = np.zeros((len(batch), last + 1, 2, 2))
    ratios = np.zeros(len(batch))
    for _ in range(_SWEEPS):
        states = _forth(kernels, keeps, walks)
        ahead = np.zeros((len(batch), 2, 2))
        changed = False
        for step in range(last, 0, -1):
            begin = distance == step
            ahead[begin, :, value[begin]] = 1.0
            goals[begin, step] = ahead[begin]
            live = np.flatnonzero(distance >= step)
            choices = (ahead[live].reshape(-1, 2) @ steps).reshape(len(live), 2, count, 2)
            parts = states[step - 1, live][:, :, np.newaxis] * choices
            met = parts[..., 0] + parts[..., 1]
            each = np.arange(len(live))
            above = met[each, over[live]]
            below = met[each, 1 - over[live]]
            with np.errstate(divide="ignore", invalid="ignore"):
                quotients = np.nan_to_num(above / below, nan=-1.0)
            best = quotients.argmax(axis=1)
            ratios[live] = quotients[each, best]
            changed = changed or bool(np.any(walks[live, step] != best))
            walks[live, step] = best
            ahead[live] = choices[each, :, best] * keeps[step - 1]
            most = ahead[live].max(axis=(1, 2), keepdims=True)
            ahead[live] /= np.where(most > 0, most, 1.0)
            goals[live, step - 1] = ahead[live]
        if not changed:
            break
    chosen = np.arange(0, len(batch), count) + ratios.reshape(-1, count).argmax(axis=1)
    return np.asarray(goals[chosen].reshape(2, -1, last + 1, 2, 2))


def _forth(kernels: Floats, keeps: Floats, walks: NDArray[np.intp]) -> Floats:
    """(L + 1, f, 2, 2) what walks meet at each distance, after its stop."""
    size, last = walks.shape[0], walks.shape[1] - 1
    states = np.empty((last + 1, size, 2, 2))
    states[0] = np.eye(2)
    for step in range(1, last + 1):
        here = np.einsum("bxi,bij->bxj", states[step - 1], kernels[walks[:, step]]) * keeps[step]
        most = here.max(axis=(1, 2), keepdims=True)
        states[step] = here / np.where(most > 0, most, 1.0)
    return states
