"""The worst case over a box of kernels for few states: cones (R5).

What may be seen beyond a record is a vector of Pr(seen | its state), for every output and every
choice of kernels; what counts at the secret is a ratio of two of its numbers. The convex cone of
all of them is kept by some of its rays. A record with redaction r turns a ray h into r∘h, and adds
the unit vectors of states that it may release; a step turns a ray into the corners of the intervals
of its averages.

Rays are doubles. `lost` is a bound of what that, and the rays that were left out, may have done to
the logarithm of any ratio: if every ray of the true cone is between w and e^lost·w for a w of the
cone that is kept, it stays so, and what single steps lose adds up (docs/proofs/verified-sets.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from offrecord.verify.sets.boxes import Box, Floats
from offrecord.verify.sets.hulls import spanning
from offrecord.verify.sets.walks import Row, Walk

UNIT = 2.0**-53
#: Rays with smaller numbers would lose digits.
_LEAST = 1e-150
#: Once ratios beyond a record differ by less, they are taken to be 1, and this much is lost.
_FORGOTTEN = 2e-12
#: Up to how many records, and rays, cones are followed, by states.
RECORDS = {2: 5_000, 3: 5_000, 4: 80}
_RAYS = {2: 4, 3: 20_000, 4: 3_000}
#: What leaving out a ray may lose, by states: less is kept where more may be lost.
_TOLERANCE = {2: 3e-15, 3: 4.5e-15, 4: 2e-12}
_MOST_KNOWN = 20_000  # numbers of cones that are remembered, in thousands


@dataclass(frozen=True, eq=False)
class Cone:
    """Some rays (N, S), and what they may have lost."""

    rays: Floats
    lost: float
    number: int = 0


@dataclass(eq=False)
class Memory:
    """Cones by what made them: the one farther out, the record, and the box of the step."""

    known: dict[tuple[int, Row, int], Cone | None] = field(default_factory=dict)
    kept: list[Box] = field(default_factory=list)
    size: int = 0
    made: int = 2

    def recall(self, cone: Cone, row: Row, box: Box) -> Cone | None:
        """The cone one step nearer; None if it is too large."""
        key = (cone.number, row, id(box))
        if key not in self.known:
            if self.size > 1000 * _MOST_KNOWN:
                self.known.clear()
                self.kept.clear()
                self.size = 0
            found = _advanced(cone, row, box, self.made)
            self.made += 1
            self.known[key] = found
            self.kept.append(box)  # so that no other box has its id
            self.size += 0 if found is None else found.rays.size
        return self.known[key]


_MEMORY = Memory()


def side(walk: Walk, states: int) -> Floats | None:
    """(S, S) upper bounds of the largest ratios of one side; None if cones become too large."""
    silent = Cone(np.ones((1, states)), 0.0, 1)
    cone = silent if walk.ends else Cone(np.empty((0, states)), 0.0, 0)
    for distance, row in walk.inward(states):
        if cone.number == 1 and min(row) == 1:
            continue
        if distance == 1:
            return _ratios(cone, row, walk.box(1))
        nearer = _MEMORY.recall(cone, row, walk.box(distance))
        if nearer is None:
            return None
        cone = nearer
        if cone.number == 1:
            # it begins anew, but what was lost stays
            rest = _resumed(walk, states, distance - 1)
            return None if rest is None else _enlarged(rest, cone.lost)
    return np.ones((states, states))


def _enlarged(ratios: Floats, lost: float) -> Floats:
    """By what was lost, between different states."""
    found = ratios * np.exp(lost) * (1.0 + 8.0 * UNIT)
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


def _resumed(walk: Walk, states: int, distance: int) -> Floats | None:
    """The same as if the chain ended beyond a distance."""
    left, found = distance, []
    for stretch in walk.stretches:
        if left > 0:
            found.append(stretch._replace(records=min(stretch.records, left)))
        left -= stretch.records
    return side(Walk.of(found, walk.boxes), states)


def _advanced(cone: Cone, row: Row, box: Box, number: int) -> Cone | None:
    """One step nearer to the secret."""
    seen = _seen(cone.rays, row)
    low, high = box.averages(seen)
    points = np.concatenate(list(_corners(low, high)))
    points = points[points.max(axis=1) > 0]
    if points[points > 0].min(initial=1.0) < _LEAST:
        return None
    points = np.ldexp(points, -np.frexp(points.max(axis=1))[1][:, np.newaxis])
    states = box.states
    # a product with the row, and an average, up or down
    lost = cone.lost + 2.1 * UNIT * (box.units + 1.0)
    spread = _spread(points)
    if spread < _FORGOTTEN:
        return Cone(np.ones((1, states)), (lost + spread) * (1.0 + 2.0**-50), 1)
    rays, more = spanning(points, _TOLERANCE[states])
    if len(rays) > _RAYS[states]:
        return None
    return Cone(rays, (lost + more) * (1.0 + 2.0**-50), number)


def _seen(rays: Floats, row: Row) -> Floats:
    """What a record adds: rays beyond it where it is redacted, and states that it may release."""
    states = len(row)
    kept = rays * np.array(row)
    kept = kept[kept.max(axis=1, initial=0.0) > 0]
    return np.concatenate((kept, np.eye(states)[[share < 1 for share in row]]))


def _corners(low: Floats, high: Floats) -> Iterator[Floats]:
    """Every choice of the least or the largest average, state by state."""
    states = low.shape[1]
    moves = [bool(np.any(low[:, i] != high[:, i])) for i in range(states)]
    for chosen in product(*((False, True) if one else (False,) for one in moves)):
        yield np.where(np.array(chosen), high, low)


def _spread(points: Floats) -> float:
    """The largest log-ratio of two numbers of a ray, and more."""
    least = points.min(axis=1)
    if least.min() == 0:
        return float("inf")
    return float(np.log((points.max(axis=1) / least).max()) * (1.0 + 2.0**-48) + 4.0 * UNIT)


def _ratios(cone: Cone, row: Row, box: Box) -> Floats:
    """(S, S) the largest average of one row over the least of another, for all that may be seen."""
    low, high = box.averages(_seen(cone.rays, row))
    states = box.states
    worst = np.ones((states, states))
    with np.errstate(divide="ignore", invalid="ignore"):
        for x in range(states):
            can = high[:, x] > 0
            if can.any():
                worst[x] = np.maximum(1.0, (high[can, x : x + 1] / low[can]).max(axis=0))
    return _enlarged(worst, cone.lost + 2.1 * UNIT * (box.units + 4.0))
