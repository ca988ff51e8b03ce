"""Between: gaps too short for two walks, where one choice serves the runs on both sides (O15).

Everything in the gap is held out for release at first. Then it shrinks: at each step it is released
as it is, or loses its first or its last record, by probabilities that depend on the values at both
ends of the gap and on those at both ends of what is held out. Nothing may be left of it.

Every outcome keeps within the budgets, given that what lies beyond the other run tells no more
about its end than its budget: of two neighbouring runs, each relies on the other's far side.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from offrecord.mechanisms.owner.designing.repair import LEAST_SHARE, MARGIN, WINDOWS, thresholds
from offrecord.mechanisms.owner.stopping import GapStopping, Option, gap_states
from offrecord.mechanisms.owner.way import Wholes, exact_kernel, exact_law
from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain
from offrecord.release.coins import ALWAYS, Draws
from offrecord.theory.programmes import Entries, Solver

_WHOLE = 1 << 64
_SLACK = 2.0**-46  # what floats may change of a ratio of exact sums
#: Of budgets, for what a solver may leave: its tolerance, by how rare a context may be.
_SPARE = 1e-7
_ROUNDS = 30  # of clipping
#: Of whole numbers that become floats: of likelihoods, and of how often values are. Products of
#: both are floats, too.
_BITS, _LAW_BITS = 880, 120
#: Up to so many columns outcomes are compared by all that may lie beyond; above, each by itself,
#: which asks for a little more.
_FEW_COLUMNS = 300
_MOST_COLUMNS = 2600  # of a programme that is made at all


@dataclass(frozen=True, eq=False)
class Gap:
    """A gap of some records between two runs of a stationary chain of order 1.

    budgets: of what the gap and all beyond it may tell about the end of the left run, and of the
    right one; as much may be told about either by what lies beyond it.
    """

    chain: MarkovChain
    length: int
    budgets: tuple[float, float]

    @cached_property
    def values(self) -> Integers:
        """Those that occur."""
        return np.flatnonzero(self.chain.marginal(1) > 0)

    @cached_property
    def kernel(self) -> Floats:
        """(v, v) among them."""
        return np.ascontiguousarray(self.chain.transition[np.ix_(self.values, self.values)])

    @cached_property
    def weights(self) -> Floats:
        """(v,) how likely they are."""
        return self.chain.marginal(1)[self.values]

    @cached_property
    def powers(self) -> list[Floats]:
        """(v, v) of any number of steps up to the whole way."""
        powers = [np.eye(len(self.values))]
        for _ in range(self.length + 1):
            powers.append(powers[-1] @ self.kernel)
        return powers

    def contexts(self, first: int, last: int) -> Integers:
        """(c, 2) values at both ends of what is held out that can occur together."""
        return np.argwhere(self.powers[last - first] > 0)

    def scale(self, first: int, last: int) -> Floats:
        """(c,) how likely a context is at most, but for what lies inside it."""
        i, j = self.contexts(first, last).T
        before, after = self.powers[first], self.powers[self.length + 1 - last]
        return np.asarray(before.max(axis=0)[i] * after.max(axis=1)[j])


def longest_gap(k: int) -> int:
    """Up to which length gaps are worth a programme, for k values."""
    length = 0
    while 3 * k**4 * (length + 1) * (length + 2) // 2 <= _MOST_COLUMNS:
        length += 1
    return length


def asked_gaps(lengths: Iterable[int], base: Option) -> list[int]:
    """The lengths of gaps that are too short for two walks of a base, and worth a programme."""
    left, right = base
    if left.is_closed or right.is_closed:
        return []
    most = min(longest_gap(len(left.limits)), left.deadline + right.deadline - 2)
    return sorted(length for length in set(lengths) if 0 < length <= most)


def gap_stopping(chain: MarkovChain, length: int, budgets: tuple[float, float]) -> GapStopping:
    """What to release of a gap: as much as can be expected within the budgets, nothing where
    nothing is proven.
    """
    gap = Gap(chain, length, budgets)
    columns = _Columns(gap)
    for apart in (False, True) if columns.width <= _FEW_COLUMNS else (True,):
        aims = _programme(gap, columns, apart=apart)
        if aims is None:
            continue
        for window in WINDOWS[:-1]:
            limits = _repaired(gap, columns, aims, 1.0 - window, apart=apart)
            if limits is None:
                continue
            made = GapStopping(length, budgets, _spread(gap, columns, limits))
            if is_proven(made, chain):
                return replace(made, law=released_law(made, chain))
    shape = (len(columns.states), *(chain.k,) * 4, 2)
    return GapStopping(length, budgets, np.zeros(shape, dtype=np.uint64), np.zeros(length))


# ---- the programme

#: What may happen to what is held out, in the order of thresholds: released, its first record lost,
#: its last one.
_STOP, _FIRST, _LAST = 0, 1, 2


class _Columns:
    """Columns of the programme: for each state, what happens, x, b and context."""

    def __init__(self, gap: Gap) -> None:
        self.gap = gap
        self.k = len(gap.values)
        self.states = gap_states(gap.length)
        self.contexts = [gap.contexts(*state) for state in self.states]
        self.scales = [gap.scale(*state) for state in self.states]
        sizes = [3 * self.k * self.k * len(contexts) for contexts in self.contexts]
        self.offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self.number = {state: number for number, state in enumerate(self.states)}

    @property
    def width(self) -> int:
        """How many columns there are."""
        return int(self.offsets[-1])

    def of(self, state: int) -> Integers:
        """(3, k, k, c) the numbers of a state's columns."""
        count = len(self.contexts[state])
        first = int(self.offsets[state])
        return (first + np.arange(3 * self.k * self.k * count)).reshape(3, self.k, self.k, count)

    def entering(self, state: int) -> list[tuple[int, int, Floats]]:
        """(state before, what happened there, (c before, c) shares) of all that leads to a state;
        everything divided by scales.
        """
        first, last = self.states[state]
        found = []
        for before, happened in (((first - 1, last), _FIRST), ((first, last + 1), _LAST)):
            if before not in self.number:
                continue
            number = self.number[before]
            was, here = self.contexts[number], self.contexts[state]
            if happened == _FIRST:
                same = was[:, 1][:, np.newaxis] == here[:, 1]
                share = self.gap.kernel[was[:, 0][:, np.newaxis], here[:, 0]] * same
            else:
                same = was[:, 0][:, np.newaxis] == here[:, 0]
                share = self.gap.kernel[here[:, 1], was[:, 1][:, np.newaxis]] * same
            scaled = share * self.scales[number][:, np.newaxis] / self.scales[state]
            found.append((number, happened, scaled))
        return found


def _programme(gap: Gap, columns: _Columns, *, apart: bool) -> list[Floats] | None:
    """For each state (3, k, k, c): how much is released, loses its first record, its last; without
    what lies inside. Of most expected releases; None where the solver fails. apart: outcomes that
    release something are compared by themselves, whatever lies beyond.
    """
    equal, given, height = [], [], 0
    for state in range(len(columns.states)):
        mine = columns.of(state)
        _, k, _, count = mine.shape
        rows = height + np.arange(k * k * count).reshape(k, k, count)
        for happened in range(3):
            equal.append(Entries(rows.ravel(), mine[happened].ravel(), np.ones(rows.size)))
        for number, happened, share in columns.entering(state):
            before, here = np.nonzero(share)
            row = rows[:, :, here].reshape(-1)
            column = columns.of(number)[happened][:, :, before].reshape(-1)
            equal.append(Entries(row, column, np.tile(-share[before, here], k * k)))
        given.append(_begun(gap, columns, state))
        height += rows.size
    least_rows, most_height = _bounds(gap, columns, apart=apart)
    every = Entries.together([*equal, least_rows.moved(height, 0)])
    exactly, below = np.concatenate(given), np.full(most_height, -np.inf)
    low = np.concatenate((exactly, below))
    high = np.concatenate((exactly, np.zeros(most_height)))
    found = Solver().least(_losses(gap, columns), every, low, high)
    if found is None:
        return None
    return [
        np.maximum(found[columns.of(state)], 0.0) * columns.scales[state]
        for state in range(len(columns.states))
    ]


def _begun(gap: Gap, columns: _Columns, state: int) -> Floats:
    """What is held out at first: all of the gap."""
    k, contexts = columns.k, columns.contexts[state]
    if state:
        return np.zeros(k * k * len(contexts))
    i, j = contexts.T
    masses = gap.kernel[:, i][:, np.newaxis] * gap.kernel[j, :].T[np.newaxis]
    return np.asarray((masses / columns.scales[0]).ravel())


def _bounds(gap: Gap, columns: _Columns, *, apart: bool) -> tuple[Entries, int]:
    """Rows · columns ≤ 0: ratios of what is released, and of nothing being released."""
    parts, height = [], 0
    for state in range(len(columns.states)):
        stops = columns.of(state)[_STOP]
        for weights in () if apart else _told_beyond(gap):
            rows = np.broadcast_to(height + np.arange(stops.shape[2]), stops.shape)
            numbers = np.broadcast_to(weights[:, :, np.newaxis], stops.shape)
            parts.append(Entries(rows.ravel(), stops.ravel(), numbers.ravel()))
            height += stops.shape[2]
        for more, less, factor in _pairs(gap) if apart else ():
            top, below = stops[more].ravel(), stops[less].ravel()
            rows = height + np.arange(len(top))
            parts += [
                Entries(rows, top, np.ones(len(top))),
                Entries(rows, below, np.full(len(top), -factor)),
            ]
            height += len(top)
    nothing = [
        (state, happened)
        for state, (first, last) in enumerate(columns.states)
        if first == last
        for happened in (_FIRST, _LAST)
    ]
    for weights in _told_beyond(gap):
        for state, happened in nothing:
            numbers = weights[:, :, np.newaxis] * columns.scales[state]
            column = columns.of(state)[happened].ravel()
            parts.append(Entries(np.full(len(column), height), column, numbers.ravel()))
        height += 1
    return Entries.together(parts), height


def _pairs(gap: Gap) -> list[tuple[tuple[Any, Any], tuple[Any, Any], float]]:
    """Places (x, b) whose outcomes are compared, with all contexts, and by which factor."""
    k, everything = len(gap.values), slice(None)
    found: list[tuple[tuple[Any, Any], tuple[Any, Any], float]] = []
    left, right = (float(np.exp(budget - _SPARE)) for budget in gap.budgets)
    for one in range(k):
        for other in range(k):
            if one != other:
                found.append(((one, everything), (other, everything), left))
                odds = float(gap.weights[one] / gap.weights[other])
                found.append(((everything, one), (everything, other), right * odds))
    return found


def _told_beyond(gap: Gap, spare: float = _SPARE) -> list[Floats]:
    """(k, k) weights of (x, b), whose sum must not be positive for nothing being released: for all
    that may be told beyond the other end, which is extreme where it tells a set of values from the
    others.
    """
    k = len(gap.values)
    found = []
    left, right = gap.budgets
    for bits in product((0.0, 1.0), repeat=k):
        if all(bits):
            continue
        for one in range(k):
            for other in range(k):
                if one == other:
                    continue
                beyond = np.exp(left * np.array(bits))
                weights = np.zeros((k, k))
                weights[one], weights[other] = beyond, -np.exp(left - spare) * beyond
                found.append(weights)
                beyond = np.exp(right * np.array(bits)) * gap.weights
                weights = np.zeros((k, k))
                weights[:, one] = beyond / gap.weights[one]
                weights[:, other] = -np.exp(right - spare) * beyond / gap.weights[other]
                found.append(weights)
    return found


def _losses(gap: Gap, columns: _Columns) -> Floats:
    """(width,) less the expected releases of each column."""
    costs = np.zeros(columns.width)
    for state, (first, last) in enumerate(columns.states):
        i, j = columns.contexts[state].T
        inside = gap.powers[last - first][i, j] * columns.scales[state]
        released = gap.weights[:, np.newaxis, np.newaxis] * inside * (last - first + 1)
        costs[columns.of(state)[_STOP]] = -np.broadcast_to(released, columns.of(state)[_STOP].shape)
    return costs


# ---- from aims to thresholds


def _repaired(
    gap: Gap, columns: _Columns, aims: list[Floats], share: float, *, apart: bool
) -> list[Draws] | None:
    """For each state (k, k, c, 2) thresholds, cumulated: release, then lose the first record.

    Aims are clipped, outcome by outcome, to what there is and to what the budgets allow; what is
    left over ends as nothing released, together with a share of redacting the gap whatever happens.
    None where that keeps not within the budgets.
    """
    held: dict[int, Floats] = {0: _begun(gap, columns, 0).reshape(columns.k, columns.k, -1)}
    held[0] = held[0] * columns.scales[0]
    limits, nothing = [], np.zeros((columns.k, columns.k))
    for state, (first, last) in enumerate(columns.states):
        here = held.pop(state)
        clipped = _clipped_apart if apart else _clipped
        stops = clipped(gap, np.minimum(share * aims[state][_STOP], here))
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(here > 0, stops / here, 0.0)
            both = aims[state][_FIRST] + aims[state][_LAST]
            turn = np.where(both > 0, aims[state][_FIRST] / both, 0.5)
        stopping = thresholds(_coarse(np.minimum(shares, 1.0), here, apart=apart))
        kept = _kept(stopping)
        losing = thresholds(np.minimum(1.0 - kept + kept * turn, 1.0))
        losing = np.maximum(losing, stopping)
        limits.append(np.stack((stopping, losing), axis=-1))
        goes = here * kept
        if first == last:
            nothing += goes.sum(axis=-1)
            continue
        first_lost = _kept(stopping) - _kept(losing)
        for happened, part in ((_FIRST, here * first_lost), (_LAST, here * _kept(losing))):
            _move(gap, columns, held, state, happened, part)
    keeps = all((weights * nothing).sum() <= 0 for weights in _told_beyond(gap, MARGIN))
    return limits if keeps else None


def _kept(limits: Draws) -> Floats:
    """What lies beyond thresholds, as accurate as a float."""
    return np.where(limits == ALWAYS, 0.0, ((ALWAYS - limits).astype(np.float64) + 1.0) * 2.0**-64)


def _move(
    gap: Gap, columns: _Columns, held: dict[int, Floats], state: int, happened: int, part: Floats
) -> None:
    """Carry what lost a record into the state it leads to."""
    first, last = columns.states[state]
    target = columns.number[(first + 1, last) if happened == _FIRST else (first, last - 1)]
    was, here = columns.contexts[state], columns.contexts[target]
    if happened == _FIRST:
        same = was[:, 1][:, np.newaxis] == here[:, 1]
        share = gap.kernel[was[:, 0][:, np.newaxis], here[:, 0]] * same
    else:
        same = was[:, 0][:, np.newaxis] == here[:, 0]
        share = gap.kernel[here[:, 1], was[:, 1][:, np.newaxis]] * same
    moved = part @ share
    held[target] = held[target] + moved if target in held else moved


def _coarse(shares: Floats, here: Floats, *, apart: bool) -> Floats:
    """Without what thresholds are too coarse for: of outcomes that are compared by themselves for
    all ends alike; else one by one, unless some end would rule the outcome out.
    """
    enough = shares >= LEAST_SHARE
    if apart:
        return np.where(np.all(enough | (here <= 0), axis=(0, 1)), shares, 0.0)
    met = np.all(enough.any(axis=1), axis=0) & np.all(enough.any(axis=0), axis=0)
    return np.where(enough & met, shares, 0.0)


def _clipped_apart(gap: Gap, stops: Floats) -> Floats:
    """(k, k, c) lowered until every ratio by itself keeps within its budget."""
    left, right = (np.exp(budget - MARGIN - _SPARE / 2) for budget in gap.budgets)
    weights = gap.weights[:, np.newaxis]
    for _ in range(_ROUNDS):
        lower = np.minimum(stops, left * stops.min(axis=0))
        by_right = lower / weights
        lower = np.minimum(by_right, right * by_right.min(axis=1, keepdims=True)) * weights
        if np.array_equal(lower, stops):
            break
        stops = lower
    return stops


def _clipped(gap: Gap, stops: Floats) -> Floats:
    """(k, k, c) lowered until every ratio keeps within its budget: the likelier x, and the likelier
    b, is made less likely.
    """
    kept = stops
    for _ in range(_ROUNDS):
        lower = kept
        for weights in _told_beyond(gap, MARGIN + _SPARE / 2):
            excess = np.einsum("xb,xbc->c", weights, lower)
            top = np.einsum("xb,xbc->c", np.maximum(weights, 0.0), lower)
            with np.errstate(divide="ignore", invalid="ignore"):
                factor = np.where(excess > 0, 1.0 - excess / top, 1.0)
            lower = np.where((weights > 0)[:, :, np.newaxis], lower * factor, lower)
        if np.array_equal(lower, kept):
            break
        kept = lower
    return kept


def _spread(gap: Gap, columns: _Columns, limits: list[Draws]) -> Draws:
    """(states, k, k, k, k, 2) thresholds by state, x, b, i and j, of all values."""
    k = gap.chain.k
    made = np.zeros((len(limits), k, k, k, k, 2), dtype=np.uint64)
    x, b = np.ix_(gap.values, gap.values)
    for state, some in enumerate(limits):
        for context, (i, j) in enumerate(columns.contexts[state].tolist()):
            made[state, x, b, gap.values[i], gap.values[j]] = some[:, :, context]
    return made


# ---- the proof


def is_proven(made: GapStopping, chain: MarkovChain) -> bool:
    """The very thresholds that act keep within the budgets, in whole numbers rounded outwards."""
    left, right = told_between(made, chain)
    return bool(left.max() <= made.budgets[0] and right.max() <= made.budgets[1])


def told_between(made: GapStopping, chain: MarkovChain) -> tuple[Floats, Floats]:
    """(k, k) twice: upper bounds of the log-ratio of x over x' of any outcome, about the end of the
    left run and of the right one, given what lies beyond the other.

    Likelihoods (x, b, i, j) of each state are exact: kernels in decimals, thresholds in 2⁻⁶⁴, and
    all ways to a state have as many of either.
    """
    judge = _Judge(made, chain)
    held = {made.states[0]: judge.begun}
    nothing: Wholes | int = 0
    for number, (first, last) in enumerate(made.states):
        here = held.pop((first, last))
        stopping, losing = (_wholes_of(made.limits[number, ..., one]) for one in (0, 1))
        losing = np.maximum(losing, stopping)
        possible = judge.possible[last - first]
        judge.meet(here * stopping * possible)
        if first == last:
            nothing = nothing + (here * (_WHOLE - stopping) * possible).sum(axis=(2, 3))
            continue
        ends = here * (losing - stopping), here * (_WHOLE - losing)
        moved = (
            np.swapaxes(np.swapaxes(ends[0], 2, 3) @ judge.kernel, 2, 3),
            ends[1] @ judge.kernel.T,
        )
        for target, part in zip(((first + 1, last), (first, last - 1)), moved, strict=True):
            held[target] = held[target] + part if target in held else part
    judge.meet(np.asarray(nothing))
    return judge.told()


class _Judge:
    """The largest ratios met so far, among values that occur."""

    def __init__(self, made: GapStopping, chain: MarkovChain) -> None:
        self.budgets, self.k = made.budgets, chain.k
        self.kernel = exact_kernel(chain.transition)
        self.values = np.flatnonzero(chain.marginal(1) > 0)
        law = exact_law(chain, 1)
        shift = max(int(law.high.max()).bit_length() - _LAW_BITS, 0)
        self.low = (law.low[self.values] >> shift).astype(np.float64)
        self.high = (-(-law.high[self.values] >> shift)).astype(np.float64)
        pattern = np.eye(chain.k, dtype=bool)
        self.possible = [pattern.astype(int).astype(object)]
        for _ in range(made.length):
            pattern = pattern @ (chain.transition > 0)
            self.possible.append(pattern.astype(int).astype(object))
        size = len(self.values)
        self.left, self.right = np.zeros((size, size)), np.zeros((size, size))

    @property
    def begun(self) -> Wholes:
        """(x, b, i, j) all of the gap held out."""
        into = self.kernel[:, np.newaxis, :, np.newaxis]
        out = self.kernel.T[np.newaxis, :, np.newaxis, :]
        return np.asarray(into * out)

    def meet(self, masses: Wholes) -> None:
        """Outcomes (x, b, …): with all that may be told beyond the other end, which is extreme
        where it tells a set of values from the others.
        """
        size = len(self.values)
        less, more = (
            each.reshape(size, size, -1)
            for each in _floats(masses[np.ix_(self.values, self.values)])
        )
        for bits in product((0.0, 1.0), repeat=len(self.values)):
            beyond = [np.exp(budget * np.array(bits)) for budget in self.budgets]
            above, below = (np.einsum("xbc,b->xc", each, beyond[0]) for each in (more, less))
            tops = np.einsum("xbc,x->bc", more, self.high * beyond[1])
            bottoms = np.einsum("xbc,x->bc", less, self.low * beyond[1])
            for x in range(size):
                for other in range(size):
                    left = _largest(above[x], below[other])
                    self.left[x, other] = max(self.left[x, other], left)
                    right = _largest(tops[x], bottoms[other]) * self.high[other] / self.low[x]
                    self.right[x, other] = max(self.right[x, other], right)

    def told(self) -> tuple[Floats, Floats]:
        """(k, k) twice, logarithms rounded up."""
        found = []
        for ratios in (self.left, self.right):
            full = np.zeros((self.k, self.k))
            with np.errstate(divide="ignore"):
                logs = np.maximum(np.log(ratios), 0.0)
            full[np.ix_(self.values, self.values)] = logs + (1.0 + logs) * _SLACK
            np.fill_diagonal(full, 0.0)
            found.append(full)
        return found[0], found[1]


def _largest(tops: Floats, bottoms: Floats) -> float:
    """The largest ratio of what can occur; ∞ where only one of the two can."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = tops / bottoms
    return float(np.where(tops > 0, ratios, 0.0).max(initial=0.0))


def _floats(numbers: Wholes) -> tuple[Floats, Floats]:
    """Whole numbers on a scale that floats have, rounded down and up; what is too small for it is
    none where it is rounded down, and then no ratio to it is finite.
    """
    shift = max(int(numbers.max()).bit_length() - _BITS, 0)
    if not shift:
        return numbers.astype(np.float64), numbers.astype(np.float64)
    small = numbers >> shift
    less = np.where(small >= 1 << 60, small, 0).astype(np.float64)
    return less, np.where(numbers > 0, small + 1, 0).astype(np.float64)


def _wholes_of(limits: Draws) -> Wholes:
    numbers = limits.astype(object)
    numbers[limits == ALWAYS] = _WHOLE
    return np.asarray(numbers)


def released_law(made: GapStopping, chain: MarkovChain) -> Floats:
    """(length,) how likely each record of the gap is released."""
    kernel, weights = chain.transition, chain.marginal(1)
    powers = [np.eye(chain.k)]
    for _ in range(made.length):
        powers.append(powers[-1] @ kernel)
    held = {
        made.states[0]: kernel[:, np.newaxis, :, np.newaxis] * kernel.T[np.newaxis, :, np.newaxis]
    }
    law = np.zeros(made.length)
    for number, (first, last) in enumerate(made.states):
        here = held.pop((first, last))
        stays, further = (_kept(made.limits[number, ..., one]) for one in (0, 1))
        further = np.minimum(further, stays)
        released = (here * (1.0 - stays) * powers[last - first]).sum(axis=(1, 2, 3))
        law[first - 1 : last] += weights @ released
        if first == last:
            continue
        lost = here * (stays - further), here * further
        moved = np.swapaxes(np.swapaxes(lost[0], 2, 3) @ kernel, 2, 3), lost[1] @ kernel.T
        for target, part in zip(((first + 1, last), (first, last - 1)), moved, strict=True):
            held[target] = held[target] + part if target in held else part
    return law
