"""Any redaction of a chain of order m, exactly, where its outputs are few enough (R6).

Given the tuple z of m records that ends with the secret, what lies to the right is independent of
what lies before. So an output tells through two vectors over tuples, its generators:

    L[y, z] = Pr(y on the left, tuple z)        R[y, z] = Pr(y on the right | tuple z)
    Pr(y, y′, v) = Σ L[y, z]·R[y′, z] over the tuples z that end with the secret's values v

An output is followed outwards until m records in a row are released (all beyond is independent of
the secret then) or the chain ends. Where that makes too many, everything from some distance on
counts as released, which only tells more (F3). docs/proofs/R6-order.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain
from offrecord.theory.contexts import (
    LEAST_PRODUCT,
    Tuples,
    largest_sum,
    paired_log_ratios,
    rounding_of,
)

#: Generators of a side at most, and pairs of them; where they are more, distant records count as
#: released, until there are no more than so many times the contexts that a window has.
MOST, _MOST_PAIRS, _CONTEXTS = 4096, 2**22, 4
_JUMP = 64  # records that are always redacted: a longer stretch is one power of the kernel
_SILENT = -1

#: Stretches of one side, nearest first: redaction probabilities (k,), and of how many records.
Outward: TypeAlias = Sequence[tuple[Floats, int]]
#: What an output shows on one side, nearest first: distances from the secret, and values.
Releases: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Told:
    """The output that tells most.

    more, less: the first and last value of the secret under which it is most and least likely.
    is_exact: nothing was counted as released that is not. is_window: only always and never redacted
    records were met, as around a window.
    """

    leakage: float
    rounding: float
    more: tuple[int, int]
    less: tuple[int, int]
    left: Releases
    right: Releases
    is_exact: bool
    is_window: bool


def told_by(chain: MarkovChain, left: Outward, right: Outward, length: int) -> Told | None:
    """What the outputs of both sides tell about a secret of so many records, always redacted.

    left, right: all records there are. The chain is stationary. None where probabilities become too
    small to compute with.
    """
    states = _States.of(chain)
    cuts = [_cut(states, side, MOST) for side in (left, right)]
    if not all(cut.is_exact for cut in cuts) or cuts[0].outputs * cuts[1].outputs > _MOST_PAIRS:
        cuts = [_cut(states, side, _CONTEXTS * len(states.masses)) for side in (left, right)]
    is_exact = all(cut.is_exact for cut in cuts)
    is_window = all(cut.is_window for cut in cuts)
    walks = _Walk(states, -1), _Walk(states, 1)
    try:
        before = _followed(walks[0], left, cuts[0])
        before = walks[0].silent(before, min(length, chain.order))
        after = _followed(walks[1], right, cuts[1])
        worst = _worst(states, before, after, length)
    except _TooRareError:
        return None
    shown = [
        _releases(walk, met, index, cut)
        for walk, met, index, cut in zip(walks, (before, after), worst.outputs, cuts, strict=True)
    ]
    return Told(
        worst.leakage,
        worst.rounding,
        worst.more,
        worst.less,
        shown[0],
        shown[1],
        is_exact=is_exact,
        is_window=is_window,
    )


class _TooRareError(Exception):
    """A product of probabilities is so small that digits are lost, or all of them."""


@dataclass(frozen=True, eq=False)
class _States:
    """All k^m tuples of a chain, possible or not, in the order of their numbers.

    kernel: (k, k^(m−1), k), by the oldest value, the values between, the next value.
    """

    k: int
    order: int
    kernel: Floats
    masses: Floats
    shown: Integers  # the values that a record can have
    possible: Tuples

    @classmethod
    def of(cls, chain: MarkovChain) -> _States:
        """Those of a stationary chain."""
        k, masses = chain.k, chain.lifted.start
        kernel = chain.transition.reshape(k, -1, k)
        shown = np.flatnonzero(chain.support(1))
        return cls(k, chain.order, kernel, masses, shown, Tuples.of(chain))


# ---- how far outputs are followed


class _Cut(NamedTuple):
    """Records that are followed; then all are released, unless that is where the chain ends.

    outputs: generators at most.
    """

    distance: int
    room: int
    outputs: int
    is_exact: bool
    is_window: bool


def _cut(tuples: _States, side: Outward, most: int) -> _Cut:
    """As far as there are no more than so many outputs."""
    k, order = tuples.k, tuples.order
    room = sum(count for _, count in side)
    going, done = [1, *[0] * (order - 1)], 0  # outputs, by how many releases they end with
    distance, is_window = 0, True
    best = _Cut(0, room, k**order, False, True)
    for row, count in side:
        silent = bool(np.any(row[tuples.shown] > 0))
        shown = int(np.count_nonzero(row[tuples.shown] < 1))
        if not shown:
            going, distance = [sum(going), *[0] * (order - 1)], distance + count
            cut = _Cut(distance, room, _closed(going, done, k), False, is_window)
            best = _better(best, cut, most)
            continue
        is_window = is_window and not silent
        for _ in range(count):
            done += going[-1] * shown
            going = [sum(going) if silent else 0, *(one * shown for one in going[:-1])]
            distance += 1
            if sum(going) == 0:  # order records in a row that are never redacted
                return _exact(distance - order, room, done, is_window, best, most)
            if done + sum(going) > most:
                return best
            cut = _Cut(distance, room, _closed(going, done, k), False, is_window)
            best = _better(best, cut, most)
    return _exact(room, room, done + sum(going), is_window, best, most)


def _exact(distance: int, room: int, count: int, is_window: bool, best: _Cut, most: int) -> _Cut:
    return _Cut(distance, room, count, True, is_window) if count <= most else best


def _better(best: _Cut, cut: _Cut, most: int) -> _Cut:
    return cut if cut.outputs <= most else best


def _closed(going: list[int], done: int, k: int) -> int:
    """Outputs if all records beyond are released."""
    contexts: int = k ** len(going)
    return int(done + sum(one * contexts // k**ends for ends, one in enumerate(going)))


# ---- following them


@dataclass(frozen=True, eq=False)
class _Outputs:
    """The outputs met on the way inwards from the farthest record that is followed.

    vectors: (N, S) generators, each up to a factor of its own. runs, codes: how many of the records
    met last were released, up to m, and their values as one number, oldest leading. units: that an
    entry of a vector may be off by. steps: (distance, (N,) which of the step before, (N,) value or
    _SILENT) of the records met. firsts: (N,) codes of the contexts it began with, if it did.
    """

    vectors: Floats
    runs: Integers
    codes: Integers
    units: float
    steps: tuple[tuple[int, Integers, Integers], ...] = ()
    firsts: Integers | None = None


@dataclass(frozen=True, eq=False)
class _Walk:
    """How vectors change from one record to the next nearer one."""

    states: _States
    direction: int

    def start(self, room: int) -> _Outputs:
        """Before contexts, where there is room for one; else at the chain's end."""
        states = self.states
        if room < states.order:
            ends: Floats = states.masses
            if self.direction > 0:
                ends = (ends > 0).astype(np.float64)
            none = np.zeros(1, dtype=np.int64)
            units = states.possible.mass_units if self.direction < 0 else 0.0
            return _Outputs(ends[np.newaxis], none, none, units)
        codes = states.possible.codes
        vectors = np.zeros((len(codes), len(states.masses)))
        vectors[np.arange(len(codes)), codes] = 1.0
        if self.direction > 0:  # what is seen lies ahead: Pr(context | tuple before it)
            for _ in range(states.order):
                vectors = self.step(vectors, np.ones(states.k))
        runs = np.full(len(codes), states.order)
        return _Outputs(vectors, runs, codes, (states.k + 2.0) * states.order, firsts=codes)

    def step(self, vectors: Floats, weights: Floats) -> Floats:
        """One record nearer, whose outputs have probabilities `weights` by its value."""
        k, kernel = self.states.k, self.states.kernel
        _check_large(kernel, weights, vectors)
        if self.direction < 0:
            stepped = np.einsum("nxr,xry->nry", vectors.reshape(len(vectors), k, -1), kernel)
            return np.asarray(stepped * weights).reshape(vectors.shape)
        weighed = vectors.reshape(len(vectors), -1, k) * weights
        stepped = np.einsum("xry,nry->nxr", kernel, weighed).reshape(vectors.shape)
        return np.where(self.states.masses > 0, stepped, 0.0)

    def silent(self, met: _Outputs, count: int) -> _Outputs:
        """Past records that are always redacted."""
        states = self.states
        none = np.zeros(len(met.runs), dtype=np.int64)
        if count <= _JUMP:
            vectors, units = met.vectors, (states.k + 2.0) * count
            for _ in range(count):
                vectors = self.step(vectors, np.ones(states.k))
        else:
            power = _power(states.possible.kernel, count)
            _check_large(power, met.vectors)
            inner, codes = np.zeros(met.vectors.shape), states.possible.codes
            inner[:, codes] = met.vectors[:, codes] @ (power if self.direction < 0 else power.T)
            vectors, units = inner, len(power) * (count + 1.0)
        return replace(met, vectors=vectors, units=met.units + units, runs=none, codes=none)

    def past(self, met: _Outputs, row: Floats, distance: int) -> _Outputs:
        """Past one record that may be released or redacted."""
        states = self.states
        values = [_SILENT] if np.any(row[states.shown] > 0) else []
        values += [int(value) for value in states.shown if row[value] < 1]
        every = np.arange(len(met.runs))
        vectors = np.concatenate(
            [
                self.step(met.vectors, row if value == _SILENT else np.eye(states.k)[value])
                for value in values
            ]
        )
        parents, symbols = np.tile(every, len(values)), np.repeat(values, len(every))
        runs = np.where(symbols == _SILENT, 0, np.minimum(met.runs[parents] + 1, states.order))
        codes = self._codes(met, parents, symbols)
        kept = np.flatnonzero(vectors.any(axis=1))
        # after m releases in a row vectors with the same values differ in a factor only
        numbers = np.where(runs == states.order, codes, -1 - np.arange(len(runs)))
        kept = kept[np.unique(numbers[kept], return_index=True)[1]]
        seen = (distance, parents[kept], symbols[kept])
        _, powers = np.frexp(vectors[kept].max(axis=1, keepdims=True))
        return replace(
            met,
            vectors=np.ldexp(vectors[kept], -powers),
            runs=runs[kept],
            codes=codes[kept],
            units=met.units + states.k + 2.0,
            steps=(*met.steps, seen),
        )

    def _codes(self, met: _Outputs, parents: Integers, symbols: Integers) -> Integers:
        """The released values that outputs begin with, one record nearer."""
        k, order = self.states.k, self.states.order
        codes, runs = met.codes[parents], met.runs[parents]
        if self.direction < 0:
            longer = (codes * k + symbols) % k**order
        else:
            longer = symbols * k ** np.minimum(runs, order - 1) + np.where(
                runs == order, codes // k, codes
            )
        return np.where(symbols == _SILENT, 0, longer)


def _followed(walk: _Walk, side: Outward, cut: _Cut) -> _Outputs:
    """The outputs of a side up to a cut."""
    free, shown = cut.room - cut.distance, walk.states.shown
    met, distance = walk.start(free), cut.distance
    stretches = _nearest(side, cut.distance)
    if 0 < free < walk.states.order:
        stretches.append((np.zeros(walk.states.k), free))
        distance = cut.room
    for row, count in reversed(stretches):
        if np.all(row[shown] == 1):
            met, distance = walk.silent(met, count), distance - count
            continue
        for _ in range(count):
            met, distance = walk.past(met, row, distance), distance - 1
    return met


def _nearest(side: Outward, distance: int) -> list[tuple[Floats, int]]:
    """The stretches of a side up to a distance."""
    found = []
    for row, count in side:
        found.append((row, min(count, distance)))
        distance -= found[-1][1]
    return [(row, count) for row, count in found if count]


def _power(kernel: Floats, count: int) -> Floats:
    """The kernel of so many steps, by repeated squaring."""
    power, base = np.eye(len(kernel)), kernel
    while count:
        if count & 1:
            _check_large(power, base)
            power = power @ base
        count >>= 1
        if count:
            _check_large(base, base)
            base = base @ base
    return power


def _check_large(*factors: Floats) -> None:
    """_TooRareError if a product of an entry of each is so small that digits are lost."""
    least = [float(factor[factor > 0].min(initial=1.0)) for factor in factors]
    if math.prod(least) < LEAST_PRODUCT:
        raise _TooRareError


def _releases(walk: _Walk, met: _Outputs, index: int, cut: _Cut) -> Releases:
    """What one output shows, nearest first, until m records in a row are released."""
    order, k = walk.states.order, walk.states.k
    seen: list[tuple[int, int]] = []
    row, before = 0, 0
    for distance, parents, symbols in reversed(met.steps):
        symbol, index = int(symbols[index]), int(parents[index])
        if symbol != _SILENT:
            row = row + 1 if distance == before + 1 else 1
            before = distance
            seen.append((distance, symbol))
        if row == order:
            return tuple(seen)
    if met.firsts is not None:
        code = int(met.firsts[index])
        values = [code // k**i % k for i in range(order)]
        values = values if walk.direction < 0 else values[::-1]
        seen += [(cut.distance + 1 + i, value) for i, value in enumerate(values)]
    return tuple(seen)


# ---- which of them tells most


class _Worst(NamedTuple):
    """outputs: which one on the left and on the right."""

    leakage: float
    rounding: float
    more: tuple[int, int]
    less: tuple[int, int]
    outputs: tuple[int, int]


def _worst(states: _States, before: _Outputs, after: _Outputs, length: int) -> _Worst:
    """The pair of outputs with the largest log-ratio for two values of the secret."""
    k, order, codes = states.k, states.order, states.possible.codes
    if len(before.vectors) == len(after.vectors) == 1 or states.possible.is_independent:
        ends = int(codes[0]) // k ** (order - 1), int(codes[0]) % k
        return _Worst(0.0, 0.0, ends, ends, (0, 0))  # one output tells nothing
    _check_large(before.vectors, after.vectors)
    way = _worst_of_few if length < order else _worst_of_many
    found, more, less, outputs = way(states, before.vectors, after.vectors, length)
    units = before.units + after.units + 2.0 * len(codes) + states.possible.mass_units
    return _Worst(found, rounding_of(found, units), more, less, outputs)


_Found: TypeAlias = tuple[float, tuple[int, int], tuple[int, int], tuple[int, int]]


def _worst_of_few(states: _States, before: Floats, after: Floats, length: int) -> _Found:
    """About a secret that is shorter than a tuple: Σ L·R over the tuples that end with it."""
    k, numbers = states.k, np.arange(len(states.masses)) % states.k**length
    values = np.unique(numbers[states.possible.codes])
    high, low = np.zeros((len(before), len(after))), np.full((len(before), len(after)), np.inf)
    for value in values:
        chosen = numbers == value
        told = before[:, chosen] @ after[:, chosen].T / states.masses[chosen].sum()
        np.maximum(high, told, out=high)
        np.minimum(low, told, out=low)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(high > 0, high / low, 1.0)
    i, j = np.unravel_index(int(np.argmax(ratios)), ratios.shape)
    likely = [
        float(before[i, numbers == v] @ after[j, numbers == v] / states.masses[numbers == v].sum())
        for v in values
    ]
    ends = [(int(v) // k ** (length - 1), int(v) % k) for v in values]
    more, less = ends[int(np.argmax(likely))], ends[int(np.argmin(likely))]
    return math.log(ratios[i, j]), more, less, (int(i), int(j))


def _worst_of_many(states: _States, before: Floats, after: Floats, length: int) -> _Found:
    """About a secret of at least m records: its first m tell the left, its last m the right."""
    codes = states.possible.codes
    left = np.ascontiguousarray((before[:, codes] / states.masses[codes]).T)
    right = np.ascontiguousarray(after[:, codes].T)
    pairs = paired_log_ratios(left), paired_log_ratios(right)
    found, (a, b, other, last) = largest_sum(*pairs, states.possible.together(length))
    outputs = (_likelier(left[a], left[other]), _likelier(right[b], right[last]))
    oldest, newest = codes // states.k ** (states.order - 1), codes % states.k
    more = int(oldest[a]), int(newest[b])
    return found, more, (int(oldest[other]), int(newest[last])), outputs


def _likelier(one: Floats, other: Floats) -> int:
    """The output with the largest ratio of two probabilities."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return int(np.argmax(np.where(one > 0, one / other, 0.0)))
