"""Text for people: columns that line up, and words that follow a number."""

from __future__ import annotations

import math
from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], *, right: bool = False) -> str:
    """Columns of text, the first on the left, the others on the left too or on the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        padded = [cell.rjust(width) if right else cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *padded[1:]]).rstrip())
    return "\n".join(lines)


def many(count: int, thing: str) -> str:
    """A number of things: 1 chain, 2,000 chains."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def odds(leakage: float) -> str:
    """A log-ratio as odds to 1."""
    return "infinitely many" if leakage > 700 else f"{math.exp(leakage):.4g}"
