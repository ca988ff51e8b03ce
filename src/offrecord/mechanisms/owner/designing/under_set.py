"""One side of the owner's mechanism for a set of models: two values, a box of kernels that may
change with every step.

What a level may stop depends on the largest and the least ratio of likelihoods that the set allows
there, and these on what was stopped before. So a design is improved by linear programmes, one after
the other. Nominal masses and costs are linear in what is left unstopped; how far the worst
sequences of kernels lie from the nominal one is taken as linear in the shares that go on, within a
reach. What a programme proposes is lowered, level by level, until no sequence that is found exceeds
the budget.

Nothing here decides about privacy: `set_referee.leakage_over` does, on the very thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.owner.designing import _set_walk
from offrecord.mechanisms.owner.designing.set_referee import corners_of, leakages_over
from offrecord.mechanisms.owner.stopping import StoppingSide
from offrecord.models.base import Floats, Integers
from offrecord.models.box import Intervals
from offrecord.theory.programmes import Entries, Solver
from offrecord.theory.sets import binary

#: How far windows are looked for, at first and at last: deadlines beyond are not designed for.
_LOOKS = (64, 2_000)
#: Deadlines that are tried: the window's over the set, and longer by these shares of it.
_LONGER = (0.0, 0.07, 0.2)
#: Of the budget, for which the nominal programmes are made that a design may start from, and of
#: their stop probabilities.
_BUDGETS, _STOPS = (1.0, 0.7, 0.4, 0.15), (1.0, 0.9, 0.7, 0.4)
#: At most so many programmes; a reach below the least ends them, and a gain below this share.
_PROGRAMMES, _REACH, _LEAST_REACH, _GAIN = 40, 0.3, 0.01, 2e-4
#: After so many, deadlines are compared: the best one is finished, and where it is not proven the
#: next, unless it costs more than this times as much.
_FIRST, _CLOSE = 8, 1.04
#: The part of the way to a proposal that is tried where all of it is refused: a try takes a tenth
#: of what another programme does.
_PART = 0.5
#: How often a proposal is asked for again within the same reach, with a budget that is smaller by
#: what was too much, and this factor, but not by more than this share.
_AGAIN, _BACK, _MOST_BACK = 2, 1.3, 0.1
#: About what designing takes, in walks to each level: whether machine code pays.
_WALKS = 125
#: Worst sequences of each outcome that are remembered.
_REMEMBERED = 3
#: What is left of the budget for what the search has missed, for each step to the deadline.
_SPARE = 1e-6
#: Nobody stops more surely than this, so that every outcome can always be compared.
_MOST_STOP = 1.0 - 2.0**-20
#: How often the referee is asked, and what is left of stop probabilities after a refusal.
_TRIES, _LOWERED = 4, (1.0, 0.98, 0.9)
#: A design that costs more than this share of the window is not worth its looks.
_WORTH = 0.99
#: A mass that counts as none, so that nothing is divided by 0.
_NEVER = 1e-300

#: Kernels by their numbers, by step from 1.
_Sequences: TypeAlias = NDArray[np.int64]
#: By level, value there and the x whose likelihood is above the line.
_Known: TypeAlias = dict[tuple[int, ...], list[_Sequences]]


def side_over(
    box_intervals: Intervals,
    nominal_kernel: Floats,
    direction: int,
    weights: Floats,
    budget: float,
    *,
    levels: int,
) -> StoppingSide | None:
    """A side that keeps within the budget under every sequence of kernels in a box (2, 2), and
    redacts little under the nominal one; None where nothing better than the window is found.

    weights: (2,) how likely each value of the run's end is. levels: how many there may be at most.
    """
    if nominal_kernel.shape != (2, 2):
        return None
    window = window_over(box_intervals, budget - _SPARE)
    if window is None or window == 1:
        return None
    kernels = np.concatenate((corners_of(box_intervals), nominal_kernel[np.newaxis]))
    designs: list[_Design] = []
    for deadline in sorted({math.ceil(window * (1.0 + share)) for share in _LONGER}):
        placed = placed_levels(nominal_kernel, weights, deadline, levels)
        designs.append(_Design.begun(_Walks(kernels, placed, weights), budget))
        if designs[-1].cost > designs[0].cost:
            break
    least = min(design.cost for design in designs)
    for design in sorted(designs, key=lambda design: design.cost):
        if design.cost > _CLOSE * least:
            break
        proven = design.finished().proven(box_intervals, direction, budget)
        if proven is not None and proven.cost < _WORTH * (window - 1):
            return proven.side(direction, budget)
    return None


def window_over(box_intervals: Intervals, budget: float) -> int | None:
    """The least distance at which a window's release keeps within the budget over the set."""
    low, high = (end[np.newaxis] for end in box_intervals)
    for furthest in _LOOKS:
        keeps = binary.windows(furthest, low, high).max(axis=(1, 2)) <= budget
        if keeps.any():
            return int(keeps.argmax()) + 1
    return None


def placed_levels(kernel: Floats, weights: Floats, deadline: int, count: int) -> Integers:
    """Distances up to the deadline, at equal steps of the summed root of the law of stopping that
    the coupling of bridges has (O5, O6).
    """
    if deadline <= count:
        return np.arange(1, deadline + 1)
    reached = [np.linalg.matrix_power(kernel, t) for t in range(deadline + 1)]
    ends = reached[deadline]
    common = np.zeros((deadline + 1, 2))
    for t in range(1, deadline + 1):
        bridges = reached[t][:, :, np.newaxis] * reached[deadline - t] / ends[:, np.newaxis]
        common[t] = bridges.min(axis=0).sum(axis=0)
    law = np.diff(common, axis=0).clip(0.0) @ (weights @ ends)
    summed = np.cumsum(np.sqrt(law))
    wanted = summed[-1] * np.arange(1, count + 1) / count
    placed = np.searchsorted(summed, wanted * (1 - 1e-12)) + 1
    return np.unique(np.append(placed[placed < deadline], deadline))


# ---- walks of one set


@dataclass(frozen=True, eq=False)
class _Walks:
    """kernels: (5, 2, 2) the corners of the set, then the nominal one."""

    kernels: Floats
    levels: Integers
    weights: Floats

    @cached_property
    def ground(self) -> _set_walk.Ground:
        """What searches for the worst sequences go over."""
        return _set_walk.Ground.of(self.kernels, self.levels, walks=_WALKS)

    @cached_property
    def jumps(self) -> list[Floats]:
        """(2, 2) nominally, to the first level and from each to the next."""
        steps = np.diff(self.levels, prepend=0)
        return [np.linalg.matrix_power(self.kernels[-1], int(step)) for step in steps]

    @cached_property
    def rests(self) -> Floats:
        """(m, 2, 2) nominally, from each level to the deadline."""
        rests = [np.eye(2)]
        for jump in self.jumps[:0:-1]:
            rests.append(jump @ rests[-1])
        return np.array(rests[::-1])

    @cached_property
    def shares(self) -> Floats:
        """(m, 2) how likely each value is nominally at each level."""
        reached = [self.weights @ self.jumps[0]]
        for jump in self.jumps[1:]:
            reached.append(reached[-1] @ jump)
        return np.array(reached)

    @cached_property
    def left(self) -> Floats:
        """(m − 1, 2, 2, n) what is left unstopped at a level, by the n variables of a programme."""
        count = len(self.levels) - 1
        sizes = np.repeat(self.shares[:-1, np.newaxis, :], 2, axis=1)
        return np.diag(sizes.ravel()).reshape(count, 2, 2, 4 * count)

    @cached_property
    def arriving(self) -> tuple[Floats, Floats]:
        """(m, 2, 2, n) and (m, 2, 2) what arrives at a level: by the variables, and whatever they
        are.
        """
        by_variables = np.zeros((len(self.levels), *self.left.shape[1:]))
        fixed = np.zeros((len(self.levels), 2, 2))
        fixed[0] = self.jumps[0]
        for level, jump in enumerate(self.jumps[1:], start=1):
            by_variables[level] = np.einsum("xzn,zi->xin", self.left[level - 1], jump)
        return by_variables, fixed

    @cached_property
    def stopped(self) -> Floats:
        """(m, 2, 2, n) what stops at a level, by the variables; what is fixed is as it arrives."""
        stopped = self.arriving[0].copy()
        stopped[:-1] -= self.left
        return stopped

    def reached(self, stops: Floats) -> Floats:
        """(m, 2, 2) U at each level, before its stop."""
        masses = [self.jumps[0]]
        for stop, jump in zip(stops, self.jumps[1:], strict=True):
            masses.append((masses[-1] * (1.0 - stop)) @ jump)
        return np.array(masses)

    def waiting(self, far: int) -> Floats:
        """(m − 1, 2, 2) what one unit of mass costs that does not stop at a level."""
        waits = np.diff(self.levels)[:, np.newaxis, np.newaxis]
        beyond = self.rests[:-1, :, far][:, np.newaxis, :]
        return np.asarray(waits * self.weights[:, np.newaxis] * beyond)

    def cost(self, stops: Floats, far: int) -> float:
        """Expected redactions beside the run, of walks with one far value."""
        left = self.reached(stops)[:-1] * (1.0 - stops)
        first = (self.levels[0] - 1) * (self.weights @ self.jumps[0] @ self.rests[0][:, far])
        return float(first + (self.waiting(far) * left).sum())


# ---- both far values


@dataclass(frozen=True, eq=False)
class _Design:
    """aimed: (2,) the budget that stops keep within as far as sequences are found, by far value.

    progress: how far programmes have come, by far value.
    """

    walks: _Walks
    aimed: Floats
    progress: tuple[_Progress, ...]

    @classmethod
    def begun(cls, walks: _Walks, budget: float) -> _Design:
        """By few programmes, within a budget less what may have been missed."""
        aimed = budget - _SPARE * float(walks.levels[-1])
        pinned = [_Pinned(walks, far, aimed) for far in range(2)]
        progress = (_improved(one, _begun(one, _nominal_stops(one)), _FIRST) for one in pinned)
        return cls(walks, np.full(2, aimed), tuple(progress))

    def finished(self) -> _Design:
        """By as many programmes as gain anything: the best that is found."""
        return replace(
            self, progress=tuple(self._finished(*one) for one in enumerate(self.progress))
        )

    def _finished(self, far: int, progress: _Progress) -> _Progress:
        pinned = _Pinned(self.walks, far, self.aimed[far])
        return _looked_through(pinned, _improved(pinned, progress, _PROGRAMMES))

    @cached_property
    def stops(self) -> Floats:
        """(2, m − 1, 2, 2) stop probabilities by far value, level, x and value there."""
        return np.array([one.best.stops for one in self.progress])

    @cached_property
    def cost(self) -> float:
        """Expected redactions beside the run."""
        return float(sum(self.walks.cost(stops, far) for far, stops in enumerate(self.stops)))

    def side(self, direction: int, budget: float) -> StoppingSide:
        """With thresholds, rounded down; none is so small that this would change its ratios."""
        limits = np.floor(self.stops * 2.0**64).astype(np.uint64)
        return StoppingSide(direction, budget, self.walks.levels, limits[..., np.newaxis])

    def lowered(self, excess: Floats) -> _Design:
        """The design anew for far values that tell too much (2,), for a smaller budget."""
        aimed = self.aimed - np.where(excess > 0, _BACK * excess, 0.0)
        progress = list(self.progress)
        for far in np.flatnonzero(excess > 0).tolist():
            starts = [share * self.stops[far] for share in _LOWERED]
            pinned = _Pinned(self.walks, far, aimed[far])
            progress[far] = _improved(pinned, _begun(pinned, starts), _PROGRAMMES)
        return _Design(self.walks, aimed, tuple(progress))

    def proven(self, box_intervals: Intervals, direction: int, budget: float) -> _Design | None:
        """This design, or one that aims lower, which the referee lets pass."""
        design = self
        for _ in range(_TRIES):
            told = leakages_over(box_intervals, design.side(direction, budget))
            if told.max() <= budget:
                return design
            if not np.isfinite(told).all():
                return None
            design = design.lowered(told - budget)
        return None


# ---- designed


@dataclass(frozen=True, eq=False)
class _Pinned:
    """Walks with one far value that are to keep within a budget; solver: of all programmes that are
    solved for them, each of which is much like the one before.
    """

    walks: _Walks
    far: int
    budget: float
    solver: Solver = field(default_factory=lambda: Solver(even=True))


@dataclass(frozen=True, eq=False)
class _Trial:
    """Stop probabilities (m − 1, 2, 2) by level, x and value there, that keep within the budget at
    every level but perhaps the deadline, as far as sequences are found.

    beyond: (m, 2) by how much an outcome would have exceeded the budget whatever its stops, or at
    the deadline does.
    sequences: (m, 2, 2, L + 1) the kernels that meet the worst.
    """

    stops: Floats
    cost: float
    beyond: Floats
    sequences: _Sequences

    @property
    def is_within(self) -> bool:
        """The deadline keeps within the budget, too."""
        return bool(self.beyond[-1].max() <= 0)


def _tried(
    pinned: _Pinned, stops: Floats, sequences: _Sequences, *, is_thorough: bool = False
) -> _Trial:
    """Lowered until all levels keep within the budget. is_thorough: worst sequences are looked for
    from other starts, too, than those given.
    """
    walks = pinned.walks
    lowered, worst_of = np.minimum(stops, _MOST_STOP), sequences.copy()
    worst, beyond = _set_walk.repaired(
        walks.ground, lowered, worst_of, pinned.budget, is_thorough=is_thorough
    )
    over = np.full((1, 2), -np.inf)
    over[0, pinned.far] = worst[-1, pinned.far].max() - pinned.budget
    cost = walks.cost(lowered, pinned.far)
    return _Trial(lowered, cost, np.concatenate((beyond, over)), worst_of)


@dataclass(frozen=True, eq=False)
class _Progress:
    """What programmes have come to.

    known: sequences that were the worst. backs (m, 2), reach, again: what the next programme is
    asked, and how often the last was asked again. programmes: how many there were.
    """

    best: _Trial
    known: _Known
    backs: Floats
    reach: float = _REACH
    again: int = 0
    programmes: int = 0
    is_over: bool = False


def _begun(pinned: _Pinned, starts: Iterable[Floats]) -> _Progress:
    """With the best of some stop probabilities, each lowered until it is within the budget."""
    walks = pinned.walks
    none = np.zeros((len(walks.levels) - 1, 2, 2))
    sequences = np.zeros((len(walks.levels), 2, 2, int(walks.levels[-1]) + 1), dtype=np.int64)
    best = _tried(pinned, none, sequences, is_thorough=True)
    for stops in starts:
        trial = _tried(pinned, stops, best.sequences)
        if trial.is_within and trial.cost < best.cost:
            best = trial
    return _Progress(best, _remembered({}, best.sequences), np.zeros(best.beyond.shape))


def _nominal_stops(pinned: _Pinned) -> Iterator[Floats]:
    """What the nominal kernel alone would have, for smaller budgets, and lowered."""
    count = len(pinned.walks.levels)
    none = np.zeros((count - 1, 2, 2))
    for share in _BUDGETS:
        one = replace(pinned, budget=share * pinned.budget)
        found = _programmed(one, none, {}, np.zeros((count, 2)), 1.0)
        if found is not None:
            for factor in _STOPS:
                yield factor * found


def _improved(pinned: _Pinned, progress: _Progress, programmes: int) -> _Progress:
    """By programmes, up to so many in all, as long as they gain anything."""
    while not progress.is_over and progress.programmes < programmes:
        progress = _once_more(pinned, progress)
    return progress


def _looked_through(pinned: _Pinned, progress: _Progress) -> _Progress:
    """Where sequences are found that nobody had looked for, what the best is lowered to."""
    trial = _tried(pinned, progress.best.stops, progress.best.sequences, is_thorough=True)
    return replace(progress, best=trial) if trial.is_within else progress


def _once_more(pinned: _Pinned, progress: _Progress) -> _Progress:
    """By one programme.

    Of a proposal that its own worst sequences forbid a part of the way is taken, if that is of use;
    else it is asked for again with a smaller budget where it was too much, then within a smaller
    reach.
    """
    best, backs, reach, again = progress.best, progress.backs, progress.reach, progress.again
    is_over = False
    proposed = _programmed(pinned, best.stops, progress.known, backs, reach)
    trial = best if proposed is None else _part_of_the_way(pinned, best, proposed)
    if trial.is_within and trial.cost < best.cost:
        is_over = 1 - trial.cost / best.cost < _GAIN
        best, backs, again, reach = trial, backs / 2, 0, min(1.0, 1.5 * reach)
    elif trial is not best and again < _AGAIN and trial.beyond.max() > 0:
        excess = np.clip(trial.beyond, 0.0, _MOST_BACK * pinned.budget)
        backs, again = backs + _BACK * excess, again + 1
    else:
        backs, again, reach = backs / 3, 0, reach / 2
    known, count = _remembered(progress.known, trial.sequences), progress.programmes + 1
    return _Progress(best, known, backs, reach, again, count, is_over or reach < _LEAST_REACH)


def _part_of_the_way(pinned: _Pinned, best: _Trial, proposed: Floats) -> _Trial:
    """What is proposed, or a part of the way there where that is better than the best and all of it
    is not.
    """
    whole = _tried(pinned, proposed, best.sequences)
    if whole.is_within and whole.cost < best.cost:
        return whole
    stops = best.stops + _PART * (proposed - best.stops)
    part = _tried(pinned, stops, best.sequences)
    return part if part.is_within and part.cost < best.cost else whole


def _remembered(known: _Known, sequences: _Sequences) -> _Known:
    """The last few sequences of each outcome that were the worst for some design."""
    found = {}
    for target in np.ndindex(sequences.shape[:3]):
        fresh = sequences[target].copy()
        spelled = fresh.tobytes()
        others = [one for one in known.get(target, []) if one.tobytes() != spelled]
        found[target] = [*others[1 - _REMEMBERED :], fresh]
    return found


# ---- programmes


def _programmed(
    pinned: _Pinned, stops: Floats, known: _Known, backs: Floats, reach: float
) -> Floats | None:
    """(m − 1, 2, 2) the best stop probabilities if all that is not linear is taken as it is, to
    first order, where `stops` are; None if there are none.

    known: sequences whose outcomes are to keep within the budget, less `backs` (m, 2); without any,
    the nominal one. reach: by how much shares that go on may change.
    """
    walks = pinned.walks
    sizes = walks.shares[:-1, np.newaxis, :]
    changes = _changes(walks, stops)
    parts = [
        _outcome_rows(pinned, stops, known, backs, changes),
        (-walks.stopped[:-1] / sizes[..., np.newaxis], walks.arriving[1][:-1] / sizes),
    ]
    if reach < 1.0:
        parts += _reach_rows(pinned, stops, changes, reach)
    above = np.concatenate([rows.reshape(-1, walks.left.shape[-1]) for rows, _ in parts])
    bounds = np.concatenate([limits.ravel() for _, limits in parts])
    costs = (walks.waiting(pinned.far) * sizes).ravel()
    row, column = np.nonzero(above)
    rows = Entries(row, column, above[row, column])
    solved = pinned.solver.least(costs, rows, -np.inf, bounds)
    return None if solved is None else _stops_of(walks, solved.reshape(stops.shape) * sizes)


def _reach_rows(
    pinned: _Pinned, stops: Floats, changes: tuple[Floats, Floats], reach: float
) -> list[tuple[Floats, Floats]]:
    """Rows and limits that keep to what is about linear: shares that go on change by no more than
    the reach, and what arrives at a level of one x falls by no more than that part of it, because
    the ratios of what is left after everything has stopped are those of other walks.
    """
    walks = pinned.walks
    reached = walks.reached(stops)
    masses = reached[:-1] / walks.shares[:-1, np.newaxis, :]
    by_variables, constant = changes[0] * masses[..., np.newaxis], changes[1] * masses
    beyond = walks.rests[..., pinned.far][:, np.newaxis, :]
    now = (reached * beyond).sum(axis=2)
    arriving, fixed = walks.arriving
    left = np.einsum("qxin,qi->qxn", arriving, beyond[:, 0]) / now[..., np.newaxis]
    return [
        (by_variables, reach * masses - constant),
        (-by_variables, reach * masses + constant),
        (-left, (fixed * beyond).sum(axis=2) / now - (1.0 - reach)),
    ]


def _stops_of(walks: _Walks, left: Floats) -> Floats:
    """Stop probabilities that leave these masses."""
    stops = np.zeros_like(left)
    reached = walks.jumps[0]
    for level, jump in enumerate(walks.jumps[1:]):
        share = left[level] / np.maximum(reached, _NEVER)
        stops[level] = np.clip(1.0 - share, 0.0, _MOST_STOP)
        reached = (reached * (1.0 - stops[level])) @ jump
    return stops


def _changes(walks: _Walks, stops: Floats) -> tuple[Floats, Floats]:
    """(m − 1, 2, 2, n) and (m − 1, 2, 2) by how much shares that go on change, to first order."""
    arriving, fixed = walks.arriving
    keeps = 1.0 - stops
    masses = np.maximum(walks.reached(stops)[:-1], _NEVER)
    by_variables = walks.left - keeps[..., np.newaxis] * arriving[:-1]
    return by_variables / masses[..., np.newaxis], -keeps * fixed[:-1] / masses


def _outcome_rows(
    pinned: _Pinned,
    stops: Floats,
    known: _Known,
    backs: Floats,
    changes: tuple[Floats, Floats],
) -> tuple[Floats, Floats]:
    """Rows and limits that keep every outcome within the budget under all sequences known."""
    walks = pinned.walks
    targets, sequences, usual = _outcomes(pinned, known)
    told, slopes = _set_walk.slopes(walks.ground, stops, targets[:, :2], sequences)
    rows = np.flatnonzero(targets[:, 2] >= 0)
    level, value, over = targets[rows].T
    under, of = 1 - over, usual[rows]
    sign = np.where(over == 0, 1.0, -1.0)
    slope = sign[:, np.newaxis] * (slopes[rows] - slopes[of]).reshape(len(rows), -1)
    margin = sign * (told[rows] - told[of])
    factor = np.exp(pinned.budget - backs[level, value] - margin)
    masses = walks.reached(stops) * np.concatenate((stops, np.ones((1, 2, 2))))
    weight = factor * masses[level, under, value]
    row = walks.stopped[level, over, value]
    row = row - factor[:, np.newaxis] * walks.stopped[level, under, value]
    fixed = walks.arriving[1]
    constant = fixed[level, over, value] - factor * fixed[level, under, value]
    constant += weight * (slope @ changes[1].ravel())
    row += weight[:, np.newaxis] * (slope @ changes[0].reshape(slope.shape[1], -1))
    size = walks.shares[level, value]
    return row / size[:, np.newaxis], -constant / size


def _outcomes(pinned: _Pinned, known: _Known) -> tuple[Integers, _Sequences, Integers]:
    """(n, 3) the level of an outcome, the value there and the x above the line, (n, L + 1) the
    sequences that are known for it, and (n,) which of them is the nominal one, with −1 for x.
    """
    levels = pinned.walks.levels
    last, nominal = len(levels) - 1, np.full(int(levels[-1]) + 1, _set_walk.CORNERS)
    targets: list[tuple[int, ...]] = []
    sequences, usual = [], []
    for level, value in np.ndindex(last + 1, 2):
        if level == last and value != pinned.far:
            continue
        first = len(targets)
        targets.append((level, value, -1))
        sequences.append(nominal)
        for over in range(2):
            others = known.get((level, value, over), [nominal])
            targets += [(level, value, over)] * len(others)
            sequences += others
        usual += [first] * (len(targets) - first)
    return np.array(targets), np.array(sequences), np.array(usual)
