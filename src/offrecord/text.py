"""What people are told, and tell: columns that line up, words that follow a number, names, and how
far something is.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias, TypeVar

from offrecord.errors import InputError

#: Called with what is done and how many of it there are (None: unknown), for a function that is
#: told how many more are done.
Progress: TypeAlias = Callable[[str, "int | None"], AbstractContextManager[Callable[[int], None]]]

_NEAR = 0.7  # share of letters in common: "stat" is near "state", "date" is not

_T = TypeVar("_T")


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


def share_text(share: float) -> str:
    """A share in per cent, of which neither all nor nothing is said unless it is so."""
    inside = min(max(share, 0.0001), 0.9999)
    return f"{inside if 0 < share < 1 else share:.2%}"


def printable(name: str, text: str) -> str:
    """A name a person gives, checked to be one line of printable text."""
    if (
        not isinstance(text, str)
        or not re.fullmatch(r"\S(.{0,198}\S)?", text)
        or not text.isprintable()
    ):
        raise InputError(f"{name} must be 1 to 200 printable characters, got {text!r}")
    return text


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The one of some names that a person may have meant, if one is near."""
    found = difflib.get_close_matches(name, list(names), n=1, cutoff=_NEAR)
    return found[0] if found else None


@contextmanager
def unwatched(what: str, count: int | None) -> Iterator[Callable[[int], None]]:
    """Nobody looks."""
    yield lambda done: None


def followed(items: Sequence[_T], what: str, progress: Progress) -> Iterator[_T]:
    """The items one after the other, each told once it is done with."""
    with progress(what, len(items)) as tell:
        for item in items:
            yield item
            tell(1)


def listwise(through: Callable[[list[Any]], Iterable[Any]]) -> Progress:
    """What goes through a list and shows how far it is, such as tqdm, as one that is told."""

    @contextmanager
    def progress(what: str, count: int | None) -> Iterator[Callable[[int], None]]:
        steps = iter(through(list(range(count or 0))))
        next(steps, None)  # it shows an item as done when it is asked for the next

        def tell(done: int) -> None:
            for _ in range(done):
                next(steps, None)

        yield tell

    return progress
