"""The largest ratio of two rows of P·v for v between bounds, any number of states, compiled (R5).

v_j may be anything between a_j and b_j, so at its worst it is b on some event A and a elsewhere.
The averages are bounded by duality: for any level μ

    max over p of p·v  ≤  μ·rest + Σ_j low_j·v_j + cap_j·max(v_j − μ, 0),    cap = high − low

with rest = 1 − Σ low, equal if μ is the value at which the greedy fill runs out of mass; the least
average likewise from below, for any level ν. For fixed levels both are sums over states, so the
event with the largest ratio is found by sorting. Every pair of levels gives an upper bound; tried
are the lowest and highest values, and from the best of these the levels that its event asks for.
With v between 1 and e^d these are the four forms 1 + g·p̄(A) and 1 + g·p̲(A) of R5.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offrecord.theory._compiling import compiled
from offrecord.theory.sets.filling import fill, order_of, uncertainty

#: How often levels are asked for anew.
_ROUNDS = 4
_UNIT = 2.0**-53
#: Added to each log-ratio at each step, for the rounding of logarithms.
_STEP = 1e-13


@compiled
def largest_ratio(rows: Any, between: Any) -> float:
    """An upper bound of (p·v)/(q·v), v in [a, b]; 0 if p·v is always 0.

    rows: (2, 2, n) low and cap of p, then of q; between: (2, n) a and b.
    """
    n = between.shape[1]
    rest = np.ones(2)
    least, largest = np.inf, 0.0
    for j in range(n):
        rest[0] -= rows[0, 0, j]
        rest[1] -= rows[1, 0, j]
        least, largest = min(least, between[0, j]), max(largest, between[1, j])
    event = np.zeros(n, dtype=np.bool_)
    chosen = np.zeros(n, dtype=np.bool_)
    best = np.inf
    for mu in (least, largest):
        for nu in (least, largest):
            ratio = _by_levels(rows, rest, between, mu, nu, event)
            if ratio < best or best == np.inf:
                best = ratio
                _enter(event, chosen)
    v = np.empty(n)
    order = np.empty(n, dtype=np.int64)
    for _ in range(_ROUNDS):
        for j in range(n):
            v[j] = between[1, j] if chosen[j] else between[0, j]
        order_of(v, order)
        nu = _level(v, order, rows[1, 1], rest[1])
        for j in range(n // 2):
            order[j], order[n - 1 - j] = order[n - 1 - j], order[j]
        mu = _level(v, order, rows[0, 1], rest[0])
        ratio = _by_levels(rows, rest, between, mu, nu, event)
        if not ratio < best:
            break
        best = ratio
        _enter(event, chosen)
    return best


@compiled
def _enter(event: Any, chosen: Any) -> None:
    """One event into another; an assignment of whole arrays takes seconds to compile."""
    for j in range(len(event)):
        chosen[j] = event[j]


@compiled
def _level(v: Any, order: Any, cap: Any, rest: float) -> float:
    """The value at which a fill in this order runs out of mass."""
    for j in order:
        rest -= cap[j]
        if rest <= 0.0:
            return float(v[j])
    return float(v[order[-1]])


@compiled
def _by_levels(rows: Any, rest: Any, between: Any, mu: float, nu: float, event: Any) -> float:
    """The largest ratio of the two bounds with these levels, and the event where it is met."""
    n = between.shape[1]
    # the mass that is left is a difference: no less of it above, below by what is taken off later
    top, bottom, size = mu * (max(rest[0], 0.0) + (n + 2.0) * _UNIT), nu * max(rest[1], 0.0), nu
    more_top, more_bottom, gain = np.empty(n), np.empty(n), np.empty(n)
    for j in range(n):
        a, b = between[0, j], between[1, j]
        first = rows[0, 0, j] * a + rows[0, 1, j] * max(a - mu, 0.0)
        second = rows[1, 0, j] * a - rows[1, 1, j] * max(nu - a, 0.0)
        top += first
        bottom += second
        more_top[j] = rows[0, 0, j] * b + rows[0, 1, j] * max(b - mu, 0.0) - first
        more_bottom[j] = rows[1, 0, j] * b - rows[1, 1, j] * max(nu - b, 0.0) - second
        size += rows[1, 0, j] * b + rows[1, 1, j] * nu
        # −∞ sorts last: nothing to gain above
        gain[j] = -np.inf
        if more_top[j] > 0.0:
            gain[j] = more_top[j] / max(more_bottom[j], 0.0)
    bottom -= 8.0 * (n + 4.0) * _UNIT * size  # the terms may cancel
    event[:] = False
    if bottom <= 0.0:  # with this level there is no bound, also not for larger events
        return np.inf
    order = np.empty(n, dtype=np.int64)
    order_of(gain, order)
    for at in range(n - 1, -1, -1):
        j = order[at]
        if not gain[j] > top / bottom:
            break
        event[j] = True
        top += more_top[j]
        bottom += max(more_bottom[j], 0.0)
    return float(top * (1.0 + 8.0 * (n + 4.0) * _UNIT) / bottom)


@compiled
def stepped(bounds: Any, any_beyond: bool, row: Any, low: Any, high: Any) -> Any:
    """(S, S) bounds of log-ratios one step nearer to the secret.

    bounds: (S, S) those beyond the record, unless nothing beyond it matters; row: (S,) its
    redaction probabilities; low, high: (S, S) the box of the step. −∞: nothing can be seen.
    """
    states = len(row)
    lowest, highest = _extremes(low, high)
    worst, widest = np.zeros((states, states)), 1.0
    if any_beyond:
        largest = -np.inf
        for x in range(states):
            for other in range(states):
                largest = max(largest, bounds[x, other])
        widest = np.exp(largest)
    for x in range(states):
        for other in range(states):
            if other == x:
                continue
            if any_beyond:
                worst[x, other] = _redacted(bounds, widest, row, low, high, (x, other))
            for j in range(states):
                if row[j] < 1.0 and highest[x, j] > 0.0:
                    worst[x, other] = max(worst[x, other], highest[x, j] / lowest[other, j])
    return np.log(worst) + _STEP


@compiled
def _extremes(low: Any, high: Any) -> Any:
    """The least and largest single entry of each row that the others allow, rounded outward."""
    states = low.shape[0]
    lowest, highest = np.empty((states, states)), np.empty((states, states))
    unsure = 2.0 * (states + 2.0) * _UNIT
    for i in range(states):
        least, largest = 0.0, 0.0
        for j in range(states):
            least, largest = least + low[i, j], largest + high[i, j]
        spare, excess = 1.0 - least + unsure, largest - 1.0 + unsure
        for j in range(states):
            lowest[i, j], highest[i, j] = low[i, j], high[i, j]
            if high[i, j] > 0.0:
                lowest[i, j] = max(low[i, j], high[i, j] - excess)
                highest[i, j] = min(high[i, j], low[i, j] + spare)
    return lowest, highest


@compiled
def _redacted(bounds: Any, widest: float, row: Any, low: Any, high: Any, pair: Any) -> float:
    """The largest ratio of a pair of rows if the record is redacted.

    The entries of h relative to each other: all within the range, or each relative to the entry of
    x or of x′; the best of these three.
    """
    x, other = pair
    touched = np.empty(len(row), dtype=np.int64)
    n = 0
    for j in range(len(row)):
        if high[x, j] > 0.0 or high[other, j] > 0.0:
            touched[n] = j
            n += 1
    rows = np.empty((2, 2, n))
    for at in range(n):
        j = touched[at]
        rows[0, 0, at], rows[0, 1, at] = low[x, j], high[x, j] - low[x, j]
        rows[1, 0, at], rows[1, 1, at] = low[other, j], high[other, j] - low[other, j]
    between = np.empty((2, n))
    best = np.inf
    for reference in (-1, x, other):
        finite = True
        for at in range(n):
            j = touched[at]
            a, b = 1.0, widest
            if reference >= 0:
                a, b = np.exp(-bounds[reference, j]), np.exp(bounds[j, reference])
            if high[x, j] == 0.0:
                b = a  # nothing to gain above
            finite = finite and (b < np.inf or row[j] == 0.0)
            between[0, at] = a * row[j]
            between[1, at] = b * row[j] if row[j] > 0.0 else 0.0
        if finite:
            best = min(best, largest_ratio(rows, between))
    return best


@compiled
def averaged(low: Any, high: Any, least: Any, largest: Any) -> Any:
    """One more step at the near end of a block: its least and largest entries, rounded outward.

    least, largest: (S, S) those so far, row: state at the near end, column: at the far end.
    """
    states = low.shape[0]
    below, above = np.empty((states, states)), np.empty((states, states))
    order = np.empty(states, dtype=np.int64)
    lower, upper = np.empty(states), np.empty(states)
    unsure = uncertainty(states)
    for j in range(states):
        order_of(least[:, j], order)
        fill(low, high, least[:, j], order, lower, upper)
        for i in range(states):
            below[i, j] = max(lower[i] - unsure, 0.0)
        order_of(largest[:, j], order)
        fill(low, high, largest[:, j], order, lower, upper)
        for i in range(states):
            above[i, j] = min(upper[i] + unsure, 1.0) if upper[i] > 0.0 else 0.0
    return below, above
