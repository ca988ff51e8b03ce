"""The compiled parts of the best mechanism for two values: bounds from below, paths that meet them.

One side of a chain with α ≤ β, α + β < 1 has one scalar state s (F5). While value 1 stays redacted,
a record whose value 0 is redacted with probability q takes s to f(s)/q and costs π₁ + π₀·q. From
s ≤ s_free = α/(1 − β) on, everything is free; s may never exceed 1.

What bounds every mechanism is rounded down: a state a little lower and a cost a little smaller can
only make the bound weaker, never wrong (docs/proofs/rounding.md, "Bounds on every mechanism").
Paths may be rounded either way: the referee decides about them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats
from offrecord.theory._compiling import compiled

_STATE_SLACK = 1e-13  # a state that starts a bound is taken lower by this share of it
_COST_SLACK = 1e-12  # and what is found from there by this share
_START_SLACK = 1e-6  # of a record: where the search for a start begins, so that it begins no later
_LARGEST_EXPONENT = 700.0  # e to the power of it is still a float
MOST_EXPONENT = 709.782712893384  # and of this about the largest one
_SWEEPS, _STILL = 20_000, 1e-15  # a path is settled when a sweep gains no more than this share


def lower_bounds(
    nodes: Floats,
    images: Floats,
    masses: tuple[float, float],
    chain: tuple[float, float],
    stages: int,
    *,
    free: bool,
    search: Callable[..., None],
) -> tuple[Floats, Floats, NDArray[np.int32]]:
    """What the rest of a side costs at least, with j = 0 … stages more records.

    free: with at most j, until everything is free; else with exactly j, until the chain's end.
    search: `searched`, or what does the same over arrays.
    nodes: (G + 1,) states from s_free to 1, images: f of them; masses: what redacting the common
    value and the rare one costs; chain: (α, β). Only best paths count, so from a state inside a
    path the next one is at least s·f'(s), and from its first at least f(s)
    (docs/proofs/F5-one-side.md).

    Returned: values (stages + 1, G + 1) at the nodes and slopes (stages + 1, G): inside a path,
    from a state s between nodes i and i + 1 the cost is at least values[j, i] +
    slopes[j, i]·(f(s) − images[i]). It is a minimum of affine functions of f(s), so a chord bounds
    it from below; but a step open to the lower node alone goes below s·f'(s) of the upper one, and
    is that steep. firsts (stages + 1, G + 1): the cell of the best next state where the node is the
    first of a path.
    """
    # Whole arrays are made and copied here: that takes seconds to compile, and no time to do.
    size, (alpha, beta) = len(nodes), chain
    values, slopes = np.empty((stages + 1, size)), np.zeros((stages + 1, size - 1))
    firsts, unused = np.zeros((stages + 1, size), dtype=np.int32), np.empty(size, dtype=np.int32)
    values[0], costs = np.inf if free else 0.0, np.empty(size)
    inner = nodes * (1.0 - alpha - beta) / ((1.0 - alpha) - beta * nodes) ** 2  # s·f'(s)
    for j in range(1, stages + 1):
        # The first state of a path may go down to f(s), one inside no lower than s·f'(s).
        given = (nodes, images), values[j - 1], slopes[j - 1], masses[0], chain
        search(images, *given, costs, firsts[j])
        search(inner, *given, costs, unused)
        if free:  # the next state may be s_free itself: the last step
            last = inner <= nodes[0]
            costs[last] = np.minimum(costs[last], masses[0] * images[last] / nodes[0])
        values[j] = costs + masses[1]
        if free:
            values[j] = np.minimum(values[j], values[j - 1])
        open_ = np.flatnonzero(values[j, :-1] < np.inf)
        chords = (values[j, open_ + 1] - values[j, open_]) / (images[open_ + 1] - images[open_])
        slopes[j, open_] = np.maximum(np.minimum(chords, masses[0] / inner[open_ + 1]), 0.0)
        if free and np.array_equal(values[j], values[j - 1]):
            # one more record pays nowhere, so neither do two
            values[j + 1 :], slopes[j + 1 :], firsts[j + 1 :] = values[j], slopes[j], firsts[j]
            break
    return values, slopes, firsts


@compiled
def searched(
    least: Any,
    grid: Any,
    known: Any,
    slopes: Any,
    pi0: float,
    chain: Any,
    costs: Any,
    best: Any,
) -> None:
    """For each node, the least cost of a step to a state of at least least[i] and of the rest.

    Into costs, and the cell of that state into best. The best next state never falls as s rises
    (the cost x/s' has decreasing differences), so each round halves the nodes left to search for,
    between the cells that their neighbours found.
    """
    nodes, images = grid
    size = len(nodes)
    stride = 1
    while stride < size:
        stride *= 2
    while stride >= 1:
        for i in range(stride - 1, size, 2 * stride):
            low = _cell(nodes, least[i])
            if i - stride >= 0:
                low = max(low, best[i - stride])
            high = max(best[i + stride] if i + stride < size else size - 2, low)
            costs[i], best[i] = np.inf, low
            if least[i] <= 1.0:
                for cell in range(low, high + 1):
                    total = _into(cell, images[i], least[i], grid, known, slopes, pi0, chain)
                    if total < costs[i]:
                        costs[i], best[i] = total, cell
            else:  # s may not exceed 1: no step is open
                best[i] = size - 2
        stride //= 2


@compiled
def _cell(nodes: Any, s: float) -> Any:
    """Which nodes a state lies between: above the lower one, if it lies between any."""
    low, high = 0, len(nodes)
    while low < high:
        middle = (low + high) // 2
        if nodes[middle] < s:
            low = middle + 1
        else:
            high = middle
    return min(max(low - 1, 0), len(nodes) - 2)


@compiled
def _into(
    cell: int,
    x: float,
    least: float,
    grid: Any,
    known: Any,
    slopes: Any,
    pi0: float,
    chain: Any,
) -> Any:
    """The least of π₀·x/s' + (bound on the rest from s') over the states s' ≥ least of a cell.

    The sum is convex in s' (F5), so its minimum is where the derivative is 0, or at an end.
    """
    if known[cell] == np.inf:
        return np.inf
    nodes, images = grid
    alpha, beta = chain
    a, gap = 1.0 - alpha, 1.0 - alpha - beta
    low, high = max(nodes[cell], least), nodes[cell + 1]
    s = high
    if slopes[cell] > 0.0 and x > 0.0:
        s = a / (beta + np.sqrt(slopes[cell] * gap / (pi0 * x)))
        s = min(max(s, low), high)
    image = (s * (1.0 - beta) - alpha) / (a - s * beta)
    return pi0 * x / s + known[cell] + slopes[cell] * max(image - images[cell], 0.0)


@compiled
def from_first(
    j: int, s: float, x: float, free: bool, pi0: float, pi1: float, chain: Any, tables: Any
) -> Any:
    """What a path of at most (free) or exactly j records costs at least, from its first state s.

    x = f(s). The best next state lies between those of the nodes around s, so only their cells and
    what is between them are searched.
    """
    nodes, images, values, slopes, firsts = tables
    if j == 0:
        return values[0, 0]
    cell: Any = _cell(nodes, s)
    low = int(max(firsts[j, cell], _cell(nodes, x)))
    high = int(max(firsts[j, cell + 1], low))
    cost = pi0 * x / nodes[0] if free and x <= nodes[0] else np.inf
    for other in range(low, high + 1):
        grid = (nodes, images)
        cost = min(cost, _into(other, x, x, grid, values[j - 1], slopes[j - 1], pi0, chain))
    return cost + pi1


@compiled
def settle(path: Any, alpha: float, beta: float, floor: float) -> Any:
    """Move s_1 … s_{j−1} of a path s_0 … s_j to a minimum of Σ f(s_i)/s_{i+1}; returns the sum.

    Each goes to its own best given its neighbours: every sweep lowers the sum and keeps every
    step's q at most 1 and every state above the floor.
    """
    a, gap = 1.0 - alpha, 1.0 - alpha - beta
    last = len(path) - 1
    total = np.inf
    for _ in range(_SWEEPS):
        for i in range(1, last):
            image = (path[i - 1] * (1.0 - beta) - alpha) / (a - beta * path[i - 1])
            wanted = a / (beta + np.sqrt(gap / (image * path[i + 1])))
            # f of this is s_{i+1}: any higher, and the step after would need q above 1
            highest = (path[i + 1] * a + alpha) / ((1.0 - beta) + path[i + 1] * beta)
            path[i] = min(max(wanted, image, floor), highest, 1.0)
        new = 0.0
        for i in range(last):
            new += (path[i] * (1.0 - beta) - alpha) / (a - beta * path[i]) / path[i + 1]
        if total - new <= _STILL * new:
            break
        total = new
    return new


@compiled
def state_after(budget: float, steps: float, ratio: float, log_gap: float) -> Any:
    """The state after some always-redacted records, from s = e^(−budget).

    Each multiplies w = (1 − s)/(s + α/β) by 1/(1 − α − β); ratio = α/β, log_gap = log(1 − α − β).
    """
    exponent = -steps * log_gap
    if exponent > MOST_EXPONENT:
        return -ratio
    w = -math.expm1(-budget) / (math.exp(-budget) + ratio) * math.exp(exponent)
    if w == np.inf:
        return -ratio
    return (1.0 - w * ratio) / (1.0 + w)


@compiled
def free_after(budget: float, room: int, ratio: float, log_gap: float, free_state: float) -> Any:
    """After how many always-redacted records everything is free; room + 1 if room ends before."""
    start = -math.expm1(-budget) / (math.exp(-budget) + ratio)
    if budget <= 0.0 or start <= 0.0:
        return room + 1
    steps = math.log((1.0 - free_state) / (free_state + ratio) / start) / -log_gap
    if steps > room:
        return room + 1
    # The closed form is off by less than a record; the state itself decides.
    count = max(math.floor(steps) - 1, 0)
    while count <= room and state_after(budget, float(count), ratio, log_gap) > free_state:
        count += 1
    return count


@compiled
def first_start(budget: float, ratio: float, log_gap: float) -> Any:
    """The first distance at which the common value's influence is within a budget (0:1)."""
    if budget <= 0.0:
        return 1 << 60
    # low(d) ≤ b  ⟺  (1 + (α/β)·r)/(1 − r) ≤ e^b with r = (1 − α − β)^d
    grown = math.expm1(min(budget, _LARGEST_EXPONENT))
    exact = math.log(grown / (grown + 1.0 + ratio)) / log_gap
    start = max(math.ceil(exact - _START_SLACK), 1)
    while low_influence(start, ratio, log_gap) > budget:
        start += 1
    return start


@compiled
def low_influence(distance: int, ratio: float, log_gap: float) -> Any:
    """Influence of the common value at a distance (Proposition 1's ǐ), as side.py has it."""
    r = math.exp(distance * log_gap)
    return math.log1p(ratio * r) - math.log(-math.expm1(distance * log_gap))


@compiled
def side_costs(
    budget: float, room: int, first: int, last: int, chain: Any, free: Any, end: Any
) -> Any:
    """(last − first + 1,) what a side costs at least after first … last always-redacted records.

    Those included. chain: (α, β, log(1 − α − β), what redacting the common value and the rare one
    costs). free, end: nodes, images, values, slopes, firsts
    (see lower_bounds).
    """
    alpha, beta, log_gap, pi0, pi1 = chain
    ratio, free_state = alpha / beta, alpha / (1.0 - beta)
    costs = np.empty(last - first + 1)
    for i in range(last - first + 1):
        always = first + i
        remaining = room - always
        s = state_after(budget, float(always), ratio, log_gap) * (1.0 - _STATE_SLACK)
        rest = 0.0
        is_open = s > free_state and remaining > 0
        if is_open:
            x = max((s * (1.0 - beta) - alpha) / ((1.0 - alpha) - s * beta), 0.0)
            j = min(remaining, free[2].shape[0] - 1)
            # not True and False: for each of these it would be compiled once more
            rest = from_first(j, s, x, is_open, pi0, pi1, (alpha, beta), free)
            if remaining < end[2].shape[0]:
                last_cost = from_first(remaining, s, x, not is_open, pi0, pi1, (alpha, beta), end)
                rest = min(rest, last_cost)
        costs[i] = always + rest * (1.0 - _COST_SLACK)
    return costs


@compiled
def _from(
    costs: Any, suffix: Any, first: int, is_open: bool, start: int, room: int, pi0: float
) -> Any:
    """The least cost of a side that releases nothing before distance `start`.

    And how many always-redacted records it begins with. suffix: the least of the costs from each
    on.
    """
    index = max(start - 1 - first, 0)
    if index < len(costs):
        offset = index
        while costs[offset] > suffix[index]:
            offset += 1
        return suffix[index], first + offset
    if not is_open:
        return float(room), room
    # Free in direction 1:0 already, but the common value may not be released yet: at least that one
    # stays redacted.
    last = first + len(costs) - 1
    waited = min(start - 1, room)
    return last + pi0 * (waited - last), waited


@compiled
def _side(budget: float, room: int, span: int, chain: Any, free: Any, end: Any) -> Any:
    """One side's costs for each number of always-redacted records that a best path may begin with.

    Returned: the first such number, whether everything gets free within the room, the costs, and
    the least of them from each on.
    """
    alpha, beta, log_gap = chain[0], chain[1], chain[2]
    end_stages = end[2].shape[0]
    until_free = free_after(budget, room, alpha / beta, log_gap, alpha / (1.0 - beta))
    last = min(until_free, room)
    first = last - span
    if end_stages > 1:  # paths to the chain's end may begin earlier than those to freedom
        first = min(first, room - end_stages + 1)
    first = max(first, 0)
    costs = side_costs(budget, room, first, last, chain, free, end)
    suffix, least = np.empty(len(costs)), np.inf
    for m in range(len(costs) - 1, -1, -1):
        least = min(costs[m], least)
        suffix[m] = least
    return first, until_free <= room, costs, suffix


@compiled
def pair(
    budgets: Any,
    epsilon: float,
    rooms: Any,
    together: bool,
    span: int,
    chain: Any,
    free: Any,
    end: Any,
) -> Any:
    """The least cost of both sides with these budgets in direction 1:0.

    And how many always-redacted records each begins with. Direction 0:1: the common value may be
    released first at distances whose influences sum to at most ε (F6), or, where the sides' maxima
    add (together), are within each side's own budget.
    """
    alpha, beta, log_gap, pi0, _ = chain
    ratio = alpha / beta
    first_left, open_left, left_costs, left_suffix = _side(
        budgets[0], rooms[0], span, chain, free, end
    )
    first_right, open_right, right_costs, right_suffix = _side(
        budgets[1], rooms[1], span, chain, free, end
    )
    earliest = first_start(epsilon, ratio, log_gap)
    if together or rooms[0] == 0 or rooms[1] == 0:
        start_left = first_start(budgets[0], ratio, log_gap) if together else earliest
        start_right = first_start(budgets[1], ratio, log_gap) if together else earliest
        left, m_left = _from(
            left_costs, left_suffix, first_left, open_left, start_left, rooms[0], pi0
        )
        right, m_right = _from(
            right_costs, right_suffix, first_right, open_right, start_right, rooms[1], pi0
        )
        return left + right, m_left, m_right
    best, m_left, m_right = np.inf, 0, 0
    start = max(first_left + 1, earliest)
    while True:
        cost, always = _from(left_costs, left_suffix, first_left, open_left, start, rooms[0], pi0)
        # a side that is redacted whole releases nothing, so the other has all of ε
        spent = low_influence(start, ratio, log_gap) if start <= rooms[0] else 0.0
        needed = first_start(epsilon - spent, ratio, log_gap)
        other, other_always = _from(
            right_costs, right_suffix, first_right, open_right, needed, rooms[1], pi0
        )
        if cost + other < best:
            best, m_left, m_right = cost + other, always, other_always
        # a later start on the left costs no less, and helps the right no more
        if start > rooms[0] or needed <= max(first_right + 1, earliest) or cost >= best:
            return best, m_left, m_right
        start += 1


@compiled
def least_costs(
    intervals: Any,
    epsilon: float,
    rooms: Any,
    together: bool,
    span: int,
    chain: Any,
    free: Any,
    end: Any,
) -> Any:
    """What `pair` costs at least, for intervals (n, 2) of the left side's share of ε."""
    costs = np.empty(len(intervals))
    for i in range(len(intervals)):
        budgets = (epsilon * intervals[i, 1], epsilon * (1.0 - intervals[i, 0]))
        costs[i] = pair(budgets, epsilon, rooms, together, span, chain, free, end)[0]
    return costs
