"""Windows in chains of order m, exactly: only the m nearest released records a side count (R6).

A window redacts `left` records before a secret and `right` after it, always, and releases all
others. Given m released neighbours (a context) everything beyond them is independent of the secret.
With the lifted kernel P on tuples of m records, a before and b after the window,

    Pr(v, b | a) = [P^(left+s) · diag(the last s values are v) · P^(right+m)][a, b]

for the s values v of the secret, and the leakage is the largest log-ratio of Pr(v, b | a) / Pr(v)
over two values of the secret. docs/proofs/R6-order.md has the proof, contexts at the chain's ends,
secrets of m records and more, and the rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain
from offrecord.models.walks import pattern_power

UNIT = 2.0**-53  # what rounding to the nearest float may change, relative to the number
#: Products of smaller numbers would lose digits, or all of a number that is not 0.
LEAST_PRODUCT = 1e-300
#: Numbers of all powers of a kernel that are kept: 256 MB.
_MOST_KEPT = 2**25
_MOST_STEPS = 20_000  # however few states there are


@dataclass(frozen=True, eq=False)
class Tuples:
    """The m-tuples of neighbouring records that a stationary chain of order m can show.

    codes: (S,) their numbers in base k, oldest value leading. kernel: (S, S) from each to the next.
    masses: (S,) how likely each is.
    """

    k: int
    order: int
    codes: Integers
    kernel: Floats
    masses: Floats

    @classmethod
    def of(cls, chain: MarkovChain) -> Tuples:
        """Those of a chain; InputError if it is not stationary."""
        if not chain.is_stationary:
            raise InputError("contexts are those of a stationary chain")
        lifted = chain.lifted
        codes = np.flatnonzero(lifted.start > 0)
        kernel = np.ascontiguousarray(lifted.transition[np.ix_(codes, codes)])
        return cls(chain.k, chain.order, codes, kernel, lifted.start[codes])

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def steps(self) -> tuple[Integers, Floats]:
        """(k, S) the place of the tuple that follows each by the next value, and how likely it is.

        Place 0 and 0 for one that never follows.
        """
        codes = self.codes * self.k % self.k**self.order + np.arange(self.k)[:, np.newaxis]
        places = np.minimum(np.searchsorted(self.codes, codes), len(self) - 1)
        places[self.codes[places] != codes] = 0
        found = np.where(
            self.codes[places] == codes, self.kernel[np.arange(len(self)), places], 0.0
        )
        return places, found

    @cached_property
    def is_independent(self) -> bool:
        """Whatever came before, the next record is the same, to the last bit."""
        likely = self.steps[1]
        return bool(np.all(likely == likely[:, :1]))

    def newest(self, count: int) -> Integers:
        """(S,) the number that the newest `count` values of each tuple make."""
        return np.asarray(self.codes % self.k**count)

    def oldest(self, count: int) -> Integers:
        """(S,) the number that the oldest `count` values of each tuple make."""
        return np.asarray(self.codes // self.k ** (self.order - count))

    @property
    def mass_units(self) -> float:
        """By how many units a mass may be off: elimination adds that much (rounding.md)."""
        return float(len(self)) ** 3

    def together(self, length: int) -> NDArray[np.bool_]:
        """(S, S) which tuples can be the first and last m records of a secret of `length` ≥ m."""
        return pattern_power(self.kernel > 0, length - self.order)


class Contexts:
    """What windows of one chain tell. Powers of its kernel are kept: each is one product."""

    def __init__(self, chain: MarkovChain) -> None:
        self.tuples = Tuples.of(chain)
        size = len(self.tuples)
        self.horizon = max(min(_MOST_KEPT // size**2, _MOST_STEPS) - 2 * chain.order, 0)
        self._powers = [np.eye(size), self.tuples.kernel]
        self._least = [1.0, _least(self.tuples.kernel)]
        self._sides: dict[tuple[int, int, int], Floats] = {}

    def leakage(
        self, window: tuple[int, int], rooms: tuple[int | None, int | None], length: int
    ) -> tuple[float, float]:
        """What a window tells about a secret of so many records, and how far rounding moved it.

        rooms: records there are on each side, None for no end. (∞, 0) where numbers become too
        small to say.
        """
        tuples = self.tuples
        seen = [
            tuples.order if room is None else min(room - size, tuples.order)
            for size, room in zip(window, rooms, strict=True)
        ]
        if seen == [0, 0] or tuples.is_independent:
            return 0.0, 0.0
        # a side that is redacted to its end leaves the tuple beside it as likely as it is
        near = (min(length, tuples.order), seen[1])
        steps = [window[i] + near[i] if seen[i] else 0 for i in (0, 1)]
        if not self._reaches(max(steps)):
            return math.inf, 0.0
        few = length < tuples.order
        found = (self._of_few if few else self._of_many)(steps, seen, length)
        units = len(tuples) * (sum(steps) + 4) + 2.0 * tuples.mass_units
        return found, rounding_of(found, units)

    def _of_few(self, steps: list[int], seen: list[int], length: int) -> float:
        """The largest log-ratio for a secret that is shorter than a tuple."""
        tuples = self.tuples
        before, after = self._before(steps[0], seen[0]), self._after(steps[1], seen[1])
        if _least(before) * _least(after) < LEAST_PRODUCT:
            return math.inf
        secret = tuples.newest(length)
        high, low = np.zeros((len(before), after.shape[1])), np.inf
        for value in np.unique(secret):
            chosen = secret == value
            told = before[:, chosen] @ after[chosen] / tuples.masses[chosen].sum()
            high, low = np.maximum(high, told), np.minimum(low, told)
        return math.log(largest_quotient(high, np.asarray(low)))

    def _of_many(self, steps: list[int], seen: list[int], length: int) -> float:
        """The largest log-ratio for a secret of at least m records: its sides add (R6)."""
        left = self._side(-1, steps[0], seen[0])
        right = self._side(1, steps[1], seen[1])
        return largest_sum(left, right, self.tuples.together(length))[0]

    def _side(self, direction: int, steps: int, seen: int) -> Floats:
        """(S, S) log-ratios that the contexts of one side reach, for two tuples beside them."""
        key = (direction, steps, seen)
        if key not in self._sides:
            told = (
                self._before(steps, seen).T / self.tuples.masses[:, np.newaxis]
                if direction < 0
                else self._after(steps, seen)
            )
            self._sides[key] = paired_log_ratios(told)
        return self._sides[key]

    def _before(self, steps: int, seen: int) -> Floats:
        """(contexts, S) Pr(context, the tuple so many steps on); all m seen: given the context."""
        tuples = self.tuples
        if seen == 0:
            return tuples.masses[np.newaxis]
        if seen == tuples.order:
            return self._powers[steps]
        return _alike(tuples.newest(seen)) @ (tuples.masses[:, np.newaxis] * self._powers[steps])

    def _after(self, steps: int, seen: int) -> Floats:
        """(S, contexts) Pr(the context that ends so many steps on | tuple)."""
        tuples = self.tuples
        if seen == 0:
            return np.ones((len(tuples), 1))
        if seen == tuples.order:
            return self._powers[steps]
        return self._powers[steps] @ _alike(tuples.newest(seen)).T

    def _reaches(self, steps: int) -> bool:
        """Whether the power of so many steps can be had, without a number that is too small."""
        if steps > self.horizon + 2 * self.tuples.order:
            return False
        while len(self._powers) <= steps:
            if self._least[-1] * self._least[1] < LEAST_PRODUCT:
                return False
            self._powers.append(self._stepped(self._powers[-1]))
            self._least.append(_least(self._powers[-1]))
        return True

    def _stepped(self, power: Floats) -> Floats:
        """The kernel times a power of it: k sums for each entry, as a tuple has k successors."""
        places, likely = self.tuples.steps
        return np.asarray(
            sum(
                one[:, np.newaxis] * power[place] for place, one in zip(places, likely, strict=True)
            )
        )


_known: WeakKeyDictionary[MarkovChain, Contexts] = WeakKeyDictionary()


def contexts_of(chain: MarkovChain) -> Contexts:
    """The contexts of a stationary chain, made once."""
    if chain not in _known:
        _known[chain] = Contexts(chain)
    return _known[chain]


def window_leakage(
    chain: MarkovChain,
    left: int,
    right: int,
    left_room: int | None = None,
    right_room: int | None = None,
    length: int = 1,
) -> float:
    """A number that the leakage of a window does not exceed, and only rounding is above it (R6).

    left, right: records that are always redacted beside a secret of `length` records, which are
    protected as one; all others are released. left_room, right_room: how many records there are on
    each side, None for no end. The chain is stationary, of any order. ∞ where a context gives a
    value away, and where probabilities become too small to compute with.
    """
    rooms = (left_room, right_room)
    for size, room in zip((left, right), rooms, strict=True):
        if size < 0 or (room is not None and size > room):
            raise InputError(f"a window must be from 0 to its room {room}, got {size}")
    if length < 1:
        raise InputError(f"length must be at least 1, got {length}")
    found, rounding = contexts_of(chain).leakage((left, right), rooms, length)
    return found + rounding


def context_windows(
    chain: MarkovChain,
    epsilon: float,
    left_room: int | None = None,
    right_room: int | None = None,
    length: int = 1,
) -> tuple[int, int] | None:
    """The window with the fewest records whose leakage is within epsilon; None if none is found.

    More redaction never tells more (F3), so the windows that keep within epsilon are bounded by a
    staircase, and a walk along it meets the smallest sum: as many evaluations as records, about.
    """
    search = _Search(contexts_of(chain), epsilon, (left_room, right_room), length)
    return search.smallest()


@dataclass(frozen=True, eq=False)
class _Search:
    """Which windows keep within ε, in given rooms."""

    contexts: Contexts
    epsilon: float
    rooms: tuple[int | None, int | None]
    length: int

    @cached_property
    def most(self) -> tuple[int, int]:
        """The largest sizes of a side that are looked at."""
        horizon = self.contexts.horizon
        left, right = (horizon if room is None else min(room, horizon) for room in self.rooms)
        return left, right

    def keeps(self, left: int, right: int) -> bool:
        """Within ε, rounding included."""
        found, rounding = self.contexts.leakage((left, right), self.rooms, self.length)
        return found + rounding <= self.epsilon

    def smallest(self) -> tuple[int, int] | None:
        """The first of the smallest, by its left side."""
        best, closed = self._along(*self.most), self._closed()
        if best is None:  # no window of these sizes keeps within ε: the largest does not
            return closed
        best = min(best, closed or best, key=sum)
        left, right = 0, self.most[1]
        while left <= min(self.most[0], sum(best)):
            right = min(right, sum(best) - left - (left >= best[0]))
            if right >= 0 and self.keeps(left, right):
                best = (left, right)
            else:
                left += 1
        return best

    def _closed(self) -> tuple[int, int] | None:
        """The smallest window that redacts a side to an end beyond what is looked at."""
        (left, right), found = self.most, []
        if self.rooms[0] is not None and self.rooms[0] > left:
            found.append(self._along(self.rooms[0], right, least=(self.rooms[0], 0)))
        if self.rooms[1] is not None and self.rooms[1] > right:
            found.append(self._along(left, self.rooms[1], least=(0, self.rooms[1])))
        if self.rooms[0] is not None and self.rooms[1] is not None:
            found.append((self.rooms[0], self.rooms[1]))  # tells nothing at all
        return min((window for window in found if window), key=sum, default=None)

    def _along(
        self, left: int, right: int, least: tuple[int, int] = (0, 0)
    ) -> tuple[int, int] | None:
        """The smallest of the windows of d records a side, but no more than left and right."""

        def window(size: int) -> tuple[int, int]:
            return max(min(size, left), least[0]), max(min(size, right), least[1])

        high, top = 0, max(self.most)
        while not self.keeps(*window(high)):
            if high >= top:
                return None
            high = min(max(2 * high, 1), top)
        low = high // 2
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.keeps(*window(middle)) else (middle + 1, high)
        return window(high)


# ---- ratios


def largest_sum(
    left: Floats, right: Floats, together: NDArray[np.bool_]
) -> tuple[float, tuple[int, int, int, int]]:
    """The largest left[a, a'] + right[b, b'] over ends (a, b), (a', b') that occur, and which.

    together: (S, S) which ends do. Tuples after which the same can follow are looked at as one.
    """
    patterns, group = np.unique(together, axis=0, return_inverse=True)
    group = group.ravel()
    best_of = np.full((len(patterns), len(right)), -np.inf)  # over b, for each b'
    for i, pattern in enumerate(patterns):
        if pattern.any():
            best_of[i] = right[pattern].max(axis=0)
    most = np.full((len(patterns), len(patterns)), -np.inf)
    for j, pattern in enumerate(patterns):
        if pattern.any():
            most[:, j] = best_of[:, pattern].max(axis=1)
    totals = left + most[np.ix_(group, group)]
    a, other = np.unravel_index(int(np.argmax(totals)), totals.shape)
    ends = right[np.ix_(together[a], together[other])]
    b, last = np.unravel_index(int(np.argmax(ends)), ends.shape)
    where = (
        int(a),
        int(np.flatnonzero(together[a])[b]),
        int(other),
        int(np.flatnonzero(together[other])[last]),
    )
    return float(totals[a, other]), where


def paired_log_ratios(told: Floats) -> Floats:
    """(S, S) the largest log-ratio of row x over row x' of an (S, outputs) array, by column.

    At least 0: an output is likelier under one of two than under the other. One that x cannot cause
    does not count for it; one that only x' cannot is infinite.
    """
    pairs = np.ones((len(told), len(told)))
    with np.errstate(divide="ignore", over="ignore"):
        for x, mine in enumerate(told):
            possible = mine > 0
            pairs[x] = (mine[possible] / told[:, possible]).max(axis=1, initial=1.0)
    return np.log(pairs)


def largest_quotient(high: Floats, low: Floats) -> float:
    """The largest high / low over outputs that can occur, at least 1."""
    possible = high > 0
    with np.errstate(divide="ignore", over="ignore"):
        return float((high[possible] / low[possible]).max(initial=1.0))


def rounding_of(found: float, units: float) -> float:
    """How far a log-ratio may be off if each of its entries is by so many units (rounding.md).

    Both entries, their quotients, the logarithms of two sides and their sum.
    """
    return UNIT * (2.0 * units + 16.0 + 8.0 * found) if found < math.inf else 0.0


def _alike(numbers: Integers) -> Floats:
    """(groups, S) which states have the same number, for sums over them."""
    return np.asarray(np.unique(numbers)[:, np.newaxis] == numbers, dtype=np.float64)


def _least(numbers: Floats) -> float:
    """The smallest that is not 0."""
    return float(numbers[numbers > 0].min())
