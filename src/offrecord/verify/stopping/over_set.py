"""What a side tells over a set of models of two values: a box of kernels, free at every step
(docs/proofs/O-sets.md, R1).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import flint

from offrecord.release.certificate import Model, StoppingSide
from offrecord.verify.balls import Ball, Each, Exact, ball, decimal, double, infinite, largest
from offrecord.verify.stopping.cone import Effort, Extreme, Walk, extremes
from offrecord.verify.stopping.outcomes import WHOLE, in_units


class Box(NamedTuple):
    """The least and the largest probability of a step from 0 to 1, and from 1 to 0."""

    up: tuple[Exact, Exact]
    down: tuple[Exact, Exact]

    @property
    def corners(self) -> list[tuple[Exact, Exact]]:
        """The distinct ones: every kernel of the box is between them, row by row."""
        return list(dict.fromkeys(product(self.up, self.down)))


def box_of(model: Model, side: str) -> Box | None:
    """That of steps away from a secret; None for other sets than boxes of two values that serve all
    steps, and where a change may never happen.
    """
    known = model.set
    plain = model.order == 1 and model.phase is None and model.length is None and model.k == 2
    if known is None or not plain or known.start != "stationary" or not model.stationary:
        return None
    low, high = (
        [[decimal(one) for one in row] for row in end]
        for end in (known.backward if side == "left" else known.forward)
    )
    found = Box(
        *((max(low[x][1 - x], 1 - high[x][x]), min(high[x][1 - x], 1 - low[x][x])) for x in (0, 1))
    )
    return found if all(0 < least <= most <= 1 for least, most in found) else None


#: The first that keeps a budget will do.
_EFFORTS = Effort(100, 12), Effort(1500, 100)


def told_over(box: Box, side: StoppingSide, each: Each = map) -> Ball:
    """The largest log-ratio of an outcome of a side, over all sequences of kernels. each: as of
    `judged`.
    """
    if not side.levels:
        return flint.arb(0)
    if side.ahead:
        return infinite()
    if len(side.levels) == 1:
        return _window(box, side.levels[0])
    most = ball(double(side.budget))
    found = infinite()
    levels, units = tuple(side.levels), tuple(in_units(side.stop))
    size = 4 * (len(levels) - 1)
    halves = units[:size], units[size:]
    for effort in _EFFORTS:
        walks = [Walk(tuple(box.corners), levels, half, effort) for half in halves]
        met = zip(each(extremes, walks), halves, (0, 1), strict=True)
        found = largest(_stops(*one) for one in met)
        if found <= most:
            break
    return found


def _stops(found: list[Extreme] | None, units: Sequence[int], far: int) -> Ball:
    """Of all outcomes with one far value; units: thresholds by level, x and value there."""
    if found is None:
        return infinite()
    *before, last = found
    worst = last.told(far, WHOLE, WHOLE).max(1)
    for level, here in enumerate(before):
        for value in (0, 1):
            zero, one = (units[(level * 2 + x) * 2 + value] for x in (0, 1))
            worst = worst.max(here.told(value, zero, one))
    return worst.log()


def _window(box: Box, distance: int) -> Ball:
    """Of the value at a distance: towards the secret, the least and the largest ratio of how likely
    it is under 1 and under 0 (R1). A step is monotone in that ratio and in both probabilities.
    """
    up, down = ([ball(end) for end in ends] for ends in box)
    worst = flint.arb(1)
    for value in (0, 1):
        ratios = [(1 - b) / a if value else b / (1 - a) for a, b in product(up, down)]
        for _ in range(distance - 1):
            least, most = _ends(ratios)
            ratios = [
                (b + (1 - b) * r) / ((1 - a) + a * r)
                for r, a, b in product((least, most), up, down)
            ]
        least, most = _ends(ratios)
        worst = worst.max(most).max(1 / least)
    return worst.log()


def _ends(numbers: Sequence[Ball]) -> tuple[Ball, Ball]:
    least = most = numbers[0]
    for one in numbers[1:]:
        least, most = least.min(one), most.max(one)
    return least, most
