"""What rounding rooms up to a grid costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from offrecord.designs.library import Setting
from offrecord.mechanisms.base import Design
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.models.base import Floats, Integers
from offrecord.theory.influence import is_forced
from offrecord.theory.room import far_side

_FREQUENT = 10  # surroundings from which it is estimated


def expected_loss(
    setting: Setting,
    designs: Sequence[Design],
    rooms: Integers,
    counts: Integers,
    used: Integers,
    grids: tuple[tuple[int, ...], tuple[int, ...]],
    make: Callable[[Surrounding], Design],
) -> float:
    """Expected redactions that rounding rooms up costs a secret, estimated from the most frequent
    surroundings.

    A design for the true rooms redacts at least about as much as one for the next smaller rooms of
    the grid does there, and beyond these what F4 forces. rooms: (m, 2) the true ones, of which
    `counts` secrets each have the design `used`.
    """
    if np.array_equal(rooms, np.array([design.surrounding[:2] for design in designs])[used]):
        return 0.0
    masses = setting.model.along().marginal(1)
    forced = [_forced(setting, -1, max(grids[0])), _forced(setting, 1, max(grids[1]))]
    smaller = {design.surrounding: design for design in designs}
    total, seen = 0.0, 0
    for index in np.argsort(-np.bincount(used, counts), kind="stable")[:_FREQUENT].tolist():
        design, mine, times = designs[index], rooms[used == index], counts[used == index]
        seen += int(times.sum())
        own = np.all(mine == design.surrounding[:2], axis=1)
        if own.all():
            continue
        floor = _floor(design.surrounding, mine, grids)
        if floor not in smaller:
            smaller[floor] = make(floor)
        least = smaller[floor].cost(masses, floor.left, floor.right)
        for (a, b), count in zip(mine[~own].tolist(), times[~own].tolist(), strict=True):
            beyond = forced[0][a] - forced[0][floor.left] + forced[1][b] - forced[1][floor.right]
            total += count * max(design.cost(masses, a, b) - least - beyond, 0.0)
    return float(total / max(seen, 1))


def _floor(
    around: Surrounding, rooms: Integers, grids: tuple[tuple[int, ...], tuple[int, ...]]
) -> Surrounding:
    """The next smaller rooms of the grids, on sides where some secret has less room."""
    lower = [
        node if np.all(exact == node) else grid[max(grid.index(node) - 1, 0)]
        for grid, node, exact in zip(grids, around[:2], rooms.T, strict=True)
    ]
    return Surrounding(lower[0], lower[1], around.length)


def _forced(setting: Setting, direction: int, room: int) -> Floats:
    """(room + 1,) expected redactions that F4 forces among the nearest 0, 1, … of a side."""
    chain = setting.model.along()
    influence = far_side(chain, direction).influence(max(room, 1))
    forced = is_forced(influence, setting.epsilon) @ chain.marginal(1)
    return np.concatenate(([0.0], np.cumsum(forced[:room])))
