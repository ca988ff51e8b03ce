"""Blocks of a page as HTML: one file that asks nobody for anything, and runs nothing.

Every function takes plain text, escapes it, and gives back markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files

from offrecord.charts import Chart, undrawable
from offrecord.files import PAGE_MARK
from offrecord.text import plain

#: Nothing is fetched and no script is run, whatever names and labels may hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SHORT = 14  # rows of a table that is not parted on paper
_NUMBER = re.compile(r"[−+–…-]?[\d.,]*\s?%?( \(chosen\))?( to 1)?")


def page(title: str, lead: str, sections: Iterable[str], foot: str) -> str:
    """A whole page.

    lead: the page in two sentences. sections: made by `section`. foot: where the page comes from.
    """
    # inside the page: a report is mailed alone, and must look the same where nothing is fetched
    style = files("offrecord.reports").joinpath("page.css").read_text(encoding="utf-8")
    shown, body = escape(title), "\n".join(sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{PAGE_MARK}
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{shown} – release report</title>
<style>
{style}</style>
</head>
<body>
<header>
<p class="kind">Release report</p>
<h1>{shown}</h1>
<p class="lead">{escape(lead)}</p>
</header>
<main>
{body}
</main>
<footer>
<p>{escape(foot)}</p>
</footer>
</body>
</html>
"""


def section(name: str, title: str, blocks: Iterable[str], *, is_alarm: bool = False) -> str:
    """A part of the page. name: for links. blocks: markup. is_alarm: a reader must not miss it."""
    alarm = ' class="alarm" role="alert"' if is_alarm else ""
    body = "\n".join(blocks)
    return (
        f'<section id="{name}"{alarm} aria-labelledby="{name}-heading">\n'
        f'<h2 id="{name}-heading">{escape(title)}</h2>\n{body}\n</section>'
    )


def paragraph(text: str) -> str:
    """A sentence or several."""
    return f"<p>{escape(text)}</p>"


def main_point(text: str) -> str:
    """What a section says, in one sentence."""
    return f'<p class="main">{escape(text)}</p>'


def bullets(items: Iterable[str]) -> str:
    """Short texts of equal weight."""
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Names, and what each is."""
    pairs = (f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)
    return f'<dl class="facts">{"".join(pairs)}</dl>'


def commands(rows: Iterable[tuple[str, str]]) -> str:
    """What to run next: what it is for, and the command."""
    return "".join(
        f'<p class="before">{escape(what)}:</p>'
        f'<pre tabindex="0"><code>{escape(command)}</code></pre>'
        for what, command in rows
    )


def picture(name: str, chart: Chart) -> str:
    """A chart. name: unique on the page."""
    why = undrawable()
    drawn = chart.svg(name) if why is None else f'<p class="before">Not drawn: {escape(why)}.</p>'
    caption = f"<strong>{escape(chart.title)}.</strong> {escape(chart.description)}"
    return (
        f'<figure class="picture"><div tabindex="0">{drawn}</div>'
        f'<figcaption id="{name}-caption">{caption}</figcaption></figure>'
    )


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table. The first column names the rows; numbers stand to the right."""
    looks = [_look(column) for column in zip(*rows, strict=True)]
    looks[0] = ""
    titles = "".join(
        f'<th scope="col"{look}>{escape(name)}</th>' if name else "<td></td>"
        for name, look in zip(head, looks, strict=True)
    )
    body = "".join(_row(row, looks) for row in rows)
    said = escape(caption)
    # tabindex: what is wider than the page can be moved by the keyboard
    kind = "wide short" if len(rows) <= _SHORT else "wide"
    return (
        f'<div class="{kind}" tabindex="0" role="region" aria-label="{said}"><table>'
        f"<caption>{said}</caption><thead><tr>{titles}</tr></thead><tbody>{body}</tbody>"
        "</table></div>"
    )


def _look(column: Iterable[str]) -> str:
    return ' class="number"' if all(map(_NUMBER.fullmatch, column)) else ""


def _row(row: Sequence[str], looks: Sequence[str]) -> str:
    cells = zip(row[1:], looks[1:], strict=True)
    rest = "".join(f"<td{look}>{escape(cell)}</td>" for cell, look in cells)
    return f'<tr><th scope="row">{escape(row[0])}</th>{rest}</tr>'


def escape(text: str) -> str:
    """A text as markup; a character without a shape, such as a change of direction, by its code."""
    return html.escape(plain(text))
