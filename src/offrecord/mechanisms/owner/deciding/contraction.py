"""What a secret inside a cluster loses through an output at the cluster's end (O11)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from offrecord.models.base import Floats, Integers

#: Up to this distance channels are taken one by one; beyond, on a grid that grows by a tenth.
_ONE_BY_ONE = 64
_GROWTH = 1.1
_FARTHEST = 10**4
#: More than what rounding changes of a leakage through a channel of any distance on the grid.
_ROUNDING = 1e-10


def channel_leakages(channels: Floats, budget: float) -> Floats:
    """(d,) the most that an output within e^budget about one record tells about another, which it
    is seen from through channels (d, k, k): row x holds the one's law given that the other is x.

    max over x, x′ and sets A of log (K(x, A)·(e^s − 1) + 1)/(K(x′, A)·(e^s − 1) + 1). The best A
    holds the values with the largest ratios K(x, ·)/K(x′, ·) (O11).
    """
    rise = np.expm1(budget)
    top, below = channels[:, :, np.newaxis, :], channels[:, np.newaxis, :, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(below > 0, top / below, np.where(top > 0, np.inf, -1.0))
    order = np.argsort(-ratio, axis=-1)
    more, less = (
        np.take_along_axis(np.broadcast_to(rows, ratio.shape), order, axis=-1).cumsum(axis=-1)
        for rows in (top, below)
    )
    told = np.log((more * rise + 1) / (less * rise + 1))
    return np.asarray(told.max(axis=(1, 2, 3)))


@dataclass(frozen=True, eq=False)
class Contraction:
    """What outputs within any budget tell from some distance, by a kernel that leads from a secret
    towards the end of its cluster.

    kernel: (s, s) on the values that can occur. channels: those known so far, of the distances of
    the grid; tables: what is told through them, by budget. Several threads may ask at once: what is
    known is replaced as a whole, by what one of them found.
    """

    kernel: Floats
    channels: list[Floats] = field(default_factory=list)
    tables: dict[float, Floats] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, object]:
        return {"kernel": self.kernel, "channels": [], "tables": {}}  # what is known is soon again

    def told(self, budget: float, distance: Integers) -> Floats:
        """(n,) the most that an output within e^budget tells about records so many steps away."""
        # On the grid the next smaller distance counts, from which no less is told.
        index = np.searchsorted(_GRID, distance, side="right") - 1
        count = int(index.max(initial=0)) + 1
        table = self.tables.get(budget)
        if table is None or len(table) < count:
            table = self.tables[budget] = self._table(budget, count)
        return np.asarray(table[index])

    def _table(self, budget: float, count: int) -> Floats:
        """(count,) what is told from the first distances of the grid."""
        channels = self.channels[:]
        while len(channels) < count:
            channels.append(self._channel(channels))
        self.channels[:] = channels
        told = channel_leakages(np.array(channels[:count]), budget) + _ROUNDING
        told[0] = budget  # from no distance at all
        return np.minimum(told, budget)

    def _channel(self, before: list[Floats]) -> Floats:
        """The one after those of all smaller distances."""
        if not before:
            return np.eye(len(self.kernel))
        steps = int(_GRID[len(before)] - _GRID[len(before) - 1])
        hop = self.kernel if steps == 1 else np.linalg.matrix_power(self.kernel, steps)
        return before[-1] @ hop


def _grid() -> Integers:
    distances = list(range(_ONE_BY_ONE + 1))
    while distances[-1] < _FARTHEST:
        distances.append(int(distances[-1] * _GROWTH))
    return np.array(distances, dtype=np.int64)


_GRID = _grid()
