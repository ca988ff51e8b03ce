"""The best local mechanism around one secret of the paper's chain with α + β < 1, and its bound.

docs/proofs/F5-one-side.md and F6-two-sides.md prove both, the bound for every local mechanism. In
short: on each side some records come first that are always redacted; then some that redact the rare
value always and the other with falling probabilities; then all is free, or the chain ends. The
direction 1:0 (the rare value over the other) is a budget split between the sides; the direction 0:1
decides how early the other value may be released first.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.best_local import _binary_arrays, _binary_bounds
from offrecord.mechanisms.local.stretches import Stretches
from offrecord.models.base import Floats
from offrecord.theory._compiling import Loop, are_few

_CELLS, _COARSE = 1 << 13, 1 << 11  # how finely the state is cut, and where that may do
_MANY_STAGES = 12  # of a table that is made coarse first
_ENTRIES = 1 << 22  # how large a table of values may be
_STAGES = 1000  # how many records up to the chain's end a table may look ahead
_LOOKS = 1_500_000  # states that are looked at to find the split of the budget, at most
_MANY_INTERVALS = 700  # of shares, which finer tables may tell apart
_TOLERANCE = 2e-7  # of n: how close the bound is brought, if that many looks do
_ONE_SIDE = 0.01  # of that, for one side alone: there is no split to be found, so it is had at once
_TABLE_ERROR = 1.5  # no looks bring it closer than this times what the tables miss
_SHARES, _CUTS = 64, 4  # parts of the budget's range to begin with, and what each is cut into
#: Rounding of the path (docs/proofs/rounding.md, "Paths"): redaction probabilities are raised by
#: this share, which is always safe (F3), and a state this close to s_free is taken to be free.
_RAISED, _FREE = 2.0**-50, 1e-12
#: Counts of records are rounded up where rounding could decide.
_COUNT_SLACK = 1e-9
#: What is done without machine code takes about so long, in visits to one record, of which the
#: dozen loops here are worth some more than others as they take longer to compile: a stage of a
#: table, one split of the budget; and so many intervals of shares take as long as a visit.
_STAGE, _PAIR, _INTERVALS = 150, 3, 3
#: A bound may exceed the cost of what it bounds by this much, relative and absolute, not more.
_CROSSED = 1e-9


class Optimum(NamedTuple):
    """Plans for both sides, and the least redactions any local mechanism expects on them."""

    left: Stretches
    right: Stretches
    least: float


class _Values(NamedTuple):
    """What the rest of a side costs at least (see _binary_bounds.lower_bounds)."""

    grid: tuple[Floats, Floats, Floats, Floats]
    rest: _binary_bounds.Rest
    firsts: NDArray[np.int32]

    @property
    def stages(self) -> int:
        """How many records it looks ahead."""
        return len(self.firsts) - 1


class _Tables(NamedTuple):
    """Both value functions, for every budget and split of it."""

    free: _Values  # until everything is free
    end: _Values  # until the chain's end
    span: int  # how many records before everything is free a best path may begin to release


class _Path(NamedTuple):
    """One side: `always` records, then j that redact the common value sometimes, states between.

    states: (j + 1,) s_0 … s_j, before the first of the j records, between them, after the last.
    """

    always: int
    states: Floats
    cost: float


#: The best paths, and a bound on every mechanism's cost.
_Solved: TypeAlias = tuple[tuple[_Path, _Path], float]


def best_around(
    alpha: float,
    beta: float,
    epsilon: float,
    ceiling: float,
    rooms: tuple[int, int],
    *,
    together: bool,
    n: int,
    weights: tuple[float, float] | None = None,
) -> Optimum | None:
    """The best plans within epsilon, and what any mechanism within a ceiling ≥ it costs at least.

    For α + β < 1, ε > 0. None where that would take more than can be tabulated: a chain so slow
    that thousands of records up to its end matter.

    together: a secret of several records, whose sides' largest leakages add (F9) instead of those
    in each direction (F2).
    n: of how many records a utility is a share, which sets how close the bound needs to be.
    weights: how likely both values are, if not as the chain says: F5 takes any (R2).
    """
    swap = alpha > beta
    zero, one = weights or (beta / (alpha + beta), alpha / (alpha + beta))
    masses = (one, zero) if swap else (zero, one)
    solver = _TwoSides((min(alpha, beta), max(alpha, beta)), masses, rooms, together, n)
    solved = solver.solve(epsilon, ceiling)
    if solved is None:
        return None
    paths, least = solved
    left, right = (_plan(path, solver, swap) for path in paths)
    return Optimum(left, right, least)


def _plan(path: _Path, solver: _TwoSides, swap: bool) -> Stretches:
    """Redaction rows of a path: q_i = f(s_i)/s_{i+1} for the common value, 1 for the rare one."""
    exact = solver.image(path.states[:-1]) / path.states[1:]
    probabilities = np.minimum(exact * (1 + _RAISED), 1.0)
    rows = np.ones((len(probabilities) + 1, 2))
    rows[1:, 0] = probabilities
    lengths = np.concatenate(([path.always], np.ones(len(probabilities), dtype=np.int64)))
    kept = lengths > 0
    return Stretches(rows[kept][:, ::-1] if swap else rows[kept], lengths[kept].astype(np.int64))


class _TwoSides:
    """Both sides of a secret, α ≤ β, α + β < 1."""

    def __init__(
        self,
        rates: tuple[float, float],
        masses: tuple[float, float],
        rooms: tuple[int, int],
        together: bool,
        n: int,
    ) -> None:
        alpha, beta = self.alpha, self.beta = rates
        self.rooms, self.together = rooms, together
        self.gap = math.fsum((1.0, -alpha, -beta))
        self.masses = self.pi0, self.pi1 = masses
        self.free_state = alpha / (1.0 - beta)
        self.tolerance = _TOLERANCE * n
        self.longest, self.longest_end = self._longest()
        total = alpha + beta
        self.log_gap = math.log1p(-total) if total < 0.5 else math.log(self.gap)
        self.chain = (alpha, beta, self.log_gap, self.pi0, self.pi1)

    # ---- the state, in closed form

    def image(self, s: Floats) -> Floats:
        """f(s): the state after one always-redacted record."""
        return (s * (1.0 - self.beta) - self.alpha) / ((1.0 - self.alpha) - s * self.beta)

    def _longest(self) -> tuple[int, int]:
        """For how many records a best path redacts the common value only sometimes, at most.

        Before all is free, and before the chain's end. Along a best path q falls by
        D(s) = s·f'(s)/f(s) a record: backwards it grows so from at least its value one before the
        last, and stays at most 1.
        """
        a, gap = 1.0 - self.alpha, self.gap
        # D(s) − 1 = α/(u − α) + v/(A − v) with u = (1 − β)s, v = βs: least where its derivative is
        # 0, or at 1. At s_free D is infinite, so a little above it serves.
        root = math.sqrt(self.alpha * (1.0 - self.beta) / (a * self.beta))
        least = (self.alpha + root * a) / ((1.0 - self.beta) + root * self.beta)
        s = min(max(least, self.free_state * (1 + _COUNT_SLACK)), 1.0)
        u, v = (1.0 - self.beta) * s, self.beta * s
        growth = math.log1p(self.alpha / (u - self.alpha) + v / (a - v))
        slope = (1.0 - self.beta) ** 2 / gap  # f'(s_free)
        counts = []
        for q in (slope, slope * self.free_state):
            steps = 0.0 if q >= 1 else -math.log(q) / growth
            counts.append(1 if q >= 1 else 3 + math.floor(steps * (1 + _COUNT_SLACK)))
        drift = math.log1p((self.beta - self.alpha) / (1.0 - self.beta))
        rising = _longest_rise(growth, drift, -math.log(self.free_state))
        return counts[0], min(counts[1], rising)

    # ---- the value functions, for the rooms and budgets at hand

    def _stages(self, widest: float) -> tuple[int, int]:
        """How many records tables have to look ahead until everything is free, and to the chain's
        end.

        widest: no side costs more than this in an optimum, so that the chain's end matters only
        where it is nearer.
        """
        ends = [room for room in self.rooms if room - self.longest_end <= widest]
        return min(self.longest, max(self.rooms)), min(max(ends, default=0), self.longest_end)

    def _values(self, stages: tuple[int, int], cells: int) -> _Tables:
        """Tables for these rooms."""
        cells = min(cells, _ENTRIES // (max(stages) + 1))
        return _tables(self.alpha, self.beta, self.masses, cells, *stages)

    # ---- both sides together

    def solve(self, epsilon: float, ceiling: float) -> _Solved | None:
        """The best paths within epsilon, and a bound on every mechanism's cost within ceiling."""
        ratio = self.alpha / self.beta
        halves = [
            min(
                _run(
                    _binary_bounds.free_after,
                    1,
                    *(epsilon / 2, room, ratio, self.log_gap, self.free_state),
                ),
                room,
            )
            for room in self.rooms
        ]
        stages = self._stages(min(float(sum(self.rooms)), sum(halves)))
        if max(stages) > _STAGES:
            return None
        cells = _COARSE if sum(stages) > _MANY_STAGES else _CELLS
        if 0 in self.rooms:
            return self._one_side(stages, cells, epsilon, ceiling)
        return self._split(stages, cells, epsilon, ceiling)

    def _one_side(
        self, stages: tuple[int, int], cells: int, epsilon: float, ceiling: float
    ) -> _Solved:
        """See `solve`, where there is no split to be found."""
        values = self._values(stages, cells)
        budget = (0.0, epsilon) if self.rooms[0] == 0 else (epsilon, 0.0)
        most = (0.0, ceiling) if self.rooms[0] == 0 else (ceiling, 0.0)
        least = self._pair(values, *most, ceiling)[0]
        paths = self._paths(values, budget, epsilon)
        if cells < _CELLS and _cost(paths) - least > _ONE_SIDE * self.tolerance:
            return self._one_side(stages, _CELLS, epsilon, ceiling)
        return paths, min(least, _cost(paths))

    def _split(
        self, stages: tuple[int, int], cells: int, epsilon: float, ceiling: float
    ) -> _Solved:
        """Branch and bound over the left side's share of the budget (F6).

        A side's cost never rises with its budget, so on an interval of shares the left side with
        its upper end and the right side with its lower end cost no more than any split within.
        Where tables are too coarse to tell intervals apart, finer ones look at those that are left.
        """
        values = self._values(stages, cells)
        best, best_share = min(
            ((self._at(values, s, epsilon), s) for s in (0.0, 0.5, 1.0)),
            key=lambda at: _cost(at[0]),
        )
        shares = np.linspace(0.0, 1.0, _SHARES + 1)
        intervals = np.stack((shares[:-1], shares[1:]), axis=1)
        settled = math.inf  # the least bound of the intervals that are left as they are
        states = values.end.stages + min(values.span, max(self.rooms)) + 10
        looks, most = 0, max(_LOOKS // states, 500)
        tolerance = self.tolerance
        while len(intervals) and looks < most:
            given = intervals, float(ceiling), *self._given(values)
            few = _are_few(len(intervals) // _INTERVALS)
            bounds = (_binary_arrays if few else _binary_bounds).least_costs(*given)
            looks += len(intervals)
            for i in np.argsort(bounds)[:3]:
                share = float(intervals[i].mean())
                found = self._at(values, share, epsilon)
                if _cost(found) <= _cost(best):
                    best, best_share = found, share
                    tolerance = self._reachable(values, best, share, ceiling)
            close = bounds >= _cost(best) - tolerance
            if cells < _CELLS and (tolerance > self.tolerance or (~close).sum() > _MANY_INTERVALS):
                missed = max(tolerance / self.tolerance, 4.0)  # falls with the square of the cells
                while cells < _CELLS and missed > 1:
                    cells, missed = 2 * cells, missed / 4
                values = self._values(stages, cells)
                tolerance = self._reachable(values, best, best_share, ceiling)
                close = bounds >= _cost(best) - tolerance
            done = close | (looks >= most)
            settled = min(settled, float(bounds[done].min(initial=math.inf)))
            rest = intervals[~close]
            cuts = np.linspace(rest[:, 0], rest[:, 1], _CUTS + 1, axis=1)
            intervals = np.stack((cuts[:, :-1].ravel(), cuts[:, 1:].ravel()), axis=1)
        best = self._polish(values, best, epsilon)
        most_cost = _cost(best) * (1 + _CROSSED) + _CROSSED
        assert settled <= most_cost, "a bound above what it bounds"
        return best, min(settled, _cost(best))

    def _reachable(
        self, values: _Tables, best: tuple[_Path, _Path], share: float, ceiling: float
    ) -> float:
        """How close the bound is to be brought: no closer than tables can."""
        least = self._pair(values, ceiling * share, ceiling * (1.0 - share), ceiling)[0]
        return max(self.tolerance, _TABLE_ERROR * (_cost(best) - least))

    def _at(self, values: _Tables, share: float, epsilon: float) -> tuple[_Path, _Path]:
        """The best paths with this share of epsilon on the left."""
        return self._paths(values, (epsilon * share, epsilon - epsilon * share), epsilon)

    def _pair(
        self, values: _Tables, left: float, right: float, epsilon: float
    ) -> tuple[float, int, int]:
        """See _binary_bounds.pair."""
        budgets = float(left), float(right)
        found: tuple[float, int, int] = _run(
            _binary_bounds.pair, _PAIR, budgets, float(epsilon), *self._given(values)
        )
        return found

    def _given(self, values: _Tables) -> tuple[Any, ...]:
        """What _binary_bounds.pair takes beside budgets."""
        ends = tuple(values.free), tuple(values.end)
        return self.rooms, self.together, values.span, self.chain, *ends

    # ---- paths that meet the bounds

    def _paths(
        self, values: _Tables, budgets: tuple[float, float], epsilon: float
    ) -> tuple[_Path, _Path]:
        _, *always = self._pair(values, *budgets, epsilon)
        left, right = (
            self._path(values, budget, room, first)
            for budget, room, first in zip(budgets, self.rooms, always, strict=True)
        )
        return left, right

    def _path(self, values: _Tables, budget: float, room: int, always: int) -> _Path:
        """The best path that begins with so many always-redacted records."""
        state = 1.0
        if budget > 0:
            ratio = self.alpha / self.beta
            state = _run(
                _binary_bounds.state_after, 1, float(budget), float(always), ratio, self.log_gap
            )
        remaining = room - always
        if remaining == 0 or (state <= self.free_state and budget > 0):
            return _Path(always, np.array([state]), float(always))
        # Everything redacted; the number of records with the least bound, or one more; or as many
        # as the chain has.
        candidates = [_Path(room, np.array([state]), float(room))]
        image = float(self.image(np.array([state]))[0])
        chain, tables = (self.alpha, self.beta), tuple(values.free)
        arguments = state, image, True, self.pi0, self.pi1, chain, tables
        most = min(remaining, values.free.stages)
        count = _run(_binary_bounds.best_count, most + 1, most, *arguments)
        candidates += [
            self._settled(always, state, j, self.free_state)
            for j in (count, count + 1)
            if 0 < j <= remaining
        ]
        if remaining <= values.end.stages:
            candidates.append(self._settled(always, state, remaining, 1.0))
        return min(candidates, key=lambda path: path.cost)

    def _settled(self, always: int, state: float, count: int, goal: float) -> _Path:
        """The path of `count` records from a state to a goal with the least cost; ∞ if none is.

        It begins as high as can still come down to the goal, which is feasible if anything is.
        """
        states = np.full(count + 1, goal)
        for i in range(count - 1, -1, -1):  # f of each is the next
            x = states[i + 1]
            states[i] = min(
                (x * (1.0 - self.alpha) + self.alpha) / ((1.0 - self.beta) + x * self.beta), 1.0
            )
        if count < 1 or state > states[0]:
            return _Path(always, np.array([state]), math.inf)
        states[0] = state
        given = states, self.alpha, self.beta, self.free_state
        total = _run(_binary_bounds.settle, count, *given)
        if np.any(states[:-1] <= self.free_state * (1 + _FREE)):
            return _Path(always, states[:1], math.inf)  # free earlier: a path with fewer records
        return _Path(always, states, always + count * self.pi1 + self.pi0 * total)

    def _polish(
        self, values: _Tables, best: tuple[_Path, _Path], epsilon: float
    ) -> tuple[_Path, _Path]:
        """The best split by one more search around the one that was found."""
        from scipy.optimize import minimize_scalar

        def paths(budget: float) -> tuple[_Path, _Path]:
            return self._paths(values, (budget, epsilon - budget), epsilon)

        for width in (1 / 64, 1 / 1024, 1 / 16384):
            center = self._budget_of(best[0])
            low, high = max(center - epsilon * width, 0.0), min(center + epsilon * width, epsilon)
            result = minimize_scalar(
                lambda b: _cost(paths(float(b))),
                bounds=(low, high),
                method="bounded",
                options={"xatol": 1e-14},
            )
            best = min(best, paths(float(result.x)), key=_cost)
        return best

    def _budget_of(self, path: _Path) -> float:
        """The budget of a path: `state_after` inverted."""
        ratio = self.alpha / self.beta
        s = float(path.states[0])
        w = (1.0 - s) / (s + ratio) * math.exp(path.always * self.log_gap)
        return -math.log((1.0 - w * ratio) / (1.0 + w)) if w > 0 else 0.0


def _longest_rise(growth: float, drift: float, height: float) -> int:
    """How many records may take a best path from a state above s_free up to 1, at most.

    All of its q together fall no faster than the states rise, which puts a square of their number
    below what is linear in it (docs/proofs/F5-one-side.md). growth: the least log D; drift:
    log((1 − α)/(1 − β)); height: log(1/s_free).
    """
    growth, slack = growth * (1 - _COUNT_SLACK), 1 + _COUNT_SLACK
    half = growth / 2 + drift
    most = (half + math.sqrt(half**2 + 2 * growth * height)) / growth
    if most > 10 * _STAGES:  # too many to be tabulated anyway
        return 10 * _STAGES
    count = 2 + math.floor(most * slack)
    while count > 3:
        # of a path that begins low, the first step inside it takes much from q
        low = math.log(count - 1) - (count - 2) * math.log1p(-1 / (count - 1))
        rise = (count - 1) * drift + height - low
        if growth * (count - 2) * (count - 3) / 2 <= rise * slack + _COUNT_SLACK:
            break
        count -= 1
    return count


def _run(loop: Loop, visits: int, *arguments: Any) -> Any:
    """As it stands while there is little to do, else as machine code."""
    return (loop.plain if _are_few(visits) else loop)(*arguments)


def _are_few(visits: int) -> bool:
    """So many more are quicker without machine code: not where the compiler is loaded, as what it
    has kept is then loaded in no time.
    """
    return "numba" not in sys.modules and are_few(visits, __name__)


def _cost(paths: tuple[_Path, _Path]) -> float:
    return paths[0].cost + paths[1].cost


@lru_cache(maxsize=4)  # up to a hundred megabytes each
def _tables(
    alpha: float,
    beta: float,
    masses: tuple[float, float],
    cells: int,
    stages: int,
    stages_end: int,
) -> _Tables:
    """Value functions from below: one set serves every budget and split."""
    free_state, ratio = alpha / (1.0 - beta), alpha / beta
    nodes = np.exp(np.linspace(math.log(free_state), 0.0, cells + 1))
    nodes[0], nodes[-1] = free_state, 1.0
    images = (nodes * (1.0 - beta) - alpha) / ((1.0 - alpha) - nodes * beta)
    images[0], images[-1] = 0.0, 1.0
    grid = nodes, images, 1.0 / nodes, np.sqrt(images)
    few = _are_few(_STAGE * (stages + stages_end))
    search = (_binary_arrays if few else _binary_bounds).searched
    free, end = (
        _Values(
            grid,
            *_binary_bounds.lower_bounds(
                *(grid, masses, (alpha, beta), count), free=is_free, search=search
            ),
        )
        for count, is_free in ((stages, True), (stages_end, False))
    )
    finite = np.flatnonzero(np.isfinite(free.rest[0][-1]))
    # one record before the highest state inside a path that can still come down to s_free
    top = float(nodes[min(finite[-1] + 1, cells)]) if len(finite) else free_state
    high, low = ((1.0 - s) / (s + ratio) for s in (free_state, top))
    span = (
        1 << 60 if low <= 0 else math.ceil(math.log(high / low) / -math.log1p(-(alpha + beta))) + 3
    )
    return _Tables(free, end, span)
