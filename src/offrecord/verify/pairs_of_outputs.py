"""The largest ratio that a pair of outputs, one from each side, has for two values of a secret.

There may be millions of pairs. Doubles that are rounded outwards find the few that count, and only
these are computed in balls.
"""

from __future__ import annotations

from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from offrecord.verify.balls import Ball, infinite, is_zero

#: For a value of the secret: what outputs on the left, and on the right, say of each of its tuples.
Part = tuple[list[list[Ball]], list[list[Ball]]]

_UNIT = 2.0**-53
_TINY = 2.0**-1070  # more than products and sums of doubles lose where they underflow
_LOOKED_AT = 256  # pairs that are computed in balls


def largest_ratio(parts: list[Part]) -> Ball:
    """The largest quotient of Σ left·right for two of the values, at least 1.

    A pair that one value can cause and another cannot is infinite.
    """
    if len(parts) < 2:
        return flint.arb(1)
    scale = [_scales([part[side] for part in parts]) for side in (0, 1)]
    high, low = _bounds(parts[0], scale)
    for part in parts[1:]:
        above, below = _bounds(part, scale)
        np.maximum(high, above, out=high)
        np.minimum(low, below, out=low)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(high > 0, high / low, 1.0).ravel()
    count = min(_LOOKED_AT, len(ratios))
    order = np.argpartition(ratios, -count)[-count:]
    order = order[np.argsort(-ratios[order])]
    rest = float(np.delete(ratios, order).max(initial=1.0))
    return _in_balls(parts, order, ratios, rest)


def _in_balls(parts: list[Part], order: NDArray[Any], ratios: NDArray[Any], rest: float) -> Ball:
    """The largest of these pairs in balls; what is no larger by doubles is left out."""
    found, columns = flint.arb(1), len(parts[0][1])
    for at in order:
        bound = _above(float(ratios[at]))
        if bound <= found:
            return found
        found = found.max(_of_pair(parts, int(at) // columns, int(at) % columns))
    return found.max(_above(rest))


def _above(ratio: float) -> Ball:
    """A quotient of two doubles, and what rounding may have taken from it."""
    return flint.arb(ratio) * (1 + flint.arb(2) ** -51) if np.isfinite(ratio) else infinite()


def _of_pair(parts: list[Part], i: int, j: int) -> Ball:
    likely = [_product(left[i], right[j]) for left, right in parts]
    if all(map(is_zero, likely)):
        return flint.arb(1)
    if any(map(is_zero, likely)):
        return infinite()
    most, least = likely[0], likely[0]
    for one in likely[1:]:
        most, least = most.max(one), least.min(one)
    return most / least


def _product(left: list[Ball], right: list[Ball]) -> Ball:
    return sum((a * b for a, b in zip(left, right, strict=True)), flint.arb(0))


def _scales(parts: list[list[list[Ball]]]) -> list[Ball]:
    """For each output a power of two, so that its largest number is about 1."""
    found = []
    for rows in zip(*parts, strict=True):
        largest = flint.arb(0)
        for one in (number for row in rows for number in row):
            largest = largest.max(one)
        _, exponent = largest.mid().man_exp()
        bits = int(largest.mid().man_exp()[0]).bit_length()
        found.append(flint.arb(2) ** -(int(exponent) + bits))
    return found


def _bounds(part: Part, scale: list[list[Ball]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """(left outputs, right outputs) upper and lower bounds of Σ left·right."""
    (left_low, left_high), (right_low, right_high) = (
        _doubles(rows, scales) for rows, scales in zip(part, scale, strict=True)
    )
    margin = (left_low.shape[1] + 2.0) * _UNIT
    possible = (left_high > 0).astype(np.float64) @ (right_high > 0).astype(np.float64).T > 0
    high = np.where(possible, left_high @ right_high.T * (1.0 + 2.0 * margin) + _TINY, 0.0)
    low = np.maximum(left_low @ right_low.T * (1.0 - 2.0 * margin) - _TINY, 0.0)
    return high, low


def _doubles(rows: list[list[Ball]], scales: list[Ball]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Doubles below and above numbers; 0 stands for 0 alone above."""
    numbers = [[number * scale for number in row] for row, scale in zip(rows, scales, strict=True)]
    middle = np.array([[float(one.mid()) for one in row] for row in numbers])
    width = np.array([[float(one.rad()) for one in row] for row in numbers])
    zero = np.array([[is_zero(one) for one in row] for row in numbers])
    # what two conversions and a sum may be off
    spread = width * (1.0 + 2.0**-50) + middle * 2.0**-51 + _TINY
    low = np.maximum(middle - spread, 0.0)
    return np.where(zero, 0.0, low), np.where(zero, 0.0, middle + spread)
