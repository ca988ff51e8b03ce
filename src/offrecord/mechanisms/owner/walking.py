"""Walks: away from the ends of clusters, level by level, all walks of a block at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from offrecord.mechanisms.blocks import Draw, Mask
from offrecord.mechanisms.owner.packed import PackedSides
from offrecord.mechanisms.owner.sight import Sight
from offrecord.models.base import Integers
from offrecord.release.coins import ALWAYS, Draws, redacts

#: What the draws of walks to the left and to the right are for; a level's number is their counter.
PURPOSES = {-1: b"offrecord/walk<", 1: b"offrecord/walk>"}


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
    unit = packed.widths[sides] * packed.labels[sides]
    # where the thresholds of a walk's far value and end begin
    begin = packed.offsets[sides] + (sight.far * levels * k + sight.end) * k * unit
    active, level = np.flatnonzero((levels > 0) & ~sight.straight), 0
    while len(active):
        distance = packed.levels[sides[active], level]
        within = distance <= walks.reaches[active]
        active, distance = active[within], distance[within]
        at = begin[active] + (level * k * k + sight.at(active, distance)) * unit[active]
        at += _ahead(walks, packed, active, level)
        stopped = _stopped(walks, packed, (active, at, level), draw, labels)
        stops[active[stopped]] = distance[stopped]
        active, level = active[~stopped], level + 1
        active = active[levels[active] > level]
    return stops, labels


def _ahead(walks: Walks, packed: PackedSides, active: Integers, level: int) -> Integers:
    """(a,) how much further on the thresholds stand for the values at the next level."""
    further = np.zeros(len(active), dtype=np.int64)
    sees = np.flatnonzero(packed.ahead[walks.sides[active]])
    if len(sees):
        who = active[sees]
        following = packed.levels[walks.sides[who], level + 1]
        further[sees] = walks.sight.at(who, following) * packed.labels[walks.sides[who]]
    return further


def _stopped(
    walks: Walks,
    packed: PackedSides,
    here: tuple[Integers, Integers, int],
    draw: Draw,
    labels: Integers,
) -> Mask:
    """(a,) which walks stop at a level; with which label is noted. here: the walks, where their
    thresholds stand, and the level.
    """
    active, at, level = here
    several = packed.labels[walks.sides[active]]
    limits = packed.limits[at + several - 1]
    stopped = limits == ALWAYS
    unsure = np.flatnonzero((limits > 0) & (~stopped | (several > 1)))
    if not len(unsure):
        return np.asarray(stopped)
    sight, asked = walks.sight, active[unsure]
    drawn = draw(sight.chain[asked], sight.order[asked], PURPOSES[walks.direction], level)
    stopped[unsure] = redacts(drawn, limits[unsure])
    named = np.flatnonzero(stopped[unsure] & (several[unsure] > 1))
    if len(named):
        which = at[unsure][named], several[unsure][named]
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
