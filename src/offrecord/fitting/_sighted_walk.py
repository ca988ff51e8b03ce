"""Forward and backward walks of a hidden chain over the records that are seen, compiled.

States are numbered so that those of one value stand side by side: value v is shown by the states
first[v] … first[v + 1] − 1. A record that is seen leaves those alone possible, so that a step costs
the product of two such blocks, not the square of all states.

values: (n,) the value of each record that is seen. gaps: (n,) steps since the one before it, 0
where a chain begins. powers: (G + 1, h, h) the kernel's powers, the gth at g. start: (h,) the
distribution where a chain begins.

Inside the loops i and j are states at a record and at the next one, both counted within their
blocks; weights are those of the forward walk, hopes those of the backward walk.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offrecord.theory._compiling import compiled


@compiled
def forward(values: Any, gaps: Any, first: Any, powers: Any, start: Any) -> Any:
    """What is known at each record from it and all before it, and how likely each was.

    Returns weights (n, w), Pr(state | seen up to here) in the block of the record's value, and
    chances (n,), Pr(value | seen before).
    """
    n = len(values)
    width = 0
    for value in range(len(first) - 1):
        width = max(width, first[value + 1] - first[value])
    weights, chances = np.zeros((n, width)), np.zeros(n)
    for t in range(n):
        low, high = first[values[t]], first[values[t] + 1]
        if gaps[t] == 0:
            for j in range(high - low):
                weights[t, j] = start[low + j]
        else:
            before, after = first[values[t - 1]], first[values[t - 1] + 1]
            kernel = powers[gaps[t]]
            for i in range(after - before):
                for j in range(high - low):
                    weights[t, j] += weights[t - 1, i] * kernel[before + i, low + j]
        for j in range(high - low):
            chances[t] += weights[t, j]
        for j in range(high - low):
            weights[t, j] /= chances[t]
    return weights, chances


@compiled
def backward(values: Any, gaps: Any, first: Any, powers: Any, weights: Any, chances: Any) -> Any:
    """What all records together say of gaps and of beginnings.

    Returns crossed (G + 1, h, h): at g, the sum over gaps of g steps of Pr(both ends' states, all
    that is seen) without the factor Pr(step between them), and begun (h,): how many chains are
    expected to begin in each state.
    """
    states = first[-1]
    crossed, begun = np.zeros((len(powers), states, states)), np.zeros(states)
    hopes, fresh = np.ones(weights.shape[1]), np.ones(weights.shape[1])
    for t in range(len(values) - 1, -1, -1):
        low, high = first[values[t]], first[values[t] + 1]
        if gaps[t] == 0:
            for j in range(high - low):
                begun[low + j] += weights[t, j] * hopes[j]
            hopes[:] = 1.0
            continue
        before, after = first[values[t - 1]], first[values[t - 1] + 1]
        kernel, met = powers[gaps[t]], crossed[gaps[t]]
        for i in range(after - before):
            fresh[i] = 0.0
            for j in range(high - low):
                hope = hopes[j] / chances[t]
                met[before + i, low + j] += weights[t - 1, i] * hope
                fresh[i] += kernel[before + i, low + j] * hope
        hopes, fresh = fresh, hopes
    return crossed, begun
