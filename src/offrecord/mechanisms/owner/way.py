"""Way: the steps of a walk away from a run's end, in floats for designing and in integers for
proving.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import lcm
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain

#: Whole numbers of any size.
Wholes: TypeAlias = NDArray[np.object_]
#: Deadlines are not looked for beyond this many steps.
FURTHEST = 50_000
_KEPT = 64  # levels up to which what lies between them is kept
_BITS = 320  # that bounds keep of the largest number of an array


class Bounds(NamedTuple):
    """Whole numbers between which numbers lie, all on one scale that nobody asks for."""

    low: Wholes
    high: Wholes

    def short(self) -> Bounds:
        """The same with fewer digits, rounded outwards."""
        excess = int(self.high.max()).bit_length() - _BITS
        return self if excess <= 0 else Bounds(self.low >> excess, -(-self.high >> excess))

    def times(self, other: Bounds) -> Bounds:
        """The matrix product; nothing is negative."""
        return Bounds(self.low @ other.low, self.high @ other.high).short()


class _Span(NamedTuple):
    """Levels on a way, each (m, k, k): from one to the next, from the end, to the last."""

    jumps: Floats
    reaches: Floats
    rests: Floats


@dataclass(frozen=True, eq=False)
class Way:
    """What a walk meets. direction: −1 to the left, 1 to the right, away from record `origin`.

    kernels: (1, k, k) where all steps are alike, else one for each of the chain's steps on this
    side and one more, which serves all beyond its end: any would do (O9), and this is the chain's
    own last or first one. weights: (k,) how likely each value of the run's end is. nearest: the
    first distance at which a walk may stop; of tuples of m records, m (O13).
    """

    chain: MarkovChain
    direction: int
    origin: int
    kernels: Floats
    weights: Floats
    nearest: int = 1

    @classmethod
    def of(
        cls, chain: MarkovChain, direction: int, origin: int, room: int, nearest: int = 1
    ) -> Way:
        """From a record of a chain of order 1, with so many records on that side."""
        weights = chain.marginal(origin)
        if chain.is_stationary:
            kernels = chain.kernels(2, 2 + direction)
        else:
            steps = min(room, FURTHEST)
            beyond = chain.kernel(max(origin + room - 1, 1) if direction > 0 else 1)
            walked = chain.kernels(origin, origin + direction * steps)
            if len(walked) == 1:
                walked = np.repeat(walked, steps, axis=0)
            kernels = np.concatenate((walked, beyond[np.newaxis]))
        return cls(chain, direction, origin, np.ascontiguousarray(kernels), weights, nearest)

    def __getstate__(self) -> dict[str, object]:
        fields = ("chain", "direction", "origin", "kernels", "weights", "nearest")
        return {name: getattr(self, name) for name in fields}  # the rest is soon made again

    @property
    def k(self) -> int:
        """Number of values."""
        return int(self.kernels.shape[1])

    @property
    def is_even(self) -> bool:
        """All steps are alike."""
        return self.chain.is_stationary

    @property
    def possible(self) -> NDArray[np.bool_]:
        """(k,) the values that the run's end may have."""
        return np.asarray(self.weights > 0)

    def across(self, first: int, last: int) -> Floats:
        """(k, k) from distance `first` to distance `last`."""
        if self.is_even:
            return np.asarray(_power(self._powers, last - first))
        product = np.eye(self.k)
        for step in range(first, last):
            product = product @ self.kernels[min(step, len(self.kernels) - 1)]
        return product

    @cached_property
    def _powers(self) -> dict[int, Floats]:
        return {0: self.kernels[0]}

    def jumps(self, levels: Integers) -> Floats:
        """(m, k, k) to the first level, and from each to the next."""
        return self._span(levels).jumps

    def reaches(self, levels: Integers) -> Floats:
        """(m, k, k) from the run's end to each level."""
        return self._span(levels).reaches

    def rests(self, levels: Integers) -> Floats:
        """(m, k, k) from each level to the deadline."""
        return self._span(levels).rests

    def _span(self, levels: Integers) -> _Span:
        if len(levels) > _KEPT:
            return self._spanned(levels)
        name = levels.tobytes()
        if name not in self._spans:
            self._spans[name] = self._spanned(levels)
        return self._spans[name]

    @cached_property
    def _spans(self) -> dict[bytes, _Span]:
        """Those that were asked for: sides are made, repaired, weighed and told with the same."""
        return {}

    def _spanned(self, levels: Integers) -> _Span:
        if self.is_even:
            exponents = np.diff(levels, prepend=0), levels, levels[-1] - levels
            if len(levels) > _KEPT:  # nearly all distances
                powers = _first_powers(self.kernels[0], int(levels[-1]))
                return _Span(*(powers[each] for each in exponents))
            return _Span(*(_powers_at(self._powers, each) for each in exponents))
        jumps = [self.across(a, b) for a, b in _steps(levels)]
        reaches, rests = [jumps[0]], [np.eye(self.k)]
        for jump in jumps[1:]:
            reaches.append(reaches[-1] @ jump)
        for jump in jumps[:0:-1]:
            rests.append(jump @ rests[-1])
        return _Span(np.array(jumps), np.array(reaches), np.array(rests[::-1]))

    def deadline(self, budget: float, start: Floats) -> int | None:
        """The least distance at which no value is more than e^budget times as likely under one
        value of the run's end, weighted by `start`, as under another. It never gets worse with
        distance.
        """
        with np.errstate(divide="ignore"):
            allowed = budget - np.log(start[:, np.newaxis] / start)

        def keeps(distance: int) -> bool:
            return bool(
                np.all(self._told(distance) <= allowed[np.ix_(self.possible, self.possible)])
            )

        near, far = self.nearest - 1, self.nearest
        while not keeps(far):
            near, far = far, 2 * far
            if far > FURTHEST:
                return None
        while far - near > 1:
            middle = (near + far) // 2
            near, far = (near, middle) if keeps(middle) else (middle, far)
        return far

    def _told(self, distance: int) -> Floats:
        """The largest log-ratio of the values at a distance, by pairs of possible ends."""
        seen = self.across(0, distance)[self.possible]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            logs = np.log(seen[:, np.newaxis] / seen)
        return np.asarray(np.where(np.isnan(logs), -np.inf, logs).max(axis=2))

    # ---- in whole numbers

    @cached_property
    def start(self) -> Bounds:
        """(k,) what likelihoods begin with: to the right 1, to the left 1/Pr(x), as a walk there
        goes by transposed kernels, all but a factor that is common to all x; 0 for a value that the
        end cannot have.
        """
        if self.direction > 0:
            ones = _wholes([int(one) for one in self.possible])
            return Bounds(ones, ones)
        law = exact_law(self.chain, self.origin)
        scale = 1 << (2 * _BITS)
        low = [scale // int(most) if most else 0 for most in law.high]
        beyond = scale << _BITS  # more than any ratio that is ever allowed
        bounds = zip(law.low, law.high, strict=True)
        high = [-(-scale // int(a)) if a else beyond if b else 0 for a, b in bounds]
        return Bounds(_wholes(low), _wholes(high))

    def exact_jumps(self, levels: Integers) -> Iterator[Bounds]:
        """(k, k) as `jumps`, to the left of transposed kernels."""
        if self.is_even:
            powers = {0: self._exact(0)}
            for a, b in _steps(levels):
                yield _power(powers, b - a)
            return
        for a, b in _steps(levels):
            product = self._exact(a)
            for step in range(a + 1, b):
                product = product.times(self._exact(step))
            yield product

    def _exact(self, step: int) -> Bounds:
        """The step from distance `step` to the next, as the model's decimals give it.

        To the left what came of transposed kernels becomes a likelihood again, at the chain's first
        record, by how likely its values are.
        """
        inside = self.is_even or step < len(self.kernels) - 1
        if not inside:
            numbers = exact_kernel(self.kernels[-1])
            law = (
                exact_law(self.chain, 1)
                if self.direction < 0 and step == len(self.kernels) - 1
                else None
            )
            if law is None:
                return Bounds(numbers, numbers)
            return Bounds(*(each[:, np.newaxis] * numbers for each in law))
        record = self.origin + step if self.direction > 0 else self.origin - step - 1
        numbers = exact_kernel(self.chain.kernel(1 if self.is_even else record))
        numbers = numbers if self.direction > 0 else numbers.T
        return Bounds(numbers, numbers)


def _steps(levels: Integers) -> list[tuple[int, int]]:
    ends = [0, *levels.tolist()]
    return list(pairwise(ends))


def _power(squares: dict[int, Any], exponent: int) -> Any:
    """A power of squares[0]; squares[j] is its 2^j-th power, as far as it was asked for."""
    result = None
    for j in range(exponent.bit_length()):
        one = _square(squares, j)
        if exponent >> j & 1:
            if result is None:
                result = one
            else:
                result = result.times(one) if isinstance(one, Bounds) else result @ one
    return np.eye(len(squares[0])) if result is None else result


def _square(squares: dict[int, Any], j: int) -> Any:
    """The 2^j-th power, where all before it are known: the same whoever asks first."""
    if j not in squares:
        last = squares[j - 1]
        squares[j] = last.times(last) if isinstance(last, Bounds) else last @ last
    return squares[j]


def _first_powers(kernel: Floats, last: int) -> Floats:
    """(last + 1, k, k) its powers from the 0th on."""
    found = np.eye(len(kernel))[np.newaxis]
    while len(found) <= last:
        found = np.concatenate((found, found @ (found[-1] @ kernel)))
    return found[: last + 1]


def _powers_at(squares: dict[int, Floats], exponents: Integers) -> Floats:
    """(m, k, k) powers of squares[0], as `_power` finds each."""
    found = np.repeat(np.eye(len(squares[0]))[np.newaxis], len(exponents), axis=0)
    for j in range(int(exponents.max(initial=0)).bit_length()):
        odd = (exponents >> j & 1).astype(bool)
        found[odd] = found[odd] @ _square(squares, j)
    return found


def _wholes(numbers: Iterable[int]) -> Wholes:
    listed = list(numbers)
    made = np.empty(len(listed), dtype=object)
    made[:] = listed
    return made


def exact_kernel(kernel: Floats) -> Wholes:
    """(k, k) a kernel's decimals as whole numbers over one denominator, rows summing to it."""
    rows = []
    for row in kernel.tolist():
        exact = [Fraction(Decimal(repr(p))) for p in row]
        total = sum(exact)
        rows.append([p / total for p in exact])
    common = lcm(*(p.denominator for row in rows for p in row))
    numbers = np.empty(kernel.shape, dtype=object)
    for i, row in enumerate(rows):
        numbers[i] = [int(p * common) for p in row]
    return numbers


def exact_law(chain: MarkovChain, record: int) -> Bounds:
    """(k,) how likely the values of a record are, on one scale."""
    if chain.is_stationary:
        return _stationary(exact_kernel(chain.kernel(1)))
    exact = [Fraction(Decimal(repr(p))) for p in chain.start.tolist()]
    common = lcm(*(p.denominator for p in exact))
    first = _wholes(int(p * common) for p in exact)[np.newaxis]
    law = Bounds(first, first)
    for step in range(1, record):
        numbers = exact_kernel(chain.kernel(step))
        law = law.times(Bounds(numbers, numbers))
    return Bounds(law.low[0], law.high[0])


def _stationary(kernel: Wholes) -> Bounds:
    """(k,) the stationary law, by elimination without a subtraction, rounded outwards.

    Values are taken out from the last to the first; then weights follow in the other direction.
    """
    k, unit = len(kernel), 1 << _BITS
    low, high = kernel * unit, kernel * unit
    for last in range(k - 1, 0, -1):
        away = int(low[last, :last].sum()), int(high[last, :last].sum())
        if away[0] == 0:  # a value that is never left for those before it: others order them
            return _stationary_by_solving(kernel)
        low[:last, last] = low[:last, last] * unit // away[1]
        high[:last, last] = -(-high[:last, last] * unit // away[0])
        low[:last, :last] += np.outer(low[:last, last], low[last, :last]) // unit
        high[:last, :last] += -(-np.outer(high[:last, last], high[last, :last]) // unit)
    least, most = _wholes([unit] * k), _wholes([unit] * k)
    for last in range(1, k):
        least[last] = int((least[:last] * low[:last, last]).sum()) // unit
        most[last] = -(-int((most[:last] * high[:last, last]).sum()) // unit)
    return Bounds(least, most)


def _stationary_by_solving(kernel: Wholes) -> Bounds:
    """(k,) the stationary law of a chain that elimination cannot order: by exact fractions."""
    k = len(kernel)
    total = int(kernel[0].sum())
    rows = [[Fraction(int(kernel[j, i]), total) - (i == j) for j in range(k)] for i in range(k)]
    rows[-1] = [Fraction(1)] * k
    right = [Fraction(0)] * (k - 1) + [Fraction(1)]
    for column in range(k):
        pivot = next(r for r in range(column, k) if rows[r][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        right[column], right[pivot] = right[pivot], right[column]
        for r in range(k):
            if r != column and rows[r][column]:
                factor = rows[r][column] / rows[column][column]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[column], strict=True)]
                right[r] -= factor * right[column]
    law = [right[i] / rows[i][i] for i in range(k)]
    common = lcm(*(p.denominator for p in law))
    numbers = _wholes(int(p * common) for p in law)
    return Bounds(numbers, numbers)
