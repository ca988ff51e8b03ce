"""Bounds of all ratios over a box of kernels, for any number of states (R5).

Of all that may be seen beyond a record only bounds of the ratios h_i/h_j are kept. One step: where
two rows lead to few states, by the extreme rays of all h within the bounds (trees.py); where they
lead to many, by ranges (ranges.py). Where a least probability is 0 one step bounds nothing, but
several may: always-redacted records are crossed in blocks of steps, whose entries lie between
averages of averages. Each is an upper bound, and the least counts, entry by entry. Margins are
derived in docs/proofs/verified-sets.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from offrecord.verify.sets.boxes import Box, Floats
from offrecord.verify.sets.fills import UNIT, Fill
from offrecord.verify.sets.ranges import largest_ratios
from offrecord.verify.sets.trees import MOST, extreme_rays
from offrecord.verify.sets.walks import Row, Walk

#: Ratios above count as infinite.
_INFINITE = 1e43
_FORGOTTEN = 1e-11
_MOST_RECORDS = 4096
#: A stretch is crossed in so many blocks of one length at most.
_MOST_BLOCKS = 32
#: Each step of a stretch is looked at up to the first, then that share of them.
_EACH, _SHARE = 64, 32


def side(walk: Walk) -> Floats:
    """(S, S) upper bounds of the largest ratios that one side can show."""
    walk = walk.nearest(_MOST_RECORDS)
    states = walk.boxes[0].states
    ratios: Floats | None = np.ones((states, states)) if walk.ends else None
    blocks = _blocks_of(walk.boxes[0]) if len(walk.boxes) == 1 else Blocks(walk)
    lost = 1.0
    for distance, steps, row in _crossings(walk, states):
        ratios = blocks.crossed(ratios, row, distance, steps)
        if 1.0 < ratios.max() < 1.0 + _FORGOTTEN:
            lost *= float(ratios.max()) * (1.0 + 4.0 * UNIT)
            ratios = np.ones((states, states))
    assert ratios is not None
    found = ratios * lost
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


def _crossings(walk: Walk, states: int) -> Iterator[tuple[int, int, Row]]:
    """Distance and row of each record that may release something, the farthest first, and the steps
    to the next one.
    """
    found: list[tuple[int, Row]] = []
    distance = 0
    for count, row in walk.stretches:
        if min(row) < 1:
            found += [(distance + 1 + at, row) for at in range(count)]
        distance += count
    if not walk.ends:
        found.append((distance + 1, (0.0,) * states))
    nearer = [0, *(at for at, _ in found)]
    for (at, row), before in zip(found[::-1], nearer[-2::-1], strict=True):
        yield at, at - before, row


@lru_cache(maxsize=16)
def _blocks_of(box: Box) -> Blocks:
    """Where one box serves every step, what is known of it serves every walk."""
    return Blocks(Walk((), False, (box,)))


@dataclass(eq=False)
class Blocks:
    """Steps of a walk, alone and several at once."""

    walk: Walk
    _known: dict[tuple[int, int], Fill] = field(default_factory=dict)
    _single: dict[int, Fill] = field(default_factory=dict)
    _crossed: dict[tuple[bytes, Row], list[Floats]] = field(default_factory=dict)

    @cached_property
    def is_even(self) -> bool:
        """One box serves every step."""
        return len(self.walk.boxes) == 1

    def of(self, distance: int, steps: int) -> Fill:
        """From a record to the one so many steps farther, which is at this distance."""
        key = (0 if self.is_even else distance, steps)
        if key not in self._known:
            outer = self._step(distance)
            if steps == 1:
                self._known[key] = outer
            else:
                near, rest = self._step(distance - steps + 1), self.of(distance, steps - 1)
                self._known[key] = near.after(rest)
        return self._known[key]

    def _step(self, distance: int) -> Fill:
        box = self.walk.box(distance)
        if id(box) not in self._single:
            self._single[id(box)] = Fill.of(box)
        return self._single[id(box)]

    def crossed(self, ratios: Floats | None, row: Row, distance: int, steps: int) -> Floats:
        """Bounds so many steps nearer than the record with this row; beyond it, these are known.

        Far away not every step is looked at: averages differ by no more than what is averaged.
        """
        key = (b"" if ratios is None else ratios.tobytes(), row)
        worst = self._crossed.setdefault(key, []) if self.is_even else []
        while len(worst) < steps - 1:
            done = len(worst) + 1
            if done > 1 and not (done <= _EACH or done % (done // _SHARE) == 0):
                worst.append(_even(worst[-1]))
            else:
                worst.append(self._nearer(ratios, row, distance, worst))
        if len(worst) >= steps and steps <= _EACH:
            return worst[steps - 1]
        found = self._nearer(ratios, row, distance, worst[: steps - 1])
        if len(worst) == steps - 1 and steps <= _EACH:
            worst.append(found)
        return found

    def _nearer(
        self, ratios: Floats | None, row: Row, distance: int, worst: list[Floats]
    ) -> Floats:
        """One step more than those that are known, by blocks of several lengths."""
        done = len(worst) + 1
        if worst and worst[-1].max() < 1.0 + _FORGOTTEN:
            return _even(worst[-1])
        states = len(row)
        best = np.full((states, states), np.inf)
        for size in _sizes(done):
            fill = self.of(distance - done + size, size)
            beyond = worst[done - size - 1] if size < done else ratios
            best = np.minimum(best, _stepped(beyond, (1.0,) * states if size < done else row, fill))
        return _closed(best)


def _even(ratios: Floats) -> Floats:
    """The largest of them between every two states."""
    found = np.full(ratios.shape, ratios.max())
    np.fill_diagonal(found, 1.0)
    return found


def _sizes(steps: int) -> list[int]:
    """The lengths of blocks that are tried."""
    powers = (1 << power for power in range(steps.bit_length()))
    return [*(size for size in powers if _MOST_BLOCKS * size >= steps and size < steps), steps]


def _stepped(ratios: Floats | None, row: Row, fill: Fill) -> Floats:
    """Bounds one step of a box nearer; None: nothing beyond the record counts."""
    shares = np.array(row)
    states = len(row)
    found = _of_releases(shares, fill)
    groups = _groups((fill.high > 0).tobytes(), states)
    if groups is not None:
        nearer = np.full((states, states), np.inf)
        for rows, columns in groups:
            square = np.ix_(rows, rows)
            nearer[square] = np.minimum(
                nearer[square], _of_few(ratios, shares, fill, (rows, columns))
            )
        return np.asarray(np.maximum(found, nearer))
    return found if ratios is None else np.maximum(found, largest_ratios(ratios, shares, fill))


def _of_releases(shares: Floats, fill: Fill) -> Floats:
    """What the states that may be released tell."""
    return _quotients(*fill.averages(np.eye(len(shares))[shares < 1]))


def _of_few(
    ratios: Floats | None, shares: Floats, fill: Fill, group: tuple[list[int], list[int]]
) -> Floats:
    """What rows that lead to few states tell where the record is redacted."""
    rows, columns = group
    if ratios is None:
        return np.ones((len(rows), len(rows)))
    rays = extreme_rays(ratios[np.ix_(columns, columns)]) * shares[columns]
    rays = rays[rays.max(axis=1) > 0]
    found = _quotients(*fill.of_rows(rows, columns).averages(rays))
    # bounds are closed up to rounding, links of trees and products are rounded
    units = len(columns) * (4.0 * len(ratios) + 4.0) + 8.0
    return found * (1.0 + 2.1 * units * UNIT)


def _quotients(low: Floats, high: Floats) -> Floats:
    """(R, R) the largest of one row over the least of another, at least 1."""
    rows = low.shape[1]
    found = np.ones((rows, rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        for x in range(rows):
            can = high[:, x] > 0
            if can.any():
                found[x] = np.maximum(1.0, (high[can, x : x + 1] / low[can]).max(axis=0))
    return found * (1.0 + 4.0 * UNIT)


@lru_cache(maxsize=64)
def _groups(pattern: bytes, states: int) -> list[tuple[list[int], list[int]]] | None:
    """Rows by the few states that two of them lead to; None if some two lead to too many."""
    touched = np.frombuffer(pattern, dtype=np.bool_).reshape(states, states)
    each = {frozenset(np.flatnonzero(row).tolist()) for row in touched}
    unions = {one | other for one, other in combinations(each, 2)} or each
    if max(map(len, unions)) > MOST:
        return None
    most = [one for one in unions if not any(one < other for other in unions)]
    return [
        ([i for i in range(states) if set(np.flatnonzero(touched[i]).tolist()) <= one], sorted(one))
        for one in most
    ]


def _closed(ratios: Floats) -> Floats:
    """With all that follows: h_i/h_l = h_i/h_j · h_j/h_l."""
    ratios = np.where(ratios > _INFINITE, np.inf, np.maximum(ratios, 1.0))
    np.fill_diagonal(ratios, 1.0)
    for j in range(len(ratios)):
        through = ratios[:, j : j + 1] * ratios[j] * (1.0 + 4.0 * UNIT)
        ratios = np.minimum(ratios, through)
    np.fill_diagonal(ratios, 1.0)
    return ratios
