"""Clocks: what they show in a time zone, when they show a time, and hour, weekday or month.

Instants are nanoseconds since 1970, UTC. What a clock shows (wall time) is counted in the same way,
as if it stood in UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models.members import PLACE_COUNTS

if TYPE_CHECKING:
    import polars as pl

Nanoseconds = NDArray[np.int64]

HOUR = 3600 * 10**9
DAY = 24 * HOUR
#: How far apart records are that stand one phase apart.
STEPS = {"hour": "1h", "weekday": "1d", "month": "1mo"}


def shown(instants: Nanoseconds, zone: str | None) -> Nanoseconds:
    """(n,) what a clock in the zone shows at these instants; without a zone, just these."""
    if zone is None:
        return instants
    return np.asarray(_in_zone(instants, zone).dt.replace_time_zone(None).to_physical().to_numpy())


def instants(shown: Nanoseconds, zone: str | None) -> Nanoseconds:
    """(n,) when a clock in the zone shows these times.

    The first time if it does so twice, and what it jumps to if it never does.
    """
    import polars as pl

    if zone is None:
        return shown
    found = _placed(shown, zone)
    times = pl.Series("time", shown).cast(pl.Datetime("ns"))
    for skipped in ("30m", "1h", "2h", "1d"):  # by so much do clocks jump; by a day, calendars
        if found.null_count():
            later = times.dt.offset_by(skipped).to_physical().to_numpy()
            found = found.fill_null(_placed(later, zone))
    return np.asarray(found.dt.convert_time_zone("UTC").to_physical().to_numpy())


def _placed(times: Nanoseconds, zone: str) -> pl.Series:
    """When a clock in the zone first shows these times; null if never."""
    import polars as pl

    bare = pl.Series("time", np.asarray(times, dtype=np.int64)).cast(pl.Datetime("ns"))
    return bare.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")


def phase_count(phase: Any) -> int:
    """How many phases there are; InputError for a phase that is not known."""
    if not isinstance(phase, str) or phase not in PLACE_COUNTS:
        raise InputError(f"--phase must be one of {', '.join(PLACE_COUNTS)}, got {phase!r}")
    return PLACE_COUNTS[phase]


def phases_of(instants: Nanoseconds, phase: str, zone: str | None = None) -> NDArray[np.int8]:
    """(n,) the phase, from 0, that a clock in the zone shows at these instants."""
    phase_count(phase)
    times = _in_zone(instants, "UTC" if zone is None else zone)
    if phase == "hour":
        return times.dt.hour().to_numpy()
    return (times.dt.weekday() if phase == "weekday" else times.dt.month()).to_numpy() - np.int8(1)


def _in_zone(instants: Nanoseconds, zone: str) -> pl.Series:
    import polars as pl

    times = pl.Series("time", np.asarray(instants, dtype=np.int64)).cast(pl.Datetime("ns", "UTC"))
    try:
        return times.dt.convert_time_zone(zone)
    except Exception:
        raise InputError(
            f"zone must be the name of a time zone, such as Europe/Berlin, got {zone!r}"
        ) from None
