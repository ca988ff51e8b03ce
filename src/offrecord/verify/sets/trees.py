"""The extreme rays of { h : h_i ≤ c_ij·h_j }, for bounds c of all ratios (R5).

Each is that of a labelled tree of states whose neighbours meet their bound, every state only above
or only below its neighbours; where bounds are infinite, on a part of the states too, with 0
elsewhere. Trees whose ray breaks a bound by more than rounding are no extreme rays.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.verify.sets.boxes import Floats

MOST = 6  #: states: 2·6⁴ trees
_KEPT = 1e-11


class _Trees(NamedTuple):
    """Of some states: node and parent of each link, parents first; whether the node is above."""

    support: tuple[int, ...]
    nodes: NDArray[np.int64]
    parents: NDArray[np.int64]
    above: NDArray[np.bool_]


def extreme_rays(bounds: Floats) -> Floats:
    """(N, S) the extreme rays, and perhaps others of the cone."""
    states = len(bounds)
    smallest = states if np.isfinite(bounds).all() else 1
    found = []
    for size in range(states, smallest - 1, -1):
        for trees in _trees(states, size):
            found.append(_rays(bounds, trees))
    return np.concatenate(found)


def _rays(bounds: Floats, trees: _Trees) -> Floats:
    count, links = trees.nodes.shape
    rays = np.zeros((count, len(bounds)))
    rays[:, trees.support[0]] = 1.0
    every = np.arange(count)
    with np.errstate(invalid="ignore", over="ignore"):
        for at in range(links):
            node, parent = trees.nodes[:, at], trees.parents[:, at]
            up, down = bounds[node, parent], bounds[parent, node]
            before = rays[every, parent]
            rays[every, node] = np.where(trees.above[:, at], before * up, before / down)
        inside = rays[:, trees.support]
        sound = (np.isfinite(inside) & (inside > 0)).all(axis=1)
        limits = bounds * rays[:, np.newaxis, :] * (1.0 + _KEPT)
        limits[:, ~np.isfinite(bounds)] = np.inf
        sound &= (rays[:, :, np.newaxis] <= limits).all(axis=(1, 2))
    return rays[sound]


@cache
def _trees(states: int, size: int) -> list[_Trees]:
    """All coloured trees on each support of a size."""
    shapes = [_links(code, size) for code in product(range(size), repeat=max(size - 2, 0))]
    found = []
    for support in combinations(range(states), size):
        nodes, parents, above = [], [], []
        for links in shapes:
            for first in (False, True) if size > 1 else (False,):
                nodes.append([support[node] for node, _, _ in links])
                parents.append([support[parent] for _, parent, _ in links])
                above.append([(depth % 2 == 1) != first for _, _, depth in links])
        shape = (len(nodes), size - 1)
        arrays = np.array(nodes, dtype=np.int64), np.array(parents, dtype=np.int64)
        found.append(
            _Trees(
                support,
                arrays[0].reshape(shape),
                arrays[1].reshape(shape),
                np.array(above, dtype=np.bool_).reshape(shape),
            )
        )
    return found


def _links(code: tuple[int, ...], size: int) -> list[tuple[int, int, int]]:
    """Node, parent and depth in the tree of a Prüfer code, from node 0 outwards."""
    degree = [1 + code.count(node) for node in range(size)]
    beside: list[list[int]] = [[] for _ in range(size)]
    for node in code:
        leaf = degree.index(1)
        beside[leaf].append(node)
        beside[node].append(leaf)
        degree[leaf] -= 1
        degree[node] -= 1
    ends = [node for node in range(size) if degree[node] == 1]
    if len(ends) == 2:
        beside[ends[0]].append(ends[1])
        beside[ends[1]].append(ends[0])
    found, met = [], [(0, 0)]
    seen = {0}
    for parent, depth in met:
        for node in beside[parent]:
            if node not in seen:
                seen.add(node)
                met.append((node, depth + 1))
                found.append((node, parent, depth + 1))
    return found
