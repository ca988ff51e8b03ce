"""A page as short Markdown: pictures by their descriptions, long tables left out."""

from __future__ import annotations

import re
from collections.abc import Sequence

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

#: What Markdown would take for its own.
_SIGNS = re.compile(r"([\\`*_{}\[\]<>#|~!$&])")


def markdown_of(page: Page) -> str:
    """The page; names and labels in it are text, whatever they hold."""
    parts = [f"# {_text(page.title)}", _text(page.lead)]
    parts += map(_section, page.sections)
    parts.append(f"---\n\n{_text(page.foot)}")
    return "\n\n".join(parts) + "\n"


def _section(section: Section) -> str:
    blocks = filter(None, map(_block, section.blocks))
    return "\n\n".join([f"## {_text(section.title)}", *blocks])


def _block(block: Block) -> str:
    match block:
        case Paragraph(text, is_main):
            return f"**{_text(text)}**" if is_main else _text(text)
        case Bullets(items):
            return "\n".join(f"- {_text(item)}" for item in items)
        case Facts(rows):
            return "\n".join(f"- {_text(name)}: {_text(text)}" for name, text in rows)
        case Listing():
            return "" if block.is_detail else _listing(block)
        case Picture():
            return _text(block.chart.description)
        case Commands(rows):
            return "\n\n".join(
                f"{_text(what)}:\n\n```console\n{_line(command)}\n```" for what, command in rows
            )


def _listing(listing: Listing) -> str:
    lines = [_row(listing.head), _row(["---"] * len(listing.head)), *map(_row, listing.rows)]
    return f"{_text(listing.caption)}:\n\n" + "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell if cell == "---" else _text(cell) for cell in cells) + " |"


def _line(text: str) -> str:
    """One line, that ends no block of code."""
    return "".join(one if one.isprintable() else "?" for one in text).replace("```", "'''")


def _text(text: str) -> str:
    return _SIGNS.sub(r"\\\1", " ".join(text.split()))
