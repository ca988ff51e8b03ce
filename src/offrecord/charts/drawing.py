"""Charts as SVG for a page that holds them: no network, readable aloud, in the page's colours."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from html import escape
from typing import Any

#: Colours of axes and text are the page's, which may be light or dark.
_CONFIG = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": "transparent"},
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
    "legend": {"labelFontSize": 12},
    "text": {"fontSize": 12},
}
#: A tag, whose attributes stand in quotes that no value holds; text has no `<` of its own.
_TAG = re.compile(r'<[a-zA-Z][\w:-]*(?:\s+[\w:-]+="[^"]*")*\s*/?>')
_TOLD = re.compile(r' (?:aria-[a-z]+|role)="[^"]*"')


@lru_cache(maxsize=64)  # pages of one model have charts in common
def _drawn(spec: str) -> str:
    """A specification, drawn; its parts are not told one by one, as an image is told as a whole."""
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(spec, config=_CONFIG, allowed_base_urls=[])
    return _TAG.sub(lambda tag: _TOLD.sub("", tag[0]), drawn)


def start() -> None:
    """Start the drawing engine, which takes far longer than a drawing."""
    _drawn(json.dumps({"data": {"values": [{}]}, "mark": "point"}))


def svg_of(spec: dict[str, Any], name: str, title: str, description: str) -> str:
    """A Vega-Lite specification, drawn without a browser, as an image with a title and a
    description for who does not see it. name: tells it from others on the page, where its caption
    is `name`-caption.
    """
    drawn = _drawn(json.dumps(spec))
    said = f'<title id="{name}-title">{escape(title)}</title><desc>{escape(description)}</desc>'
    labels = f'role="img" aria-labelledby="{name}-title" aria-describedby="{name}-caption"'
    return re.sub(r"<svg ([^>]*)>", rf"<svg {labels} \1>", drawn, count=1).replace(
        ">", f">{said}", 1
    )
