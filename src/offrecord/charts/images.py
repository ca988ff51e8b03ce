"""Charts inside a page of HTML."""

from __future__ import annotations

import base64
import html
import io
from typing import Any

from offrecord.charts.engine import undrawable


def image_tag(chart: Any, alt: str) -> str:
    """A chart as an image, on white whatever the page is on. alt: what it shows, in words.

    An image, for the names inside one drawing cannot meet those of another on the same page, and
    nothing in it can run. In words alone where nothing can be drawn.
    """
    if undrawable() is not None:
        return f"<p>{html.escape(alt)}</p>"
    drawn = io.StringIO()
    chart.save(drawn, format="svg")
    content = base64.b64encode(drawn.getvalue().encode()).decode()
    look = "max-width:100%;background:#fff;border-radius:4px"
    source = f"data:image/svg+xml;base64,{content}"
    return f'<p><img alt="{html.escape(alt)}" style="{look}" src="{source}"></p>'
