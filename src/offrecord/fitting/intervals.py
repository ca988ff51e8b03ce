"""Probabilities learned from counts: as they are published, and how sure they are."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import numpy as np
from numpy.typing import ArrayLike

from offrecord.fitting.counting import Counts
from offrecord.models.base import Floats
from offrecord.models.published_rounding import rounded_row

BOUND_DIGITS = 3  #: of the ends of an interval: one less than a probability has, so they tell less
# Inverses of the incomplete beta function are off by less than this, relatively.
_INVERSE_ERROR = 1e-9
# Log-likelihoods of a hundred million exits are off by less than this.
_LOG_ERROR = 1e-6
_HALVINGS = 60
_UP = Context(prec=BOUND_DIGITS, rounding=ROUND_CEILING)
_DOWN = Context(prec=BOUND_DIGITS, rounding=ROUND_FLOOR)
_EXACT = Context(prec=60)


def rounded_shares(counts: Counts) -> Floats:
    """Distributions over the last axis: counts plus one half, as shares, rounded as published."""
    k = counts.shape[-1]
    rows = [
        rounded_row(
            [_EXACT.divide(Decimal(2 * count + 1), Decimal(2 * sum(seen) + k)) for count in seen]
        )
        for seen in counts.reshape(-1, k).tolist()
    ]
    return np.array(rows).reshape(counts.shape)


# ---- intervals: the lower and the upper end in a last axis of 2


def clopper_pearson(
    counts: ArrayLike, totals: ArrayLike, low_error: ArrayLike, high_error: ArrayLike
) -> Floats:
    """Intervals of shares: the true one is below with probability at most low_error, and above with
    at most high_error, if totals are fixed beforehand. From 0 to 1 where nothing was seen.
    """
    seen, total = np.broadcast_arrays(
        np.asarray(counts, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    )
    return _both_ends(
        _least_binomial(seen, total, np.asarray(low_error)),
        _least_binomial(total - seen, total, np.asarray(high_error)),
    )


def mixture(counts: ArrayLike, totals: ArrayLike, error: ArrayLike) -> Floats:
    """Intervals of shares that miss the true one with probability at most `error`, however many
    exits of a Markov chain are counted and whatever decides when to stop.

    Where the exits were likelier by 1/error under a share drawn from Beta(½, ½) than under the
    share itself, it lies outside: that ratio is a nonnegative martingale (Ville).
    """
    seen, total, allowed = np.broadcast_arrays(
        np.asarray(counts, dtype=np.float64),
        np.asarray(totals, dtype=np.float64),
        np.asarray(error, dtype=np.float64),
    )
    return _both_ends(
        _least_mixture(seen, total, allowed), _least_mixture(total - seen, total, allowed)
    )


def _both_ends(low: Floats, low_of_others: Floats) -> Floats:
    """What is not one value is another: an upper end is what the others' lower end leaves of 1."""
    high = np.where(low_of_others > 0, np.nextafter(1.0 - low_of_others, 2.0), 1.0)
    return np.stack([low, np.minimum(high, 1.0)], axis=-1)


def _least_binomial(seen: Floats, total: Floats, error: Floats) -> Floats:
    """The share under which as many or more are seen with probability `error`; 0 for none."""
    from scipy.special import betaincinv

    some = np.maximum(seen, 1)
    least = betaincinv(some, np.maximum(total, 1) - some + 1, error)
    return np.where(seen > 0, least * (1 - _INVERSE_ERROR), 0.0)


def _least_mixture(seen: Floats, total: Floats, error: Floats) -> Floats:
    """The lower end of the mixture's interval, by halving logarithms; 0 for none seen."""
    from scipy.special import betaln, xlog1py

    some, of = np.maximum(seen, 1), np.maximum(total, 1)
    required = betaln(some + 0.5, of - some + 0.5) - betaln(0.5, 0.5) + np.log(error)
    required -= _LOG_ERROR + 1e-12 * np.abs(required)
    # The likelihood rises up to the share itself and is below share^seen, so this lies outside:
    outside, inside = required / some, np.log(some / of)
    for _ in range(_HALVINGS):
        middle = (outside + inside) / 2
        likelihood = some * middle + xlog1py(of - some, -np.exp(middle))
        is_inside = likelihood > required
        outside, inside = np.where(is_inside, outside, middle), np.where(is_inside, middle, inside)
    return np.where(seen > 0, np.exp(outside), 0.0)


# ---- as they are published


def rounded_outward(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Ends of intervals with BOUND_DIGITS significant digits, lower ones down and upper ones up.

    Above one half the digits are those of what an end leaves of 1: a value that nearly always
    stays has an upper end below 1, and the ends of a row of two values add up to 1.
    """
    return _shortened(low, _DOWN, _UP), _shortened(high, _UP, _DOWN)


def _shortened(ends: Floats, outward: Context, inward: Context) -> Floats:
    """Ends rounded outward; inward: the other direction, for what they leave of 1."""
    short = [
        float(outward.create_decimal(repr(end)))
        if end <= 1 / 2
        else float(1 - inward.create_decimal(repr(1.0 - end)))  # the difference is exact
        for end in ends.ravel().tolist()
    ]
    return np.array(short).reshape(ends.shape)
