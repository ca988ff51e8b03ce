"""Cells against the rules around them: what must be redacted, and what may be.

With the values before and the key both are the same. Without, they are what no hidden value and no
coin that is not known could change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.records import Codes
from offrecord.verification.coins import ALWAYS, Coins, Draws, thresholds
from offrecord.verification.reading import Records, check_kept
from offrecord.verification.rules import Local, Rules, Side, Stops
from offrecord.verification.runs import Clusters, covered

_PURPOSE = b"offrecord/stops"
_SIDE = 1 << 20  # counters of the right side begin here
_ANYWHERE = np.iinfo(np.int64).max
_TOGETHER = 1 << 15  # walks that are looked at together: 16 MB a level at 64 contexts


@dataclass(frozen=True, eq=False)
class Case:
    """What cells are checked by."""

    records: Records
    clusters: Clusters
    rules: Rules
    coins: Coins | None
    waits: Mask  # rows of a growing table that leave later


def check_cells(case: Case) -> None:
    """What shows may show, and what is empty may be."""
    records, waits, found = case.records, case.waits, case.records.found
    records.hidden(waits, "a value is released that has to wait")
    must, may = _check_walks(case) if case.rules.walks else _check_local(case)
    check_kept(records, must | waits)
    _check_empty(records, ~records.shown & ~may & ~waits)
    if records.original is not None and case.coins is not None:
        found.checked.append("Every cell, recomputed from rules, coins and the original values.")
        return
    found.checked.append("That each released value may be released by the rules around it.")
    if case.coins is not None:
        found.checked.append("Coins of records near private ones and of walks, drawn anew.")
        found.not_checked.append("What coins decided by values that are redacted: no original.")


def _check_empty(records: Records, empty: Mask) -> None:
    """A problem where no rule redacts what is empty."""
    count, missing = np.count_nonzero(empty), records.counts.missing
    if records.original is not None:
        empty &= records.original != -1
        records.wrong(np.flatnonzero(empty), "empty, although the rules release it")
    elif count > missing:
        says = f"empty without a reason, as {count:,} rows are; {missing:,} had no value"
        records.wrong(np.flatnonzero(empty), says)


# ---- local rules: the largest threshold that any run lays on a record decides (F3)


def _check_local(case: Case) -> tuple[Mask, Mask]:
    """(n,) which records must go, and which may; a problem where one of the first shows."""
    records, coins = case.records, case.coins
    must, rows, limits = _limits(case)
    may, codes = must.copy(), records.known[rows]
    least, most = (_of_value(limits, codes, which) for which in (np.min, np.max))
    must[rows], may[rows] = least == ALWAYS, most > 0
    if coins is not None:
        drawn = coins.draws(records.chains.chain_of[rows], records.order[rows])
        must[rows] |= (drawn < least) & (codes != -1)  # no coin is drawn for a missing value
        may[rows] = (most == ALWAYS) | (drawn < most)
    records.hidden(must & ~case.waits, "a value is released that the rules redact")
    return must, may


def _of_value(limits: Draws, codes: Codes, extreme: Any) -> Draws:
    """(u,) thresholds of records with these values; one of all where a value is not known."""
    known = np.take_along_axis(limits, np.maximum(codes, 0)[:, np.newaxis].astype(int), axis=1)
    return np.where(codes < 0, extreme(limits, axis=1), known[:, 0])


def _limits(case: Case) -> tuple[Mask, Integers, Draws]:
    """(n,) which records go in any case; of others near runs (u,) rows and (u, k) thresholds."""
    records, clusters, k = case.records, case.clusters, case.rules.kind.k
    edges = {name: clusters.edges(name).copy() for name in ("left", "right")}
    parts = [(np.zeros(0, np.int64), np.zeros((0, k), np.uint64))]
    for direction, edge in edges.items():
        sign = 1 if direction == "right" else -1
        for side, which in clusters.by_rule(direction):
            assert isinstance(side, Local)
            edge[which] += sign * side.certain
            if not side.is_window:
                parts.append(_beside(case, which, side, direction))
    sure = covered(records, clusters.cores.chain, edges["left"], edges["right"])
    found, asked = (np.concatenate(each) for each in zip(*parts, strict=True))
    rows, which = np.unique(found, return_inverse=True)
    limits = np.zeros((len(rows), k), dtype=np.uint64)
    # one coin decides for all runs near a record: the largest threshold acts
    np.maximum.at(limits, which, asked)
    kept = ~sure[rows]
    return sure, rows[kept], limits[kept]


def _beside(case: Case, some: Integers, side: Local, direction: str) -> tuple[Integers, Draws]:
    """Rows beside some runs, beyond what is certain, and what one rule asks of each."""
    records, sign = case.records, 1 if direction == "right" else -1
    chain, edge = case.clusters.cores.chain[some], case.clusters.edges(direction)[some]
    ends = np.sort(np.stack((edge + sign * (side.certain + 1), edge + sign * side.reach)), axis=0)
    first, last = np.maximum(ends[0], 0), np.minimum(ends[1], records.ends[chain])
    low = records.row_from(chain, first)
    sizes = np.maximum(records.row_from(chain, last + 1) - low, 0)
    # all rows from low on, one range after the other, and which range each is of
    of = np.repeat(np.arange(len(sizes)), sizes)
    rows = low[of] + np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    distance = np.abs(records.chains.places[rows] - edge[of])
    return rows, thresholds(side.redaction)[distance - 1]


# ---- stopping rules, as numbered on the proof page docs/proofs/several-runs.md


@dataclass(frozen=True, eq=False)
class Walks:
    """The walks of one rule to one side."""

    case: Case
    which: Integers
    side: Stops
    direction: str

    @property
    def chain(self) -> Integers:
        """(w,) the chain of each."""
        return self.case.clusters.cores.chain[self.which]

    @property
    def edge(self) -> Integers:
        """(w,) the place at which each begins."""
        return self.case.clusters.edges(self.direction)[self.which]

    def contexts(self, codes: Codes, distance: int) -> Integers:
        """(w,) the context at a distance, -1 where a record of it shows nothing."""
        order, found = self.side.order, np.zeros(len(self.which), dtype=np.int64)
        first = self.edge + (distance - order + 1 if self.direction == "right" else -distance)
        for at in range(order):
            code = self._codes(codes, first + at)
            # a value that the model does not know counts as the first one
            following = found * self.case.rules.kind.k + np.maximum(code, 0)
            found = np.where((code == -1) | (found < 0), -1, following)
        return found

    def _codes(self, codes: Codes, place: Integers) -> Integers:
        """(w,) the codes of records, -1 where there is no row."""
        row = self.case.records.row_at(self.chain, place)
        return np.where(row < 0, -1, codes[np.maximum(row, 0)]).astype(np.int64)

    def blind(self) -> Mask:
        """(w,) where a record that the walk looks at is known to be missing (rule 3)."""
        original = self.case.records.original
        # without the original only records without a row are known to be missing
        codes = np.zeros_like(self.case.records.codes) if original is None else original
        levels = (0, *self.side.levels.tolist())
        return np.asarray(np.any([self.contexts(codes, level) < 0 for level in levels], axis=0))

    def possible(self, whole: Mask) -> Mask:
        """(w, n) at which levels each walk may have stopped, by the values that are known. whole:
        (w,) nothing is shown up to the next cluster, or the chain's end.
        """
        side, records, coins = self.side, self.case.records, self.case.coins
        seen = [self.contexts(records.known, level) for level in side.levels.tolist()]
        start = self.contexts(records.known, 0)
        far = np.where(seen[-1] >= 0, side.far[seen[-1]], -1)
        blind, found = self.blind(), np.zeros((len(self.which), len(seen)), dtype=bool)
        # a start context that is hidden may be any
        alive = (start < 0)[:, np.newaxis] | (start[:, np.newaxis] == np.arange(len(side.far)))
        # a walk that stops has looked at all levels: what lies beyond the stop is then released
        looked = np.logical_and.accumulate([one >= 0 for one in reversed(seen)])[::-1] | whole
        for number, stop in enumerate(side.stop):
            low, high = (thresholds(one[far, :, seen[number]]) for one in _extremes(stop))
            stops, goes_on = high > 0, low != ALWAYS
            if coins is not None:
                drawn = self._draws(coins, number)[:, np.newaxis]
                stops, goes_on = (high == ALWAYS) | (drawn < high), goes_on & (drawn >= low)
            found[:, number] = np.any(alive & stops, axis=1) & looked[number] & ~blind
            alive &= goes_on
        unknown = records.counts.missing > 0 and records.original is None
        found[:, -1] = blind | alive.any(axis=1) | unknown
        return found

    def _draws(self, coins: Coins, level: int) -> Draws:
        """(w,) the coins of a level."""
        order, counter = self.case.clusters.cores.order, level + (self.direction == "right") * _SIDE
        return coins.draws(self.chain, order[self.which], _PURPOSE, counter)


def _extremes(stop: Floats) -> list[Floats]:
    """The least and the largest chance by far class, start and context, -1 standing for any."""
    found = []
    for extreme in (np.min, np.max):
        wide = np.concatenate((stop, extreme(stop, axis=2, keepdims=True)), axis=2)
        found.append(np.concatenate((wide, extreme(wide, axis=0, keepdims=True)), axis=0))
    return found


def walks_of(case: Case, direction: str) -> list[Walks]:
    """All walks to one side, by their rule."""
    return [
        Walks(case, some, _as_walk(side, case.rules.kind.order), direction)
        for side, which in case.clusters.by_rule(direction)
        for some in np.split(which, range(_TOGETHER, len(which), _TOGETHER))
    ]


def _as_walk(side: Side, order: int) -> Stops:
    """A window as a walk whose only level is its deadline."""
    if isinstance(side, Stops):
        return side
    contexts = side.redaction.shape[1] ** order
    far, stop = np.zeros(contexts, np.int64), np.zeros((0, 1, contexts, contexts))
    return Stops(order, np.array([side.reach + order]), far, stop)


def _check_walks(case: Case) -> tuple[Mask, Mask]:
    """(n,) which records must go, and which may; a problem where no stop leaves what shows."""
    records, clusters = case.records, case.clusters
    cores, exact = clusters.cores, case.coins is not None and records.original is not None
    inside = covered(records, cores.chain, cores.first, cores.last)
    records.hidden(inside, "a value beside a private one is released")
    left, right = (_most_redacted(case, name) for name in ("left", "right"))
    may = covered(records, cores.chain, cores.first - left, cores.last + right)
    # where stops are not known, cores alone are sure to have gone
    return (may if exact else inside), may


def _most_redacted(case: Case, name: str) -> Integers:
    """(c,) how many records to one side of clusters may have gone, by what the release shows."""
    records, clusters, order = case.records, case.clusters, case.rules.kind.order
    margin, faces = clusters.margins(records, name)
    other, back = ("right", 1) if name == "left" else ("left", -1)
    # a walk that stops beyond has looked at what the other one leaves: all of the gap goes (rule 5)
    apart = margin + order - np.roll(clusters.deadlines(other, order), back)
    apart = np.where(faces, apart, _ANYWHERE)
    empty, stops = nearest_shown(records, clusters, name), np.full(clusters.count, order)
    whole = empty >= margin
    limit = np.where(whole, _ANYWHERE, np.minimum(empty + order, apart))
    for walks in walks_of(case, name):
        which, levels = walks.which, walks.side.levels
        fits = walks.possible(whole[which]) & (levels <= limit[which, np.newaxis])
        latest = levels[len(levels) - 1 - fits[:, ::-1].argmax(axis=1)]
        stops[which] = np.where(fits.any(axis=1), latest, order)
        wrong = which[~fits.any(axis=1)]
        _check_stops(case, wrong, name)
    return np.where(whole & (stops > apart), margin, np.minimum(stops - order, margin))


def _check_stops(case: Case, wrong: Integers, name: str) -> None:
    clusters, records = case.clusters, case.records
    next_to = clusters.edges(name)[wrong] + (1 if name == "right" else -1)
    rows = np.maximum(records.row_at(clusters.cores.chain[wrong], next_to), 0)
    says = f"the walk to the {name} cannot have stopped where values are released"
    records.wrong(rows, says)


def nearest_shown(records: Records, clusters: Clusters, name: str) -> Integers:
    """(c,) how many records next to a cluster show nothing, at most as many as there are."""
    margin, _ = clusters.margins(records, name)
    shown = np.flatnonzero(records.shown)
    if not len(shown):
        return margin
    chain, edge = clusters.cores.chain, clusters.edges(name)
    row = records.row_from(chain, edge + (name == "right"))
    at = np.searchsorted(shown, row) - (name == "left")
    nearest = shown[np.clip(at, 0, len(shown) - 1)]
    there = (at >= 0) & (at < len(shown)) & (records.chains.chain_of[nearest] == chain)
    apart = np.abs(records.chains.places[nearest] - edge) - 1
    return np.where(there, np.minimum(apart, margin), margin)
