"""Four digits: how much of a probability is ever published.

The rounded kernel is the model, in model files, certificates and reports alike. Rounding is no
protection: a kernel that was learned from the very records that were redacted mostly gives them
away with four digits too. Learn from others.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np

from offrecord.models.base import Floats

DIGITS = 4
_SHORT = Context(prec=DIGITS, rounding=ROUND_HALF_EVEN)
_EXACT = Context(prec=60)


def rounded_row(shares: Sequence[Decimal]) -> list[float]:
    """A distribution with DIGITS significant digits.

    The largest entry is what the others leave of 1, exactly in decimals.
    """
    short = [_SHORT.plus(share) for share in shares]
    largest = max(range(len(shares)), key=lambda i: shares[i])
    left = Decimal(1)
    for i, share in enumerate(short):
        if i != largest:
            left = _EXACT.subtract(left, share)
    short[largest] = left
    return [float(share) for share in short]


def rounded_distributions(distributions: Floats) -> Floats:
    """Distributions along the last axis with DIGITS significant digits, or as given if so short."""
    rows = distributions.reshape(-1, distributions.shape[-1]).tolist()
    shares = [[Decimal(repr(p)) for p in row] for row in rows]
    done = [
        row if _is_rounded(row, share) else rounded_row(share)
        for row, share in zip(rows, shares, strict=True)
    ]
    return np.array(done).reshape(distributions.shape)


def _is_rounded(row: list[float], shares: list[Decimal]) -> bool:
    """All but one have so many digits, and that one is what they leave of 1.

    Among equals it need not be the first.
    """
    long = [i for i, share in enumerate(shares) if _SHORT.plus(share) != share]
    if len(long) > 1:
        return False
    last = long[0] if long else row.index(max(row))
    return row[last] == float(1 - sum(share for i, share in enumerate(shares) if i != last))
