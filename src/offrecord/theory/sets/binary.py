"""Two values, kernels free by step in a box: one walk towards the secret is exact (R1, R4).

With h(x) = Pr(all that is seen beyond this record | X_t = x), the walk keeps the hull of the ratio
h(1)/h(0) over all outputs and all kernels at once, docs/proofs/R1-two-values.md. ρ is that ratio
with the record itself:

    value 0 may be released: ρ = 0      value 1 may be released: ρ = ∞
    redacted:                ρ = h(1)/h(0)·q1/q0

and a step of the kernel takes it to m(ρ) = (P10 + P11·ρ) / (P00 + P01·ρ). Rows of the kernel are
free of each other, and in each the larger ρ is than 1 the more P·1 counts: so the largest m(ρ) is
at the sticky corner (both off-diagonal entries least) if ρ ≥ 1, else at the opposite one, and the
smallest the other way round. A box of which no kernel has α + β above 1 is rising: so is every
m(ρ), and each end of the hull comes from the end before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offrecord.models.base import Floats, Integers
from offrecord.theory._compiling import compiled, inlined
from offrecord.theory._walk import _four, _power, _worth_walking, visited

_UNIT = 2.0**-53
#: Units that a step may add to the logarithm of a ratio, in R1 and in R4 (docs/proofs/rounding.md).
_STEP, _ODDS_STEP = 10.0, 16.0
_JUMP = 8  # stretches of always-redacted records longer than this are crossed by a matrix power
_LONGEST = 2_000_000  # records of a stretch that is walked one by one
_NEAR, _FURTHER = 64, 16  # stretches that are looked at first, and how many times more then
#: Ratios that are kept as they are, so that no digits are lost; beyond, they are rounded outwards.
_LEAST, _MOST = 1e-150, 1e150
#: R4 divides by probabilities of this size at least.
_LEAST_DIVISOR = 1e-50
#: Odds of value 1: none are given, all steps lead away from the secret.
_NO_ODDS = (-1.0, -1.0)


def leakage(
    low: Floats, high: Floats, odds: tuple[float, float] | None, walked: Any
) -> tuple[Floats, Integers, Integers, float]:
    """Directional leakage over a box, and where it is met; `walked` as in `theory._walk`.

    low, high: (1, 2, 2) or one for each step of the walk. odds: None where the kernels lead away
    from the secret; for a left side of which kernels are known forwards alone, the least and the
    largest odds of value 1 of its records (R4).
    """
    sticky, fast = corners(low, high)
    met, steps = _walk_in.over(visited(walked), sticky, fast, odds or _NO_ODDS, walked)
    worst = np.zeros((2, 2))
    distance, value = np.zeros((2, 2), dtype=np.int64), np.full((2, 2), -1, dtype=np.int64)
    least, least_at, least_value, most, most_at, most_value = met
    with np.errstate(divide="ignore"):
        worst[1, 0], worst[0, 1] = max(np.log(most), 0.0), max(-np.log(least), 0.0)
    distance[1, 0], distance[0, 1] = most_at, least_at
    value[1, 0], value[0, 1] = most_value, least_value
    # one step more for the logarithm, as long as there is anything to be off
    charged = step_rounding(sticky, fast, odds) * (steps + 1) if steps else 0.0
    return worst, distance, value, float(charged)


def windows(
    count: int, low: Floats, high: Floats, odds: tuple[float, float] | None = None
) -> Floats:
    """(count, 2, 2) directional leakage if a side's first d − 1 records are always redacted and its
    d-th never: entry d − 1.
    """
    both = corners(low, high)
    hulls = _hulls_from(count, *both, odds, (0.0, np.inf))
    out = np.zeros((count, 2, 2))
    with np.errstate(divide="ignore"):
        out[:, 1, 0] = np.maximum(np.log(hulls[:, 1]), 0.0)
        out[:, 0, 1] = np.maximum(-np.log(hulls[:, 0]), 0.0)
    charged = step_rounding(*both, odds) * np.arange(2, count + 2)
    return out + charged[:, np.newaxis, np.newaxis] * (out > 0)


def influences(
    count: int, low: Floats, high: Floats, odds: tuple[float, float] | None = None
) -> Floats:
    """(count, 2) the largest log-ratio if a side's first d − 1 records are always redacted and the
    d-th shows a value: entry d − 1.
    """
    both = corners(low, high)
    columns = []
    for seen in (0.0, np.inf):
        hulls = _hulls_from(count, *both, odds, (seen, seen))
        with np.errstate(divide="ignore"):
            columns.append(np.abs(np.log(hulls)).max(axis=1))
    charged = step_rounding(*both, odds) * np.arange(2, count + 2)
    return np.asarray(np.stack(columns, axis=1) + charged[:, np.newaxis])


def _hulls_from(
    count: int,
    sticky: Floats,
    fast: Floats,
    odds: tuple[float, float] | None,
    seen: tuple[float, float],
) -> Floats:
    steps = count if len(sticky) == 1 else count * count
    return np.asarray(_hulls.over(steps, count, sticky, fast, odds or _NO_ODDS, *seen))


def step_rounding(sticky: Floats, fast: Floats, odds: tuple[float, float] | None) -> float:
    """What a step may take from the logarithm of a ratio (docs/proofs/rounding.md).

    Away from the secret: its arithmetic, and by how much rows of the corners miss the sum of 1, in
    numerator and denominator. With odds every entry is rounded to its own safe side.
    """
    if odds is not None:
        return _ODDS_STEP * _UNIT
    missed = max(float(np.abs(one.sum(axis=-1) - 1.0).max()) for one in (sticky, fast))
    return _STEP * _UNIT + 2.0 * missed


def corners(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The two corners that count, (…, 2, 2): values stay as long as can be, or change as soon."""
    off = np.array([[False, True], [True, False]])
    sticky, fast = np.where(off, low, high), np.where(off, high, low)
    return np.ascontiguousarray(sticky), np.ascontiguousarray(fast)


# ---- compiled


# A kernel is four numbers here, (P00, P01, P10, P11).


@inlined
def _ratio(above: float, below: float) -> Any:
    """above/below, ∞ if only the second is 0; 0/0, which no output has, is told before."""
    if below == 0.0:
        return np.inf
    return above / below


@inlined
def _seen_through(kernel: Any, rho: float) -> Any:
    """Numerator and denominator of m(ρ)."""
    if rho == np.inf:
        return kernel[3], kernel[1]
    return kernel[2] + kernel[3] * rho, kernel[0] + kernel[1] * rho


@compiled
def _with_odds(kernel: Any, rho: float, odds: float) -> Any:
    """R4: what ρ at the earlier record comes to at the later one, whose kernel leads to it."""
    one, zero = kernel[3] / kernel[1], kernel[2] / kernel[0]
    if rho == np.inf:
        if odds == np.inf:
            return np.inf if zero == 0.0 else 0.0 if one == 0.0 else 1.0
        return one / zero * (1.0 + zero * odds) / (1.0 + one * odds)
    if odds == np.inf:
        # what is left of each factor as the odds grow: ρ, and 1/ρ
        above = rho if one > 0.0 else 1.0
        below = rho if zero > 0.0 else 1.0
        return zero / one if rho == 0.0 else above / below
    return ((1.0 + one * odds * rho) / (1.0 + one * odds)) * (
        (1.0 + zero * odds) / (1.0 + zero * odds * rho)
    )


@compiled
def _extreme_odds(kernel: Any, rho: float, odds: Any, largest: bool) -> Any:
    """The largest (or smallest) over the odds that the earlier record may have; unimodal in them,
    with its extreme where their product with κ1·κ0·ρ is that of their inverse.
    """
    least, most = odds
    found = _with_odds(kernel, rho, least)
    other = _with_odds(kernel, rho, most)
    if (other > found) == largest:
        found = other
    if 0.0 < rho < np.inf and kernel[2] > 0.0 and kernel[3] > 0.0:
        product = kernel[3] / kernel[1] * (kernel[2] / kernel[0])
        inner = min(max(1.0 / np.sqrt(product * rho), least), most)
        other = _with_odds(kernel, rho, inner)
        if (other > found) == largest:
            found = other
    return found


@inlined
def _lowest(sticky: Any, fast: Any, rho: float, odds: Any) -> Any:
    """The smallest that one ρ may come to; 1 if no kernel allows it."""
    kernel, other = (fast, sticky) if rho >= 1.0 else (sticky, fast)
    if odds[0] >= 0.0:
        if kernel[1] < _LEAST_DIVISOR or kernel[0] < _LEAST_DIVISOR:
            return 0.0
        return _extreme_odds(kernel, rho, odds, False)
    above, below = _seen_through(kernel, rho)
    if below == 0.0 and _seen_through(other, rho)[0] == 0.0:
        return 1.0
    return _ratio(above, below)


@inlined
def _highest(sticky: Any, fast: Any, rho: float, odds: Any) -> Any:
    """The largest that one ρ may come to; 0 if no kernel allows it."""
    kernel = sticky if rho >= 1.0 else fast
    if odds[0] >= 0.0:
        if kernel[1] < _LEAST_DIVISOR or kernel[0] < _LEAST_DIVISOR:
            return np.inf
        return _extreme_odds(kernel, rho, odds, True)
    above, below = _seen_through(kernel, rho)
    return 0.0 if above == 0.0 else _ratio(above, below)


@compiled
def _hulls(count: int, sticky: Any, fast: Any, odds: Any, low: float, high: float) -> Any:
    """(count, 2) the hull of the ratio at the secret, with [low, high] seen at each distance."""
    out = np.empty((count, 2))
    alike = sticky.shape[0] == 1
    a, b = low, high
    for d in range(count):
        if alike:
            a, b = _image(_four(sticky[0]), _four(fast[0]), a, b, odds)
        else:
            a, b = low, high
            for back in range(d, -1, -1):
                a, b = _image(_four(sticky[back]), _four(fast[back]), a, b, odds)
        out[d, 0], out[d, 1] = a, b
    return out


@inlined
def _image(sticky: Any, fast: Any, a: float, b: float, odds: Any) -> Any:
    """The hull of what [a, b] comes to in one step: monotone in ρ, so from its ends."""
    return (
        min(_lowest(sticky, fast, a, odds), _lowest(sticky, fast, b, odds)),
        max(_highest(sticky, fast, a, odds), _highest(sticky, fast, b, odds)),
    )


@compiled
def _walk_in(sticky: Any, fast: Any, odds: Any, walked: Any) -> Any:
    """The hull of h(1)/h(0) at the secret, with where its ends are met, and how many steps it took.

    It begins at the nearest record that may release both values, beyond which nothing matters; or
    so near that what lies beyond, be it nothing or everything, comes to the same number.
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
    rising = _is_rising(sticky, fast)
    positive = min(np.min(sticky), np.min(fast)) >= _LEAST
    kind = rising, rising and positive and sticky.shape[0] == 1 and odds[0] < 0.0
    near = _NEAR
    while near * _FURTHER <= begin:
        nothing = (1.0, 0, -1, 1.0, 0, -1)
        everything = (0.0, 0, -2, np.inf, 0, -2)
        least, _ = _from_run(sticky, fast, kind, odds, walked, near, nothing)
        most, steps = _from_run(sticky, fast, kind, odds, walked, near, everything)
        if least[0] == most[0] and least[3] == most[3]:
            return most, steps
        near *= _FURTHER
    met = (1.0, start, -1, 1.0, start, -1)
    first = 0
    if begin < count or opens:
        met = (0.0, start + 1, 0, np.inf, start + 1, 1)
        met = _one_step(sticky, fast, rising, met, start + 1, odds)
        first = 1
    met, steps = _from_run(sticky, fast, kind, odds, walked, begin, met)
    return met, steps + first


@compiled
def _from_run(
    sticky: Any, fast: Any, kind: Any, odds: Any, walked: Any, runs: int, met: Any
) -> Any:
    """Over the nearest `runs` stretches, towards the secret; met: what lies beyond them."""
    rows, lengths, index, step, _, _ = walked
    steps = 0
    for run in range(runs):
        steps += lengths[index + step * run]
    distance = steps
    for run in range(runs - 1, -1, -1):
        at = index + step * run
        stretch = rows[at, 0], rows[at, 1], lengths[at]
        met = _through(sticky, fast, kind, stretch, distance, met, odds)
        distance -= lengths[at]
    return met, steps


@inlined
def _through(
    sticky: Any, fast: Any, kind: Any, stretch: Any, last: int, met: Any, odds: Any
) -> Any:
    """Over a stretch of equal records, towards the secret; last: the distance of its far end.

    kind: whether the box is rising, and whether powers of its corners serve.
    """
    (rising, jumps), (zero, one, length) = kind, stretch
    alike = sticky.shape[0] == 1
    always = zero == 1.0 and one == 1.0
    if jumps and always and length > _JUMP:
        return _across(sticky[0], fast[0], length, met)
    nearest, distance = last - length + 1, last
    while distance >= nearest:
        before = met
        met = _at_record(zero, one, distance, met)
        met = _one_step(sticky, fast, rising, met, distance, odds)
        if alike and met[0] == before[0] and met[3] == before[3]:
            # the hull stays as it is: only where its ends are met is still to be told, from the
            # last few records, an even number further on if the ends change places
            distance -= 2 * max((distance - nearest) // 2 - 1, 0)
        elif last - distance > _LONGEST:
            # a hull that lies within the one before it always will
            if alike and before[0] <= met[0] and met[3] <= before[3]:
                return met
            return 0.0, distance, -1, np.inf, distance, -1
        distance -= 1
    return met


@compiled
def _is_rising(sticky: Any, fast: Any) -> bool:
    """No kernel of the box has α + β above 1, so every m(ρ) rises with ρ.

    Whatever its kernels are: P00 is at least fast00, P10 at most fast10, and so on.
    """
    for number in range(fast.shape[0]):
        kernel = _four(fast[number])
        if kernel[0] < kernel[2] or kernel[3] < kernel[1]:
            return False
    return True


@compiled
def _across(sticky: Any, fast: Any, length: int, met: Any) -> Any:
    """Over always-redacted records of a rising box: each end keeps to its side of 1, and meets one
    corner all the way.
    """
    low, low_at, low_value, high, high_at, high_value = met
    above, below = _seen_through(_four(_power(sticky if low <= 1.0 else fast, length)), low)
    low = above / below
    above, below = _seen_through(_four(_power(sticky if high >= 1.0 else fast, length)), high)
    return low, low_at, low_value, above / below, high_at, high_value


@inlined
def _at_record(zero: float, one: float, distance: int, met: Any) -> Any:
    """The hull of ρ at a record: what it may release, or the ratio beyond it if redacted."""
    low, low_at, low_value, high, high_at, high_value = met
    if zero == 1.0 and one == 1.0:
        return met
    if zero > 0.0 and one > 0.0:
        low, high = _scaled_low(low, one / zero), _scaled_high(high, one / zero)
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


@inlined
def _scaled_low(low: float, factor: float) -> Any:
    """low·factor, or less where a number cannot hold it; the factor may be infinite."""
    low = low * factor if low > 0.0 else 0.0
    return 0.0 if low < _LEAST else min(low, _MOST)


@inlined
def _scaled_high(high: float, factor: float) -> Any:
    """high·factor, or more where a number cannot hold it."""
    high = high * factor if high > 0.0 else 0.0
    return np.inf if high > _MOST else max(high, _LEAST)


@inlined
def _one_step(sticky: Any, fast: Any, rising: bool, met: Any, distance: int, odds: Any) -> Any:
    """The hull after the kernel of the step that leads to a record at a distance."""
    low, low_at, low_value, high, high_at, high_value = met
    number = 0 if sticky.shape[0] == 1 else distance - 1
    slow, quick = _four(sticky[number]), _four(fast[number])
    least, most = _lowest(slow, quick, low, odds), _highest(slow, quick, high, odds)
    if rising:
        return least, low_at, low_value, most, high_at, high_value
    other_least, other_most = _lowest(slow, quick, high, odds), _highest(slow, quick, low, odds)
    met_low, met_high = (least, low_at, low_value), (most, high_at, high_value)
    if other_least < least:
        met_low = (other_least, high_at, high_value)
    if other_most > most:
        met_high = (other_most, low_at, low_value)
    return met_low[0], met_low[1], met_low[2], met_high[0], met_high[1], met_high[2]
