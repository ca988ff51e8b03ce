"""Probabilities learned from counts: as they are published, and how sure they are."""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
from numpy.typing import ArrayLike

from offrecord.fitting.counting import Counts
from offrecord.models.base import Floats
from offrecord.models.published_rounding import rounded_row


def rounded_shares(counts: Counts) -> Floats:
    """Distributions over the last axis: counts plus one half, as shares, rounded as published."""
    k = counts.shape[-1]
    exact = Context(prec=60)
    rows = [
        rounded_row(
            [exact.divide(Decimal(2 * count + 1), Decimal(2 * sum(seen) + k)) for count in seen]
        )
        for seen in counts.reshape(-1, k).tolist()
    ]
    return np.array(rows).reshape(counts.shape)


def wilson(counts: ArrayLike, totals: ArrayLike) -> Floats:
    """95 % Wilson intervals of shares, lower and upper in a last axis of 2.

    From 0 to 1 where nothing was seen.
    """
    from scipy.special import ndtri

    seen, total = np.broadcast_arrays(
        np.asarray(counts, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    )
    square = float(ndtri(0.975)) ** 2
    centre = (seen + square / 2) / (total + square)
    variance = seen * (1 - seen / np.maximum(total, 1)) + square / 4
    spread = np.sqrt(square) / (total + square) * np.sqrt(variance)
    # an interval that ends at 0 or 1 ends exactly there, not off by rounding
    lower = np.where(seen == 0, 0.0, np.maximum(centre - spread, 0.0))
    upper = np.where(seen == total, 1.0, np.minimum(centre + spread, 1.0))
    return np.stack([lower, upper], axis=-1)
