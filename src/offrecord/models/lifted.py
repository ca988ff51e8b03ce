"""Chains of order m as first-order chains on tuples of m neighbouring records (F8).

A tuple is one number in base k, the value of its oldest record leading.
"""

from __future__ import annotations

import numpy as np

from offrecord.models.base import Floats, Integers


def lifted_kernel(kernel: Floats) -> Floats:
    """(k^m, k^m) the kernel on m-tuples; kernel: m + 1 axes of k, the next record's value last."""
    k, states = kernel.shape[-1], kernel.size // kernel.shape[-1]
    lifted = np.zeros((states, states))
    lifted[np.arange(states)[:, np.newaxis], onward(k, states)] = kernel.reshape(states, k)
    return lifted


def lifted_back(kernel: Floats) -> Floats:
    """(k^m, k^m) the kernel on m-tuples back in time; kernel: m axes of k, the values of a tuple in
    the order of time, and last that of the record before it.
    """
    k, states = kernel.shape[-1], kernel.size // kernel.shape[-1]
    lifted = np.zeros((states, states))
    lifted[np.arange(states)[:, np.newaxis], earlier(k, states)] = kernel.reshape(states, k)
    return lifted


def unlifted_back(lifted: Floats, k: int) -> Floats:
    """The kernel back in time whose `lifted_back` is this."""
    states = len(lifted)
    order = round(np.log(states) / np.log(k))
    rows = lifted[np.arange(states)[:, np.newaxis], earlier(k, states)]
    return rows.reshape((k,) * (order + 1))


def earlier(k: int, states: int) -> Integers:
    """(states, k) the tuple before each one, by the value of the record before it."""
    return np.arange(k) * (states // k) + (np.arange(states) // k)[:, np.newaxis]


def onward(k: int, states: int) -> Integers:
    """(states, k) the tuple that follows each one, by the next record's value."""
    # drop the oldest value, then append the next
    return (np.arange(states) * k % states)[:, np.newaxis] + np.arange(k)


def coordinate(k: int, order: int, index: int) -> Integers:
    """(k^order,) the value of the index-th record (from 0) in each tuple."""
    return np.asarray(np.arange(k**order) // k ** (order - 1 - index) % k)
