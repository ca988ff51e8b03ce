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
from typing import Any, TypeAlias

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

#: Values at nodes, slopes between them, and what follows from both (see `lower_bounds`).
Rest: TypeAlias = tuple[Floats, Floats, Floats, Floats]


def lower_bounds(
    grid: tuple[Floats, Floats, Floats, Floats],
    masses: tuple[float, float],
    chain: tuple[float, float],
    stages: int,
    *,
    free: bool,
    search: Callable[..., None],
) -> tuple[Rest, NDArray[np.int32]]:
    """What the rest of a side costs at least, with j = 0 … stages more records.

    free: with at most j, until everything is free; else with exactly j, until the chain's end.
    search: `searched`, or what does the same over arrays.
    grid: (G + 1,) each, states s from s_free to 1, x = f(s), 1/s and √x; masses: what redacting the
    common value and the rare one costs; chain: (α, β). Only best paths count, so from a state
    inside a path the next one is at least s·f'(s), and from its first at least f(s)
    (docs/proofs/F5-one-side.md).

    Returned: (stages + 1, G + 1) values at the nodes, (stages + 1, G) slopes, and what follows from
    both: √(slope·(1 − α − β)/π₀), and the bound at the upper end of a cell. Inside a path, from a
    state s between nodes i and i + 1 the cost is at least values[j, i] + slopes[j, i]·(f(s) −
    f(s_i)). It is a minimum of affine functions of f(s), so a chord bounds it from below; but a
    step open to the lower node alone goes below s·f'(s) of the upper one, and is that steep. Last
    (stages + 1, G + 1) the cell of the best next state where the node is the first of a path.
    """
    # Whole arrays are made and copied here: that takes seconds to compile, and no time to do.
    nodes, images = grid[:2]
    size, (alpha, beta) = len(nodes), chain
    values, slopes = np.empty((stages + 1, size)), np.zeros((stages + 1, size - 1))
    roots, tops = np.zeros((stages + 1, size - 1)), np.empty((stages + 1, size - 1))
    firsts, unused = np.zeros((stages + 1, size), dtype=np.int32), np.empty(size, dtype=np.int32)
    values[0], costs = np.inf if free else 0.0, np.empty(size)
    tops[0] = values[0, 1:]
    inner = nodes * (1.0 - alpha - beta) / ((1.0 - alpha) - beta * nodes) ** 2  # s·f'(s)
    widths, steepest = np.diff(images), masses[0] / inner[1:]
    lows = [np.clip(np.searchsorted(nodes, one) - 1, 0, size - 2) for one in (images, inner)]
    for j in range(1, stages + 1):
        # The first state of a path may go down to f(s), one inside no lower than s·f'(s).
        rest = values[j - 1], slopes[j - 1], roots[j - 1], tops[j - 1]
        search(images, lows[0], grid, rest, masses[0], chain, costs, firsts[j])
        search(inner, lows[1], grid, rest, masses[0], chain, costs, unused)
        if free:  # the next state may be s_free itself: the last step
            last = inner <= nodes[0]
            costs[last] = np.minimum(costs[last], masses[0] * images[last] / nodes[0])
        values[j] = costs + masses[1]
        if free:
            values[j] = np.minimum(values[j], values[j - 1])
        is_open = values[j, :-1] < np.inf
        with np.errstate(invalid="ignore"):  # both ends of a cell that is not open are infinite
            chords = (values[j, 1:] - values[j, :-1]) / widths
        slopes[j] = np.where(is_open, np.maximum(np.minimum(chords, steepest), 0.0), 0.0)
        roots[j] = np.sqrt(slopes[j] * (1.0 - alpha - beta) / masses[0])
        tops[j] = values[j, :-1] + slopes[j] * widths
        if free and np.array_equal(values[j], values[j - 1]):
            # one more record pays nowhere, so neither do two
            for known in (values, slopes, roots, tops, firsts):
                known[j + 1 :] = known[j]
            break
    return (values, slopes, roots, tops), firsts


@compiled
def searched(
    least: Any,
    lows: Any,
    grid: Any,
    rest: Any,
    pi0: float,
    chain: Any,
    costs: Any,
    best: Any,
) -> None:
    """For each node, the least cost of a step to a state of at least least[i] and of the rest.

    Into costs, and the cell of that state into best. lows: the cells of `least`. The best next
    state never falls as s rises (the cost x/s' has decreasing differences), so each round halves
    the nodes left to search for, between the cells that their neighbours found.
    """
    # taken apart here: within the loop that would be most of what it takes
    (nodes, images, inverses, square_roots), (known, slopes, roots, tops) = grid, rest
    alpha, beta = chain
    size = len(costs)
    stride = 1
    while stride < size:
        stride *= 2
    while stride >= 1:
        for i in range(stride - 1, size, 2 * stride):
            low = lows[i]
            if i - stride >= 0:
                low = max(low, best[i - stride])
            high = max(best[i + stride] if i + stride < size else size - 2, low)
            cost, found = np.inf, low
            if least[i] <= 1.0:
                x, root, lowest = images[i], square_roots[i], least[i]
                for cell in range(low, high + 1):
                    ends = nodes[cell], nodes[cell + 1], inverses[cell], inverses[cell + 1]
                    bound = known[cell], tops[cell], slopes[cell], roots[cell], images[cell]
                    total = _into(x, root, lowest, ends, bound, pi0, alpha, beta)
                    if total < cost:
                        cost, found = total, cell
            else:  # s may not exceed 1: no step is open
                found = size - 2
            costs[i], best[i] = cost, found
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
    x: float,
    root: float,
    least: float,
    ends: Any,
    bound: Any,
    pi0: float,
    alpha: float,
    beta: float,
) -> Any:
    """The least of π₀·x/s' + (bound on the rest from s') over the states s' ≥ least of a cell.

    The sum is convex in s' (F5), so its minimum is where the derivative is 0, at
    (1 − α)·√x/(β·√x + bend), or at an end, where everything is known. root: √x; ends: the cell's
    nodes and 1 by them; bound: see `lower_bounds`. All are numbers: taking arrays here would take
    ten times as long.
    """
    (low, high, low_inverse, high_inverse), (known, top, slope, bend, image) = ends, bound
    above, below = (1.0 - alpha) * root, beta * root + bend
    if above >= high * below:
        return pi0 * x * high_inverse + top
    if above <= low * below and least <= low:
        return pi0 * x * low_inverse + known
    s = max(above / below, low, least)
    rise = (s * (1.0 - beta) - alpha) / ((1.0 - alpha) - s * beta) - image
    return pi0 * x / s + (known + slope * max(rise, 0.0))


@compiled
def from_first(
    j: int, cells: Any, x: float, free: bool, pi0: float, pi1: float, chain: Any, tables: Any
) -> Any:
    """What a path of at most (free) or exactly j records costs at least, from its first state s.

    x = f(s); cells: of s and of x. The best next state lies between those of the nodes around s, so
    only their cells and what is between them are searched.
    """
    (nodes, images, inverses, _), (values, slopes, roots, tops), firsts = tables
    alpha, beta = chain
    if j == 0:
        return values[0, 0]
    low = int(max(firsts[j, cells[0]], cells[1]))
    high = int(max(firsts[j, cells[0] + 1], low))
    cost = pi0 * x / nodes[0] if free and x <= nodes[0] else np.inf
    root = math.sqrt(x)
    for other in range(low, high + 1):
        ends = nodes[other], nodes[other + 1], inverses[other], inverses[other + 1]
        known, top = values[j - 1, other], tops[j - 1, other]
        bound = known, top, slopes[j - 1, other], roots[j - 1, other], images[other]
        total = _into(x, root, x, ends, bound, pi0, alpha, beta)
        cost = min(cost, total)
    return cost + pi1


@compiled
def best_count(
    most: int, s: float, x: float, free: bool, pi0: float, pi1: float, chain: Any, tables: Any
) -> Any:
    """The number of records, at most `most`, of which `from_first` costs least."""
    best, cost = 0, np.inf
    cells = _cell(tables[0][0], s), _cell(tables[0][0], x)
    for j in range(most + 1):
        found = from_first(j, cells, x, free, pi0, pi1, chain, tables)
        if found < cost:
            best, cost = j, found
    return best


@compiled
def settle(path: Any, alpha: float, beta: float, floor: float) -> Any:
    """Move s_1 … s_{j−1} of a path s_0 … s_j to a minimum of Σ f(s_i)/s_{i+1}; returns the sum.

    Each goes to its own best given its neighbours, then all together by Newton's method where that
    lowers the sum: every sweep does, and keeps every step's q at most 1 and every state above the
    floor.
    """
    a, gap = 1.0 - alpha, 1.0 - alpha - beta
    last = len(path) - 1
    total, steps = np.inf, np.empty(last + 1)
    for _ in range(_SWEEPS):
        for i in range(1, last):
            image = (path[i - 1] * (1.0 - beta) - alpha) / (a - beta * path[i - 1])
            wanted = a / (beta + np.sqrt(gap / (image * path[i + 1])))
            # f of this is s_{i+1}: any higher, and the step after would need q above 1
            highest = (path[i + 1] * a + alpha) / ((1.0 - beta) + path[i + 1] * beta)
            path[i] = min(max(wanted, image, floor), highest, 1.0)
        new = _sum(path, alpha, beta)
        if last > 2 and _newton_steps(path, alpha, beta, steps):
            for i in range(1, last):
                steps[i] = path[i] * math.exp(steps[i])
            steps[0], steps[last] = path[0], path[last]
            if _is_open(steps, alpha, beta, floor):
                other = _sum(steps, alpha, beta)
                if other < new:
                    new = other
                    path[:] = steps
        if total - new <= _STILL * new:
            break
        total = new
    return new


@compiled
def _sum(path: Any, alpha: float, beta: float) -> Any:
    """Σ f(s_i)/s_{i+1}."""
    total = 0.0
    for i in range(len(path) - 1):
        total += (path[i] * (1.0 - beta) - alpha) / ((1.0 - alpha) - beta * path[i]) / path[i + 1]
    return total


@compiled
def _is_open(path: Any, alpha: float, beta: float, floor: float) -> Any:
    """No q of a path is above 1, and no state between its ends at most the floor or above 1."""
    for i in range(len(path) - 1):
        image = (path[i] * (1.0 - beta) - alpha) / ((1.0 - alpha) - beta * path[i])
        if not image <= path[i + 1] or (i > 0 and not floor < path[i] <= 1.0):
            return False
    return True


@compiled
def _newton_steps(path: Any, alpha: float, beta: float, steps: Any) -> Any:
    """Newton's steps of log s_1 … log s_{j−1} towards the least Σ q_i, q_i = f(s_i)/s_{i+1}.

    False where the sum is not convex there. With D(s) = s·f'(s)/f(s) the derivative is
    q_i·D(s_i) − q_{i−1}, the second ones q_i·(D² + s·D'(s)) + q_{i−1}, and −q_i·D(s_i) beside the
    diagonal, which is eliminated from the first to the last.
    """
    a, last = 1.0 - alpha, len(path) - 1
    pivots = np.empty(last + 1)
    before, pivot, step = 0.0, 1.0, 0.0  # beside the diagonal, on it, and right of it
    q = (path[0] * (1.0 - beta) - alpha) / (a - beta * path[0]) / path[1]
    for i in range(1, last):
        u, v = (1.0 - beta) * path[i], beta * path[i]
        following = (u - alpha) / (a - v) / path[i + 1]
        steep = u / (u - alpha) + v / (a - v)
        bend = a * v / ((a - v) * (a - v)) - alpha * u / ((u - alpha) * (u - alpha))
        step = q - following * steep - before / pivot * step
        pivot = following * (steep * steep + bend) + q - before / pivot * before
        if not pivot > 0.0:
            return False
        pivots[i], steps[i] = pivot, step
        before, q = -following * steep, following
    step = 0.0
    for i in range(last - 1, 0, -1):
        u, v = (1.0 - beta) * path[i], beta * path[i]
        beside = -(u / (u - alpha) + v / (a - v)) * (u - alpha) / (a - v) / path[i + 1]
        step = (steps[i] - (beside * step if i < last - 1 else 0.0)) / pivots[i]
        steps[i] = step
    return True


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
    costs). free, end: a grid and what lower_bounds found on it.
    """
    alpha, beta, log_gap, pi0, pi1 = chain
    ratio, free_state = alpha / beta, alpha / (1.0 - beta)
    # `from_first` of both tables, which have one grid: taken apart once, as that would be most of
    # what a call takes
    (nodes, images, inverses, _), (values, slopes, roots, tops), firsts = free
    _, (end_values, end_slopes, end_roots, end_tops), end_firsts = end
    stages, end_stages = len(values) - 1, len(end_values) - 1
    costs = np.empty(last - first + 1)
    for i in range(last - first + 1):
        always = first + i
        remaining = room - always
        s = state_after(budget, float(always), ratio, log_gap) * (1.0 - _STATE_SLACK)
        rest = 0.0
        if s > free_state and remaining > 0:
            x = max((s * (1.0 - beta) - alpha) / ((1.0 - alpha) - s * beta), 0.0)
            root, cell, lowest = math.sqrt(x), _cell(nodes, s), _cell(nodes, x)
            rest = pi0 * x / nodes[0] if x <= nodes[0] else np.inf
            j = min(remaining, stages)
            if j == 0:
                rest = np.inf
            else:
                low = max(firsts[j, cell], lowest)
                for at in range(low, max(firsts[j, cell + 1], low) + 1):
                    ends = nodes[at], nodes[at + 1], inverses[at], inverses[at + 1]
                    known, top = values[j - 1, at], tops[j - 1, at]
                    bound = known, top, slopes[j - 1, at], roots[j - 1, at], images[at]
                    rest = min(rest, _into(x, root, x, ends, bound, pi0, alpha, beta))
            if remaining <= end_stages:
                j = remaining
                low = max(end_firsts[j, cell], lowest)
                for at in range(low, max(end_firsts[j, cell + 1], low) + 1):
                    ends = nodes[at], nodes[at + 1], inverses[at], inverses[at + 1]
                    known, top = end_values[j - 1, at], end_tops[j - 1, at]
                    bound = known, top, end_slopes[j - 1, at], end_roots[j - 1, at], images[at]
                    rest = min(rest, _into(x, root, x, ends, bound, pi0, alpha, beta))
            rest += pi1
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
    end_stages = len(end[1][0])
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
