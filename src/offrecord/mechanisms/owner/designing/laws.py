"""Laws of stopping: how likely each stop is, by the model and the thresholds that act."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from offrecord.mechanisms.owner.designing.repair import going_on, stopped_shares
from offrecord.mechanisms.owner.stopping import StoppingSide
from offrecord.mechanisms.owner.way import Way
from offrecord.models.base import Floats, Integers
from offrecord.release.coins import Draws


def reached(
    levels: Integers, limits: Draws, way: Way, start: Floats | None = None
) -> Iterator[Floats]:
    """(l, x, i) of each level, the deadline too: the likelihood of getting there, and i, by the
    plan of each far value and without regard to it; times the start.
    """
    jumps = way.jumps(levels)
    begun = np.where(way.possible, 1.0 if start is None else start, 0.0)
    here = np.repeat((begun[:, np.newaxis] * jumps[0])[np.newaxis], way.k, axis=0)
    for level, jump in enumerate(jumps[1:]):
        yield here
        here = going_on(here, limits[:, level], jump)
    yield here


def rests(levels: Integers, way: Way) -> list[Floats]:
    """(k, k) from each level to the deadline."""
    found = [np.eye(way.k)]
    for jump in way.jumps(levels)[:0:-1]:
        found.append(jump @ found[-1])
    return found[::-1]


def outcome_masses(
    side: StoppingSide, way: Way, start: Floats | None = None
) -> tuple[list[Floats], Floats]:
    """Of each level but the last (l, x, i, 1 or j), and of the deadline (l, x): likelihoods of
    stopping there, given x, times the start; without what every x meets alike from there on.
    """
    *before, last = reached(side.levels, side.limits, way, start)
    stops = [
        here[..., np.newaxis] * stopped_shares(side.limits[:, level])
        for level, here in enumerate(before)
    ]
    far = np.arange(way.k)
    return stops, last[far, :, far]


def stopping_law(side: StoppingSide, way: Way, start: Floats | None = None) -> Floats:
    """(m, k) Pr(T = level, X at the deadline = l), times the start."""
    if not len(side.levels):
        return np.zeros((0, way.k))
    stops, ends = outcome_masses(side, way, start)
    jumps, beyond, law = way.jumps(side.levels), rests(side.levels, way), []
    for level, masses in enumerate(stops):
        weighted = np.einsum("x,lxij->lij", way.weights, masses)
        if weighted.shape[-1] == 1:
            law.append(np.einsum("li,il->l", weighted[..., 0], beyond[level]))
        else:
            law.append(np.einsum("lij,ij,jl->l", weighted, jumps[level + 1], beyond[level + 1]))
    return np.array([*law, ends @ way.weights])


def expected_redactions(side: StoppingSide, way: Way, start: Floats | None = None) -> float:
    """Beside the run, with unlimited room, times the start."""
    law = stopping_law(side, way, start).sum(axis=1)
    return float(law @ (side.levels - way.nearest)) if len(law) else np.inf


def stops_by_value(
    levels: Integers, limits: Draws, way: Way, start: Floats | None = None
) -> Floats:
    """(m, k) Pr(stop at a level | got there, i there), whatever end, far value and next value."""
    found = []
    for got, stopped in masses_by_value(levels, limits, way, start):
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(np.where(got > 0, stopped / got, 0.0))
    return np.array([*found, np.ones(way.k)])


def masses_by_value(
    levels: Integers, limits: Draws, way: Way, start: Floats | None
) -> Iterator[tuple[Floats, Floats]]:
    """(k,) by value at each level but the last: Pr(got there, i), and Pr(stops there, i)."""
    jumps, beyond = way.jumps(levels), rests(levels, way)
    for level, here in enumerate(list(reached(levels, limits, way, start))[:-1]):
        shares = stopped_shares(limits[:, level])
        masses = np.einsum("x,lxi->li", way.weights, here)
        stopped = np.einsum("x,lxi,lxij->lij", way.weights, here, shares)
        if shares.shape[-1] == 1:
            ended = np.einsum("li,il->i", stopped[..., 0], beyond[level])
        else:
            ended = np.einsum("lij,ij,jl->i", stopped, jumps[level + 1], beyond[level + 1])
        yield np.einsum("li,il->i", masses, beyond[level]), ended


def with_laws(side: StoppingSide, way: Way, room: int) -> StoppingSide:
    """A side with what the model says of it: `law`, `stops`, and `beyond` a room of so many
    records.
    """
    if side.is_closed:
        return side
    beyond = way.across(room, side.deadline) if room < side.deadline else None
    stops = stops_by_value(side.levels, side.limits, way)
    return replace(side, law=stopping_law(side, way), stops=stops, beyond=beyond)
