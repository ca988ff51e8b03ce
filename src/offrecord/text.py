"""Text for people: numbers with words, columns, near names; and the protocol of progress bars."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias, TypeVar

#: Called with the name of a step and the number of its items (None: unknown). It opens a context
#: with a function that counts how many more items are done.
Progress: TypeAlias = Callable[[str, "int | None"], AbstractContextManager[Callable[[int], None]]]

_NEAR = 0.7  # share of letters in common: "stat" is near "state", "date" is not

_T = TypeVar("_T")


def plain(text: str) -> str:
    """The text on one line: control characters, line ends and changes of direction as escapes."""
    # a terminal acts on these characters, so that data could hide or forge what a person reads
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def plain_lines(text: str) -> str:
    """The text with every character but its line ends as `plain` shows it."""
    return "\n".join(map(plain, text.split("\n")))


def aligned(rows: Sequence[Sequence[str]], *, right: bool = False) -> str:
    """Rows of plain cells as lines with aligned columns.

    right: align all but the first to the right.
    """
    rows = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    pad = str.rjust if right else str.ljust
    lines = []
    for first, *rest in rows:
        cells = [pad(cell, width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def many(count: int, thing: str) -> str:
    """A count with its noun: 1 chain, 2,000 chains."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def odds(leakage: float) -> str:
    """A log-ratio as odds to 1."""
    return "infinitely many" if leakage > 700 else f"{math.exp(leakage):.4g}"


def worst_odds(leakage: float) -> str:
    """The largest leakage of several chains, as verdicts and summaries have it."""
    return f"odds of at most {odds(max(leakage, 0.0))} to 1 in the worst"


def share_text(share: float) -> str:
    """A share in per cent; only an exact 0 or 1 reads as 0.00% or 100.00%."""
    # 0.004 % of a large table is not nothing
    inside = min(max(share, 0.0001), 0.9999)
    return f"{inside if 0 < share < 1 else share:.2%}"


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that a misspelt one may have meant; None if none is near."""
    found = difflib.get_close_matches(name, list(names), n=1, cutoff=_NEAR)
    return found[0] if found else None


@contextmanager
def unwatched(what: str, count: int | None) -> Iterator[Callable[[int], None]]:
    """Progress that is not shown."""
    yield lambda done: None


def followed(items: Sequence[_T], what: str, progress: Progress) -> Iterator[_T]:
    """The items one by one; each counts as done when the next one is asked for."""
    with progress(what, len(items)) as advance:
        for item in items:
            yield item
            advance(1)
