"""Charts as SVG for a page that holds them: no network, readable aloud, in the page's colours."""

from __future__ import annotations

import re
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


def svg_of(spec: dict[str, Any], name: str, title: str, description: str) -> str:
    """A Vega-Lite specification, drawn without a browser, as an image with a title and a
    description for who does not see it. name: tells it from others on the page, where its caption
    is `name`-caption.
    """
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(spec, config=_CONFIG, allowed_base_urls=[])
    drawn = re.sub(r' (?:aria-[a-z]+|role)="[^"]*"', "", drawn)  # parts of an image are not told
    said = f'<title id="{name}-title">{escape(title)}</title><desc>{escape(description)}</desc>'
    labels = f'role="img" aria-labelledby="{name}-title" aria-describedby="{name}-caption"'
    return re.sub(r"<svg ([^>]*)>", rf"<svg {labels} \1>", drawn, count=1).replace(
        ">", f">{said}", 1
    )
