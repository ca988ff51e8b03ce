"""Tails of two distributions, as finite sums.

A release needs few of them, and importing scipy takes a tenth of a large one.
"""

from __future__ import annotations

import math

import numpy as np


def chi_square_tail(degrees: int, statistic: float) -> float:
    """Pr(chi-square ≥ statistic).

    A sum of half as many terms as there are degrees, and for an odd number erfc beside it.
    """
    if degrees == 0 or statistic <= 0:
        return 1.0
    half, odd = statistic / 2, degrees % 2
    powers = np.arange(degrees // 2) + odd / 2
    logs = [power * math.log(half) - half - math.lgamma(power + 1) for power in powers.tolist()]
    return min(float(np.exp(logs).sum()) + (math.erfc(math.sqrt(half)) if odd else 0.0), 1.0)


def binomial_tails(count: int, share: float, seen: int) -> tuple[float, float]:
    """Pr(X ≤ seen) and Pr(X ≥ seen) of a binomial of `count` trials; 0 < share < 1."""
    factorials = np.concatenate(([0.0], np.log(np.arange(1, count + 1)).cumsum()))
    at = np.arange(count + 1)
    logs = (
        factorials[-1]
        - factorials
        - factorials[::-1]
        + at * math.log(share)
        + (count - at) * math.log1p(-share)
    )
    masses = np.exp(logs)
    return min(float(masses[: seen + 1].sum()), 1.0), min(float(masses[seen:].sum()), 1.0)
