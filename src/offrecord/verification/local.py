"""Cells by local rules: the largest threshold that any run lays on a record decides (F3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from offrecord.verification.agreement import Found
from offrecord.verification.coins import ALWAYS, Coins, Draws, thresholds
from offrecord.verification.members import Integers, Mask
from offrecord.verification.reading import Codes, Records
from offrecord.verification.rules import Local
from offrecord.verification.runs import Case, Clusters, covered

_PAIRS = 1 << 22  # pairs of a run and a record near it that are looked at together


@dataclass(frozen=True, eq=False)
class Limits:
    """sure: (n,) which records any value of which is redacted. rows: (u,) the others that some run
    may redact, sorted. limits: (u, k) their thresholds by value.
    """

    sure: Mask
    rows: Integers
    limits: Draws

    def of(self, codes: Codes) -> Draws:
        """(u,) the threshold of records with these values; the largest for one that is unknown."""
        own = np.take_along_axis(
            self.limits, np.maximum(codes, 0)[:, np.newaxis].astype(int), axis=1
        )[:, 0]
        return np.where(codes < 0, self.limits.max(axis=1), own)


def limits_of(records: Records, clusters: Clusters, k: int) -> Limits:
    """What all runs together ask of each record."""
    low, high = clusters.first.copy(), clusters.last.copy()
    parts: list[tuple[Integers, Draws]] = [(np.zeros(0, np.int64), np.zeros((0, k), np.uint64))]
    for direction, edge, sign in (("left", low, -1), ("right", high, 1)):
        for side, which in clusters.by_rule(direction):
            assert isinstance(side, Local)
            parts += _beside(records, clusters, which, side, sign)
            edge[which] += sign * certain(side)
    sure = covered(records, clusters.chain, low, high)
    rows, at = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    limits = np.zeros((len(rows), k), dtype=np.uint64)
    # one coin decides for all runs near a record: the largest threshold acts (F3)
    np.maximum.at(limits, at, np.concatenate([part[1] for part in parts]))
    kept = ~sure[rows]
    return Limits(sure, rows[kept], limits[kept])


def certain(side: Local) -> int:
    """How many of the nearest distances it redacts whatever the value."""
    return int(np.argmin(np.append((side.redaction == 1).all(axis=1), False)))


def _beside(
    records: Records, clusters: Clusters, which: Integers, side: Local, sign: int
) -> Iterator[tuple[Integers, Draws]]:
    """Rows beside some runs, beyond what is certain, and what one rule asks of each."""
    asked, near, reach = thresholds(side.redaction), certain(side), side.reach
    step = max(_PAIRS // max(reach - near, 1), 1)
    for at in range(0, len(which) if reach > near else 0, step):
        some = which[at : at + step]
        chain = clusters.chain[some]
        edge = (clusters.last if sign > 0 else clusters.first)[some]
        ends = np.sort(np.stack((edge + sign * (near + 1), edge + sign * reach)), axis=0)
        first, last = np.maximum(ends[0], 0), np.minimum(ends[1], records.ends[chain])
        low = records.row_from(chain, first)
        rows, of = _expanded(low, np.maximum(records.row_from(chain, last + 1), low))
        yield rows, asked[np.abs(records.places[rows] - edge[of]) - 1]


def _expanded(low: Integers, high: Integers) -> tuple[Integers, Integers]:
    """All numbers low[i] … high[i] − 1, one range after the other, and the i of each."""
    sizes = np.maximum(high - low, 0)
    of = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return low[of] + within, of


def redacted_exactly(case: Case, limits: Limits) -> Mask:
    """(n,) which records the rules redact, with the values before and the coins."""
    assert case.records.original is not None
    assert case.coins is not None
    found, codes = limits.sure.copy(), case.records.original[limits.rows]
    found[limits.rows] = _redacts(case.records, limits, case.coins, codes)
    return found


def _redacts(records: Records, limits: Limits, coins: Coins, codes: Codes) -> Mask:
    asked = limits.of(codes)
    drawn = coins.draws(records.chain_of[limits.rows], records.order[limits.rows])
    return np.asarray((asked == ALWAYS) | (drawn < asked))


def check_local(case: Case, limits: Limits, found: Found) -> None:
    """Cells without the values before: what shows may show, what is empty may be."""
    records, coins = case.records, case.coins
    rows, shown = limits.rows, records.codes >= 0
    always = shown & limits.sure
    always[rows] |= shown[rows] & (limits.of(records.codes[rows]) == ALWAYS)
    says = "a value is released that the rules always redact"
    found.wrong_at(records.named(np.flatnonzero(always)), int(always.sum()), says)
    may = limits.sure.copy()
    may[rows] = limits.limits.max(axis=1) > 0
    if coins is not None:
        drawn = _redacts(records, limits, coins, records.codes[rows])
        against = shown[rows] & drawn & ~always[rows]
        says = "a value is released although its coin redacts it"
        found.wrong_at(records.named(rows[against]), int(against.sum()), says)
        may[rows] = drawn
        found.checked.append(f"Coins of {len(rows):,} records near private ones, drawn anew.")
    check_empty(case, may, found)


def check_empty(case: Case, may: Mask, found: Found) -> None:
    """A problem where more rows are empty without a reason than had no value."""
    rows = np.flatnonzero((case.records.codes < 0) & ~may & ~case.waits)
    if len(rows) > case.missing:
        said = f"empty without a reason, as {len(rows):,} rows are; {case.missing:,} had no value"
        found.wrong_at(case.records.named(rows), len(rows), said)
