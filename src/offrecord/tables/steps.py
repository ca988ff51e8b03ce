"""Steps: how far one record is from the next, in numbers, in time, or on the calendar.

Days, weeks, months and years are those of the calendar, in the time zone of the order column: a day
in which clocks are changed is one step. Hours and less are counted in time that passes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models import clock
from offrecord.models.base import Integers

_MINUTE = 60 * 10**9
_EXACT = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": _MINUTE, "min": _MINUTE}
#: Units by the kind of step that they make: how many of what a step is counted in.
_UNITS = {
    "number": {"": 1},
    "time": _EXACT | {"h": clock.HOUR},
    "days": {"d": 1, "w": 7},
    "months": {"mo": 1, "y": 12},
}


@dataclass(frozen=True)
class Step:
    """The distance of one record from the next."""

    size: int  # in numbers, nanoseconds, days or months
    kind: str  # "number", "time", "days" or "months"
    text: str

    @classmethod
    def parsed(cls, text: str | int) -> Step:
        """1h, 15m, 1d, 1mo for times; a whole number for numbers."""
        found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", str(text))
        accepted = (
            "--step must be a whole number of at least 1, or a time such as 1h, 15m, 1d or 1mo"
        )
        if found is None or int(found[1]) == 0 or int(found[1]) > 10**15:
            raise InputError(f"{accepted}, got {text!r}")
        count, unit = int(found[1]), found[2]
        for kind, units in _UNITS.items():
            if unit in units:
                step = cls(count * units[unit], kind, f"{count}{unit}")
                if step.length >= 2**62:
                    raise InputError(f"{accepted}, got {text!r}, which is longer than times can be")
                return step
        known = ", ".join(unit for units in _UNITS.values() for unit in units if unit)
        raise InputError(f"{accepted} (units {known}), got {text!r}")

    @property
    def timed(self) -> bool:
        """It is a time."""
        return self.kind != "number"

    @property
    def length(self) -> int:
        """How long it is, in numbers or nanoseconds; for the calendar, at least so long."""
        unit = {"number": 1, "time": 1, "days": clock.DAY, "months": 28 * clock.DAY}[self.kind]
        return self.size * unit

    def thinning(self, column: str) -> str:
        """A line of Python that leaves the rows of a table that stand on whole steps."""
        cells = f'pl.col("{column}")'
        whole = f"{cells} % {self.size} == 0"
        if self.timed:  # polars calls a minute m
            whole = f'{cells} == {cells}.dt.truncate("{self.text.replace("min", "m")}")'
        return f"table.filter({whole})"

    def same(self, other: Step, zone: str | None) -> bool:
        """Both are as long: 60m is 1h, and 24h is 1d unless clocks may be changed in the zone."""
        apart = (self.kind, self.size) != (other.kind, other.size)
        plain = {self.kind, other.kind} <= {"time", "days"} and zone in (None, "UTC")
        return not apart or (plain and self.length == other.length)

    def counted(
        self, since: NDArray[Any], order: NDArray[Any], zone: str | None
    ) -> tuple[Integers, Integers]:
        """(n,) how many steps order values are from others, and how far off whole steps."""
        since, order = since.astype(np.int64), order.astype(np.int64)
        if self.kind == "months":
            return self._counted_months(clock.shown(since, zone), clock.shown(order, zone))
        apart = order - since
        steps = (apart + self.length // 2) // self.length
        off = np.abs(apart - steps * self.length)
        if self.kind == "days" and zone is not None:
            # as clocks show it, unless a calendar has skipped a day
            shown = clock.shown(order, zone) - clock.shown(since, zone)
            off = np.minimum(off, np.abs(shown - steps * self.length))
        return steps, off

    def _counted_months(self, since: Integers, order: Integers) -> tuple[Integers, Integers]:
        """The same on a calendar whose months differ: the nearest of a few guesses."""
        guess = (_month(order) - _month(since)) // self.size
        steps = np.stack([guess - 1, guess, guess + 1, guess + 2])
        off = np.abs(order - _months_later(since, steps * self.size))
        nearest = off.argmin(axis=0)[np.newaxis]
        return np.take_along_axis(steps, nearest, 0)[0], np.take_along_axis(off, nearest, 0)[0]

    def onward(self, order: NDArray[Any], steps: Integers, zone: str | None) -> Integers:
        """(n,) the order values so many steps after others."""
        order = order.astype(np.int64)
        if self.kind in ("number", "time"):
            return np.asarray(order + self.size * steps)
        here = clock.shown(order, zone)
        if self.kind == "days":
            there = here + self.length * steps
        else:
            there = _months_later(here, self.size * steps)
        # no step on, a time that clocks show twice is the one it is
        return np.where(steps == 0, order, clock.instants(there, zone))


def _month(times: Integers) -> Integers:
    return np.asarray(times.astype("datetime64[ns]").astype("datetime64[M]").astype(np.int64))


def _months_later(times: Integers, months: Integers) -> Integers:
    month = _month(times)
    into = times - _start(month)
    there = month + months
    days = (_start(there + 1) - _start(there)) // clock.DAY
    day = np.minimum(into // clock.DAY, days - 1)
    return np.asarray(_start(there) + day * clock.DAY + into % clock.DAY)


def _start(month: Integers) -> Integers:
    return np.asarray(month.astype("datetime64[M]").astype("datetime64[ns]").astype(np.int64))
