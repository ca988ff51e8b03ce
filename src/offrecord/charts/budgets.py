"""What a table would release under other budgets, with the chosen one marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from offrecord.charts.look import PALETTE, Rows


def budgets_chart(
    rows: Rows, names: Sequence[str], epsilon: float, released: float | None
) -> dict[str, Any]:
    """Share of records released over ε, a line for each mechanism; a Vega-Lite specification.

    rows: epsilon, mechanism, released. names: the mechanisms in order. epsilon: the chosen budget,
    released: what left with it, None where that is not known.
    """
    layers = [_chosen(epsilon), _lines(rows, names)]
    if released is not None:
        layers.append(_release(epsilon, released))
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 560,
        "height": 260,
        "layer": layers,
    }


def _lines(rows: Rows, names: Sequence[str]) -> dict[str, Any]:
    colours = [PALETTE[at % len(PALETTE)] for at in range(len(names))]
    return {
        "data": {"values": list(rows)},
        "mark": {"type": "line", "strokeWidth": 2, "point": {"size": 30}},
        "encoding": {
            "x": {
                "field": "epsilon",
                "type": "quantitative",
                "title": "Privacy budget ε (smaller protects more)",
                "scale": {"type": "log", "nice": False},
                "axis": {"grid": False, "format": ".3~g", "labelOverlap": True, "tickCount": 6},
            },
            "y": {
                "field": "released",
                "type": "quantitative",
                "title": "Share of records released",
                "scale": {"zero": False},
                "axis": {"format": _percents(rows), "tickCount": 6},
            },
            "color": {
                "field": "mechanism",
                "type": "nominal",
                "title": None,
                "scale": {"domain": list(names), "range": colours},
                "legend": {"orient": "bottom", "symbolType": "stroke", "columnPadding": 70},
            },
        },
    }


def _percents(rows: Rows) -> str:
    """As many digits as tell the ticks apart."""
    shares = [row["released"] for row in rows]
    spread = max(shares) - min(shares) if shares else 1.0
    return ".0%" if spread > 0.05 else ".1%" if spread > 0.005 else ".2%"


def _chosen(epsilon: float) -> dict[str, Any]:
    """A line at the chosen budget, with its name."""
    where = {"x": {"field": "epsilon", "type": "quantitative"}}
    return {
        "data": {"values": [{"epsilon": epsilon, "name": f"chosen: ε = {epsilon:g}"}]},
        "layer": [
            {"mark": {"type": "rule", "strokeDash": [5, 4], "color": "#777777"}, "encoding": where},
            {
                "mark": {"type": "text", "baseline": "bottom", "dy": -4},
                "encoding": where | {"y": {"value": 0}, "text": {"field": "name"}},
            },
        ],
    }


def _release(epsilon: float, released: float) -> dict[str, Any]:
    """A mark for what left."""
    return {
        "data": {"values": [{"epsilon": epsilon, "released": released, "name": "this release"}]},
        "layer": [
            {
                "mark": {
                    "type": "point",
                    "shape": "diamond",
                    "size": 130,
                    "filled": True,
                    "opacity": 1,
                },
                "encoding": _place() | {"color": {"value": "#c26a77"}},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 9, "dy": 12},
                "encoding": _place() | {"text": {"field": "name"}},
            },
        ],
    }


def _place() -> dict[str, Any]:
    return {
        "x": {"field": "epsilon", "type": "quantitative"},
        "y": {"field": "released", "type": "quantitative"},
    }
