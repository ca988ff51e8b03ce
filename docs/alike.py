"""A hook of the site: pages read the same here as where the project's files are shown.

Readers of Markdown differ: in how far an item of a list must be indented, in what a star within a
formula means. Each page is read by a second one, that of CommonMark, and must come to the same
words in the same lists, tables, blocks and emphases.
"""

import re
from collections import Counter
from html import unescape
from typing import Any

from markdown_it import MarkdownIt
from mkdocs.exceptions import PluginError

TAGS = re.compile(r"<(ul|ol|li|table|tr|pre|h\d|blockquote|em|strong|img)\b")
OTHER = MarkdownIt("commonmark").enable("table")


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """The page as it is, if it reads the same."""
    if ":::" not in page.markdown:  # what stands for docstrings
        other = OTHER.render(page.markdown)
        _check(page, Counter(TAGS.findall(html)), Counter(TAGS.findall(other)))
        _check(page, _words(html), _words(other))
    return html


def _check(page: Any, here: Any, there: Any) -> None:
    if here != there:
        unlike = next((pair for pair in zip(here, there, strict=False) if len(set(pair)) > 1), "")
        raise PluginError(
            f"{page.file.src_uri} reads differently elsewhere (nested lines of lists take four"
            f" blanks, an item after them an empty line): {unlike or (here, there)}"
        )


def _words(html: str) -> list[str]:
    bare = re.sub(r'<a class="headerlink".*?</a>|<[^>]+>', " ", html, flags=re.S)
    return re.findall(r"\w+", unescape(bare))
