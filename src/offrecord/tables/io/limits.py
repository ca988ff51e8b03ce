"""Limits of what a table file may hold: beyond them it is taken for damage, or for an attack."""

from __future__ import annotations

from collections.abc import Mapping

from offrecord.errors import InputError

#: Limits by name, with what they count: rows of a table, its columns, bytes of a line or a quoted
#: cell, and bytes of a compressed file once it is unpacked.
LIMITS: dict[str, int] = {
    "rows": 200_000_000,
    "columns": 10_000,
    "line": 1 << 24,
    "unpacked": 1 << 28,
}
#: A compressed file may also unpack to so many times its own size, unless "unpacked" is given: text
#: tables come to 5 to 30 times, a bomb to 1000 times.
RATIO = 50


def limit(name: str, given: Mapping[str, int] | None) -> int:
    """A limit, as given or by default; InputError for a limit of another name."""
    given = given or {}
    for one in given:
        if one not in LIMITS:
            raise InputError(f"--limit takes {', '.join(LIMITS)}, got {one!r:.60}")
    return given.get(name, LIMITS[name])


def unpacked_limit(size: int, given: Mapping[str, int] | None) -> int:
    """How many bytes a compressed file of a size may unpack to."""
    usual = max(limit("unpacked", given), RATIO * size)
    return limit("unpacked", given) if given and "unpacked" in given else usual


def beyond(name: str, most: int, what: str) -> InputError:
    """The error of what goes beyond a limit. what: a sentence up to the number."""
    return InputError(f"{what} {most:,}; --limit {name}=NUMBER allows more")
