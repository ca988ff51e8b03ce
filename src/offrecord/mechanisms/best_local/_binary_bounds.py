"""The compiled parts of the best mechanism for two values: value functions from below, and paths
that meet them.

One side of a chain with α ≤ β, α + β < 1 has one scalar state s (F5). While value 1 stays redacted,
a record whose value 0 is redacted with probability q takes s to f(s)/q and costs π₁ + π₀·q. From s
≤ s_free on, everything is free; s may never exceed 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offrecord.theory._walk import compiled


@compiled
def lower_bounds(
    nodes: Any, images: Any, pi0: float, pi1: float, chain: Any, stages: int, free: bool
) -> Any:
    """What the rest of a side at least costs with at most (free) or exactly (not free) j = 0 …
    stages more records.

    nodes: (G + 1,) states from s_free to 1, images: f of them; chain: (α, β). Only best paths
    count, so from a state inside a path the next one is at least s·f'(s), and from its first at
    least f(s) (docs/proofs/F5-one-side.md). Returned: values (stages + 1, G + 1) at the nodes and
    slopes (stages + 1, G): inside a path, from a state s between nodes i and i + 1 the cost is at
    least values[j, i] + slopes[j, i]·(f(s) − images[i]). It is a minimum of affine functions of
    f(s), so a chord bounds it from below; but a step open to the lower node alone goes below
    s·f'(s) of the upper one, and is that steep. firsts (stages + 1, G + 1): the cell of the best
    next state where the node is the first of a path.
    """
    size = len(nodes)
    values, slopes = np.empty((stages + 1, size)), np.zeros((stages + 1, size - 1))
    firsts = np.zeros((stages + 1, size), dtype=np.int32)
    values[0] = np.inf if free else 0.0
    alpha, beta = chain
    inner = nodes * (1.0 - alpha - beta) / ((1.0 - alpha) - beta * nodes) ** 2  # s·f'(s)
    costs, unused = np.empty(size), np.empty(size, dtype=np.int32)
    for j in range(1, stages + 1):
        _search(nodes, images, images, values[j - 1], slopes[j - 1], pi0, chain, costs, firsts[j])
        _search(nodes, images, inner, values[j - 1], slopes[j - 1], pi0, chain, costs, unused)
        changed = False
        for i in range(size):
            cost = costs[i]
            if free and inner[i] <= nodes[0]:
                cost = min(cost, pi0 * images[i] / nodes[0])
            cost += pi1
            if free:
                changed = changed or cost < values[j - 1, i]
                cost = min(cost, values[j - 1, i])
            values[j, i] = cost
        for i in range(size - 1):
            if values[j, i] < np.inf:
                chord = (values[j, i + 1] - values[j, i]) / (images[i + 1] - images[i])
                slopes[j, i] = max(min(chord, pi0 / inner[i + 1]), 0.0)
        if free and not changed:
            for rest in range(j + 1, stages + 1):
                values[rest], slopes[rest], firsts[rest] = values[j], slopes[j], firsts[j]
            break
    return values, slopes, firsts


@compiled
def _search(
    nodes: Any,
    images: Any,
    least: Any,
    known: Any,
    slopes: Any,
    pi0: float,
    chain: Any,
    costs: Any,
    best: Any,
) -> None:
    """For each node, the least cost of a step to a next state of at least least[i] and of the rest
    from there, and its cell.

    The best next state never falls as s rises (the cost x/s' is submodular), so each round halves
    the nodes left to search for.
    """
    size = len(nodes)
    stride = 1
    while stride < size:
        stride *= 2
    while stride >= 1:
        for i in range(stride - 1, size, 2 * stride):
            low = min(max(np.searchsorted(nodes, least[i]) - 1, 0), size - 2)
            if i - stride >= 0:
                low = max(low, best[i - stride])
            high = max(best[i + stride] if i + stride < size else size - 2, low)
            costs[i], best[i] = np.inf, low
            if least[i] <= 1.0:
                for cell in range(low, high + 1):
                    total = _into(
                        cell, images[i], least[i], nodes, images, known, slopes, pi0, chain
                    )
                    if total < costs[i]:
                        costs[i], best[i] = total, cell
            else:
                best[i] = size - 2
        stride //= 2


@compiled
def _into(
    cell: int,
    x: float,
    least: float,
    nodes: Any,
    images: Any,
    known: Any,
    slopes: Any,
    pi0: float,
    chain: Any,
) -> Any:
    """The least of π₀·x/s' + (bound on the rest from s') over the next states s' ≥ least of a cell:
    convex in s'.
    """
    if known[cell] == np.inf:
        return np.inf
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
    """What a path of at most (free) or exactly j records from its first state s, f(s) = x, at least
    costs.
    """
    nodes, images, values, slopes, firsts = tables
    if j == 0:
        return values[0, 0]
    cell: Any = min(max(np.searchsorted(nodes, s) - 1, 0), len(nodes) - 2)
    low = int(max(firsts[j, cell], min(max(np.searchsorted(nodes, x) - 1, 0), len(nodes) - 2)))
    high = int(max(firsts[j, cell + 1], low))
    cost = pi0 * x / nodes[0] if free and x <= nodes[0] else np.inf
    for other in range(low, high + 1):
        cost = min(
            cost, _into(other, x, x, nodes, images, values[j - 1], slopes[j - 1], pi0, chain)
        )
    return cost + pi1


@compiled
def settle(path: Any, alpha: float, beta: float, floor: float) -> Any:
    """Move s_1 … s_{j−1} of a path s_0 … s_j to a minimum of Σ f(s_i)/s_{i+1}, each to its own best
    given its neighbours.

    Every sweep lowers the sum and keeps every step's q at most 1 and every state above the floor.
    Returns the sum.
    """
    a, gap = 1.0 - alpha, 1.0 - alpha - beta
    last = len(path) - 1
    total = np.inf
    for _ in range(20_000):
        for i in range(1, last):
            image = (path[i - 1] * (1.0 - beta) - alpha) / (a - beta * path[i - 1])
            wanted = a / (beta + np.sqrt(gap / (image * path[i + 1])))
            highest = (path[i + 1] * a + alpha) / (
                (1.0 - beta) + path[i + 1] * beta
            )  # f of it is s_{i+1}
            path[i] = min(max(wanted, image, floor), highest, 1.0)
        new = 0.0
        for i in range(last):
            new += (path[i] * (1.0 - beta) - alpha) / (a - beta * path[i]) / path[i + 1]
        if total - new <= 1e-15 * new:
            break
        total = new
    return new


@compiled
def state_after(budget: float, steps: float, ratio: float, log_gap: float) -> Any:
    """The state after some always-redacted records, from s = e^(−budget).

    Each multiplies w = (1 − s)/(s + α/β) by 1/(1 − α − β); ratio = α/β, log_gap = log(1 − α − β).
    """
    w = -np.expm1(-budget) / (np.exp(-budget) + ratio) * np.exp(-steps * log_gap)
    if w == np.inf:
        return -ratio
    return (1.0 - w * ratio) / (1.0 + w)


@compiled
def reach(budget: float, room: int, ratio: float, log_gap: float, free_state: float) -> Any:
    """After how many always-redacted records everything is free; room + 1 if there is not enough of
    it.
    """
    start = -np.expm1(-budget) / (np.exp(-budget) + ratio)
    if budget <= 0.0 or start <= 0.0:
        return room + 1
    steps = np.log((1.0 - free_state) / (free_state + ratio) / start) / -log_gap
    if steps > room:
        return room + 1
    count = max(int(np.floor(steps)) - 1, 0)
    while count <= room and state_after(budget, float(count), ratio, log_gap) > free_state:
        count += 1
    return count


@compiled
def first_start(budget: float, ratio: float, log_gap: float) -> Any:
    """The first distance at which the common value's influence is within a budget
    (direction 0:1).
    """
    if budget <= 0.0:
        return 1 << 60
    # low(d) ≤ b  ⟺  (1 + (α/β)·r)/(1 − r) ≤ e^b with r = (1 − α − β)^d
    grown = np.expm1(min(budget, 700.0))
    start = max(int(np.ceil(np.log(grown / (grown + 1.0 + ratio)) / log_gap - 1e-6)), 1)
    while low_influence(start, ratio, log_gap) > budget:
        start += 1
    return start


@compiled
def low_influence(distance: int, ratio: float, log_gap: float) -> Any:
    """Influence of the common value at a distance (Proposition 1)."""
    r = np.exp(distance * log_gap)
    return np.log1p(ratio * r) - np.log(-np.expm1(distance * log_gap))


@compiled
def side_costs(
    budget: float, room: int, first: int, last: int, chain: Any, free: Any, end: Any
) -> Any:
    """(last − first + 1,) what one side at least costs that begins with first … last
    always-redacted records.

    chain: (α, β, log(1 − α − β)). free, end: nodes, images, values, slopes, firsts (see
    lower_bounds).
    """
    alpha, beta, log_gap = chain
    ratio, free_state = alpha / beta, alpha / (1.0 - beta)
    pi0, pi1 = beta / (alpha + beta), alpha / (alpha + beta)
    costs = np.empty(last - first + 1)
    for i in range(last - first + 1):
        always = first + i
        remaining = room - always
        s = state_after(budget, float(always), ratio, log_gap) * (1.0 - 1e-13)
        rest = 0.0
        if s > free_state and remaining > 0:
            x = max((s * (1.0 - beta) - alpha) / ((1.0 - alpha) - s * beta), 0.0)
            j = min(remaining, free[2].shape[0] - 1)
            rest = from_first(j, s, x, True, pi0, pi1, (alpha, beta), free)
            if remaining < end[2].shape[0]:
                rest = min(rest, from_first(remaining, s, x, False, pi0, pi1, (alpha, beta), end))
        costs[i] = always + rest * (1.0 - 1e-12)
    return costs


@compiled
def _from(
    costs: Any, suffix: Any, first: int, is_open: bool, start: int, room: int, pi0: float
) -> Any:
    """The least cost of a side that releases nothing before distance `start`, and its
    always-redacted records.
    """
    index = max(start - 1 - first, 0)
    if index < len(costs):
        offset = index
        while costs[offset] > suffix[index]:
            offset += 1
        return suffix[index], first + offset
    if not is_open:
        return float(room), room
    # Free in direction 1:0 already, but the common value may not be released yet: that one stays
    # redacted at least.
    last = first + len(costs) - 1
    waited = min(start - 1, room)
    return last + pi0 * (waited - last), waited


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
    """The least cost of both sides with these budgets in direction 1:0, and how many
    always-redacted records each begins with.

    Direction 0:1: the common value may be released first at distances whose influences sum to at
    most ε (F6), or, where the sides' maxima add (together), are within each side's own budget.
    """
    alpha, beta, log_gap = chain
    ratio, free_state, pi0 = alpha / beta, alpha / (1.0 - beta), beta / (alpha + beta)
    end_stages = end[2].shape[0]
    firsts = np.zeros(2, dtype=np.int64)
    opens = np.zeros(2, dtype=np.bool_)
    costs, suffixes = [np.empty(0), np.empty(0)], [np.empty(0), np.empty(0)]
    for i in range(2):
        reached = reach(budgets[i], rooms[i], ratio, log_gap, free_state)
        opens[i] = reached <= rooms[i]
        last = min(reached, rooms[i])
        first = last - span
        if end_stages > 1:
            first = min(first, rooms[i] - end_stages + 1)
        firsts[i] = max(first, 0)
        costs[i] = side_costs(budgets[i], rooms[i], firsts[i], last, chain, free, end)
        suffixes[i] = costs[i].copy()
        for m in range(len(costs[i]) - 2, -1, -1):
            suffixes[i][m] = min(suffixes[i][m], suffixes[i][m + 1])
    if together or rooms[0] == 0 or rooms[1] == 0:
        starts = [
            first_start(budgets[i] if together else epsilon, ratio, log_gap) for i in range(2)
        ]
        left, m_left = _from(costs[0], suffixes[0], firsts[0], opens[0], starts[0], rooms[0], pi0)
        right, m_right = _from(costs[1], suffixes[1], firsts[1], opens[1], starts[1], rooms[1], pi0)
        return left + right, m_left, m_right
    earliest = first_start(epsilon, ratio, log_gap)
    best, m_left, m_right = np.inf, 0, 0
    start = max(firsts[0] + 1, earliest)
    while True:
        cost, always = _from(costs[0], suffixes[0], firsts[0], opens[0], start, rooms[0], pi0)
        # a side that is redacted whole releases nothing, so the other has all of ε
        spent = low_influence(start, ratio, log_gap) if start <= rooms[0] else 0.0
        needed = first_start(epsilon - spent, ratio, log_gap)
        other, other_always = _from(
            costs[1], suffixes[1], firsts[1], opens[1], needed, rooms[1], pi0
        )
        if cost + other < best:
            best, m_left, m_right = cost + other, always, other_always
        if start > rooms[0] or needed <= max(firsts[1] + 1, earliest) or cost >= best:
            return best, m_left, m_right
        start += 1
