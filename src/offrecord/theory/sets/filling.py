"""The smallest and largest average of a vector under the rows of a box, compiled (R5).

A row p of a kernel lies in the box if low ≤ p ≤ high and its entries sum to 1. p·v is smallest if
every entry has its low and the rest of the mass goes to the states with the smallest v first, each
up to its high; largest in the opposite order. Rows are free of each other, so all of P·v is the
product of these intervals, and its corners are the extreme images of v.

A structural zero (high = 0) stays an exact zero whatever is rounded.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from offrecord.theory._compiling import compiled


@compiled
def order_of(v: Any, order: Any) -> None:
    """Enter the indices of v by rising value; for the few states of a row insertion is fastest."""
    for j in range(len(v)):
        at = j
        while at > 0 and v[order[at - 1]] > v[j]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = j


@compiled
def fill(low: Any, high: Any, v: Any, order: Any, lower: Any, upper: Any) -> None:
    """Enter the smallest and largest average of v (k,) under each row; low, high: (rows, k)."""
    k = len(v)
    for i in range(low.shape[0]):
        base, rest = 0.0, 1.0
        for j in range(k):
            base += low[i, j] * v[j]
            rest -= low[i, j]
        small, left = base, rest
        for at in range(k):
            if left <= 0.0:
                break
            j = order[at]
            added = min(left, high[i, j] - low[i, j])
            small += added * v[j]
            left -= added
        large, left = base, rest
        for at in range(k - 1, -1, -1):
            if left <= 0.0:
                break
            j = order[at]
            added = min(left, high[i, j] - low[i, j])
            large += added * v[j]
            left -= added
        lower[i], upper[i] = small, large


@compiled
def uncertainty(k: int) -> float:
    """By how much an average of k numbers up to 1 may be off (docs/proofs/rounding.md)."""
    return (4.0 * k + 4.0) * 2.0**-53


@compiled
def _hidden(uncertain: float, k: int) -> float:
    """What rounding may do to the logarithm of a ratio of two averages and of what is made of them.

    uncertain: how many times as large as an average the largest number averaged may be.
    """
    share = uncertainty(k) * uncertain
    return np.inf if share >= 1.0 else 2.0 * share / (1.0 - share) + 2.0**-51


@compiled
def seen(rays: Any, row: Any) -> Any:
    """(m, k) what a record adds: rays of what lies beyond it if redacted, and released values.

    rays: (n, k) rays of Pr(all seen beyond | value), maybe none; row: (k,) its redaction
    probabilities. Outputs that no value can cause are left out.
    """
    n, k = rays.shape
    out = np.zeros((n + k, k))
    count = 0
    for at in range(n):
        total = 0.0
        for j in range(k):
            out[count, j] = rays[at, j] * row[j]
            total += out[count, j]
        if total > 0.0:
            count += 1
    for j in range(k):
        if row[j] < 1.0:
            out[count, :] = 0.0
            out[count, j] = 1.0
            count += 1
    return out[:count]


@compiled
def corners(low: Any, high: Any, rays: Any) -> Any:
    """((2^k)·n, k) the corners of every ray's images, each with sum 1, and their rounding.

    The rounding is a bound on what all of this did to the logarithm of any ratio: the mass left
    over is a difference, so an average is uncertain by some units of the largest entry averaged.
    """
    n, k = rays.shape
    out = np.empty((n << k, k))
    order = np.empty(k, dtype=np.int64)
    lower, upper = np.empty(k), np.empty(k)
    count, uncertain = 0, 0.0
    for at in range(n):
        order_of(rays[at], order)
        fill(low, high, rays[at], order, lower, upper)
        top = rays[at, order[k - 1]]
        for i in range(k):
            if upper[i] > 0.0:
                uncertain = max(uncertain, top / upper[i])
            if lower[i] > 0.0:
                uncertain = max(uncertain, top / lower[i])
        for corner in range(1 << k):
            total = 0.0
            for i in range(k):
                out[count, i] = upper[i] if corner >> i & 1 else lower[i]
                total += out[count, i]
            if total > 0.0:
                for i in range(k):
                    out[count, i] /= total
                count += 1
    return out[:count], _hidden(uncertain, k)


@compiled
def largest_ratios(low: Any, high: Any, rays: Any) -> Any:
    """(k, k) the largest log-ratio of row x over row x′ of P·v, P in the box, and rounding.

    An output that x cannot cause does not count for it; one that only x′ may be unable to is
    infinite.
    """
    n, k = rays.shape
    worst = np.zeros((k, k))
    order = np.empty(k, dtype=np.int64)
    lower, upper = np.empty(k), np.empty(k)
    uncertain = 0.0
    for at in range(n):
        order_of(rays[at], order)
        fill(low, high, rays[at], order, lower, upper)
        top = rays[at, order[k - 1]]
        for x in range(k):
            if upper[x] == 0.0:
                continue
            uncertain = max(uncertain, top / upper[x])
            for other in range(k):
                if other == x:
                    continue
                if lower[other] > 0.0:
                    worst[x, other] = max(worst[x, other], upper[x] / lower[other])
                    uncertain = max(uncertain, top / lower[other])
                else:
                    worst[x, other] = np.inf
    for x in range(k):
        for other in range(k):
            worst[x, other] = max(0.0, math.log(worst[x, other])) if worst[x, other] > 0.0 else 0.0
    return worst, _hidden(uncertain, k)


@compiled
def spread(rays: Any) -> float:
    """The largest log-ratio of two entries of one ray."""
    worst = 1.0
    for at in range(rays.shape[0]):
        smallest, largest = np.inf, 0.0
        for j in range(rays.shape[1]):
            smallest, largest = min(smallest, rays[at, j]), max(largest, rays[at, j])
        if smallest == 0.0:
            return np.inf
        worst = max(worst, largest / smallest)
    return math.log(worst)
