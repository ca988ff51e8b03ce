"""The set of models of a certificate: for each step a box of kernels, in exact numbers.

Rows of a kernel are free of each other. A row lies between its least and its largest probabilities
and sums to 1; an average under it is least and largest at a vertex of that set. Vertices are exact,
then rounded to the nearest doubles: a number is off by one unit at most, and 0 is 0 (docs/proofs/
verified-sets.md derives what that comes to).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import permutations
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from offrecord.release.certificate import Model
from offrecord.verify.balls import Exact, decimal

Floats = NDArray[np.float64]

#: Smaller numbers are moved outwards, so that no product underflows.
SMALLEST = 1e-60
#: Rows that lead to more states have too many vertices to list.
MOST_LISTED = 6


@dataclass(frozen=True, eq=False)
class Box:
    """low, high: rows of exact numbers, each no wider than rows that sum to 1 leave it."""

    low: list[list[Exact]]
    high: list[list[Exact]]

    @property
    def states(self) -> int:
        """How many there are."""
        return len(self.low)

    @cached_property
    def touched(self) -> list[list[int]]:
        """The states that each row may lead to."""
        return [[j for j, most in enumerate(row) if most > 0] for row in self.high]

    @cached_property
    def is_listed(self) -> bool:
        """Whether rows have few enough vertices."""
        return max(map(len, self.touched)) <= MOST_LISTED

    @cached_property
    def vertices(self) -> Floats:
        """(S, V, S) the vertices of each row, some of them repeated."""
        every = [self._vertices_of(i) for i in range(self.states)]
        most = max(map(len, every))
        return np.array([rows + rows[:1] * (most - len(rows)) for rows in every])

    def _vertices_of(self, i: int) -> list[list[float]]:
        found = {}
        for order in permutations(self.touched[i]):
            for row in _sizeable(filled(self.low[i], self.high[i], order)):
                found[tuple(str(one) for one in row)] = row
        return [[nearest(one) for one in row] for row in found.values()]

    def averages(self, rays: Floats) -> tuple[Floats, Floats]:
        """(N, S) the least and the largest average of each ray (N, S) by each row.

        Each is off by `units` of itself at most.
        """
        states, each, _ = self.vertices.shape
        every = (rays @ self.vertices.reshape(states * each, states).T).reshape(-1, states, each)
        return every.min(axis=2), every.max(axis=2)

    @property
    def units(self) -> float:
        """What rounding may do to averages."""
        return self.states + 2.0


def filled(low: Sequence[Exact], high: Sequence[Exact], order: Sequence[int]) -> list[Exact]:
    """The row that has as much as it can of the states that come first."""
    row, rest = list(low), 1 - sum(low)
    for j in order:
        added = min(rest, high[j] - low[j])
        row[j], rest = row[j] + added, rest - added
    return row


def _sizeable(row: list[Exact]) -> list[list[Exact]]:
    """The row; if numbers of it are too small, one with 0 and one with more in their place, between
    whose averages its own lie.
    """
    tiny = decimal(SMALLEST)
    if not any(0 < one < tiny for one in row):
        return [row]
    return [
        [one if one == 0 or one >= tiny else instead for one in row]
        for instead in (flint.fmpq(0), tiny)
    ]


def nearest(number: Exact) -> float:
    """The double nearest to an exact number."""
    return int(number.p) / int(number.q)


def tightened(low: Sequence[Exact], high: Sequence[Exact]) -> tuple[list[Exact], list[Exact]]:
    """What a row that sums to 1 leaves of intervals.

    Where decimals do not let it, they are widened by what is missing.
    """
    missing = max(sum(low) - 1, 1 - sum(high), flint.fmpq(0))
    tiny = decimal(SMALLEST)
    least = [one - missing if one - missing > tiny else flint.fmpq(0) for one in low]
    most = [max(one + missing, tiny) if one > 0 else one for one in high]
    spare, excess = 1 - sum(least), sum(most) - 1
    low = [max(a, b - excess) for a, b in zip(least, most, strict=True)]
    high = [min(b, a + spare) for a, b in zip(least, most, strict=True)]
    # what others leave may be as small as decimals let it: outwards again
    return (
        [one if one > tiny else flint.fmpq(0) for one in low],
        [max(one, tiny) if one > 0 else one for one in high],
    )


@dataclass(frozen=True, eq=False)
class Boxes:
    """Of steps forwards and back in time, on tuples of as many records as the order says.

    One for every step, or one for each phase or step, by the earlier of its two records.
    """

    forward: list[Box]
    backward: list[Box]


@lru_cache(maxsize=16)
def boxes_of(model: Model) -> Boxes:
    """Those of a certificate's model, made once."""
    models = model.set
    assert models is not None
    k, order = model.k, model.order
    by_step = model.phase is not None or model.length is not None
    found = []
    for pair, target in ((models.forward, _onward), (models.backward, _earlier)):
        lows, highs = pair if by_step else ([pair[0]], [pair[1]])
        found.append(
            [_box(low, high, k, order, target) for low, high in zip(lows, highs, strict=True)]
        )
    return Boxes(*found)


def _box(low: Any, high: Any, k: int, order: int, target: Any) -> Box:
    size = k**order
    zero = flint.fmpq(0)
    lows = [[zero] * size for _ in range(size)]
    highs = [[zero] * size for _ in range(size)]
    rows = zip(_rows(low, order), _rows(high, order), strict=True)
    for code, ends in enumerate(rows):
        least, most = tightened(*([decimal(one) for one in row] for row in ends))
        for value in range(k):
            j = target(code, value, k, size)
            lows[code][j], highs[code][j] = least[value], most[value]
    return Box(lows, highs)


def _onward(code: int, value: int, k: int, size: int) -> int:
    """The tuple after one, by its newest value."""
    return code * k % size + value


def _earlier(code: int, value: int, k: int, size: int) -> int:
    """The tuple before one, by its oldest value."""
    return value * (size // k) + code // k


def _rows(numbers: Any, depth: int) -> Iterator[Sequence[float]]:
    """The innermost lists."""
    if depth == 0:
        yield numbers
        return
    for part in numbers:
        yield from _rows(part, depth - 1)
