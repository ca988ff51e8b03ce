"""Sequences of kernels under which a stopping rule of two values tells most.

A walk under one sequence of kernels keeps four numbers, U(x, i): not stopped before, value i there,
given x at the run's end. They begin as U(x, i) = 1 where x = i. A step multiplies by one kernel of
the list, a level by the shares that go on. What is looked for is the largest U(0, i)/U(1, i), and
the largest of its inverse, over all sequences of the first four kernels, the corners of the set;
a fifth, the nominal one, takes no part in it.

Nothing here decides about privacy: what is found is met by some sequence, so it bounds the worst
from below. `set_referee.py` has the other bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers
from offrecord.theory._compiling import are_few, compiled, inlined

CORNERS = 4
_SWEEPS = 30  # over a sequence, kernel by kernel, until nothing is gained
_STILL = 1e-12  # a gain in a log-ratio that is not worth another sweep
_SMALL = 1e-100  # below, numbers are scaled up
#: Stops less likely than this are none: rounding to 2⁻⁶⁴ would change too much of their ratio.
LEAST_STOP = 2.0**-30
_MOST_EXPONENT = 700.0  # of a factor that lowers nothing

_Sequences: TypeAlias = NDArray[np.int64]

# ---- loops, in machine code or as they stand

# Four numbers stand for a kernel (P00, P01, P10, P11) and for U, row by row; four lists or arrays
# for what has four numbers at each distance: `keeps` the shares that go on, `states` those of U.


@inlined
def _quotient(above: float, below: float) -> Any:
    if below > 0.0:
        return above / below
    return np.inf if above > 0.0 else 0.0


@inlined
def _scaled(one: Any) -> Any:
    """Divided by the largest of the four, if that is small."""
    largest = max(one[0], one[1], one[2], one[3])
    if 0.0 < largest < _SMALL:
        return one[0] / largest, one[1] / largest, one[2] / largest, one[3] / largest
    return one


@inlined
def _walk_out(kernels: Any, keeps: Any, start: Any, walk: Any, distance: int, states: Any) -> None:
    """states: U at each distance up to the one before the last, after its level."""
    u = start
    states[0][0], states[1][0], states[2][0], states[3][0] = u
    for step in range(1, distance):
        p = kernels[walk[step]]
        u = _scaled(
            (
                (u[0] * p[0] + u[1] * p[2]) * keeps[0][step],
                (u[0] * p[1] + u[1] * p[3]) * keeps[1][step],
                (u[2] * p[0] + u[3] * p[2]) * keeps[2][step],
                (u[2] * p[1] + u[3] * p[3]) * keeps[3][step],
            )
        )
        states[0][step], states[1][step], states[2][step], states[3][step] = u


@inlined
def _step_back(p: Any, goal: Any) -> Any:
    """What leads to a goal from (x, i), one step nearer."""
    return (
        p[0] * goal[0] + p[1] * goal[1],
        p[2] * goal[0] + p[3] * goal[1],
        p[0] * goal[2] + p[1] * goal[3],
        p[2] * goal[2] + p[3] * goal[3],
    )


@inlined
def _best_corner(kernels: Any, u: Any, goal: Any) -> Any:
    """The largest quotient of what the first row of U and what the second leads to a goal, and the
    corner with which.
    """
    best, chosen = -1.0, 0
    for corner in range(CORNERS):
        p = kernels[corner]
        found = _quotient(
            u[0] * (p[0] * goal[0] + p[1] * goal[1]) + u[1] * (p[2] * goal[0] + p[3] * goal[1]),
            u[2] * (p[0] * goal[2] + p[1] * goal[3]) + u[3] * (p[2] * goal[2] + p[3] * goal[3]),
        )
        if found > best:
            best, chosen = found, corner
    return best, chosen


@compiled
def _climb(kernels: Any, keeps: Any, target: Any, walk: Any, known: Any, states: Any) -> Any:
    """The log of the largest quotient that changes of single kernels lead to; `walk`, a sequence of
    kernels, changes.

    target: (distance, value there, the x whose likelihood is above the line). The climb ends, too,
    where it has come to a known sequence: it would go on from there as others did.
    """
    distance, value, over = target
    # the row of x above the line comes first
    kept = keeps[2 * over], keeps[2 * over + 1], keeps[2 - 2 * over], keeps[3 - 2 * over]
    start = (1.0, 0.0, 0.0, 1.0) if over == 0 else (0.0, 1.0, 1.0, 0.0)
    aim = (1.0, 0.0, 1.0, 0.0) if value == 0 else (0.0, 1.0, 0.0, 1.0)
    best = -np.inf
    for _ in range(_SWEEPS):
        _walk_out(kernels, kept, start, walk, distance, states)
        goal, met = aim, 0.0
        changed, elsewhere = False, False
        for step in range(distance, 0, -1):
            at = step - 1
            u = states[0][at], states[1][at], states[2][at], states[3][at]
            met, corner = _best_corner(kernels, u, goal)
            changed = changed or corner != walk[step]
            elsewhere = elsewhere or corner != known[step]
            walk[step] = corner
            goal = _step_back(kernels[corner], goal)
            goal = _scaled(
                (
                    goal[0] * kept[0][at],
                    goal[1] * kept[1][at],
                    goal[2] * kept[2][at],
                    goal[3] * kept[3][at],
                )
            )
        found = math.log(met) if met > 0.0 else -np.inf
        if not found > best + _STILL:
            return max(best, found)
        best = found
        if not (changed and elsewhere):
            return best
    return best


@compiled
def _worst(
    kernels: Any, keeps: Any, target: Any, walk: Any, other: Any, trial: Any, states: Any
) -> Any:
    """The largest log-quotient from several starts: the sequence given, which becomes the one that
    meets it, each corner throughout, and another one. trial: room for a sequence.
    """
    distance = target[0]
    for step in range(len(trial)):
        trial[step] = -1
    best = _climb(kernels, keeps, target, walk, trial, states)
    for start in range(CORNERS + 1):
        elsewhere = False
        for step in range(len(trial)):
            trial[step] = start if start < CORNERS else other[step]
            if 0 < step <= distance:
                elsewhere = elsewhere or trial[step] != walk[step]
        found = _climb(kernels, keeps, target, trial, walk, states) if elsewhere else -np.inf
        if found > best + _STILL:
            best = found
            for step in range(len(trial)):
                walk[step] = trial[step]
    return best


@compiled
def _sloped(
    kernels: Any, keeps: Any, levels: Any, target: Any, walk: Any, states: Any, by_keep: Any
) -> Any:
    """log U(0, i)/U(1, i) at a level under a sequence of kernels; by_keep: its derivatives."""
    level, value = target
    start = (1.0, 0.0, 0.0, 1.0)
    _walk_out(kernels, keeps, start, walk, levels[level], states)
    goal = (1.0, 0.0, 1.0, 0.0) if value == 0 else (0.0, 1.0, 0.0, 1.0)
    before, zero, one = level - 1, 0.0, 0.0
    for step in range(levels[level], 0, -1):
        at = step - 1
        goal = _scaled(_step_back(kernels[walk[step]], goal))
        zero = states[0][at] * goal[0] + states[1][at] * goal[1]
        one = states[2][at] * goal[2] + states[3][at] * goal[3]
        if before >= 0 and at == levels[before]:
            # states are after the level's stop: the share itself is divided out
            by_keep[0][before] = _quotient(states[0][at] / keeps[0][at] * goal[0], zero)
            by_keep[1][before] = _quotient(states[1][at] / keeps[1][at] * goal[1], zero)
            by_keep[2][before] = -_quotient(states[2][at] / keeps[2][at] * goal[2], one)
            by_keep[3][before] = -_quotient(states[3][at] / keeps[3][at] * goal[3], one)
            goal = (
                goal[0] * keeps[0][at],
                goal[1] * keeps[1][at],
                goal[2] * keeps[2][at],
                goal[3] * keeps[3][at],
            )
            before -= 1
    quotient = _quotient(zero, one)
    return math.log(quotient) if quotient > 0.0 else -np.inf


# ---- what is asked


def _lists(number: float, size: int) -> tuple[list[float], ...]:
    return tuple([number] * size for _ in range(4))


@dataclass(frozen=True, eq=False)
class _Ground:
    """What walks up to the last level go over: lists where they are few, else arrays."""

    is_plain: bool
    kernels: tuple[tuple[float, ...], ...]
    levels: Any
    keeps: tuple[Any, ...]
    states: tuple[Any, ...]

    @classmethod
    def of(cls, kernels: Floats, levels: Integers, records: int) -> _Ground:
        """With nobody stopping; records: how many walks will visit."""
        size = int(levels[-1]) + 1
        given = tuple(tuple(kernel) for kernel in kernels.reshape(-1, 4).tolist())
        if are_few(records, __name__):
            return cls(True, given, levels.tolist(), _lists(1.0, size), _lists(0.0, size))
        return cls(False, given, levels, tuple(np.ones((4, size))), tuple(np.zeros((4, size))))

    def go_on(self, level: int, stops: Floats) -> None:
        """Note the shares that go on at a level, stops (2, 2)."""
        for keeps, stop in zip(self.keeps, stops.ravel().tolist(), strict=True):
            keeps[self.levels[level]] = 1.0 - stop

    def holding(self, numbers: NDArray[Any]) -> Any:
        """Numbers in the form that loops are quick with here."""
        return numbers.tolist() if self.is_plain else numbers

    def worst(self, level: int, sequences: Any) -> list[list[float]]:
        """(2, 2) the largest log-quotients at one level, by value there and the x above.

        sequences: by level, value and x; those of this level become the worst ones.
        """
        run = _worst.plain if self.is_plain else _worst
        distance, before = int(self.levels[level]), max(level - 1, 0)
        trial = self.holding(np.zeros(len(self.states[0]), dtype=np.int64))
        return [
            [
                run(
                    self.kernels,
                    self.keeps,
                    (distance, value, over),
                    sequences[level][value][over],
                    sequences[before][value][over],
                    trial,
                    self.states,
                )
                for over in range(2)
            ]
            for value in range(2)
        ]


def worst_sequences(kernels: Floats, levels: Integers, stops: Floats) -> _Sequences:
    """(m, 2, 2, L + 1) the worst that are found, by level, value there and the x above the line;
    kernels by their numbers, by step from 1.

    stops: (m − 1, 2, 2) stop probabilities by level, x and value there.
    """
    sequences = np.zeros((len(levels), 2, 2, int(levels[-1]) + 1), dtype=np.int64)
    ground = _Ground.of(kernels, levels, 4 * int(levels.sum()))
    walks = ground.holding(sequences)
    for level in range(len(levels)):
        ground.worst(level, walks)
        if level < len(levels) - 1:
            ground.go_on(level, stops[level])
    sequences[...] = walks
    return sequences


def repaired(
    kernels: Floats, levels: Integers, stops: Floats, sequences: _Sequences, budget: float
) -> tuple[Floats, Floats]:
    """Lower stop probabilities, level by level, until no outcome that is found exceeds the budget.

    stops: (m − 1, 2, 2) by level, x and value there; changed. sequences: as of `worst_sequences`,
    where the search begins; they become the worst ones. Returned: (m, 2, 2) the largest logs of
    U(0, i)/U(1, i) and of U(1, i)/U(0, i); (m − 1, 2) by how much the two exceed what any ratio of
    stops can mend.
    """
    count = len(levels)
    ground = _Ground.of(kernels, levels, 4 * int(levels.sum()))
    walks = ground.holding(sequences)
    worst, beyond = np.empty((count, 2, 2)), np.empty((count - 1, 2))
    for level in range(count):
        met = ground.worst(level, walks)
        worst[level] = met
        if level < count - 1:
            for value in range(2):
                beyond[level, value] = _clipped(stops[level], value, met[value], budget)
            ground.go_on(level, stops[level])
    sequences[...] = walks
    return worst, beyond


def _clipped(stops: Floats, value: int, worst: Sequence[float], budget: float) -> float:
    """stops: (2, 2) by x and value there, of one value lowered until no quotient exceeds the
    budget; 0 where none will do. worst: (2,) by the x above.

    Returned: by how much the two largest quotients exceed what any ratio of stops can mend.
    """
    above, below = (math.exp(min(budget - one, _MOST_EXPONENT)) for one in worst)
    zero, one = stops[:, value].tolist()
    zero = min(zero, above * one)
    one = min(one, below * zero)
    if above * below < 1.0 or min(zero, one) < LEAST_STOP:
        zero = one = 0.0
    stops[:, value] = zero, one
    return 0.5 * (worst[0] + worst[1]) - budget


def goals(kernels: Floats, levels: Integers, stops: Floats, sequences: _Sequences) -> Floats:
    """(m, 2, 2, L + 1, 2, 2) what leads from (x, i) at a distance, before its stop, to each outcome
    under its sequence, by level, value there and the x above the line; 0 beyond the level.
    """
    last = int(levels[-1])
    keeps = np.ones((last + 1, 2, 2))
    keeps[levels[:-1]] = 1.0 - stops
    found = np.zeros((len(levels), 2, 2, last + 1, 2, 2))
    for value in range(2):
        found[np.arange(len(levels)), value, :, levels, :, value] = 1.0
    for step in range(last, 1, -1):
        onward = levels >= step
        steps = kernels[sequences[onward, :, :, step]]
        back = found[onward, :, :, step] @ np.swapaxes(steps, -1, -2) * keeps[step - 1]
        largest = back.max(axis=(-1, -2), keepdims=True)
        found[onward, :, :, step - 1] = np.where(
            (largest > 0) & (largest < _SMALL), back / largest, back
        )
    return found


def slopes(
    kernels: Floats,
    levels: Integers,
    stops: Floats,
    target: tuple[int, int],
    sequences: Sequence[_Sequences],
) -> list[tuple[float, Floats]]:
    """For each sequence of kernels, log U(0, i)/U(1, i) at a level under it, and (m − 1, 2, 2) its
    derivatives by the share of (x, i) that goes on at each level before.

    target: (number of the level, value there).
    """
    level, count = target[0], len(levels) - 1
    ground = _Ground.of(kernels, levels[: level + 1], len(sequences) * int(levels[level]))
    for before in range(level):
        ground.go_on(before, stops[before])
    found = []
    for sequence in sequences:
        by_keep = _lists(0.0, count) if ground.is_plain else tuple(np.zeros((4, count)))
        told = (_sloped.plain if ground.is_plain else _sloped)(
            ground.kernels,
            ground.keeps,
            ground.levels,
            target,
            ground.holding(sequence),
            ground.states,
            by_keep,
        )
        found.append((told, np.array(by_keep).T.reshape(count, 2, 2)))
    return found
