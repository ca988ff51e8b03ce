"""A page as HTML: one file that asks nobody for anything, and runs nothing."""

from __future__ import annotations

import html
import re

from offrecord.charts import undrawable
from offrecord.files import PAGE_MARK
from offrecord.reports.page import (
    Block,
    Bullets,
    Commands,
    Facts,
    Listing,
    Page,
    Paragraph,
    Picture,
    Section,
)
from offrecord.reports.style import STYLE

#: Nothing is fetched and no script is run, whatever names and labels may hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SHORT = 14  # rows of a table that is not parted on paper
_NUMBER = re.compile(r"[−+–…-]?[\d.,]*\s?%?( \(chosen\))?( to 1)?")


def html_of(page: Page) -> str:
    """The page; everything in it is escaped."""
    title = escape(page.title)
    sections = "\n".join(map(_section, page.sections))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{PAGE_MARK}
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title} – release report</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<p class="kind">Release report</p>
<h1>{title}</h1>
<p class="lead">{escape(page.lead)}</p>
</header>
<main>
{sections}
</main>
<footer>
<p>{escape(page.foot)}</p>
</footer>
</body>
</html>
"""


def _section(section: Section) -> str:
    alarm = ' class="alarm" role="alert"' if section.is_alarm else ""
    blocks = "\n".join(map(_block, section.blocks))
    name = section.name
    return (
        f'<section id="{name}"{alarm} aria-labelledby="{name}-heading">\n'
        f'<h2 id="{name}-heading">{escape(section.title)}</h2>\n{blocks}\n</section>'
    )


def _block(block: Block) -> str:
    match block:
        case Paragraph(text, is_main):
            look = ' class="main"' if is_main else ""
            return f"<p{look}>{escape(text)}</p>"
        case Bullets(items):
            return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"
        case Facts(rows):
            pairs = (f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)
            return f'<dl class="facts">{"".join(pairs)}</dl>'
        case Listing():
            return _listing(block)
        case Picture():
            return _picture(block)
        case Commands(rows):
            return "".join(
                f'<p class="before">{escape(what)}:</p>'
                f'<pre tabindex="0"><code>{escape(command)}</code></pre>'
                for what, command in rows
            )


def _picture(picture: Picture) -> str:
    why, name, chart = undrawable(), picture.name, picture.chart
    drawn = chart.svg(name) if why is None else f'<p class="before">Not drawn: {escape(why)}.</p>'
    caption = f"<strong>{escape(chart.title)}.</strong> {escape(chart.description)}"
    return (
        f'<figure class="picture"><div tabindex="0">{drawn}</div>'
        f'<figcaption id="{name}-caption">{caption}</figcaption></figure>'
    )


def _listing(listing: Listing) -> str:
    rights = [
        bool(column) and all(_NUMBER.fullmatch(cell) for cell in column)
        for column in zip(*listing.rows, strict=True)
    ]

    def look(at: int) -> str:
        return ' class="number"' if at and rights[at] else ""

    head = "".join(
        f'<th scope="col"{look(at)}>{escape(name)}</th>' if name else "<td></td>"
        for at, name in enumerate(listing.head)
    )
    rows = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td{look(at)}>{escape(cell)}</td>" for at, cell in enumerate(row[1:], start=1))
        + "</tr>"
        for row in listing.rows
    )
    caption = escape(listing.caption)
    look_of_all = "wide short" if len(listing.rows) <= _SHORT else "wide"
    return (
        f'<div class="{look_of_all}" tabindex="0" role="region" aria-label="{caption}"><table>'
        f"<caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
        "</table></div>"
    )


def escape(text: str) -> str:
    """A text as markup; a character without a shape, such as a change of direction, by its code."""
    return html.escape("".join(one if one.isprintable() else ascii(one)[1:-1] for one in text))
