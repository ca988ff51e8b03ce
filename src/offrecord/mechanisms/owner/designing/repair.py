"""From aims to thresholds: clipped outcome by outcome and rounded, so that what acts keeps within
the budget whatever a solver left.
"""

from __future__ import annotations

import numpy as np

from offrecord.mechanisms.owner.designing.pinned import Pinned
from offrecord.models.base import Floats
from offrecord.release.coins import ALWAYS, Draws

#: Left of every budget: for rounding here, and of values that are drawn (docs/proofs/O-referee.md).
MARGIN = 1e-9
LEAST_SHARE = 2.0**-30  # below, a multiple of 2⁻⁶⁴ is too coarse
WINDOWS = (0.0, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0)


def repaired(side: Pinned, aims: Floats, budget: float, most: float = 1.0) -> Draws | None:
    """(l, m − 1, k, k, 1 or k) thresholds of stopping, as near to the aims (l, m − 1, k, k, 1 or k)
    of all far values as the budget allows.

    What clipping leaves over arrives at the deadline and may spoil its ratio; so a share of the
    plain window is mixed in, at most so much, whose slack there absorbs it. None if that does not
    keep within the budget; with all of the window, if it does not by itself.
    """
    factor = np.exp(budget - MARGIN)
    limits, far = np.zeros(aims.shape, dtype=np.uint64), np.arange(side.k)
    for window in WINDOWS:
        if window > most:
            break
        limits[far], arrived = _clipped(side, (1.0 - window) * aims[far], factor)
        ends = arrived[np.arange(len(far)), :, far][:, side.way.possible]
        far = far[~(ends.max(axis=1) <= factor * ends.min(axis=1))]
        if not len(far):
            return limits
    return None


def _clipped(side: Pinned, aims: Floats, factor: float) -> tuple[Draws, Floats]:
    """Thresholds, and what arrives at the deadline (l, x, i)."""
    limits = np.zeros(aims.shape, dtype=np.uint64)
    reached = np.repeat(side.free[:1], len(aims), axis=0)
    possible = side.way.possible
    for level in range(aims.shape[1]):
        here = reached[..., np.newaxis]
        masses = np.minimum(aims[:, level], here)
        masses = np.minimum(masses, factor * masses[:, possible].min(axis=1, keepdims=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(here > 0, masses / here, 0.0)
        used = np.all(shares[:, possible] >= LEAST_SHARE, axis=1, keepdims=True)
        used = used & possible[:, np.newaxis, np.newaxis]
        limits[:, level] = thresholds(np.where(used, np.minimum(shares, 1.0), 0.0))
        reached = going_on(reached, limits[:, level], side.jumps[level + 1])
    return limits, reached


def thresholds(shares: Floats) -> Draws:
    """Multiples of 2⁻⁶⁴, rounded down; ALWAYS for 1."""
    certain = shares >= 1.0
    scaled = np.floor(np.where(certain, 0.0, shares) * 2.0**64)
    return np.where(certain, ALWAYS, scaled.astype(np.uint64))


def kept_shares(limits: Draws) -> Floats:
    """What thresholds do not stop, as accurate as a float."""
    rest = (ALWAYS - limits).astype(np.float64) + 1.0  # exact in its first 53 bits
    return np.where(limits == ALWAYS, 0.0, rest * 2.0**-64)


def stopped_shares(limits: Draws) -> Floats:
    """What thresholds stop."""
    return np.where(limits == ALWAYS, 1.0, limits.astype(np.float64) * 2.0**-64)


def going_on(reached: Floats, limits: Draws, jump: Floats) -> Floats:
    """(…, x, j) at the next level, of what thresholds (…, x, i, 1 or j) let go on."""
    return moved_on(reached, kept_shares(limits), jump)


def moved_on(reached: Floats, kept: Floats, jump: Floats) -> Floats:
    """(…, x, j) at the next level, of shares (…, x, i, 1 or j) that go on."""
    if kept.shape[-1] == 1:
        return np.asarray((reached * kept[..., 0]) @ jump)
    return np.asarray((reached[..., np.newaxis] * kept * jump).sum(axis=-2))
