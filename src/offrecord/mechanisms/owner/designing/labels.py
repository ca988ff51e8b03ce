"""Both sides of a single record in turn: the first one's stop draws a label, and what the second
does depends on it (O7).

All outcomes of a label have likelihoods in proportion to one vector, its ray. So the second side is
designed to keep within ε together with the ray, and whoever saw the label would learn no more.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from offrecord.mechanisms.owner.designing.laws import expected_redactions
from offrecord.mechanisms.owner.designing.pinned import Pinned, Unstopped, places
from offrecord.mechanisms.owner.designing.referee import told_by_pair
from offrecord.mechanisms.owner.designing.repair import (
    LEAST_SHARE,
    MARGIN,
    WINDOWS,
    going_on,
    thresholds,
)
from offrecord.mechanisms.owner.designing.sides import Effort, Judged, judged_side
from offrecord.mechanisms.owner.stopping import StoppingPair
from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats
from offrecord.release.coins import ALWAYS, Draws
from offrecord.theory.programmes import Entries, Solver

STRENGTHS = (0.45, 0.9)  # of ε, that a ray may use up
LEFT_OVER = 1.0 - STRENGTHS[-1]  #: of ε, that is then left for the second side


def rays(k: int, epsilon: float, strengths: tuple[float, ...] = STRENGTHS) -> Floats:
    """(c, k) one that tells nothing, and for every strength those that tell a set of values from
    the others. Those of the largest strength span all vectors that tell no more than it.
    """
    sets = [np.array(bits) for bits in product((0.0, 1.0), repeat=k) if 0 < sum(bits) < k]
    found = [np.ones(k)]
    found += [np.exp(-strength * epsilon * bits) for strength in strengths for bits in sets]
    return np.array(found)


def stopping_pair(
    first: Way,
    second: Way,
    epsilon: float,
    effort: Effort,
    strengths: tuple[float, ...] = STRENGTHS,
) -> StoppingPair | None:
    """Both sides in turn, proven; None where no such pair was found."""
    directions, solver = rays(first.k, epsilon, strengths), Solver()
    seconds = [judged_side(second, epsilon, effort, ray, solver) for ray in directions]
    made = [side for side in seconds if side is not None]
    deadline = first.deadline(max(strengths) * epsilon - 1e-6, np.ones(first.k))
    if deadline is None or effort.levels is None or len(made) < len(seconds):
        return None
    levels = places(first, deadline, effort.levels, np.ones(first.k))
    side = Pinned(first, levels, np.ones(first.k), effort.looks_ahead(levels))
    costs = np.array(
        [
            expected_redactions(one.side, second, ray)
            for one, ray in zip(made, directions, strict=True)
        ]
    )
    limits, last = [], []
    for far in range(first.k):
        masses = Unstopped(side, far)
        aims = _labelled(masses, directions, costs, solver)
        found = None
        if aims is not None:
            found = _proven_far(masses, aims, directions, second, epsilon, effort, solver)
        if found is None:
            return None
        limits.append(found[0])
        last.append(found[1])
    sides = [one.side for one in (*made, *last)]
    pair = StoppingPair(first.direction, epsilon, levels, np.stack(limits), tuple(sides))
    told = told_by_pair(pair, first, [one.told for one in (*made, *last)]).max()
    return pair if told <= epsilon - MARGIN / 2 else None


def _labelled(
    masses: Unstopped, directions: Floats, costs: Floats, solver: Solver
) -> Floats | None:
    """(m − 1, i, 1 or j, c) how much of each ray is stopped, at the least expected redactions on
    both sides; None where the solver fails. costs: (c,) of the second side.

    After what has not stopped, the columns are shares of rays, outcome by outcome.
    """
    labels = len(directions)
    if not masses.is_possible:
        return np.zeros((len(masses.steps), masses.side.k, masses.seen_ahead, labels))
    count, height = int(masses.met.sum()), masses.height
    ends = np.broadcast_to(masses.values[:, np.newaxis], masses.free.shape)[masses.of_any]
    columns = masses.width + masses.contexts + count * np.arange(labels)[:, np.newaxis]
    spread = Entries(
        np.tile(np.arange(height), labels), columns.ravel(), -directions[:, ends].ravel()
    )
    scales = masses.scales[masses.met]
    all_costs = np.concatenate((masses.costs(), np.outer(costs, scales).ravel()))
    rows = Entries.together([masses.stopped, spread])
    # the far values of both programmes are much alike, and their shapes often the same
    solved = solver.least(all_costs, rows, -masses.given, -masses.given, like="labelled")
    if solved is None:
        return None
    shares = np.zeros((labels, *masses.met.shape))
    shares[:, masses.met] = solved[masses.width :].reshape(labels, count)
    return np.moveaxis(masses.aims(np.moveaxis(shares, 0, 1)), 1, -1)


def _proven_far(
    masses: Unstopped,
    aims: Floats,
    directions: Floats,
    second: Way,
    epsilon: float,
    effort: Effort,
    solver: Solver,
) -> tuple[Draws, Judged] | None:
    """Thresholds for a far value, and the second side of who reaches the deadline."""
    for window in WINDOWS:
        limits, arrived = _repaired(masses.side, (1.0 - window) * aims, directions)
        ends = arrived[:, masses.far]
        if ends.max() <= np.exp(epsilon) * ends[second.possible].min():
            side = _after_deadline(second, epsilon, effort, ends, solver)
            if side is not None:
                return limits, side
    return None


def _after_deadline(
    second: Way, epsilon: float, effort: Effort, arrived: Floats, solver: Solver
) -> Judged | None:
    """The second side of who reached the deadline, designed for exactly what arrived there."""
    most = arrived.max()
    ray = arrived / most if most > 0 else np.ones(second.k)
    if not np.all(ray[second.possible] > 0):
        return None
    ray = np.where(second.possible, ray, 1.0)
    return judged_side(second, epsilon - MARGIN, effort, ray, solver)


def _repaired(side: Pinned, aims: Floats, directions: Floats) -> tuple[Draws, Floats]:
    """(m − 1, k, k, 1 or k, c) thresholds, and what arrives at the deadline (x, i).

    aims: (m − 1, i, 1 or j, c) how much of each ray. All of an outcome's rays shrink by one factor
    where there is not so much to stop, so that they stay rays.
    """
    possible = side.way.possible
    labels = len(directions)
    limits = np.zeros((len(aims), side.k, *aims.shape[1:]), dtype=np.uint64)
    reached = side.free[0].copy()
    for level, aim in enumerate(aims):
        wanted = np.einsum("ijc,cx->xijc", aim, directions)
        here = reached[:, :, np.newaxis]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(wanted.sum(axis=-1) > 0, here / wanted.sum(axis=-1), 1.0)
        shrink = np.minimum(room[possible].min(axis=0), 1.0) * (1.0 - 2.0**-50)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(
                here[..., np.newaxis] > 0,
                wanted * shrink[..., np.newaxis] / here[..., np.newaxis],
                0.0,
            )
        alive = possible[:, np.newaxis, np.newaxis, np.newaxis]
        used = np.all((shares >= LEAST_SHARE) | ~alive, axis=0)
        shares = np.where(used & alive, shares, 0.0)
        parts = thresholds(shares)
        cumulated = np.cumsum(parts, axis=-1, dtype=np.uint64)
        # sums of what was rounded down never pass 2⁶⁴; the one number that means always is avoided
        limits[level] = np.minimum(cumulated, ALWAYS - np.uint64(1))
        reached = going_on(reached, limits[level, ..., labels - 1], side.jumps[level + 1])
    return limits, reached
