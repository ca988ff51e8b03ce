"""What people are told, and tell: columns that line up, words that follow a number, names, and how
far something is.
"""

from __future__ import annotations

import difflib
import html as markup
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


# ---- in notebooks: no script, no colours of their own, everything escaped and of bounded size


def html_note(headline: str, *lines: str) -> str:
    """A headline, and lines below it."""
    said = "".join(f"<br>{_html(line, _PARAGRAPH)}" for line in lines)
    return f"<p><b>{_html(headline, _PARAGRAPH)}</b>{said}</p>"


def html_list(title: str, lines: Sequence[str]) -> str:
    """Lines under a title; nothing of none."""
    if not lines:
        return ""
    items = "".join(f"<li>{_html(line, _PARAGRAPH)}</li>" for line in _some(lines, _ROWS))
    return f"<p>{_html(title)}</p><ul>{items}</ul>"


def html_facts(facts: Iterable[tuple[str, str]]) -> str:
    """What is said about each of some names."""
    lines = "".join(
        f'<tr><th scope="row" style="{_LEFT}">{_html(name)}</th>'
        f'<td style="{_LEFT}">{_html(said, _PARAGRAPH)}</td></tr>'
        for name, said in facts
    )
    return f"{_TABLE}<tbody>{lines}</tbody></table>"


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells, the first of them a head, each led by its name on the left."""
    head, *body = ([*_some(row, _COLUMNS)] for row in rows)
    cells = "".join(_cell("th", cell, at) for at, cell in enumerate(head))
    lines = (
        "<tr>" + "".join(_cell("td", cell, at) for at, cell in enumerate(row)) + "</tr>"
        for row in _some(body, _ROWS, ["…"] * len(head))
    )
    return f"{_TABLE}<thead><tr>{cells}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


_ROWS, _COLUMNS, _CELL, _PARAGRAPH = 40, 16, 100, 2000  # the most that is shown, in characters
_LEFT = "text-align:left"
_TABLE = '<table style="margin:0 0 1em 0">'


def _cell(tag: str, text: str, at: int) -> str:
    return f'<{tag} style="{_LEFT if at == 0 else "text-align:right"}">{_html(text)}</{tag}>'


def _some(items: Sequence[Any], most: int, left_out: Any = "…") -> Sequence[Any]:
    """The first of many and the last, and between them that some are left out."""
    if len(items) <= most:
        return items
    return [*items[: most - 2], left_out, items[-1]]


def _html(text: str, most: int = _CELL) -> str:
    """A text as markup, its beginning if it is long."""
    return as_markup(text if len(text) <= most else text[: most - 1] + "…")


def as_markup(text: str) -> str:
    """A text as markup; what has no shape, such as a change of the direction of writing, by its
    number.
    """
    plain = (one if one.isprintable() else ascii(one)[1:-1] for one in text)
    return markup.escape("".join(plain))
