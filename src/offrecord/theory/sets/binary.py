"""Two values, kernels free by step in a box: one walk towards the secret is exact (R1, R4).

With h(x) = Pr(all that is seen beyond this record | X_t = x), the walk keeps the hull of the ratio
h(1)/h(0) over all outputs and all kernels at once, docs/proofs/R1-two-values.md. ρ is that ratio
with the record itself:

    value 0 may be released: ρ = 0      value 1 may be released: ρ = ∞
    redacted:                ρ = h(1)/h(0)·q1/q0

and a step of the kernel takes it to m(ρ) = (P10 + P11·ρ) / (P00 + P01·ρ). Rows of the kernel are
free of each other, and in each the larger ρ is than 1 the more P·1 counts: so the largest m(ρ) is
at the sticky corner (both off-diagonal entries least) if ρ ≥ 1, else at the opposite one, and the
smallest the other way round.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offrecord.models.base import Floats, Integers
from offrecord.theory._walk import _power, _worth_walking, compiled

_UNIT = 2.0**-53
_STEP = 8.0  # units that a step may add to the logarithm of a ratio (R1)
_JUMP = 8  # stretches of always-redacted records longer than this are crossed by a matrix power
_LONGEST = 2_000_000  # records of a stretch that is walked one by one


def leakage(
    low: Floats, high: Floats, odds: tuple[float, float] | None, walked: Any
) -> tuple[Floats, Integers, Integers, float]:
    """Directional leakage over a box, and where it is met; `walked` as in `theory._walk`.

    low, high: (1, 2, 2) or one for each step of the walk. odds: None where the kernels lead away
    from the secret; for a left side of which kernels are known forwards alone, the least and the
    largest odds of value 1 of its records (R4).
    """
    sticky, fast = corners(low, high)
    met, steps = _walk_in(sticky, fast, *(odds or (-1.0, -1.0)), walked)
    worst = np.zeros((2, 2))
    distance, value = np.zeros((2, 2), dtype=np.int64), np.full((2, 2), -1, dtype=np.int64)
    least, least_at, least_value, most, most_at, most_value = met
    with np.errstate(divide="ignore"):
        worst[1, 0], worst[0, 1] = max(np.log(most), 0.0), max(-np.log(least), 0.0)
    distance[1, 0], distance[0, 1] = most_at, least_at
    value[1, 0], value[0, 1] = most_value, least_value
    return worst, distance, value, _STEP * _UNIT * steps


def windows(
    count: int, low: Floats, high: Floats, odds: tuple[float, float] | None = None
) -> Floats:
    """(count, 2, 2) directional leakage if a side's first d − 1 records are always redacted and its
    d-th never: entry d − 1.
    """
    hulls = _hulls(count, *corners(low, high), *(odds or (-1.0, -1.0)), 0.0, np.inf)
    out = np.zeros((count, 2, 2))
    with np.errstate(divide="ignore"):
        out[:, 1, 0] = np.maximum(np.log(hulls[:, 1]), 0.0)
        out[:, 0, 1] = np.maximum(-np.log(hulls[:, 0]), 0.0)
    return out + _charged(count)[:, np.newaxis, np.newaxis] * (out > 0)


def influences(
    count: int, low: Floats, high: Floats, odds: tuple[float, float] | None = None
) -> Floats:
    """(count, 2) the largest log-ratio if a side's first d − 1 records are always redacted and the
    d-th shows a value: entry d − 1.
    """
    both = corners(low, high)
    columns = []
    for seen in (0.0, np.inf):
        hulls = _hulls(count, *both, *(odds or (-1.0, -1.0)), seen, seen)
        with np.errstate(divide="ignore"):
            columns.append(np.abs(np.log(hulls)).max(axis=1))
    return np.stack(columns, axis=1) + _charged(count)[:, np.newaxis]


def _charged(count: int) -> Floats:
    """(count,) what rounding may have taken, at each distance."""
    return np.asarray(_STEP * _UNIT * np.arange(1, count + 1))


def corners(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The two corners that count, (…, 2, 2): values stay as long as can be, or change as soon."""
    off = np.array([[False, True], [True, False]])
    sticky, fast = np.where(off, low, high), np.where(off, high, low)
    return np.ascontiguousarray(sticky), np.ascontiguousarray(fast)


# ---- compiled


@compiled
def _ratio(above: float, below: float) -> Any:
    """above/below, ∞ if only the second is 0; 0/0, which no output has, is told before."""
    if below == 0.0:
        return np.inf
    return above / below


@compiled
def _seen_through(kernel: Any, rho: float) -> Any:
    """Numerator and denominator of m(ρ)."""
    if rho == np.inf:
        return kernel[1, 1], kernel[0, 1]
    return kernel[1, 0] + kernel[1, 1] * rho, kernel[0, 0] + kernel[0, 1] * rho


@compiled
def _with_odds(kernel: Any, rho: float, odds: float) -> Any:
    """R4: what ρ at the earlier record comes to at the later one, whose kernel leads to it."""
    one, zero = kernel[1, 1] / kernel[0, 1], kernel[1, 0] / kernel[0, 0]
    if rho == np.inf:
        if odds == np.inf:
            return 1.0
        return one / zero * (1.0 + zero * odds) / (1.0 + one * odds)
    if odds == np.inf:
        return zero / one if rho == 0.0 else 1.0
    return ((1.0 + one * odds * rho) / (1.0 + one * odds)) * (
        (1.0 + zero * odds) / (1.0 + zero * odds * rho)
    )


@compiled
def _extreme_odds(kernel: Any, rho: float, least: float, most: float, largest: bool) -> Any:
    """The largest (or smallest) over the odds that the earlier record may have; unimodal in them,
    with its extreme where their product with κ1·κ0·ρ is that of their inverse.
    """
    found = _with_odds(kernel, rho, least)
    other = _with_odds(kernel, rho, most)
    if (other > found) == largest:
        found = other
    if 0.0 < rho < np.inf and kernel[1, 0] > 0.0:
        product = kernel[1, 1] / kernel[0, 1] * (kernel[1, 0] / kernel[0, 0])
        inner = min(max(1.0 / np.sqrt(product * rho), least), most)
        other = _with_odds(kernel, rho, inner)
        if (other > found) == largest:
            found = other
    return found


@compiled
def _stepped(sticky: Any, fast: Any, rho: float, least: float, most: float) -> Any:
    """The smallest and largest that one ρ may come to; (1, 0) if no kernel allows it."""
    upper, lower = (sticky, fast) if rho >= 1.0 else (fast, sticky)
    if least >= 0.0:
        if upper[0, 1] == 0.0 or upper[0, 0] == 0.0 or lower[0, 1] == 0.0 or lower[0, 0] == 0.0:
            return 0.0, np.inf
        return (
            _extreme_odds(lower, rho, least, most, False),
            _extreme_odds(upper, rho, least, most, True),
        )
    above, below = _seen_through(upper, rho)
    above_less, below_more = _seen_through(lower, rho)
    if above == 0.0 and below_more == 0.0:
        return 1.0, 0.0
    return _ratio(above_less, below_more), 0.0 if above == 0.0 else _ratio(above, below)


@compiled
def _hulls(
    count: int, sticky: Any, fast: Any, least: float, most: float, low: float, high: float
) -> Any:
    """(count, 2) the hull of the ratio at the secret, with [low, high] seen at each distance."""
    out = np.empty((count, 2))
    alike = sticky.shape[0] == 1
    a, b = low, high
    for d in range(count):
        if alike:
            a, b = _image(sticky[0], fast[0], a, b, least, most)
        else:
            a, b = low, high
            for back in range(d, -1, -1):
                a, b = _image(sticky[back], fast[back], a, b, least, most)
        out[d, 0], out[d, 1] = a, b
    return out


@compiled
def _image(sticky: Any, fast: Any, a: float, b: float, least: float, most: float) -> Any:
    """The hull of what [a, b] comes to in one step: monotone in ρ, so from its ends."""
    first_low, first_high = _stepped(sticky, fast, a, least, most)
    second_low, second_high = _stepped(sticky, fast, b, least, most)
    return min(first_low, second_low), max(first_high, second_high)


@compiled
def _walk_in(sticky: Any, fast: Any, least: float, most: float, walked: Any) -> Any:
    """The hull of h(1)/h(0) at the secret, with where its ends are met, and how many steps it took.

    It begins at the nearest record that may release both values, beyond which nothing matters.
    """
    rows, lengths, index, step, count, opens = walked
    count = _worth_walking(rows, index, step, count, opens)
    begin, start = count, 0
    for run in range(count):
        at = index + step * run
        if rows[at, 0] < 1.0 and rows[at, 1] < 1.0:
            begin = run
            break
        start += lengths[at]
    met = (1.0, start, -1, 1.0, start, -1)
    steps, distance = 0, start
    if begin < count or opens:
        distance += 1
        met = (0.0, distance, 0, np.inf, distance, 1)
        met = _one_step(sticky, fast, met, distance, least, most)
        distance -= 1
        steps = 1
    for run in range(begin - 1, -1, -1):
        at = index + step * run
        met = _through(sticky, fast, rows[at], lengths[at], distance, met, least, most)
        distance -= lengths[at]
        steps += lengths[at]
    return met, steps


@compiled
def _through(
    sticky: Any, fast: Any, row: Any, length: int, last: int, met: Any, least: float, most: float
) -> Any:
    """Over a stretch of equal records, towards the secret; last: the distance of its far end."""
    alike = sticky.shape[0] == 1
    always = row[0] == 1.0 and row[1] == 1.0
    if alike and always and least < 0.0 and length > _JUMP and _is_slow(sticky[0], fast[0]):
        return _across(sticky[0], fast[0], length, met)
    for distance in range(last, last - length, -1):
        before = met
        met = _at_record(row, distance, met)
        met = _one_step(sticky, fast, met, distance, least, most)
        # once the hull lies within that of the record before it always will: it may only shrink
        shrinks = before[0] <= met[0] and met[3] <= before[3]
        if alike and shrinks and met[0] == before[0] and met[3] == before[3]:
            return met
        if last - distance > _LONGEST:
            if shrinks:
                return met
            return 0.0, distance, -1, np.inf, distance, -1
    return met


@compiled
def _is_slow(sticky: Any, fast: Any) -> Any:
    """No kernel of the box has α + β above 1, so both ends of the hull keep to their side of 1."""
    return fast[0, 1] + fast[1, 0] <= 1.0 and np.min(fast) > 0.0 and np.min(sticky) > 0.0


@compiled
def _across(sticky: Any, fast: Any, length: int, met: Any) -> Any:
    """Over always-redacted records of a slow box: each end meets one corner all the way."""
    low, low_at, low_value, high, high_at, high_value = met
    above, below = _seen_through(_power(sticky if low <= 1.0 else fast, length), low)
    low = above / below
    above, below = _seen_through(_power(sticky if high >= 1.0 else fast, length), high)
    return low, low_at, low_value, above / below, high_at, high_value


@compiled
def _at_record(row: Any, distance: int, met: Any) -> Any:
    """The hull of ρ at a record: what it may release, or the ratio beyond it if redacted."""
    low, low_at, low_value, high, high_at, high_value = met
    zero, one = row[0], row[1]
    if zero > 0.0 and one > 0.0:
        factor = one / zero
        low = low * factor if low > 0.0 else 0.0  # a factor may be too large for a number
        high = high * factor if high > 0.0 else 0.0
    elif zero > 0.0:
        low, high = 0.0, 0.0
    elif one > 0.0:
        low, high = np.inf, np.inf
    else:
        low, high = np.inf, 0.0
    if zero < 1.0:
        low, low_at, low_value = 0.0, distance, 0
        if high <= 0.0:
            high, high_at, high_value = 0.0, distance, 0
    if one < 1.0:
        high, high_at, high_value = np.inf, distance, 1
        if low >= np.inf:
            low, low_at, low_value = np.inf, distance, 1
    return low, low_at, low_value, high, high_at, high_value


@compiled
def _one_step(sticky: Any, fast: Any, met: Any, distance: int, least: float, most: float) -> Any:
    """The hull after the kernel of the step that leads to a record at a distance."""
    low, low_at, low_value, high, high_at, high_value = met
    number = 0 if sticky.shape[0] == 1 else distance - 1
    first = _stepped(sticky[number], fast[number], low, least, most)
    second = _stepped(sticky[number], fast[number], high, least, most)
    met_low = (first[0], low_at, low_value)
    if second[0] < first[0]:
        met_low = (second[0], high_at, high_value)
    met_high = (second[1], high_at, high_value)
    if first[1] > second[1]:
        met_high = (first[1], low_at, low_value)
    return met_low[0], met_low[1], met_low[2], met_high[0], met_high[1], met_high[2]
