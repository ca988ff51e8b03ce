"""Sides by number, their levels and thresholds in arrays that walks of many kinds share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from offrecord.mechanisms.blocks import Mask
from offrecord.mechanisms.owner.stopping import NEVER_REACHED, StoppingPair, StoppingSide
from offrecord.models.base import Integers
from offrecord.release.coins import Draws


@dataclass(frozen=True, eq=False)
class PackedSides:
    """Sides as arrays (s,), by number.

    counts: how many levels each has. levels: (s, most) the distances, then NEVER_REACHED. is_far:
    (s, most) whether a level is looked at beyond the chain's end too, as deadlines are. deadlines:
    NEVER_REACHED for a closed side. nearest: where one may stop at the earliest. limits:
    thresholds, all sides one after the other, each by far value, level, end, value there, value at
    the next level and label. offsets: where a side's begin. widths: how many values at the next
    level they tell apart. labels: how many labels.
    """

    counts: Integers
    levels: Integers
    is_far: Mask
    deadlines: Integers
    nearest: Integers
    limits: Draws
    offsets: Integers
    widths: Integers
    labels: Integers

    @property
    def ahead(self) -> Mask:
        """Which sides see the value at the next level."""
        return self.widths > 1


class Packing:
    """Sides, numbered one by one; the same object keeps its number."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._levels: list[Integers] = []
        self._far: list[Mask] = []
        self._nearest: list[int] = []
        self._limits: list[Draws] = []
        self._shapes: list[tuple[int, int]] = []

    def side(self, side: StoppingSide) -> int:
        """The number of a side."""
        if id(side) not in self._numbers:
            limits = side.limits[..., np.newaxis]
            self._numbers[id(side)] = self._add(side.levels, limits, _nearest(side))
        return self._numbers[id(side)]

    def first_of(self, pair: StoppingPair) -> int:
        """The number of a pair's first side, with its labels."""
        total = StoppingSide(pair.first, 0.0, pair.levels, pair.limits[..., -1])
        return self._add(pair.levels, pair.limits, _nearest(total))

    def all_of(self, sides: Iterable[StoppingSide]) -> int:
        """The number of what one of several sides may look at: all their levels, no thresholds."""
        listed = list(sides)
        levels = np.unique(np.concatenate([side.levels for side in listed]))
        width = max(side.limits.shape[-1] for side in listed)
        # who looks ahead may look at any level beyond the chain's end
        far = np.isin(levels, [side.deadline for side in listed]) | (width > 1)
        nothing = np.empty((0, 0, 0, 0, width, 1), dtype=np.uint64)
        return self._add(levels, nothing, min(map(_nearest, listed)), far)

    def _add(self, levels: Integers, limits: Draws, nearest: int, far: Mask | None = None) -> int:
        self._levels.append(levels)
        self._limits.append(limits.ravel())
        self._far.append(levels == levels[-1:] if far is None else far)
        self._nearest.append(nearest)
        self._shapes.append((limits.shape[-2], limits.shape[-1]))
        return len(self._levels) - 1

    def packed(self) -> PackedSides:
        """All of them."""
        counts = np.array([len(levels) for levels in self._levels], dtype=np.int64)
        levels = np.full((len(counts), max(1, counts.max(initial=0))), NEVER_REACHED)
        is_far = np.zeros(levels.shape, dtype=bool)
        for number, (mine, far) in enumerate(zip(self._levels, self._far, strict=True)):
            levels[number, : len(mine)] = mine
            is_far[number, : len(mine)] = far
        sizes = np.array([len(limits) for limits in self._limits], dtype=np.int64)
        widths, labels = np.array(self._shapes, dtype=np.int64).reshape(-1, 2).T
        return PackedSides(
            counts,
            levels,
            is_far,
            levels[np.arange(len(counts)), np.maximum(counts, 1) - 1],
            np.array(self._nearest, dtype=np.int64),
            np.concatenate([*self._limits, np.empty(0, dtype=np.uint64)]),
            np.cumsum(sizes) - sizes,
            np.ascontiguousarray(widths),
            np.ascontiguousarray(labels),
        )


def _nearest(side: StoppingSide) -> int:
    """The first level at which some walk stops."""
    ever = np.flatnonzero(side.limits.any(axis=(0, 2, 3, 4)))
    if len(ever):
        return int(side.levels[ever[0]])
    return side.deadline
