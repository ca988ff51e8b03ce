"""The rule around one private record: how likely each record beside it is redacted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from offrecord.charts.look import PALETTE, REGION_COLOURS, Rows

#: Labels are as wide as the reader's own font makes them: columns stand well apart.
_LEGEND = {
    "orient": "bottom",
    "columns": 2,
    "columnPadding": 70,
    "labelLimit": 400,
    "symbolType": "stroke",
    "symbolSize": 300,
}
_DASHES = ([1, 0], [6, 3], [2, 3], [8, 3, 2, 3], [4, 4], [10, 3])


def rule_chart(rows: Rows, names: Sequence[str]) -> dict[str, Any]:
    """Redaction probability by distance from a private record, a line for each name, over the
    three regions; a Vega-Lite specification.

    rows: distance (0 is the private record), name, redaction, region ("private", "L", "M" or "S").
    """
    sides = [
        row | {"side": "after" if row["distance"] > 0 else "before"}
        for row in rows
        if row["distance"]
    ]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 560,
        "height": 240,
        "layer": [*_shades(rows), _private(), _lines(sides, names)],
    }


def _shades(rows: Rows) -> list[dict[str, Any]]:
    """A band of colour behind the records of each region, with its letter where there is room."""
    bands: list[dict[str, Any]] = []
    for distance, region in sorted({(row["distance"], row["region"]) for row in rows}):
        last = bands[-1] if bands else None
        if last is not None and last["region"] == region:
            last["to"] = distance + 0.5
        else:
            bands.append({"from": distance - 0.5, "to": distance + 0.5, "region": region})
    width = bands[-1]["to"] - bands[0]["from"]
    layers: list[dict[str, Any]] = []
    for region, colour in REGION_COLOURS.items():
        mine = [one | {"middle": (one["from"] + one["to"]) / 2} for one in bands]
        mine = [one for one in mine if one["region"] == region]
        named = [one for one in mine if one["to"] - one["from"] > width / 40]
        layers += [_rectangles(mine, {"color": colour, "opacity": 0.22}), _letters(named)]
    return layers


def _rectangles(bands: Rows, look: dict[str, Any]) -> dict[str, Any]:
    return {
        "data": {"values": list(bands)},
        "mark": {"type": "rect"} | look,
        "encoding": {"x": {"field": "from", "type": "quantitative"}, "x2": {"field": "to"}},
    }


def _letters(bands: Rows) -> dict[str, Any]:
    return {
        "data": {"values": list(bands)},
        "mark": {"type": "text", "fontWeight": "bold", "baseline": "bottom", "dy": -4},
        "encoding": {
            "x": {"field": "middle", "type": "quantitative"},
            "y": {"value": 0},
            "text": {"field": "region"},
        },
    }


def _private() -> dict[str, Any]:
    """The private record itself."""
    return _rectangles([{"from": -0.5, "to": 0.5}], {"color": "#444444"})


def _lines(rows: Rows, names: Sequence[str]) -> dict[str, Any]:
    """A line for each name, broken at the private record."""
    spread = [_DASHES[at % len(_DASHES)] for at in range(len(names))]
    colours = [PALETTE[at % len(PALETTE)] for at in range(len(names))]
    legend = _LEGEND
    return {
        "data": {"values": list(rows)},
        "mark": {"type": "line", "strokeWidth": 2, "point": {"size": 22}},
        "encoding": {
            "x": {
                "field": "distance",
                "type": "quantitative",
                "title": "Records before (−) and after the private one",
                "axis": {"tickMinStep": 1, "grid": False, "format": "d"},
                "scale": {"nice": False},
            },
            "y": {
                "field": "redaction",
                "type": "quantitative",
                "title": "Probability of being redacted",
                "scale": {"domain": [0, 1]},
                "axis": {"format": ".0%", "tickCount": 5},
            },
            "detail": {"field": "side", "type": "nominal"},
            "color": {
                "field": "name",
                "type": "nominal",
                "title": None,
                "scale": {"domain": list(names), "range": colours},
                "legend": legend,
            },
            "strokeDash": {
                "field": "name",
                "type": "nominal",
                "title": None,
                "scale": {"domain": list(names), "range": spread},
                "legend": legend,
            },
        },
    }
