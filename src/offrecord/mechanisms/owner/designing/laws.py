"""Laws of stopping: how likely each stop is, by the model and the thresholds that act."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from offrecord.mechanisms.owner.designing.repair import kept_shares, moved_on, stopped_shares
from offrecord.mechanisms.owner.stopping import StoppingSide
from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats, Integers
from offrecord.release.coins import Draws


def reached(levels: Integers, limits: Draws, way: Way, start: Floats | None = None) -> Floats:
    """(m, l, x, i) of each level, the deadline too: the likelihood of getting there, and i, by the
    plan of each far value and without regard to it; times the start.
    """
    jumps, kept = way.jumps(levels), kept_shares(limits).swapaxes(0, 1)
    begun = np.where(way.possible, 1.0 if start is None else start, 0.0)
    found = np.empty((len(levels), way.k, way.k, way.k))
    found[0] = begun[:, np.newaxis] * jumps[0]
    for level, jump in enumerate(jumps[1:]):
        found[level + 1] = moved_on(found[level], kept[level], jump)
    return found


def outcome_masses(
    side: StoppingSide, way: Way, start: Floats | None = None
) -> tuple[Floats, Floats]:
    """Of levels but the last (m − 1, l, x, i, 1 or j), and of the deadline (l, x): likelihoods of
    stopping there, given x, times the start; without what every x meets alike from there on.
    """
    got = reached(side.levels, side.limits, way, start)
    stops = got[:-1, ..., np.newaxis] * stopped_shares(side.limits).swapaxes(0, 1)
    far = np.arange(way.k)
    return stops, got[-1, far, :, far]


def stopping_law(side: StoppingSide, way: Way, start: Floats | None = None) -> Floats:
    """(m, k) Pr(T = level, X at the deadline = l), times the start."""
    if not len(side.levels):
        return np.zeros((0, way.k))
    stops, ends = outcome_masses(side, way, start)
    weighted = np.einsum("x,mlxij->mlij", way.weights, stops)
    law = (weighted * beyond_stops(side.levels, weighted.shape[-1], way)).sum(axis=(2, 3))
    return np.concatenate((law, [ends @ way.weights]))


def beyond_stops(levels: Integers, ahead: int, way: Way) -> Floats:
    """(m − 1, l, i, 1 or j) what every x meets alike beyond a stop at a level: Pr(l | i), or
    Pr(j, l | i) of who sees the value at the next level.
    """
    rests = way.rests(levels)
    if ahead == 1:
        return rests[:-1].swapaxes(1, 2)[..., np.newaxis]
    following = rests[1:].swapaxes(1, 2)[:, :, np.newaxis]
    return way.jumps(levels)[1:, np.newaxis] * following


def expected_redactions(side: StoppingSide, way: Way, start: Floats | None = None) -> float:
    """Beside the run, with unlimited room, times the start."""
    law = stopping_law(side, way, start).sum(axis=1)
    return float(law @ (side.levels - way.nearest)) if len(law) else np.inf


def stops_by_value(
    levels: Integers, limits: Draws, way: Way, start: Floats | None = None
) -> Floats:
    """(m, k) Pr(stop at a level | got there, i there), whatever end, far value and next value."""
    got, stopped = masses_by_value(levels, limits, way, start)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(got > 0, stopped / got, 0.0)
    return np.concatenate((found, np.ones((1, way.k))))


def masses_by_value(
    levels: Integers, limits: Draws, way: Way, start: Floats | None
) -> tuple[Floats, Floats]:
    """(m − 1, k) by value at each level but the last: Pr(got there, i), and Pr(stops there, i)."""
    got = np.einsum("x,mlxi->mlxi", way.weights, reached(levels, limits, way, start)[:-1])
    shares = stopped_shares(limits).swapaxes(0, 1)
    ended = np.einsum(
        "mlxi,mlxij,mlij->mi", got, shares, beyond_stops(levels, shares.shape[-1], way)
    )
    return np.einsum("mlxi,mil->mi", got, way.rests(levels)[:-1]), ended


def with_laws(side: StoppingSide, way: Way, room: int) -> StoppingSide:
    """A side with what the model says of it: `law`, `stops`, and `beyond` a room of so many
    records.
    """
    if side.is_closed:
        return side
    beyond = way.across(room, side.deadline) if room < side.deadline else None
    stops = stops_by_value(side.levels, side.limits, way)
    return replace(side, law=stopping_law(side, way), stops=stops, beyond=beyond)
