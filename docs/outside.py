"""A hook of the site: what lies outside of it.

On the pages as they stand in the project, links lead to files of the project too. In the site,
which is the pages alone, the file's path takes their place. And no page may load anything from
elsewhere: whoever reads it is nobody else's business.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")
LOADED = re.compile(
    r"<(?:script|link|img|iframe|source|video)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//"
)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page's text, its links to the outside replaced."""
    folder = (DOCS / page.file.src_uri).parent
    return LINK.sub(lambda link: _inside_or_named(link, folder), markdown)


def _inside_or_named(link: re.Match[str], folder: Path) -> str:
    """A link as it is if it leads to a page, else its words and the path of the file."""
    words, target = link[1], (folder / link[2]).resolve()
    if target.is_relative_to(DOCS):
        return link[0]
    path = target.relative_to(ROOT).as_posix()
    return f"`{path}`" if path.endswith(words.strip("`")) else f"{words} (`{path}`)"


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The finished page as it is, if it loads nothing from outside."""
    found = LOADED.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri} loads from outside: {found[0]}")
    return output
