"""Steps: how far records of a chain are apart, in numbers, in time that passes, or by the calendar.

Days and longer are those of the calendar in a zone: a day in which clocks are changed is one step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from offrecord.errors import InputError
from offrecord.verify.table.cells import DAY, Integers

_PASSING = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_PASSING |= {"m": 60 * 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_DAYS = {"d": 1, "w": 7}
_MONTHS = {"mo": 1, "y": 12}
_LONGEST = 2**62


@dataclass(frozen=True)
class Step:
    """kind: "number", "time", "days" or "months". size: how many of these, or nanoseconds."""

    kind: str
    size: int

    @classmethod
    def of(cls, text: str) -> Step:
        """As a certificate says it: 1h, 15m, 1d, 1mo, or a whole number."""
        found = re.fullmatch(r"(\d{1,16})([a-z]*)", text)
        if found is None or int(found[1]) == 0:
            raise InputError(f"columns.step {text!r} is no step")
        count, unit = int(found[1]), found[2]
        for kind, units in (("time", _PASSING), ("days", _DAYS), ("months", _MONTHS)):
            if unit in units:
                step = cls(kind, count * units[unit])
                if step.length < _LONGEST:
                    return step
        if unit:
            raise InputError(f"columns.step {text!r} is no step")
        return cls("number", count)

    @property
    def length(self) -> int:
        """In numbers or nanoseconds; on the calendar at least."""
        return self.size * {"number": 1, "time": 1, "days": DAY, "months": 28 * DAY}[self.kind]

    def counted(
        self, since: Integers, order: Integers, zone: str | None
    ) -> tuple[Integers, Integers]:
        """(n,) how many steps order values lie after others, and how far off these steps."""
        if self.kind == "months":
            return self._months(shown(since, zone), shown(order, zone))
        apart = order - since
        if self.length == 1:
            return apart, np.zeros_like(apart)
        steps = (apart + self.length // 2) // self.length
        off = np.abs(apart - steps * self.length)
        if self.kind == "days" and zone is not None and off.any():
            by_clock = shown(order, zone) - shown(since, zone)
            off = np.minimum(off, np.abs(by_clock - steps * self.length))
        return steps, off

    def _months(self, since: Integers, order: Integers) -> tuple[Integers, Integers]:
        guess = (_month(order) - _month(since)) // self.size
        steps, off = guess, np.abs(order - _later(since, guess * self.size))
        for other in (guess - 1, guess + 1, guess + 2):
            away = np.abs(order - _later(since, other * self.size))
            steps = np.where(away < off, other, steps)
            off = np.minimum(away, off)
        return steps, off

    def onward(self, since: Integers, steps: Integers, zone: str | None) -> Integers:
        """(n,) the order values so many steps after others."""
        if self.kind in ("number", "time"):
            return np.asarray(since + self.size * steps)
        here = shown(since, zone)
        by_clock = here + self.length * steps
        if self.kind == "months":
            by_clock = _later(here, self.size * steps)
        return np.where(steps == 0, since, instants(by_clock, zone))


def _month(times: Integers) -> Integers:
    return np.asarray(times.astype("datetime64[ns]").astype("datetime64[M]").astype(np.int64))


def _begin(month: Integers) -> Integers:
    return np.asarray(month.astype("datetime64[M]").astype("datetime64[ns]").astype(np.int64))


def _later(times: Integers, months: Integers) -> Integers:
    """The same day and time some months later, or the last day of that month."""
    month = _month(times)
    there = month + months
    days = (_begin(there + 1) - _begin(there)) // DAY
    into = times - _begin(month)
    return np.asarray(_begin(there) + np.minimum(into // DAY, days - 1) * DAY + into % DAY)


# ---- clocks


def _zoned(times: Integers, zone: str) -> pl.Series:
    try:
        return pl.Series(times).cast(pl.Datetime("ns", "UTC")).dt.convert_time_zone(zone)
    except Exception:
        raise InputError(f"{zone!r} is no time zone that is known here") from None


def shown(times: Integers, zone: str | None) -> Integers:
    """(n,) what clocks of a zone show, counted as if they stood in UTC."""
    if zone is None or zone == "UTC":
        return times
    return _zoned(times, zone).dt.replace_time_zone(None).to_physical().to_numpy()


def instants(by_clock: Integers, zone: str | None) -> Integers:
    """(n,) when clocks of a zone show these times; the first time if they do so twice, and what
    they jump to if they never do.
    """
    if zone is None or zone == "UTC":
        return by_clock
    bare = pl.Series(by_clock).cast(pl.Datetime("ns"))
    _zoned(by_clock[:1], zone)
    found: pl.Series | None = None
    for later in ("0m", "30m", "1h", "2h", "1d"):
        moved = bare.dt.offset_by(later)
        there = moved.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
        found = there if found is None else found.fill_null(there)
        if not found.null_count():
            break
    assert found is not None
    return found.dt.convert_time_zone("UTC").to_physical().to_numpy()


def phases_of(times: Integers, phase: str, zone: str | None) -> Integers:
    """(n,) hours from midnight, weekdays from Monday or months from January, from 0."""
    clocks = _zoned(times, zone or "UTC")
    if phase == "hour":
        return clocks.dt.hour().to_numpy().astype(np.int64)
    told = clocks.dt.weekday() if phase == "weekday" else clocks.dt.month()
    return told.to_numpy().astype(np.int64) - 1
