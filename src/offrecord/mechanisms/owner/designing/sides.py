"""The best side that is proven: what to aim at, made into thresholds, refereed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from offrecord.mechanisms.owner.designing.laws import expected_redactions
from offrecord.mechanisms.owner.designing.pinned import Pinned, bridges, places, programme
from offrecord.mechanisms.owner.designing.referee import told_by
from offrecord.mechanisms.owner.designing.repair import MARGIN, repaired
from offrecord.mechanisms.owner.stopping import StoppingSide
from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats

_TIE = 1e-6  # of the budget, that a deadline leaves for repair
_LITTLE = 1e-6  # of a window that repair may mix into what is best
_QUICKER_ALONE = 4  # values up to which several solvers at once would wait for each other


@dataclass(frozen=True)
class Effort:
    """How much a side is worth: nothing of it is a time, so that the same side is made anywhere.

    levels: at most so many, of programmes; None where the closed form must do. ahead: it sees the
    value at the next level.
    """

    levels: int | None
    ahead: bool = False


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


def stopping_side(
    way: Way, budget: float, effort: Effort, start: Floats | None = None
) -> StoppingSide | None:
    """A side of few expected redactions within a budget, proven; the plain window where nothing
    else passes, and None where no window does.

    start: likelihoods of the run's end from elsewhere, with which the budget must be kept too.
    """
    weighted = np.ones(way.k) if start is None else start
    deadline = way.deadline(budget - _TIE, weighted)
    if deadline is None:
        return None
    found: list[StoppingSide | None] = [window_side(way.direction, way.k, budget, deadline)]
    if deadline > way.nearest:
        if effort.levels is not None:
            levels = places(way, deadline, effort.levels, weighted)
            side = Pinned(way, levels, weighted, effort.ahead)
            aims = _aims(side, budget)
            best = _designed(side, aims, budget, most=_LITTLE)
            # on these levels nothing costs less than what a programme aims at
            if best is not None and _keeps(best, way, budget, weighted):
                return best
            found.append(_designed(side, aims, budget))
        side = Pinned(way, places(way, deadline, _CLOSED_FORM, weighted), weighted)
        found.append(_designed(side, [bridges(side, far) for far in range(way.k)], budget))
    made = [one for one in found if one is not None]
    made.sort(key=lambda one: expected_redactions(one, way, weighted))
    return next((one for one in made if _keeps(one, way, budget, weighted)), None)


def _keeps(side: StoppingSide, way: Way, budget: float, start: Floats) -> bool:
    """The referee's word, rounding included."""
    beside = np.log(np.where(way.possible, start, 1.0))
    told = told_by(side, way) + beside[:, np.newaxis] - beside
    of_two = np.ix_(way.possible, way.possible)
    return bool(np.all(told[of_two] <= budget - MARGIN / 2))


def _aims(side: Pinned, budget: float) -> list[Floats]:
    """For each far value by itself: by a programme, or in closed form where its solver fails."""

    def aimed(far: int) -> Floats:
        aims = programme(side, far, budget - 2 * MARGIN)
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
