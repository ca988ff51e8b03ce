"""Extreme rays of a cone in three dimensions: the hull of points in a plane, compiled (R5).

A ray is given by its point (n, 3) with sum 1. Upper and lower chain of the points by rising first
coordinate; a point is dropped only if it lies on the inner side of two others with as much to
spare as rounding could have feigned, or so near to the line between them that what is lost with it
is counted. Points with a zero are looked at first and on their own edge, where nothing is lost: a
ratio that may be infinite must not become merely large.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offrecord.theory._compiling import compiled, inlined

#: Distances in the plane, of points with coordinates up to 1, that rounding may feign.
NEAR = 2.0**-50


@compiled
def extreme(points: Any) -> Any:
    """(m, 3) the points that span the cone, and what may be lost of a log-ratio with the others."""
    n = points.shape[0]
    kept = np.zeros(n, dtype=np.bool_)
    left = np.empty(n, dtype=np.int64)  # points without a zero, and those kept on the edges
    inner, least = _by_edges(points, kept, left)
    count = inner
    if inner > 0:
        for at in range(n):
            if kept[at]:
                left[count] = at
                count += 1
    order = left[:count]
    _sort(points, order)
    near = _chain(points, order, 1.0, kept) + _chain(points, order, -1.0, kept)
    out = np.empty((n, 3))
    found = 0
    for at in range(n):
        if kept[at]:
            for j in range(3):
                out[found, j] = points[at, j]
            found += 1
    return out[:found], _lost_with(near, least)


def lost_with(near: int, least: float) -> float:
    """What may be lost of a log-ratio with so many points that were dropped as near; least: the
    smallest entry of any.
    """
    return float(_lost_with.plain(near, least))


@compiled
def _lost_with(near: int, least: float) -> Any:
    # each near point is displaced by at most 4 NEAR, each coordinate was rounded once
    moved = 4.0 * NEAR * near + 4.0 * 2.0**-53
    return 4.0 * moved / least if moved < 0.25 * least else np.inf


@compiled
def _sort(points: Any, order: Any) -> None:
    """By the first coordinate, then by number, in place, with shrinking gaps: compiles in a
    fraction of argsort.
    """
    gap = 1
    while gap < len(order) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(order)):
            moving, at = order[i], i
            while at >= gap and _follows(points, order[at - gap], moving):
                order[at] = order[at - gap]
                at -= gap
            order[at] = moving
        gap //= 3


@inlined
def _follows(points: Any, one: int, other: int) -> bool:
    x, y = points[one, 0], points[other, 0]
    return bool(x > y or (x == y and one > other))


@compiled
def _by_edges(points: Any, kept: Any, inner: Any) -> Any:
    """Mark the extreme points with a zero, list those without one; how many, their least entry."""
    count, least = 0, np.inf
    # At j, a corner or the edge where coordinate j is zero: the point of the least and of the
    # largest ratio of the next two coordinates; −1 where there is none.
    corner, lowest, highest = np.full(3, -1), np.full(3, -1), np.full(3, -1)
    for at in range(points.shape[0]):
        point = points[at]
        smallest = min(point[0], point[1], point[2])
        if smallest > 0.0:
            inner[count] = at
            count += 1
            least = min(least, smallest)
            continue
        zeros = int(point[0] == 0.0) + int(point[1] == 0.0) + int(point[2] == 0.0)
        if zeros == 2:
            corner[0 if point[0] > 0.0 else 1 if point[1] > 0.0 else 2] = at
        else:
            edge = 0 if point[0] == 0.0 else 1 if point[1] == 0.0 else 2
            if lowest[edge] < 0 or _ratio(point, edge) < _ratio(points[lowest[edge]], edge):
                lowest[edge] = at
            if highest[edge] < 0 or _ratio(point, edge) > _ratio(points[highest[edge]], edge):
                highest[edge] = at
    for chosen in (corner, lowest, highest):
        for at in chosen:
            if at >= 0:
                kept[at] = True
    return count, least


@compiled
def _ratio(point: Any, edge: int) -> Any:
    return point[(edge + 1) % 3] / point[(edge + 2) % 3]


@compiled
def _chain(points: Any, order: Any, side: float, kept: Any) -> int:
    """Mark the points of the upper (side 1) or lower (−1) chain; how many were dropped as near."""
    stack = np.empty(len(order), dtype=np.int64)
    height, near = 0, 0
    for c in order:
        while height >= 2:
            a, b = stack[height - 2], stack[height - 1]
            across, along = points[c, 0] - points[a, 0], points[c, 1] - points[a, 1]
            right, up = points[b, 0] - points[a, 0], points[b, 1] - points[a, 1]
            outside = side * (across * up - along * right)
            margin = NEAR * (abs(across) + abs(along))
            if outside > margin:
                break
            if outside > -margin:
                # near the line, but perhaps beyond the ends of the stretch between the two
                beyond = (across - right) * across + (along - up) * along
                if right * across + up * along < 0.0 or beyond < 0.0:
                    break
                near += 1 if right != 0.0 or up != 0.0 else 0  # the same point again loses nothing
            height -= 1
        stack[height] = c
        height += 1
    for at in range(height):
        kept[stack[at]] = True
    return near
