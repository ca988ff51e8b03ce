"""How charts look: colours, fonts, axes and the parts that pictures have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

#: Rows that a chart is drawn from, a dictionary each.
Rows: TypeAlias = Sequence[dict[str, Any]]
#: A Vega-Lite specification, or a part of one.
Spec: TypeAlias = dict[str, Any]

#: Colours that stay apart for colour-blind readers; the first three are those of the paper.
PALETTE = ("#2e2585", "#337538", "#c26a77", "#dca237", "#5da899", "#9f4a96", "#7f7f7f", "#94cbec")
#: Lines differ in their dashes too, for print in black and white.
DASHES = ([1, 0], [6, 3], [2, 3], [8, 3, 2, 3], [4, 4], [10, 3], [1, 2], [12, 4])
#: Shades of the paper's regions.
REGIONS = {"L": "#c26a77", "M": "#dca237", "S": "#337538"}
INK = "#444444"
_WIDTH = 560

CONFIG: Spec = {
    "background": "transparent",
    "font": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif",
    "view": {"stroke": "transparent"},
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
    "legend": {
        "labelFontSize": 12,
        "orient": "bottom",
        "columns": 2,
        "columnPadding": 60,
        "labelLimit": 420,
        "symbolType": "stroke",
        "symbolSize": 300,
    },
    "text": {"fontSize": 12},
}


def quantity(field: str, **more: Any) -> Spec:
    """A channel for numbers."""
    return {"field": field, "type": "quantitative", **more}


def named_lines(field: str, names: Sequence[str]) -> Spec:
    """The channels of lines that differ in colour and dashes, with one legend for both."""

    def channel(looks: Sequence[Any]) -> Spec:
        picked = [looks[at % len(looks)] for at in range(len(names))]
        scale = {"domain": list(names), "range": picked}
        return {"field": field, "type": "nominal", "title": None, "scale": scale}

    return {"color": channel(PALETTE), "strokeDash": channel(DASHES)}


def values(rows: Rows) -> Spec:
    """Data inside the specification."""
    return {"values": list(rows)}


def layered(*layers: Spec, x: str | None, y: str | None, height: int = 260) -> Spec:
    """A picture of several layers, the first one at the back.

    x, y: titles of the axes. Vega-Lite joins the titles of all layers, so each layer gets them.
    height: in pixels; the width is that of a column of text.
    """
    schema = "https://vega.github.io/schema/vega-lite/v5.json"
    parts = [_titled(one, {"x": x, "y": y}) for one in layers]
    return {"$schema": schema, "width": _WIDTH, "height": height, "layer": parts}


def _titled(layer: Spec, titles: dict[str, str | None]) -> Spec:
    """A layer, and the layers in it, with the titles of the axes."""
    found = dict(layer)
    if "layer" in layer:
        found["layer"] = [_titled(one, titles) for one in layer["layer"]]
    channels = layer.get("encoding", {})
    titled = {
        name: one | {"title": titles[name]} if name in titles and "field" in one else one
        for name, one in channels.items()
    }
    return found | ({"encoding": titled} if channels else {})


def mark(kind: str, **more: Any) -> Spec:
    """A mark of a kind."""
    return {"type": kind, **more}


def level(channel: str, at: float, name: str, colour: str = INK) -> list[Spec]:
    """A dashed line at a value of x or y, with its name at the line's end."""
    where = {channel: quantity("level")}
    # The name stands above a line at some x, and on a line at some y, inside the picture.
    style: Spec = {"baseline": "bottom", "dy": -4}
    other: Spec = {"y": {"value": 0}}
    if channel == "y":
        style, other = {"align": "right", "dx": -4, "dy": -6}, {"x": {"value": "width"}}
    return [
        {
            "data": values([{"level": at, "name": name}]),
            "layer": [
                {"mark": mark("rule", strokeDash=[5, 4], color=colour), "encoding": where},
                {
                    "mark": mark("text", color=colour, **style),
                    "encoding": where | other | {"text": {"field": "name"}},
                },
            ],
        }
    ]
