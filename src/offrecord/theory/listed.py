"""Private records as a person lists them: 3,7 or 10-12."""

from __future__ import annotations

from offrecord.errors import InputError

MAX_PRIVATE = 1_000_000


def listed_records(text: str, n: int) -> list[int]:
    """The records of a list, counted from 1; InputError for anything else."""
    positions: list[int] = []
    for part in map(str.strip, text.split(",")):
        low, high = _range(part)
        if high < low or high - low >= n:
            raise InputError(f"--private must be ranges within 1 to {n}, got {part!r}")
        if len(positions) + high - low >= MAX_PRIVATE:
            raise InputError(
                f"--private must name at most {MAX_PRIVATE} records, got {part!r} and"
                f" {len(positions)} more"
            )
        positions.extend(range(low, high + 1))
    return positions


def _range(part: str) -> tuple[int, int]:
    """The first and the last record of 7 or 10-12."""
    first, dash, last = part.partition("-")
    try:
        low = int(first)
        return low, int(last) if dash else low
    except ValueError:
        raise InputError(f"--private must be records such as 3,7 or 10-12, got {part!r}") from None
