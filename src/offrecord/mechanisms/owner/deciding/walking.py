"""Walks: away from the ends of clusters, level by level, all walks of a block at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from offrecord.mechanisms.blocks import Draw, Mask
from offrecord.mechanisms.owner.deciding.packed import PackedSides
from offrecord.mechanisms.owner.deciding.sight import Sight
from offrecord.models.base import Integers
from offrecord.release.coins import ALWAYS, Draws, redacts

#: What the draws of walks to the left and to the right are for; a level's number is their counter.
PURPOSES = {-1: b"offrecord/walk<", 1: b"offrecord/walk>"}

_CELLS = 1 << 13  # walks times levels that are looked at at once


@dataclass(frozen=True, eq=False)
class Walks:
    """Walks in one direction, (w,) each.

    sides: which of the packed ones. reaches: further out no walk stops. sight: what they see.
    """

    direction: int
    sides: Integers
    reaches: Integers
    sight: Sight

    @property
    def count(self) -> int:
        """How many walks there are."""
        return len(self.sides)


def walked(walks: Walks, packed: PackedSides, k: int, draw: Draw) -> tuple[Integers, Integers]:
    """(w,) where each walk stops, at its deadline if nowhere else, and with which label.

    A walk that passes its reach stops nowhere nearer than its deadline. Who reaches that has the
    label that stands for the far value.
    """
    sides, sight = walks.sides, walks.sight
    stops = packed.deadlines[sides].copy()
    labels = packed.labels[sides] + sight.far
    levels = packed.counts[sides] - 1
    active, level = np.flatnonzero((levels > 0) & ~sight.straight), 0
    while len(active):
        # several levels at a time where walks are few: what is drawn in vain is cheaper than calls
        count = min(max(_CELLS // len(active), 1), int(levels[active].max()) - level)
        cells = _cells(walks, packed, k, active, np.arange(level, level + count))
        stopped = _stopped(walks, packed, active, cells, draw, labels)
        first = np.argmax(stopped, axis=1)
        here = np.flatnonzero(stopped[np.arange(len(active)), first])
        stops[active[here]] = cells.distance[here, first[here]]
        goes_on = cells.there[:, -1] & (levels[active] > level + count)
        goes_on[here] = False
        active, level = active[goes_on], level + count
    return stops, labels


class _Cells(NamedTuple):
    """Of walks at some levels, (a, levels): whether they get there if they do not stop before, how
    far that is, where their thresholds begin, and how many of them there are (a, 1).
    """

    levels: Integers
    there: Mask
    distance: Integers
    at: Integers
    labels: Integers


def _cells(walks: Walks, packed: PackedSides, k: int, active: Integers, levels: Integers) -> _Cells:
    sides, sight = walks.sides[active, np.newaxis], walks.sight
    most = packed.counts[sides] - 1
    distance = packed.levels[sides, levels]
    there = (levels < most) & (distance <= walks.reaches[active, np.newaxis])
    distance = np.where(there, distance, 0)
    labels = packed.labels[sides]
    unit = packed.widths[sides] * labels
    far, end = sight.far[active, np.newaxis], sight.end[active, np.newaxis]
    at = packed.offsets[sides] + ((far * most + levels) * k + end) * k * unit
    at += sight.at(active, distance) * unit
    ahead = np.flatnonzero(packed.ahead[sides[:, 0]])
    if len(ahead):
        following = np.where(there, packed.levels[sides, levels + 1], 0)[ahead]
        at[ahead] += sight.at(active[ahead], following) * labels[ahead]
    return _Cells(levels, there, distance, np.where(there, at, 0), labels)


def _stopped(
    walks: Walks, packed: PackedSides, active: Integers, cells: _Cells, draw: Draw, labels: Integers
) -> Mask:
    """(a, levels) at which levels walks would stop; the label of the first one is noted."""
    limits = np.where(cells.there, packed.limits[cells.at + cells.labels - 1], np.uint64(0))
    stopped = limits == ALWAYS
    # a label is drawn even where the stop is certain
    unsure = np.nonzero((limits > 0) & (~stopped | (cells.labels > 1)))
    if not len(unsure[0]):
        return np.asarray(stopped)
    sight, asked = walks.sight, active[unsure[0]]
    purpose, counter = PURPOSES[walks.direction], cells.levels[unsure[1]]
    drawn = draw(sight.chain[asked], sight.order[asked], purpose, counter)
    stopped[unsure] = redacts(drawn, limits[unsure])
    first = stopped[unsure] & (np.argmax(stopped, axis=1)[unsure[0]] == unsure[1])
    several = cells.labels[unsure[0], 0]
    named = np.flatnonzero(first & (several > 1))
    if len(named):
        which = cells.at[unsure][named], several[named]
        labels[asked[named]] = _labels(packed.limits, which, drawn[named])
    return np.asarray(stopped)


def _labels(limits: Draws, which: tuple[Integers, Integers], drawn: Draws) -> Integers:
    """(n,) the labels that draws stand for: how many thresholds do not lie above them.

    which: where the thresholds begin, and how many there are.
    """
    at, several = which
    found = np.zeros(len(at), dtype=np.int64)
    for label in range(int(several.max()) - 1):
        more = np.flatnonzero(several - 1 > label)
        found[more] += ~redacts(drawn[more], limits[at[more] + label])
    return found
