"""A page as data: sections of paragraphs, facts, tables and pictures, in reading order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from offrecord.charts import Chart


@dataclass(frozen=True)
class Paragraph:
    """A sentence or several. is_main: what the section says in one sentence."""

    text: str
    is_main: bool = False


@dataclass(frozen=True)
class Bullets:
    """Short texts of equal weight."""

    items: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """Names, and what each is."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Listing:
    """A table. The first column names the rows; numbers stand to the right."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A chart. name: unique on the page."""

    name: str
    chart: Chart


@dataclass(frozen=True)
class Commands:
    """What to run next: what it is for, and the command."""

    rows: Sequence[tuple[str, str]]


Block: TypeAlias = Paragraph | Bullets | Facts | Listing | Picture | Commands


@dataclass(frozen=True)
class Section:
    """A part of the page. name: for links. is_alarm: a reader must not miss it."""

    name: str
    title: str
    blocks: Sequence[Block]
    is_alarm: bool = False


@dataclass(frozen=True)
class Page:
    """A whole page. foot: where it comes from."""

    title: str
    lead: str
    sections: Sequence[Section]
    foot: str


def sentence(text: str) -> str:
    """A text that begins and ends as one."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
