"""Chains on hidden states, each of which shows one value."""

from __future__ import annotations

import numpy as np

from offrecord.models.base import Floats, Integers


def without_needless_states(
    kernel: Floats, start: Floats | None, shows: Integers
) -> tuple[Floats, Floats | None, Integers | None]:
    """Kernel, start and shows; where each value has one state, those of the chain on values."""
    if len(np.unique(shows)) < len(shows):
        shows.setflags(write=False)
        return kernel, start, shows
    state_of = np.argsort(shows)
    return kernel[np.ix_(state_of, state_of)], None if start is None else start[state_of], None


def shown_masses(masses: Floats, shows: Integers, k: int) -> Floats:
    """(n, k) how likely records are to show each value; masses: (n, h) of their states."""
    if len(masses) == 0:
        return np.empty((0, k))
    if masses.strides[0] == 0:  # the same row for all, and as little memory
        return np.broadcast_to(shown_masses(masses[:1].copy(), shows, k), (len(masses), k))
    return np.stack([masses[:, shows == value].sum(axis=1) for value in range(k)], axis=1)


def value_kernel(kernel: Floats, start: Floats, shows: Integers, k: int) -> Floats:
    """(k, k) Pr(next value | value) in a stationary chain on hidden states; start: stationary.

    The chain of values is not Markov: this says what one value tells of the next, and no more.
    """
    member = (shows == np.arange(k)[:, np.newaxis]).astype(float)
    both = (member * start) @ kernel @ member.T
    sums = both.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(both, sums, out=np.zeros_like(both), where=sums > 0))
