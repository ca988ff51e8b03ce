"""The best side that is proven: what to aim at, made into thresholds, refereed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from offrecord.mechanisms.owner.designing.laws import expected_redactions
from offrecord.mechanisms.owner.designing.pinned import Pinned, bridges, places, programme
from offrecord.mechanisms.owner.designing.referee import told_by
from offrecord.mechanisms.owner.designing.repair import MARGIN, repaired
from offrecord.mechanisms.owner.stopping import StoppingSide
from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats, Integers
from offrecord.theory.programmes import Solver

_TIE = 1e-6  # of the budget, that a deadline leaves for repair
_LITTLE = 1e-6  # of a window that repair may mix into what is best
_QUICKER_ALONE = 4  # values up to which several solvers at once would wait for each other


@dataclass(frozen=True)
class Effort:
    """How much a side is worth: nothing of it is a time, so that the same side is made anywhere.

    levels: at most so many, of programmes; None where the closed form must do. ahead: it sees the
    value at the next level, where that is the next record.
    """

    levels: int | None
    ahead: bool = False

    def looks_ahead(self, levels: Integers) -> bool:
        """Whether a side with some levels sees the value at its next one. Between levels that lie
        apart values change so much that it gains a thousandth, in three times as long.
        """
        return self.ahead and len(levels) == int(levels[-1] - levels[0]) + 1


#: Up to so many values programmes have so many levels: about half a minute for a side.
_PROGRAMMES = ((5, 40), (8, 24), (12, 20), (17, 12), (24, 6), (36, 4))
_CLOSED_FORM = 40  # levels of the closed form


def effort_for(k: int) -> Effort:
    """What an alphabet allows within about a minute for both sides."""
    return Effort(next((levels for most, levels in _PROGRAMMES if k <= most), None))


def closed_side(direction: int, k: int) -> StoppingSide:
    """A side that is redacted to the chain's end."""
    nothing = np.empty((k, 0, k, k, 1), dtype=np.uint64)
    return StoppingSide(direction, 0.0, np.empty(0, dtype=np.int64), nothing)


def window_side(direction: int, k: int, budget: float, deadline: int) -> StoppingSide:
    """A side whose only level is its deadline: the plain window."""
    nothing = np.empty((k, 0, k, k, 1), dtype=np.uint64)
    return StoppingSide(direction, budget, np.array([deadline]), nothing)


class Judged(NamedTuple):
    """A side that is proven. told: (k, k) the referee's word on it, log-ratios at most."""

    side: StoppingSide
    told: Floats


def stopping_side(way: Way, budget: float, effort: Effort) -> StoppingSide | None:
    """A side of few expected redactions within a budget, proven; the plain window where nothing
    else passes, and None where no window does.
    """
    found = judged_side(way, budget, effort, np.ones(way.k), Solver())
    return None if found is None else found.side


def judged_side(
    way: Way, budget: float, effort: Effort, start: Floats, solver: Solver
) -> Judged | None:
    """The same with the referee's word.

    start: likelihoods of the run's end from elsewhere, with which the budget must be kept too.
    solver: that of sides much like it, which were made before.
    """
    deadline = way.deadline(budget - _TIE, start)
    if deadline is None:
        return None
    found: list[StoppingSide | None] = [window_side(way.direction, way.k, budget, deadline)]
    if deadline > way.nearest:
        if effort.levels is not None:
            levels = places(way, deadline, effort.levels, start)
            side = Pinned(way, levels, start, effort.looks_ahead(levels))
            aims = _aims(side, budget, solver)
            best = _designed(side, aims, budget, most=_LITTLE)
            # on these levels nothing costs less than what a programme aims at
            judged = None if best is None else _judged(best, way, budget, start)
            if judged is not None:
                return judged
            found.append(_designed(side, aims, budget))
        side = Pinned(way, places(way, deadline, _CLOSED_FORM, start), start)
        found.append(_designed(side, [bridges(side, far) for far in range(way.k)], budget))
    made = [one for one in found if one is not None]
    made.sort(key=lambda one: expected_redactions(one, way, start))
    every = (_judged(one, way, budget, start) for one in made)
    return next((one for one in every if one is not None), None)


def _judged(side: StoppingSide, way: Way, budget: float, start: Floats) -> Judged | None:
    """A side that keeps within the budget, rounding included; None for one that does not."""
    beside = np.log(np.where(way.possible, start, 1.0))
    told = told_by(side, way)
    together = told + beside[:, np.newaxis] - beside
    keeps = together[np.ix_(way.possible, way.possible)] <= budget - MARGIN / 2
    return Judged(side, told) if bool(np.all(keeps)) else None


def _aims(side: Pinned, budget: float, solver: Solver) -> list[Floats]:
    """For each far value by itself: by a programme, or in closed form where its solver fails."""

    def aimed(far: int) -> Floats:
        aims = programme(side, far, budget - 2 * MARGIN, solver)
        return bridges(side, far) if aims is None else aims

    _ = side.free, side.rests  # found once, before several ask for them
    if side.k <= _QUICKER_ALONE:
        return [aimed(far) for far in range(side.k)]
    with ThreadPoolExecutor(os.cpu_count()) as several:
        return list(several.map(aimed, range(side.k)))


def _designed(
    side: Pinned, aims: Sequence[Floats], budget: float, most: float = 1.0
) -> StoppingSide | None:
    """What keeps within the budget, as near to the aims of each far value as it can be."""
    widest = max(one.shape[-1] for one in aims)
    shape = (*aims[0].shape[:-1], widest)
    limits = repaired(side, np.stack([np.broadcast_to(one, shape) for one in aims]), budget, most)
    if limits is None:
        return None
    return StoppingSide(side.way.direction, budget, side.levels, limits)
