"""The best local mechanism around one secret of the paper's chain with α + β < 1, and its bound.

On each side some records come first that are always redacted; then some that redact the rare value
always and the common one with falling probabilities q; then all is free, or the chain ends. While
the rare value stays redacted, one state s sums up what came before: a record with q takes s to
f(s)/q, at a cost of π₁ + π₀·q; from s_free on everything is free (docs/proofs/F5-one-side.md).

A best path is extremal: q falls by D(s) = s·f′(s)/f(s) a record. So all best paths of j records to
one end form a curve, which the last state but one runs along. Its cost is concave in f(s) of its
first state s, so chords between points of it bound the cost from below, and the best split of the
budget between the sides is found by branch and bound (docs/proofs/F6-two-sides.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from offrecord.models.base import Floats, Integers, Mask

_POINTS = 1 << 16  # of a curve: chords then miss less than 1e-6 of a record
_MOST_RECORDS = 400  # of a path with q < 1: slower chains have thousands, and no curves
_TOLERANCE = 2e-7  # of n: how close the bound is brought to the design
_SHARES, _CUTS, _MOST_INTERVALS = 64, 4, 20_000  # of the budget's range, in branch and bound
_CHUNK = 2**20  # costs looked at together
_RAISED = 2.0**-50  # by which probabilities are rounded up, always safe (F3)
_SLACK = 1e-12  # relative: what rounding may add to a bound from below
_FREE = 1e-12  # relative: a state this close to s_free is free


class Optimum(NamedTuple):
    """Rows of both sides by distance, and the least redactions any local mechanism expects."""

    left: Floats
    right: Floats
    least: float


class _Curve(NamedTuple):
    """Extremal paths of `records` records to one end, in order of their first state.

    last: the last state but one. first: the first state s. images: f(s). costs: of the records.
    """

    records: int
    last: Floats
    first: Floats
    images: Floats
    costs: Floats


class _Path(NamedTuple):
    """One side: `always` records, then records with probabilities q for the common value."""

    always: int
    q: Floats
    cost: float


def best_around(
    alpha: float,
    beta: float,
    epsilon: float,
    ceiling: float,
    margins: tuple[int, int],
    *,
    together: bool,
    n: int,
) -> Optimum | None:
    """The best redaction within epsilon, and what any local mechanism within a ceiling costs.

    None for chains so slow that hundreds of records have a q of their own.
    """
    chain = _Chain(min(alpha, beta), max(alpha, beta))
    if chain.curves is None or chain.end_curves is None:
        return None
    paths, least = _Search(chain, margins, epsilon, ceiling, together, _TOLERANCE * n).solve()
    left, right = (_rows(path, swap=alpha > beta) for path in paths)
    return Optimum(left, right, least)


# (reach, 2) rows by distance.
def _rows(path: _Path, *, swap: bool) -> Floats:
    rows = np.ones((path.always + len(path.q), 2))
    rows[path.always :, 0] = np.minimum(path.q * (1 + _RAISED), 1.0)
    return rows[:, ::-1] if swap else rows


@dataclass(frozen=True)
class _Chain:
    """α ≤ β, α + β < 1: the state's step, and the curves of extremal paths."""

    alpha: float
    beta: float

    @cached_property
    def free(self) -> float:
        """s_free: from this state on everything is free."""
        return self.alpha / (1.0 - self.beta)

    @cached_property
    def masses(self) -> tuple[float, float]:
        """π₀ of the common value, π₁ of the rare one."""
        total = self.alpha + self.beta
        return self.beta / total, self.alpha / total

    @cached_property
    def gap(self) -> float:
        """1 − α − β."""
        return math.fsum((1.0, -self.alpha, -self.beta))

    @cached_property
    def log_gap(self) -> float:
        """Its logarithm."""
        total = self.alpha + self.beta
        return math.log1p(-total) if total < 0.5 else math.log(self.gap)

    def image(self, s: Floats) -> Floats:
        """f(s): the state after one record that is always redacted."""
        return (s * (1.0 - self.beta) - self.alpha) / ((1.0 - self.alpha) - s * self.beta)

    def source(self, x: Floats) -> Floats:
        """The state of which f is x."""
        return (x * (1.0 - self.alpha) + self.alpha) / ((1.0 - self.beta) + x * self.beta)

    def before(self, s: Floats, following: Floats) -> tuple[Floats, Floats]:
        """On an extremal path, the state before s and the q of the record between them."""
        slope = self.gap / ((1.0 - self.alpha) - s * self.beta) ** 2
        q = s * slope / following
        return self.source(q * s), q

    def after(self, budgets: Floats, records: Floats) -> Floats:
        """The state after so many always-redacted records, from e^−budget.

        Each multiplies w = (1 − s)/(s + α/β) by 1/(1 − α − β).
        """
        ratio = self.alpha / self.beta
        begin = -np.expm1(-budgets) / (np.exp(-budgets) + ratio)
        with np.errstate(over="ignore", invalid="ignore"):
            w = begin * np.exp(-records * self.log_gap)
            w = np.where(begin > 0, w, 0.0)
            return np.where(np.isinf(w), -ratio, (1.0 - w * ratio) / (1.0 + w))

    def low_influence(self, distances: Floats) -> Floats:
        """The common value's influence by distance, in the direction 0:1 (Proposition 1)."""
        with np.errstate(divide="ignore"):
            power = np.exp(distances * self.log_gap)
            ratio = self.alpha / self.beta
            return np.log1p(ratio * power) - np.log(-np.expm1(distances * self.log_gap))

    @cached_property
    def curves(self) -> list[_Curve] | None:
        """Of paths until everything is free; None if they are too long."""
        return _curves(self.alpha, self.beta, self.free)

    @cached_property
    def end_curves(self) -> list[_Curve] | None:
        """Of paths to the chain's end."""
        return _curves(self.alpha, self.beta, 1.0)


# The curves to one end, while some q of the first record is at most 1: q grows backwards.
@lru_cache(maxsize=16)
@np.errstate(divide="ignore", invalid="ignore")  # of points that are no paths any more
def _curves(alpha: float, beta: float, end: float) -> list[_Curve] | None:
    chain = _Chain(alpha, beta)
    (pi0, pi1), top = chain.masses, min(float(chain.source(np.array(end))), 1.0)
    last = np.exp(np.linspace(math.log(chain.free), math.log(top), _POINTS))
    last[0], last[-1] = chain.free, top
    q = chain.image(last) / end
    first, following, costs = last, np.full(_POINTS, end), pi1 + pi0 * q
    rises = np.ones(_POINTS, dtype=bool)
    found: list[_Curve] = []
    for count in range(1, _MOST_RECORDS + 1):
        if not np.any(rises & (q <= 1)):
            return found
        # one more point beyond the first q above 1, so that chords reach up to q = 1
        kept = np.flatnonzero(rises & np.append(True, q[:-1] <= 1))
        for run in np.split(kept, np.flatnonzero(np.diff(kept) > 1) + 1):
            part = slice(max(int(run[0]) - 1, 0), int(run[-1]) + 1)
            if part.stop - part.start > 1:
                images = chain.image(first[part])
                found.append(_Curve(count, last[part], first[part], images, costs[part]))
        earlier, q = chain.before(first, following)
        following, first = first, earlier
        costs = costs + pi1 + pi0 * q
        # where the first state falls, a path is no minimum any more (Jacobi's condition)
        rises &= np.append(True, np.diff(first) > 0) & (first <= 2.0)
    return None


@dataclass(frozen=True)
class _Side:
    """What one side costs with each of B budgets and each number of always-redacted records.

    costs: (B, W) with exactly so many of them first; bounds: (B, W) with at least so many before
    the common value may be released. choice: (B, W) the curve that follows, from 1, negative for
    one to the chain's end, 0 for none.
    """

    chain: _Chain
    margin: int
    costs: Floats
    bounds: Floats
    choice: Integers

    @classmethod
    def of(cls, chain: _Chain, margin: int, width: int, budgets: Floats) -> _Side:
        """For some budgets. width: numbers of always-redacted records, with margin itself last."""
        always = np.append(np.arange(width - 1), margin).astype(np.float64)
        states = chain.after(budgets[:, np.newaxis], always)
        is_free = (states <= chain.free * (1 + _FREE)) & (budgets[:, np.newaxis] > 0)
        rest = np.where(is_free | (always == margin), 0.0, np.inf)
        choice = _follow(chain, always, states, is_free, rest)
        costs = np.minimum(always + rest, float(margin))
        # once all is free, waiting for the common value costs its own mass alone
        freed = np.where(is_free.any(axis=1), np.argmax(is_free, axis=1), width)[:, np.newaxis]
        waited = freed + chain.masses[0] * (always - freed)
        least = np.where(is_free, np.minimum(waited, costs), costs)
        return cls(chain, margin, costs, _least_from(least) * (1 - _SLACK), choice)


# (B, W) the curves that cost least after the always-redacted records; their costs go into `rest`.
def _follow(chain: _Chain, always: Floats, states: Floats, is_free: Mask, rest: Floats) -> Integers:
    curves, end_curves, margin = chain.curves, chain.end_curves, int(always[-1])
    assert curves is not None
    assert end_curves is not None
    choice = np.zeros(states.shape, dtype=np.int64)
    with np.errstate(divide="ignore"):
        x = chain.image(states)
    some = np.flatnonzero(~is_free & (x <= max(curve.images[-1] for curve in curves)))
    remaining = np.broadcast_to(margin - always, states.shape).ravel()[some]
    for number, curve in enumerate(curves, start=1):
        _lower((rest, choice), x, some[remaining >= curve.records], curve, number)
    columns = np.arange(states.size).reshape(states.shape)
    for number, curve in enumerate(end_curves, start=1):
        if 0 <= (column := margin - curve.records) < len(always) - 1:
            here = columns[~is_free[:, column], column]
            _lower((rest, choice), x, here, curve, -number)
    return choice


# Lower costs to those of a curve where it costs less; some: which entries it may serve.
def _lower(
    found: tuple[Floats, Integers], x: Floats, some: Integers, curve: _Curve, number: int
) -> None:
    (rest, choice), at = found, x.ravel()[some]
    reached = (at >= curve.images[0]) & (at <= curve.images[-1])
    cost = np.interp(at[reached], curve.images, curve.costs)
    some = some[reached]
    better = cost < rest.ravel()[some]
    rest.ravel()[some[better]] = cost[better]
    choice.ravel()[some[better]] = number


# (B, W) the least from each column on.
def _least_from(costs: Floats) -> Floats:
    return np.asarray(np.minimum.accumulate(costs[:, ::-1], axis=1)[:, ::-1])


@dataclass(frozen=True)
class _Search:
    """Both sides of a secret: branch and bound over the left side's share of the budget (F6)."""

    chain: _Chain
    margins: tuple[int, int]
    epsilon: float
    ceiling: float
    together: bool
    tolerance: float

    @cached_property
    def widths(self) -> list[int]:
        """How many numbers of always-redacted records each side may need."""
        # half of the budget frees each side after so many records: no side needs twice as many
        chain, ratio = self.chain, self.chain.alpha / self.chain.beta
        begin = -math.expm1(-self.epsilon / 2) / (math.exp(-self.epsilon / 2) + ratio)
        end = (1.0 - chain.free) / (chain.free + ratio)
        freed = max(math.log(end / begin) / -chain.log_gap, 0.0)
        return [min(margin, 2 * math.ceil(freed) + 8) + 1 for margin in self.margins]

    def solve(self) -> tuple[tuple[_Path, _Path], float]:
        """The best paths within epsilon, and a bound on every mechanism within the ceiling."""
        if 0 in self.margins:
            share = 0.0 if self.margins[0] == 0 else 1.0
            paths = self._at(share)
            bound = self._bounds(np.array([[share, share]]))[0]
            return paths, min(float(bound), _cost(paths))
        shares = np.linspace(0.0, 1.0, _SHARES + 1)
        best = min((self._at(share) for share in (0.0, 0.5, 1.0)), key=_cost)
        intervals = np.stack((shares[:-1], shares[1:]), axis=1)
        settled, looked, where = math.inf, 0, 0.5
        while len(intervals):
            bounds = self._bounds(intervals)
            looked += len(intervals)
            for i in np.argsort(bounds)[:3]:
                share = float(intervals[i].mean())
                found = self._at(share)
                if _cost(found) <= _cost(best):
                    best, where = found, share
            done = (bounds >= _cost(best) - self.tolerance) | (looked > _MOST_INTERVALS)
            settled = min(settled, float(bounds[done].min(initial=math.inf)))
            cuts = np.linspace(intervals[~done, 0], intervals[~done, 1], _CUTS + 1, axis=1)
            intervals = np.stack((cuts[:, :-1].ravel(), cuts[:, 1:].ravel()), axis=1)
        best = self._polished(best, where)
        return best, min(settled, _cost(best))

    def _sides(self, left: Floats, right: Floats) -> tuple[_Side, _Side]:
        sides = zip(self.margins, self.widths, (left, right), strict=True)
        one, other = (_Side.of(self.chain, *side) for side in sides)
        return one, other

    # (B,) what shares within each interval cost at least.
    def _bounds(self, intervals: Floats) -> Floats:
        size = max(_CHUNK // max(self.widths), 1)
        if len(intervals) > size:
            parts = np.split(intervals, range(size, len(intervals), size))
            return np.concatenate([self._bounds(part) for part in parts])
        most = self.ceiling * intervals[:, 1], self.ceiling * (1.0 - intervals[:, 0])
        left, right = self._sides(*most)
        costs = self._paired(left.bounds, right.bounds, most, self.ceiling)
        return np.asarray(costs.min(axis=1))

    # (B, W) what both sides cost, by the left side's always-redacted records; right: the least from
    # each number of them on.
    def _paired(
        self, left: Floats, right: Floats, budgets: tuple[Floats, Floats], epsilon: float
    ) -> Floats:
        influence, most = [self._influence(side) for side in (0, 1)], self.widths[1] - 1
        if self.together:  # each side keeps its own budget in the direction 0:1 as well
            allowed = influence[0] <= budgets[0][:, np.newaxis]
            least = (influence[1] > budgets[1][:, np.newaxis]).sum(axis=1, keepdims=True)
            beside = np.take_along_axis(right, np.minimum(least, most), axis=1)
        else:
            rest = epsilon - influence[0]
            allowed = (rest >= 0)[np.newaxis]
            # influence falls with distance: so many first ones are too large
            beside = right[:, np.minimum(np.searchsorted(-influence[1], -rest), most)]
        return np.asarray(np.where(allowed, left + beside, np.inf))

    # (W,) of the first common value released, 0 where the side is redacted whole.
    def _influence(self, side: int) -> Floats:
        found = self.chain.low_influence(np.arange(1.0, self.widths[side] + 1))
        found[-1] = 0.0
        return found

    # The best paths with this share of epsilon on the left.
    def _at(self, share: float) -> tuple[_Path, _Path]:
        budgets = self.epsilon * share, self.epsilon - self.epsilon * share
        given = np.array([budgets[0]]), np.array([budgets[1]])
        left, right = self._sides(*given)
        costs = self._paired(left.costs, _least_from(right.costs), given, self.epsilon)[0]
        at = int(np.argmin(costs))
        beside = costs[at] - left.costs[0, at]
        # the last of those that cost so: all records from the first allowed one on may be
        other = int(np.flatnonzero(right.costs[0] <= beside * (1 + _SLACK))[-1])
        paths = self._path(left, budgets[0], at), self._path(right, budgets[1], other)
        return paths

    def _path(self, side: _Side, budget: float, column: int) -> _Path:
        if side.costs[0, column] >= side.margin:
            return _Path(side.margin, np.empty(0), float(side.margin))
        return self._made(budget, column, int(side.choice[0, column]))

    # The extremal path from a budget; of infinite cost if there is none.
    def _made(self, budget: float, always: int, choice: int) -> _Path:
        if choice == 0:
            return _Path(always, np.empty(0), float(always))
        chain, (pi0, pi1) = self.chain, self.chain.masses
        s = float(chain.after(np.array(budget), np.array(float(always))))
        curves, end = (chain.end_curves, 1.0) if choice < 0 else (chain.curves, chain.free)
        assert curves is not None
        states = _extremal(chain, s, curves[abs(choice) - 1], end)
        q = chain.image(states[:-1]) / states[1:]
        if not np.all((q > 0) & (q <= 1 + 1e-9)) or np.any(states[1:-1] <= chain.free):
            return _Path(always, q, math.inf)
        q = np.minimum(q, 1.0)
        return _Path(always, q, always + len(q) * pi1 + pi0 * float(q.sum()))

    def _polished(self, best: tuple[_Path, _Path], share: float) -> tuple[_Path, _Path]:
        """The best split near the one that was found."""
        from scipy.optimize import minimize_scalar

        for width in (1 / 64, 1 / 1024, 1 / 16384):
            low, high = max(share - width, 0.0), min(share + width, 1.0)
            with np.errstate(invalid="ignore"):  # parabolas through costs that are infinite
                found = minimize_scalar(
                    lambda one: _cost(self._at(float(one))),
                    bounds=(low, high),
                    method="bounded",
                    options={"xatol": 1e-14},
                )
            paths = self._at(float(found.x))
            if _cost(paths) < _cost(best):
                best, share = paths, float(found.x)
        return best


# (count + 1,) the states of a curve's path from a state to the end.
def _extremal(chain: _Chain, s: float, curve: _Curve, end: float) -> Floats:
    if curve.records == 1:
        return np.array([s, end])

    def states(last: float) -> list[float]:
        found = [end, last]
        while len(found) <= curve.records:
            found.append(float(chain.before(np.array(found[-1]), np.array(found[-2]))[0]))
        return found[::-1]

    at = int(np.clip(np.searchsorted(curve.first, s), 1, len(curve.first) - 1))
    between = float(curve.last[at - 1]), float(curve.last[at])
    return np.array([s, *states(_root(lambda last: states(last)[0] - s, *between))[1:]])


# Where a rising function is 0, between two arguments, to the last bits.
def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq

    if rising(low) >= 0:
        return low
    if rising(high) <= 0:
        return high
    near = 4 * float(np.finfo(float).eps)
    return float(brentq(rising, low, high, xtol=1e-300, rtol=near))


def _cost(paths: tuple[_Path, _Path]) -> float:
    return paths[0].cost + paths[1].cost
