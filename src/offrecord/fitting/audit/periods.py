"""Looks for periods: neighbours by the phase of the secret, and records a period away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from offrecord.fitting.audit.looks import PERIOD, Look
from offrecord.fitting.audit.records import Records
from offrecord.models.base import Floats, Integers

LONGEST = 2048  #: steps of a period, at most
_CASES = 30  # of each value in each block of phases, at least
_RARE = 0.01  # share of the records below which a value need not be in every block
_LAGS = 3  # periods that are looked at
_LEAST_RISE = 0.05  # of the autocorrelation, to be called a period
_SURE = 8.0  # standard errors by which it rises: the largest of thousands of differences
_POSITIONS = 1 << 20  # of a series, at most
_VALUES = 6  # most frequent ones, whose indicators are correlated
_SHORT = 64  # records below which a chain shows no period


# ---- by phase


def by_phase(look: Look, name: str, phases: NDArray[np.integer], values: Integers) -> Look | None:
    """The nearest records on each side, apart by the phase of the secret: an attacker knows the
    time. phases: (n,) from 0. values: (n,) of the records.

    Neighbouring phases count together until each block has cases; None where none can be told.
    """
    count, k = int(phases.max()) + 1, int(values.max()) + 1
    seen = np.bincount(phases.astype(np.int64) * k + values, minlength=count * k).reshape(count, k)
    frequent = seen.sum(axis=0) >= _RARE * len(values)
    for width in range(1, count // 2 + 1):
        if count % width:
            continue
        blocks = seen.reshape(-1, width, k).sum(axis=1)
        if blocks[:, frequent].min() >= _CASES:
            groups = np.where(look.groups < 0, -1, phases // width).astype(np.int32)
            names = tuple(_block(name, first, width) for first in range(0, count, width))
            left, right = (np.ascontiguousarray(side[:, :1]) for side in (look.left, look.right))
            return replace(look, kind=name, left=left, right=right, groups=groups, names=names)
    return None


def _block(name: str, first: int, width: int) -> str:
    """A block of phases for people: hours from 0, weekdays and months from 1."""
    begin = first + (name != "hour")
    return f"{name} {begin}" if width == 1 else f"{name}s {begin} to {begin + width - 1}"


# ---- a period away


def at_lag(look: Look, records: Records, windows: Integers, lag: int) -> Look | None:
    """The records a period before and after; None where designs redact as far as that."""
    if windows.max() >= lag or windows.max() < 0:
        return None
    sides = []
    for distance in (-lag, lag):
        found = np.searchsorted(records.at, records.at + distance)
        found = np.minimum(found, len(records) - 1)
        there = records.at[found] == records.at + distance
        sides.append(np.where(there, found, -1).astype(np.int32)[:, np.newaxis])
    return replace(look, kind=PERIOD, left=sides[0], right=sides[1], names=(str(lag),))


def periods(records: Records) -> list[int]:
    """Steps after which values come again more often than they do a little earlier.

    Found where the autocorrelation rises clearly above what it has fallen to: a chain with one
    kernel only forgets.
    """
    found: list[int] = []
    correlation, error = autocorrelation(records)
    if len(correlation) < 4:
        return found
    rise = correlation - np.minimum.accumulate(correlation)
    highest = -np.inf
    for lag in np.flatnonzero(rise >= max(_LEAST_RISE, _SURE * error)).tolist():
        around = correlation[lag - lag // 4 - 1 : lag + lag // 4 + 2]
        # of multiples of a period, only those that show clearly more: a week after a day
        if correlation[lag] == around.max() and correlation[lag] > highest + _LEAST_RISE:
            found.append(lag)
            highest = correlation[lag]
    return found[:_LAGS]


def autocorrelation(records: Records, longest: int = LONGEST) -> tuple[Floats, float]:
    """How much likelier records `lag` steps apart agree than any two, from 1 (always) to 0, for
    lags from 0; and the standard error of one number of these if there is no period.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    at, codes = _series(records, longest)
    if not len(at):
        return np.zeros(0), 0.0
    size = next_fast_len(int(at[-1]) + 1 + longest, real=True)
    shares = np.bincount(codes) / len(codes)
    chosen = np.argsort(-shares)[:_VALUES]

    def correlated(rows: Integers) -> Floats:
        """(longest + 1,) how many of these records stand so far apart."""
        series = np.zeros(size, dtype=np.float32)
        series[rows] = 1.0
        power = np.abs(rfft(series)) ** 2
        return np.asarray(irfft(power, size)[: longest + 1])

    pairs = np.round(correlated(at))
    agreeing = sum((correlated(at[codes == value]) for value in chosen), np.zeros(longest + 1))
    enough = np.flatnonzero(pairs < len(at) / 2)  # beyond, too few records are so far apart
    end = int(enough[0]) if len(enough) else longest + 1
    by_chance = float((shares[chosen] ** 2).sum())
    spread = float(shares[chosen].sum()) - by_chance
    if end < 4 or spread <= 0:
        return np.zeros(0), 0.0
    correlation = (agreeing[:end] / pairs[:end] - by_chance) / spread
    fallen = int(np.argmax(correlation < 0.1)) or end
    error = float(np.sqrt((1 + 2 * (correlation[1:fallen] ** 2).sum()) / len(at)))
    return correlation, error


def _series(records: Records, longest: int) -> tuple[Integers, Integers]:
    """Positions and values of records of chains that are not short, gaps no longer than needed."""
    lengths = records.end - records.first
    kept = np.flatnonzero(lengths >= _SHORT)
    apart = np.minimum(np.diff(records.at[kept], prepend=0), longest + 1)
    at = np.cumsum(apart)
    kept = kept[at < _POSITIONS]
    return at[at < _POSITIONS], records.codes[kept].astype(np.int64)
