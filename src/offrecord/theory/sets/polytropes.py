"""Vertices of { h : h_i ≤ c_ij·h_j } by trees, compiled (R5): what pairwise bounds are made of.

c holds bounds of all ratios, closed: c_il ≤ c_ij·c_jl. At an extreme ray the bounds that are met
join all states with h > 0. Where i meets its bound over j and j over l, i meets that over l too, as
c is closed; so every extreme ray is met by a tree whose states are each only above or only below
their neighbours: a labelled tree with one of its two colourings. A tree whose ray breaks another
bound is none; trees that break one by no more than rounding are kept, which only widens.

States outside the support (h = 0) are possible only if no finite bound keeps others below them.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Integers
from offrecord.theory._compiling import compiled
from offrecord.theory.sets.filling import fill, order_of, seen, uncertainty

#: How far a ray may break a bound and still be kept, far above what rounding does.
_KEPT = 1e-11
#: Added to each log-ratio at each step, for the rounding of logarithms and of rays.
_STEP = 1e-13


@cache
def trees(states: int) -> tuple[Integers, NDArray[np.bool_], int]:
    """Coloured labelled trees on all states, then on each smaller support; how many are on all.

    (n, states, 2): node and parent in an order in which parents come first, −1 beyond the support;
    the first node is its own parent. (n, states): whether the node lies above its parent.
    """
    links, above = [], []
    for size in range(states, 0, -1):
        for support in combinations(range(states), size):
            for code in product(range(size), repeat=max(size - 2, 0)):
                edges = _rooted(size, code)
                for first_above in (False, True)[: min(size, 2)]:
                    depth = {0: 0}
                    link = np.full((states, 2), -1)
                    colour = np.zeros(states, dtype=np.bool_)
                    link[0] = support[0]
                    for at, (node, parent) in enumerate(edges, 1):
                        depth[node] = depth[parent] + 1
                        link[at] = support[node], support[parent]
                        colour[at] = (depth[node] % 2 == 1) != first_above
                    links.append(link)
                    above.append(colour)
    full = 2 * states ** max(states - 2, 0) if states > 1 else 1
    return np.array(links), np.array(above), full


def _rooted(size: int, code: tuple[int, ...]) -> list[tuple[int, int]]:
    """(node, parent) of the tree with this Prüfer code, rooted at 0, parents first."""
    if size == 1:
        return []
    degree = [1 + code.count(node) for node in range(size)]
    neighbours: list[list[int]] = [[] for _ in range(size)]

    def join(one: int, other: int) -> None:
        neighbours[one].append(other)
        neighbours[other].append(one)
        degree[one] -= 1
        degree[other] -= 1

    for node in code:
        join(degree.index(1), node)
    last = [node for node in range(size) if degree[node] == 1]
    join(last[0], last[1])
    edges, reached = [], [0]
    for parent in reached:
        for node in neighbours[parent]:
            if node not in reached:
                edges.append((node, parent))
                reached.append(node)
    return edges


@compiled
def vertices(c: Any, links: Any, above: Any, full: int) -> Any:
    """(n, k) the extreme rays for bounds c (k, k), entries of which may be infinite."""
    k = c.shape[0]
    finite = True
    for i in range(k):
        for j in range(k):
            finite = finite and c[i, j] < np.inf
    count = full if finite else links.shape[0]
    out = np.empty((count, k))
    found = 0
    for tree in range(count):
        v = out[found]
        if _ray(c, links[tree], above[tree], v) and _holds(c, v):
            found += 1
    return out[:found]


@compiled
def _ray(c: Any, links: Any, above: Any, v: Any) -> bool:
    """Enter the ray of one tree; False if an edge of it has no finite bound."""
    v[:] = 0.0
    v[links[0, 0]] = 1.0
    for at in range(1, len(v)):
        node, parent = links[at, 0], links[at, 1]
        if node < 0:
            break
        if above[at]:
            v[node] = v[parent] * c[node, parent]
        else:
            v[node] = v[parent] / c[parent, node]
        if not 0.0 < v[node] < np.inf:
            return False
    return True


@compiled
def _holds(c: Any, v: Any) -> bool:
    """Whether a ray keeps all bounds; one that is infinite holds even over 0."""
    for i in range(len(v)):
        if v[i] > 0.0:
            for j in range(len(v)):
                if c[i, j] < np.inf and v[i] > c[i, j] * v[j] * (1.0 + _KEPT):
                    return False
    return True


@compiled
def ratios_within(
    bounds: Any, any_beyond: bool, row: Any, low: Any, high: Any, links: Any, above: Any, full: int
) -> Any:
    """(rows, rows) bounds of the log-ratios of P·v, one step nearer to the secret.

    bounds: (k, k) bounds of log h_i − log h_j beyond the record, unless there is nothing beyond
    that matters; row: (k,) its redaction probabilities; low, high: (rows, k) the box of the step.
    −∞: there is nothing that both can cause.
    """
    k, rows = len(row), low.shape[0]
    rays = np.empty((0, k))
    if any_beyond:
        rays = vertices(np.exp(bounds), links, above, full)
    rays = seen(rays, row)
    worst = np.zeros((rows, rows))
    order = np.empty(k, dtype=np.int64)
    lower, upper = np.empty(rows), np.empty(rows)
    for at in range(rays.shape[0]):
        order_of(rays[at], order)
        fill(low, high, rays[at], order, lower, upper)
        # sums and the mass left over are uncertain by some units of the largest entry averaged
        unsure = uncertainty(k) * rays[at, order[k - 1]]
        for x in range(rows):
            if upper[x] > 0.0:
                for other in range(rows):
                    below = max(lower[other] - unsure, 0.0)
                    worst[x, other] = max(worst[x, other], (upper[x] + unsure) / below)
    return np.log(worst) + _STEP
