"""Cells by stopping rules: which stop each walk drew, and what two walks leave between them.

The rules of mathematics are numbered as on the proof page docs/proofs/several-runs.md. With the
values before and the key every stop is computed; else it is the set of stops that what is released
does not exclude.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from offrecord.verification.agreement import Found
from offrecord.verification.coins import ALWAYS, Coins, Draws, thresholds
from offrecord.verification.local import check_empty
from offrecord.verification.members import Floats, Integers, Mask
from offrecord.verification.reading import Codes, Records
from offrecord.verification.rules import Local, Side, Stops
from offrecord.verification.runs import Case, Clusters, covered

_PURPOSE = b"offrecord/stops"
_SIDE = 1 << 20  # counters of the right side begin here
_TOGETHER = 1 << 15  # walks that are looked at together: 16 MB a level at 64 contexts


@dataclass(frozen=True, eq=False)
class Walks:
    """The walks of one rule to one side. edge: (w,) where their cores end."""

    records: Records
    clusters: Clusters
    which: Integers
    side: Stops
    right: bool
    k: int

    @property
    def chain(self) -> Integers:
        """(w,) their chains."""
        return self.clusters.chain[self.which]

    @property
    def edge(self) -> Integers:
        """(w,) the outermost places of their cores."""
        return (self.clusters.last if self.right else self.clusters.first)[self.which]

    def contexts(self, codes: Codes, distance: int) -> Integers:
        """(w,) the context at a distance, -1 where a record of it shows nothing."""
        order = self.side.order
        first = self.edge + (distance - order + 1 if self.right else -distance)
        found = np.zeros(len(self.which), dtype=np.int64)
        for at in range(order):
            row = self.records.row_at(self.chain, first + at)
            code = np.where(row < 0, -1, codes[np.maximum(row, 0)]).astype(np.int64)
            # a value that the model does not know counts as the first one
            found = np.where((code == -1) | (found < 0), -1, found * self.k + np.maximum(code, 0))
        return found

    def absent(self) -> Mask:
        """(w,) where a record that the walk looks at has no row at all."""
        gone = np.zeros(len(self.which), dtype=bool)
        for distance in (0, *self.side.levels.tolist()):
            first = self.edge + (distance - self.side.order + 1 if self.right else -distance)
            for at in range(self.side.order):
                gone |= self.records.row_at(self.chain, first + at) < 0
        return gone

    def draws(self, coins: Coins, level: int) -> Draws:
        """(w,) the coins of a level."""
        order = self.clusters.order[self.which]
        return coins.draws(self.chain, order, _PURPOSE, level + self.right * _SIDE)

    # ---- with the values before

    def stops(self, coins: Coins) -> Integers:
        """(w,) the distance at which each walk stops."""
        codes = self.records.original
        assert codes is not None
        levels = self.side.levels.tolist()
        seen = [self.contexts(codes, distance) for distance in (0, *levels)]
        looks = np.all([one >= 0 for one in seen], axis=0)  # rule 3
        stops = np.full(len(self.which), levels[-1])
        going = looks.copy()
        for number, level in enumerate(levels[:-1]):
            chances = self.side.stop[number, self.side.far[seen[-1]], seen[0], seen[number + 1]]
            limits = thresholds(chances)
            here = going & ((limits == ALWAYS) | (self.draws(coins, number) < limits))
            stops[here] = level
            going &= ~here
        return stops

    # ---- without them

    def possible(self, coins: Coins | None, missing: int) -> Mask:
        """(w, n) at which levels each walk may have stopped, by what the release shows.

        The core is never shown, so any start context is tried; so is any context that is hidden.
        """
        side, count = self.side, len(self.which)
        codes, levels = self.records.codes, side.levels.tolist()
        seen = [self.contexts(codes, level) for level in levels]
        far = np.where(seen[-1] >= 0, side.far[seen[-1]], -1)
        blind = self.absent()
        found = np.zeros((count, len(levels)), dtype=bool)
        alive = np.ones((count, side.stop.shape[2] if len(side.stop) else 1), dtype=bool)
        # a walk that stops has looked at all levels: what lies beyond the stop is then released
        looked = np.logical_and.accumulate([one >= 0 for one in reversed(seen)])[::-1]
        for number in range(len(levels) - 1):
            least, most = _extremes(side.stop[number])
            low, high = (thresholds(one[far, :, seen[number]]) for one in (least, most))
            if coins is None:
                stops, goes_on = high > 0, low != ALWAYS
            else:
                drawn = self.draws(coins, number)[:, np.newaxis]
                stops = (high == ALWAYS) | (drawn < high)
                goes_on = (low != ALWAYS) & (drawn >= low)
            found[:, number] = np.any(alive & stops, axis=1) & looked[number] & ~blind
            alive &= goes_on
        found[:, -1] = blind | alive.any(axis=1) | (missing > 0)
        return found


def _extremes(stop: Floats) -> list[Floats]:
    """The least and the largest chance by far class, start and context, -1 standing for any."""
    found = []
    for extreme in (np.min, np.max):
        wide = np.concatenate((stop, extreme(stop, axis=2, keepdims=True)), axis=2)
        found.append(np.concatenate((wide, extreme(wide, axis=0, keepdims=True)), axis=0))
    return found


def walks_of(case: Case, direction: str) -> list[Walks]:
    """All walks to one side, by their rule."""
    kind, right = case.rules.kind, direction == "right"
    return [
        Walks(case.records, case.clusters, some, as_walk(side, kind.order), right, kind.k)
        for side, which in case.clusters.by_rule(direction)
        for some in np.split(which, range(_TOGETHER, len(which), _TOGETHER))
    ]


def as_walk(side: Side, order: int) -> Stops:
    """A window as a walk whose only level is its deadline."""
    if isinstance(side, Local):
        contexts = side.redaction.shape[1] ** order
        levels = np.array([side.reach + order])
        return Stops(
            order, levels, np.zeros(contexts, np.int64), np.zeros((0, 1, contexts, contexts))
        )
    return side


def deadlines_of(clusters: Clusters, order: int) -> dict[str, Integers]:
    """(c,) by direction, L of each side; m where there is none."""
    return {
        name: np.array([order + (0 if one is None else one.reach) for one in sides], dtype=np.int64)
        for name, sides in clusters.sides.items()
    }


def redacted_by_walks(case: Case) -> Mask:
    """(n,) which records go, with the values before and the coins (rules 1 to 5)."""
    records, clusters, order = case.records, case.clusters, case.rules.kind.order
    deadlines = deadlines_of(clusters, order)
    assert case.coins is not None
    stops = {name: one.copy() for name, one in deadlines.items()}
    for name, drawn in stops.items():
        for walks in walks_of(case, name):
            drawn[walks.which] = walks.stops(case.coins)
    gap, faces = clusters.margins(records, right=True)
    near = stops["right"] <= gap + order - np.roll(deadlines["left"], -1)
    near &= np.roll(stops["left"], -1) <= gap + order - deadlines["right"]
    whole = faces & ~near  # rule 5
    high = clusters.last + np.where(whole, gap, np.minimum(stops["right"] - order, gap))
    low = clusters.first - np.minimum(
        stops["left"] - order, clusters.margins(records, right=False)[0]
    )
    return covered(records, clusters.chain, low, high)


def check_walks(case: Case, found: Found) -> None:
    """Cells without the values before: each gap must show a stop that may have been drawn."""
    records, clusters, order = case.records, case.clusters, case.rules.kind.order
    deadlines = deadlines_of(clusters, order)
    inside = covered(records, clusters.chain, clusters.first, clusters.last)
    shown = np.flatnonzero(inside & (records.codes >= 0))
    found.wrong_at(records.named(shown), len(shown), "a value beside a private one is released")
    edges = {"left": clusters.first.copy(), "right": clusters.last.copy()}
    for name, edge in edges.items():
        right, sign = name == "right", 1 if name == "right" else -1
        margin, faces = clusters.margins(records, right=right)
        facing = np.roll(deadlines["left" if right else "right"], -sign)
        empty = nearest_shown(records, clusters, margin, right=right)
        for walks in walks_of(case, name):
            which, levels = walks.which, walks.side.levels
            whole = empty[which] >= margin[which]
            most = empty[which] + order
            meeting = np.minimum(most, margin[which] + order - facing[which])  # rule 5
            most = np.where(faces[which] & ~whole, meeting, most)
            fits = walks.possible(case.coins, case.missing) & (levels <= most[:, np.newaxis])
            latest = levels[len(levels) - 1 - fits[:, ::-1].argmax(axis=1)] - order
            wrong = ~fits.any(axis=1) & ~whole
            beside = records.row_at(clusters.chain[which], edge[which] + sign)[wrong]
            says = f"the walk to the {name} cannot have stopped where values are released"
            found.wrong_at(records.named(np.maximum(beside, 0)), len(beside), says)
            edge[which] += sign * np.where(whole, margin[which], np.where(wrong, 0, latest))
    low, high = edges["left"], edges["right"]
    may = covered(records, clusters.chain, low, high)
    check_empty(case, may, found)
    if case.coins is not None:
        found.checked.append(
            f"Stops of {clusters.count:,} clusters, by coins that were drawn anew."
        )


def nearest_shown(
    records: Records, clusters: Clusters, margin: Integers, *, right: bool
) -> Integers:
    """(c,) how many records next to a cluster show nothing, at most as many as there are."""
    shown = np.flatnonzero(records.codes >= 0)
    place, chain = records.places[shown], records.chain_of[shown]
    edge = clusters.last if right else clusters.first
    row = records.row_from(clusters.chain, edge + 1 if right else edge)
    at = np.searchsorted(shown, row) - (0 if right else 1)
    safe = np.clip(at, 0, max(len(shown) - 1, 0))
    if not len(shown):
        return margin.copy()
    there = (at >= 0) & (at < len(shown)) & (chain[safe] == clusters.chain)
    apart = np.abs(place[safe] - edge) - 1
    return np.where(there, np.minimum(apart, margin), margin)
