"""Text for people, and from them: columns that line up, words that follow a number, names."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from offrecord.errors import InputError


def aligned(rows: Sequence[Sequence[str]], *, right: bool = False) -> str:
    """Columns of text, the first on the left, the others on the left too or on the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        ]
        lines.append("  ".join([row[0].ljust(widths[0]), *padded[1:]]).rstrip())
    return "\n".join(lines)


def many(count: int, thing: str) -> str:
    """A number of things: 1 chain, 2,000 chains."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def odds(leakage: float) -> str:
    """A log-ratio as odds to 1."""
    return "infinitely many" if leakage > 700 else f"{math.exp(leakage):.4g}"


def printable(name: str, text: str) -> str:
    """A name a person gives, checked to be one line of printable text."""
    if (
        not isinstance(text, str)
        or not re.fullmatch(r"\S(.{0,198}\S)?", text)
        or not text.isprintable()
    ):
        raise InputError(f"{name} must be 1 to 200 printable characters, got {text!r}")
    return text
