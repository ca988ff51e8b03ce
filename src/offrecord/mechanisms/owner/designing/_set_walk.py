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
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers
from offrecord.theory._compiling import are_few, compiled

CORNERS = 4
_SWEEPS = 30  # over a sequence, kernel by kernel, until nothing is gained
_MORE = 1.0 + 1e-12  # a larger quotient by less is not worth another sweep
_SMALL, _LARGE = 2.0**-100, 2.0**100  # below the one, numbers are multiplied by the other
#: Stops less likely than this are none: rounding to 2⁻⁶⁴ would change too much of their ratio.
LEAST_STOP = 2.0**-30
_MOST_EXPONENT = 700.0  # of a factor that lowers nothing

_Sequences: TypeAlias = NDArray[np.int64]

# ---- loops, in machine code or as they stand

# Lists and arrays are flat, for the sake of both: four numbers for each kernel (P00, P01, P10, P11)
# and for each distance, row by row, of `keeps` the shares that go on, of `states` those of U.


@compiled
def _climb(
    kernels: Any, keeps: Any, distance: int, value: int, over: int, walk: Any, states: Any
) -> Any:
    """The largest quotient that changes of single kernels lead to; `walk`, a sequence of kernels,
    becomes the one that meets it.

    over: the x whose likelihood is above the line. states: room for U at each distance up to the
    one before the last, after its level, the row of `over` first.
    """
    above, below = 2 * over, 2 - 2 * over
    # corners differ by rows: those of 0 and 1, and of 2 and 3, in that of the value 1 alone
    k00, k01, l00, l01 = kernels[0], kernels[1], kernels[8], kernels[9]
    k10, k11, l10, l11 = kernels[2], kernels[3], kernels[6], kernels[7]
    best = 0.0
    for _ in range(_SWEEPS):
        a0, a1, b0, b1 = 1.0 - over, 1.0 * over, 1.0 * over, 1.0 - over
        states[0], states[1], states[2], states[3] = a0, a1, b0, b1
        for step in range(1, distance):
            k, at = 4 * walk[step], 4 * step
            p00, p01, p10, p11 = kernels[k], kernels[k + 1], kernels[k + 2], kernels[k + 3]
            first, second = a0 * p00 + a1 * p10, a0 * p01 + a1 * p11
            a0, a1 = first * keeps[at + above], second * keeps[at + above + 1]
            first, second = b0 * p00 + b1 * p10, b0 * p01 + b1 * p11
            b0, b1 = first * keeps[at + below], second * keeps[at + below + 1]
            if a0 + a1 + b0 + b1 < _SMALL:
                a0, a1, b0, b1 = _LARGE * a0, _LARGE * a1, _LARGE * b0, _LARGE * b1
            states[at], states[at + 1], states[at + 2], states[at + 3] = a0, a1, b0, b1
        # what leads to the goal from either value, of the row above the line and of the other
        g0, g1 = 1.0 - value, 1.0 * value
        h0, h1 = g0, g1
        most, least, changed = 0.0, 0.0, False
        for step in range(distance, 0, -1):
            at = 4 * (step - 1)
            a0, a1, b0, b1 = states[at], states[at + 1], states[at + 2], states[at + 3]
            g00, g01 = k00 * g0 + k01 * g1, l00 * g0 + l01 * g1
            g10, g11 = k10 * g0 + k11 * g1, l10 * g0 + l11 * g1
            h00, h01 = k00 * h0 + k01 * h1, l00 * h0 + l01 * h1
            h10, h11 = k10 * h0 + k11 * h1, l10 * h0 + l11 * h1
            # each product once, and no loop: that is where the time goes if this runs as it stands
            u0, u1, v0, v1 = a0 * g00, a0 * g01, a1 * g10, a1 * g11
            x0, x1, y0, y1 = b0 * h00, b0 * h01, b1 * h10, b1 * h11
            # quotients are compared by products, so that nothing is divided by 0
            most, least, chosen = u0 + v0, x0 + y0, 0
            g0, g1, h0, h1 = g00, g10, h00, h10
            if (u0 + v1) * least > most * (x0 + y1):
                most, least, chosen = u0 + v1, x0 + y1, 1
                g1, h1 = g11, h11
            if (u1 + v0) * least > most * (x1 + y0):
                most, least, chosen = u1 + v0, x1 + y0, 2
                g0, g1, h0, h1 = g01, g10, h01, h10
            if (u1 + v1) * least > most * (x1 + y1):
                most, least, chosen = u1 + v1, x1 + y1, 3
                g0, g1, h0, h1 = g01, g11, h01, h11
            changed = changed or chosen != walk[step]
            walk[step] = chosen
            g0, g1 = g0 * keeps[at + above], g1 * keeps[at + above + 1]
            h0, h1 = h0 * keeps[at + below], h1 * keeps[at + below + 1]
            if g0 + g1 + h0 + h1 < _SMALL:
                g0, g1, h0, h1 = _LARGE * g0, _LARGE * g1, _LARGE * h0, _LARGE * h1
        met = most / least if least > 0.0 else (np.inf if most > 0.0 else 0.0)
        if not changed or met <= best * _MORE:
            return met if met > best else best
        best = met
    return best


# ---- what is asked


@dataclass(frozen=True, eq=False)
class Ground:
    """What walks go over: kernels (5, 2, 2), levels (m,) by their distances. is_plain: loops run as
    they stand, over lists; else as machine code, over arrays.
    """

    kernels: Floats
    levels: Integers
    is_plain: bool

    @classmethod
    def of(cls, kernels: Floats, levels: Integers, *, walks: int) -> Ground:
        """For so many walks to each level."""
        return cls(kernels, levels, are_few(walks * int(levels.sum()), __name__))

    @cached_property
    def flat(self) -> Any:
        """The kernels as loops take them: a copy, as what must not be written to would be compiled
        for once more.
        """
        return self.holding(self.kernels.flatten())

    def holding(self, numbers: NDArray[Any]) -> Any:
        """Numbers in the form that loops are quick with here."""
        return numbers.tolist() if self.is_plain else numbers

    def filled(self, number: float, count: int) -> Any:
        """Four numbers for each of so many, all the same."""
        return [number] * (4 * count) if self.is_plain else np.full(4 * count, number)

    def go_on(self, keeps: Any, level: int, stops: Floats) -> None:
        """Note the shares that go on at a level, stops (2, 2)."""
        at = 4 * int(self.levels[level])
        keeps[at : at + 4] = self.holding(1.0 - stops.ravel())

    def searched(self, sequences: _Sequences) -> Search:
        """A search for the worst that begins with these sequences, and with nobody stopping."""
        size = int(self.levels[-1]) + 1
        walks = self.holding(sequences)
        return Search(self, walks, self.filled(1.0, size), self.filled(0.0, size))


@dataclass(frozen=True, eq=False)
class Search:
    """sequences: by level, value there and the x above. states: room for loops."""

    ground: Ground
    sequences: Any
    keeps: Any
    states: Any

    def worst(self, level: int, *, is_thorough: bool) -> list[list[float]]:
        """(2, 2) the largest log-quotients at one level, by value there and the x above; the
        sequences of this level become the worst ones. is_thorough: not only from those at hand, but
        from each corner throughout.
        """
        distance, climb = int(self.ground.levels[level]), self._climb
        found = [[0.0, 0.0], [0.0, 0.0]]
        for value, over in np.ndindex(2, 2):
            walk = self.sequences[level][value][over]
            met = climb(distance, value, over, walk)
            for corner in range(CORNERS if is_thorough else 0):
                trial = self.ground.holding(np.full(len(walk), corner))
                other = climb(distance, value, over, trial)
                if other > met * _MORE:
                    met, walk[:] = other, trial
            found[value][over] = math.log(met) if met > 0.0 else -np.inf
        return found

    def follow(self, level: int) -> None:
        """Begin with the sequences of the level before, whose last kernels go on."""
        before, here = self.ground.levels[level - 1 : level + 1].tolist()
        for value, over in np.ndindex(2, 2):
            walk, last = (self.sequences[one][value][over] for one in (level, level - 1))
            walk[: before + 1] = last[: before + 1]
            for step in range(before + 1, here + 1):
                walk[step] = last[before]

    def _climb(self, distance: int, value: int, over: int, walk: Any) -> float:
        run = _climb.plain if self.ground.is_plain else _climb
        met = run(self.ground.flat, self.keeps, distance, value, over, walk, self.states)
        return float(met)


def worst_sequences(ground: Ground, stops: Floats) -> _Sequences:
    """(m, 2, 2, L + 1) the worst that are found, by level, value there and the x above the line;
    kernels by their numbers, by step from 1.

    stops: (m − 1, 2, 2) stop probabilities by level, x and value there.
    """
    levels = ground.levels
    sequences = np.zeros((len(levels), 2, 2, int(levels[-1]) + 1), dtype=np.int64)
    search = ground.searched(sequences)
    for level in range(len(levels)):
        if level:
            search.follow(level)
        search.worst(level, is_thorough=not level)
        if level < len(levels) - 1:
            ground.go_on(search.keeps, level, stops[level])
    sequences[...] = search.sequences
    return sequences


def repaired(
    ground: Ground, stops: Floats, sequences: _Sequences, budget: float, *, is_thorough: bool
) -> tuple[Floats, Floats]:
    """Lower stop probabilities, level by level, until no outcome that is found exceeds the budget.

    stops: (m − 1, 2, 2) by level, x and value there; changed. sequences: as of `worst_sequences`,
    where the search begins; they become the worst ones. is_thorough: as of `worst`. Returned: (m,
    2, 2) the largest logs of U(0, i)/U(1, i) and of U(1, i)/U(0, i); (m − 1, 2) by how much the two
    exceed what any ratio of stops can mend.
    """
    count = len(ground.levels)
    search = ground.searched(sequences)
    worst, beyond = np.empty((count, 2, 2)), np.empty((count - 1, 2))
    for level in range(count):
        met = search.worst(level, is_thorough=is_thorough)
        worst[level] = met
        if level < count - 1:
            for value in range(2):
                beyond[level, value] = _clipped(stops[level], value, met[value], budget)
            ground.go_on(search.keeps, level, stops[level])
    sequences[...] = search.sequences
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


def goals(ground: Ground, stops: Floats, sequences: _Sequences) -> Floats:
    """(m, 2, 2, L + 1, 2, 2) what leads from (x, i) at a distance, before its stop, to each outcome
    under its sequence, by level, value there and the x above the line; 0 beyond the level.
    """
    kernels, levels = ground.kernels, ground.levels
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
    ground: Ground, stops: Floats, targets: Integers, sequences: _Sequences
) -> tuple[Floats, Floats]:
    """(n,) log U(0, i)/U(1, i) at a level under a sequence of kernels, and (n, m − 1, 2, 2) its
    derivatives by the share of (x, i) that goes on at each level before.

    targets: (n, 2) number of the level, value there. sequences: (n, L + 1).
    """
    levels, count = ground.levels, len(ground.levels) - 1
    goes_on = 1.0 - stops[..., np.newaxis]
    order = np.argsort(-targets[:, 0], kind="stable")  # so that those that go on come first
    at, value = targets[order].T
    # targets are the last axis of all arrays, along which sums are quick
    kernels = np.take(ground.kernels.transpose(1, 2, 0), sequences[order].T, axis=2)
    going = np.searchsorted(-levels[at], -np.arange(int(levels[-1]) + 1), side="right")
    states = _states_out(goes_on, levels, kernels, going)
    # what leads to the goal from (x, i)
    goals = np.tile(np.stack((1.0 - value, 1.0 * value)), (2, 1, 1))
    likely, by_keep = np.ones((2, len(targets))), np.zeros((count, 2, 2, len(targets)))
    level = count
    for step in range(int(levels[-1]), 0, -1):
        here = slice(going[step])
        back = np.einsum("ijn,xjn->xin", kernels[..., step, here], goals[..., here])
        goals[..., here] = _scaled(back)
        masses = states[step - 1, ..., here] * goals[..., here]
        likely[:, here] = masses[:, 0] + masses[:, 1]
        if level and levels[level - 1] == step - 1:
            level -= 1
            # states are after the level's stop: the share itself is divided out
            shares = masses / goes_on[level]
            by_keep[level, ..., here] = _quotients(shares, likely[:, np.newaxis, here])
            goals[..., here] *= goes_on[level]
    by_keep[:, 1] *= -1.0
    told = [math.log(one) if one > 0.0 else -np.inf for one in _quotients(*likely).tolist()]
    back_again = np.argsort(order)
    return np.array(told)[back_again], by_keep.transpose(3, 0, 1, 2)[back_again]


def _states_out(goes_on: Floats, levels: Integers, kernels: Floats, going: Integers) -> Floats:
    """(L, 2, 2, n) U at each distance before a target's level, after its own level's stop; going:
    (L + 1,) how many go as far.
    """
    states = np.zeros((kernels.shape[2] - 1, 2, 2, kernels.shape[3]))
    states[0] = np.eye(2)[..., np.newaxis]
    level = 0
    for step in range(1, len(states)):
        here = slice(going[step])
        out = np.einsum("xin,ijn->xjn", states[step - 1, ..., here], kernels[..., step, here])
        if levels[level] == step:
            out *= goes_on[level]
            level += 1
        states[step, ..., here] = _scaled(out)
    return states


def _scaled(numbers: Floats) -> Floats:
    """Matrices (2, 2, n) that are too small divided by their largest entry."""
    if not numbers.size or numbers.min() >= _SMALL:
        return numbers
    largest = numbers.max(axis=(0, 1))
    return np.where((largest > 0.0) & (largest < _SMALL), numbers / largest, numbers)


def _quotients(above: Floats, below: Floats) -> Floats:
    """Infinite where nothing is below the line, and 0 where nothing is above either."""
    sure = np.where(above > 0.0, np.inf, 0.0)
    return np.divide(above, below, out=sure, where=below > 0.0)
