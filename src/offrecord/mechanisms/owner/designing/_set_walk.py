"""Compiled: sequences of kernels under which a stopping rule of two values tells most.

A walk under one sequence of kernels keeps four numbers, U(x, i): not stopped before, value i there,
given x at the run's end. They begin as U(x, i) = 1 where x = i. A step multiplies by one kernel of
the list, a level by the shares that go on. What is looked for is the largest U(0, i)/U(1, i), and
the largest of its inverse, over all sequences of the first four kernels, the corners of the set;
a fifth, the nominal one, takes no part in it.

Nothing here decides about privacy: what is found is met by some sequence, so it bounds the worst
from below. `set_referee.py` has the other bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offrecord.theory._walk import compiled

CORNERS = 4
_SWEEPS = 30  # over a sequence, kernel by kernel, until nothing is gained
_STILL = 1e-12  # a gain in a log-ratio that is not worth another sweep
_SMALL = 1e-100  # below, numbers are scaled up
#: Stops less likely than this are none: rounding to 2⁻⁶⁴ would change too much of their ratio.
LEAST_STOP = 2.0**-30


# Entries are written one by one: an expression on whole arrays takes longer to compile than all the
# loops of a function.


@compiled
def _scale(numbers: Any, largest: float) -> None:
    """Divide four numbers by the largest of them, if that is small."""
    if 0.0 < largest < _SMALL:
        for x in range(2):
            for i in range(2):
                numbers[x, i] /= largest


@compiled
def _aim(goal: Any, value: int) -> None:
    """Whoever shows a value, whatever x is."""
    for x in range(2):
        goal[x, value], goal[x, 1 - value] = 1.0, 0.0


@compiled
def _go_on(keeps: Any, distance: int, stops: Any, level: int) -> None:
    """Note the shares that go on at a level."""
    for x in range(2):
        for i in range(2):
            keeps[distance, x, i] = 1.0 - stops[level, x, i]


@compiled
def _walk_out(kernels: Any, keeps: Any, sequence: Any, distance: int, states: Any) -> None:
    """states: (…, 2, 2) U at each distance up to the one before the last, after its level."""
    for x in range(2):
        states[0, x, x], states[0, x, 1 - x] = 1.0, 0.0
    for step in range(1, distance):
        kernel, before, after = kernels[sequence[step]], states[step - 1], states[step]
        largest = 0.0
        for x in range(2):
            for i in range(2):
                reached = before[x, 0] * kernel[0, i] + before[x, 1] * kernel[1, i]
                after[x, i] = reached * keeps[step, x, i]
                largest = max(largest, after[x, i])
        _scale(after, largest)


@compiled
def _quotient(above: float, below: float) -> float:
    if below > 0.0:
        return above / below
    return np.inf if above > 0.0 else 0.0


@compiled
def _best_corner(kernels: Any, state: Any, goal: Any, over: int) -> Any:
    """The corner with the largest quotient of what x = over and what the other leads to `goal`."""
    best, chosen = -1.0, 0
    under = 1 - over
    for corner in range(CORNERS):
        kernel = kernels[corner]
        above, below = 0.0, 0.0
        for i in range(2):
            above += state[over, i] * (kernel[i, 0] * goal[over, 0] + kernel[i, 1] * goal[over, 1])
            below += state[under, i] * (
                kernel[i, 0] * goal[under, 0] + kernel[i, 1] * goal[under, 1]
            )
        found = _quotient(above, below)
        if found > best:
            best, chosen = found, corner
    return best, chosen


@compiled
def _step_back(kernel: Any, keeps: Any, goal: Any) -> None:
    """goal: (2, 2) what leads to it from (x, i), one step nearer and before that level's stop."""
    largest = 0.0
    for x in range(2):
        zero = kernel[0, 0] * goal[x, 0] + kernel[0, 1] * goal[x, 1]
        one = kernel[1, 0] * goal[x, 0] + kernel[1, 1] * goal[x, 1]
        goal[x, 0], goal[x, 1] = zero * keeps[x, 0], one * keeps[x, 1]
        largest = max(largest, goal[x, 0], goal[x, 1])
    _scale(goal, largest)


@compiled
def _climb(kernels: Any, keeps: Any, target: Any, sequence: Any, states: Any) -> Any:
    """The log of the largest quotient that changes of single kernels lead to; `sequence` changes.

    target: (distance, value there, the x whose likelihood is above the line).
    """
    distance, value, over = target
    goal = np.empty((2, 2))
    best = -np.inf
    for _ in range(_SWEEPS):
        _walk_out(kernels, keeps, sequence, distance, states)
        _aim(goal, value)
        met = 0.0
        for step in range(distance, 0, -1):
            met, corner = _best_corner(kernels, states[step - 1], goal, over)
            sequence[step] = corner
            _step_back(kernels[corner], keeps[step - 1], goal)
        found = np.log(met)
        if not found > best + _STILL:
            return max(best, found)
        best = found
    return best


@compiled
def _worst(kernels: Any, keeps: Any, target: Any, sequence: Any, other: Any, states: Any) -> Any:
    """The largest log-quotient from several starts: the sequence given, which becomes the one that
    meets it, another one, and each corner throughout.
    """
    best = _climb(kernels, keeps, target, sequence, states)
    trial = np.empty(len(other), dtype=np.int64)
    for start in range(CORNERS + 1):
        for step in range(len(trial)):
            trial[step] = start if start < CORNERS else other[step]
        found = _climb(kernels, keeps, target, trial, states)
        if found > best + _STILL:
            best = found
            for step in range(len(trial)):
                sequence[step] = trial[step]
    return best


@compiled
def _clipped(stops: Any, value: int, worst: Any, budget: float) -> Any:
    """stops: (2, 2) by x and value there, of one value lowered until no quotient exceeds the
    budget; 0 where none will do. worst: (2, 2) by value and the x above.

    Returned: by how much the two largest quotients exceed what any ratio of stops can mend.
    """
    above, below = np.exp(budget - worst[value, 0]), np.exp(budget - worst[value, 1])
    stops[0, value] = min(stops[0, value], above * stops[1, value])
    stops[1, value] = min(stops[1, value], below * stops[0, value])
    if above * below < 1.0 or min(stops[0, value], stops[1, value]) < LEAST_STOP:
        stops[0, value] = stops[1, value] = 0.0
    return 0.5 * (worst[value, 0] + worst[value, 1]) - budget


@compiled
def _search_level(kernels: Any, keeps: Any, place: Any, sequences: Any, worst: Any) -> None:
    """worst: (2, 2) the largest log-quotients at one level, by value there and the x above.

    place: (number of the level, its distance).
    """
    level, distance = place
    states = np.empty((distance + 1, 2, 2))
    for value in range(2):
        for over in range(2):
            worst[value, over] = _worst(
                kernels,
                keeps,
                (distance, value, over),
                sequences[level, value, over],
                sequences[max(level - 1, 0), value, over],
                states,
            )


@compiled
def worst_sequences(kernels: Any, levels: Any, stops: Any) -> Any:
    """(m, 2, 2, L + 1) the worst that are found, by level, value there and the x above the line;
    kernels by their numbers, by step from 1.

    stops: (m − 1, 2, 2) stop probabilities by level, x and value there.
    """
    keeps = np.ones((levels[-1] + 1, 2, 2))
    sequences = np.zeros((len(levels), 2, 2, levels[-1] + 1), dtype=np.int64)
    worst = np.empty((2, 2))
    for level in range(len(levels)):
        _search_level(kernels, keeps, (level, levels[level]), sequences, worst)
        if level < len(levels) - 1:
            _go_on(keeps, levels[level], stops, level)
    return sequences


@compiled
def repaired(kernels: Any, levels: Any, stops: Any, sequences: Any, budget: float) -> Any:
    """Lower stop probabilities, level by level, until no outcome that is found exceeds the budget.

    stops: (m − 1, 2, 2) by level, x and value there; changed. sequences: as of `worst_sequences`,
    where the search begins; they become the worst ones. Returned: (m, 2, 2) the largest logs of
    U(0, i)/U(1, i) and of U(1, i)/U(0, i); (m − 1, 2) by how much the two exceed what any ratio of
    stops can mend.
    """
    count = len(levels)
    keeps = np.ones((levels[-1] + 1, 2, 2))
    worst, beyond = np.empty((count, 2, 2)), np.empty((count - 1, 2))
    for level in range(count):
        _search_level(kernels, keeps, (level, levels[level]), sequences, worst[level])
        if level < count - 1:
            for value in range(2):
                beyond[level, value] = _clipped(stops[level], value, worst[level], budget)
            _go_on(keeps, levels[level], stops, level)
    return worst, beyond


@compiled
def _copy(numbers: Any, target: Any) -> None:
    for x in range(2):
        for i in range(2):
            target[x, i] = numbers[x, i]


@compiled
def goals(kernels: Any, levels: Any, stops: Any, sequences: Any) -> Any:
    """(m, 2, 2, L + 1, 2, 2) what leads from (x, i) at a distance, before its stop, to each outcome
    under its sequence, by level, value there and the x above the line; 0 beyond the level.
    """
    count, last = len(levels), levels[-1]
    keeps = np.ones((last + 1, 2, 2))
    for level in range(count - 1):
        _go_on(keeps, levels[level], stops, level)
    found = np.zeros((count, 2, 2, last + 1, 2, 2))
    goal = np.empty((2, 2))
    for level in range(count):
        for value in range(2):
            for over in range(2):
                _aim(goal, value)
                _copy(goal, found[level, value, over, levels[level]])
                for step in range(levels[level], 1, -1):
                    kernel = kernels[sequences[level, value, over, step]]
                    _step_back(kernel, keeps[step - 1], goal)
                    _copy(goal, found[level, value, over, step - 1])
    return found


@compiled
def slopes(kernels: Any, levels: Any, stops: Any, target: Any, sequence: Any) -> Any:
    """log U(0, i)/U(1, i) at a level under a sequence of kernels, and (m − 1, 2, 2) its derivatives
    by the share of (x, i) that goes on at each level before.

    target: (number of the level, value there).
    """
    level, value = target
    distance = levels[level]
    keeps, states = np.ones((distance + 1, 2, 2)), np.empty((distance + 1, 2, 2))
    for before in range(level):
        _go_on(keeps, levels[before], stops, before)
    _walk_out(kernels, keeps, sequence, distance, states)
    goal, whole = np.empty((2, 2)), np.ones((2, 2))
    _aim(goal, value)
    by_keep = np.zeros((len(levels) - 1, 2, 2))
    before, total = level - 1, np.zeros(2)
    for step in range(distance, 0, -1):
        is_level = before >= 0 and step - 1 == levels[before]
        _step_back(kernels[sequence[step]], whole, goal)
        for x in range(2):
            total[x] = states[step - 1, x, 0] * goal[x, 0] + states[step - 1, x, 1] * goal[x, 1]
        if is_level:
            for x in range(2):
                for i in range(2):
                    # states are after the level's stop: the share itself is divided out
                    reached = states[step - 1, x, i] / keeps[step - 1, x, i]
                    sign = 1.0 if x == 0 else -1.0
                    by_keep[before, x, i] = sign * reached * goal[x, i] / total[x]
            for x in range(2):
                for i in range(2):
                    goal[x, i] *= keeps[step - 1, x, i]
            before -= 1
    return np.log(total[0] / total[1]), by_keep
