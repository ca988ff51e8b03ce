"""Laws of stopping: how likely each stop is, by the model and the thresholds that act."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from offrecord.mechanisms.owner.designing.repair import going_on, stopped_shares
from offrecord.mechanisms.owner.stopping import StoppingSide
from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats, Integers
from offrecord.release.coins import Draws


def outcome_masses(
    side: StoppingSide, way: Way, start: Floats | None = None
) -> tuple[list[Floats], Floats]:
    """Of each level but the last (l, x, i, 1 or j), and of the deadline (l, x): likelihoods of
    stopping there, given x, times the start; without what every x meets alike from there on.
    """
    return masses_of(side.levels, side.limits[..., np.newaxis], way, start)


def masses_of(
    levels: Integers, limits: Draws, way: Way, start: Floats | None
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
        reached = going_on(reached, last, jump)
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
    return float(law @ (side.levels - way.nearest)) if len(law) else np.inf


def with_laws(side: StoppingSide, way: Way, room: int) -> StoppingSide:
    """A side with what the model says of it: `law`, `stops`, and `beyond` a room of so many
    records.
    """
    if side.is_closed:
        return side
    beyond = way.across(room, side.deadline) if room < side.deadline else None
    return replace(side, law=stopping_law(side, way), stops=_stops(side, way), beyond=beyond)


def _stops(side: StoppingSide, way: Way) -> Floats:
    """(m, k) Pr(stop at a level | got there, and i is there)."""
    stops, _ = outcome_masses(side, way)
    jumps = way.jumps(side.levels)
    rests = [np.eye(way.k)]
    for jump in jumps[:0:-1]:
        rests.append(jump @ rests[-1])
    reached = np.repeat(
        (np.where(way.possible, 1.0, 0.0)[:, np.newaxis] * jumps[0])[np.newaxis], way.k, axis=0
    )
    found = []
    for level, jump in enumerate(jumps[1:]):
        rest, further = rests[-1 - level], rests[-2 - level]
        got = np.einsum("x,lxi,il->i", way.weights, reached, rest)
        masses = np.einsum("x,lxij->lij", way.weights, stops[level])
        if masses.shape[-1] == 1:
            ended = np.einsum("li,il->i", masses[..., 0], rest)
        else:
            ended = np.einsum("lij,ij,jl->i", masses, jump, further)
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(np.where(got > 0, ended / got, 0.0))
        reached = going_on(reached, side.limits[:, level], jump)
    return np.array([*found, np.ones(way.k)])
