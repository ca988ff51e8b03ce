"""How charts look, and the parts that pictures have in common: layers, lines, marked levels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
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


def number(field: str, **more: Any) -> Spec:
    """A channel for numbers."""
    return {"field": field, "type": "quantitative", **more}


def scaled(field: str, names: Sequence[str], looks: Sequence[Any], **more: Any) -> Spec:
    """A channel for names, each of them shown in its own manner."""
    picked = [look for look, _ in zip(cycle(looks), names, strict=False)]
    scale = {"domain": list(names), "range": picked}
    return {"field": field, "type": "nominal", "scale": scale, **more}


def layer(kind: str, rows: Iterable[Mapping[str, Any]], channels: Spec, **style: Any) -> Spec:
    """Marks of one kind, one for each row."""
    data = {"values": list(rows)}
    return {"data": data, "mark": {"type": kind, **style}, "encoding": channels}


def lines(
    rows: Rows, x: Spec, y: Spec, field: str, names: Sequence[str], *, part: str = "", **style: Any
) -> Spec:
    """Lines that differ in colour and dashes, with one legend for both.

    field: says which line a row belongs to. part: says where a line is interrupted.
    """
    channels = {
        "x": x,
        "y": y,
        "color": scaled(field, names, PALETTE, title=None),
        "strokeDash": scaled(field, names, DASHES, title=None),
    }
    apart = {"detail": {"field": part}} if part else {}
    return layer("line", rows, channels | apart, strokeWidth=2, **style)


def level(channel: str, at: float, name: str) -> list[Spec]:
    """A dashed line at a value of x or y, with its name at the line's end."""
    where, rows = {channel: number("level")}, [{"level": at, "name": name}]
    # The name stands above a line at some x, and on a line at some y, inside the picture.
    style: Spec = {"baseline": "bottom", "dy": -4}
    other: Spec = {"y": {"value": 0}}
    if channel == "y":
        style, other = {"align": "right", "dx": -4, "dy": -6}, {"x": {"value": "width"}}
    said = where | other | {"text": {"field": "name"}}
    return [
        layer("rule", rows, dict(where), strokeDash=[5, 4], color=INK),
        layer("text", rows, said, color=INK, **style),
    ]


def layered(layers: Sequence[Spec], *, x: str, y: str | None, height: int = 260) -> Spec:
    """A picture of several layers, the first one at the back.

    x, y: titles of the axes. height: in pixels; the width is that of a column of text.
    """
    # Vega-Lite joins the titles of all layers, so each of them gets the same.
    for one in layers:
        channels = one["encoding"]
        for name, title in (("x", x), ("y", y)):
            if "field" in channels.get(name, {}):
                channels[name] = channels[name] | {"title": title}
    schema = "https://vega.github.io/schema/vega-lite/v5.json"
    return {"$schema": schema, "width": _WIDTH, "height": height, "layer": list(layers)}
