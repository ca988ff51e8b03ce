"""Laws of stopping: how likely each stop is, by the model and the thresholds that act."""

from __future__ import annotations

import numpy as np

from offrecord.mechanisms.owner.repair import kept_shares, stopped_shares
from offrecord.mechanisms.owner.stopping import StoppingSide
from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats
from offrecord.release.coins import Draws


def outcome_masses(
    side: StoppingSide, way: Way, start: Floats | None = None
) -> tuple[list[Floats], Floats]:
    """Of each level but the last (l, x, i, 1 or j), and of the deadline (l, x): likelihoods of
    stopping there, given x, times the start; without what every x meets alike from there on.
    """
    return masses_of(side.levels, side.limits[..., np.newaxis], way, start)


def masses_of(
    levels: Floats, limits: Draws, way: Way, start: Floats | None
) -> tuple[list[Floats], Floats]:
    """As `outcome_masses`, summed over labels, the last axis of limits, which are cumulated."""
    k = way.k
    jumps = way.jumps(levels)
    begun = np.where(way.possible, 1.0 if start is None else start, 0.0)
    reached = np.repeat((begun[:, np.newaxis] * jumps[0])[np.newaxis], k, axis=0)
    stops = []
    for level, jump in enumerate(jumps[1:]):
        last = limits[:, level, ..., -1]
        stops.append(reached[..., np.newaxis] * stopped_shares(last))
        kept = kept_shares(last)
        if kept.shape[-1] == 1:
            reached = (reached * kept[..., 0]) @ jump
        else:
            reached = (reached[..., np.newaxis] * kept * jump).sum(axis=2)
    far = np.arange(k)
    return stops, reached[far, :, far]


def stopping_law(side: StoppingSide, way: Way, start: Floats | None = None) -> Floats:
    """(m, k) Pr(T = level, X at the deadline = l), times the start."""
    if not len(side.levels):
        return np.zeros((0, way.k))
    stops, ends = outcome_masses(side, way, start)
    jumps = way.jumps(side.levels)
    beyond, law = np.eye(way.k), [ends @ way.weights]
    for level in range(len(stops) - 1, -1, -1):
        masses = np.einsum("x,lxij->lij", way.weights, stops[level])
        if masses.shape[-1] == 1:
            beyond = jumps[level + 1] @ beyond
            law.append(np.einsum("li,il->l", masses[..., 0], beyond))
        else:
            step = jumps[level + 1]
            law.append(np.einsum("lij,ij,jl->l", masses, step, beyond))
            beyond = step @ beyond
    return np.array(law[::-1])


def expected_redactions(side: StoppingSide, way: Way, start: Floats | None = None) -> float:
    """Beside the run, with unlimited room, times the start."""
    law = stopping_law(side, way, start).sum(axis=1)
    return float(law @ (side.levels - 1)) if len(law) else np.inf
