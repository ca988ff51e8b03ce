"""Fig. 1: the influence of each record on the private one, with the band of plausible chains."""

from __future__ import annotations

from collections.abc import Sequence

from offrecord.charts.chart import Chart
from offrecord.charts.look import (
    PALETTE,
    REGIONS,
    Rows,
    Spec,
    layered,
    level,
    mark,
    named_lines,
    quantity,
    values,
)

_TITLE = "Influence of each record on the private one"


def influence_chart(
    rows: Rows,
    threshold: float,
    names: Sequence[str],
    *,
    along: str = "Distance t − p from the private record",
    name: str = "ε",
    description: str = "",
) -> Chart:
    """Influence by record, a line for each name.

    rows: record, name, influence; low and high too where plausible chains differ; region where
    regions are shaded (see `bands`). Infinite influence is not drawn. threshold: the level above
    which a record leaks too much. names: of the lines, in order. along: what records count. name:
    of the threshold. description: what the picture shows, in words.
    """
    finite = [row for row in rows if row["influence"] != float("inf")]
    layers: list[Spec] = []
    if rows and "region" in rows[0]:
        layers.append(_shades(bands(rows)))
    if finite and "low" in finite[0]:
        layers.append(_band(finite))
    layers += [_lines(finite, names), *level("y", threshold, f"{name} = {threshold:g}")]
    return Chart(layered(*layers, x=along, y="Influence (log of odds)"), _TITLE, description)


def bands(rows: Rows) -> list[dict[str, float | str]]:
    """Runs of records of one region: begin, end, region."""
    found: list[dict[str, float | str]] = []
    for record, region in sorted({(row["record"], row["region"]) for row in rows}):
        if found and found[-1]["region"] == region and found[-1]["end"] == record - 0.5:
            found[-1]["end"] = record + 0.5
        else:
            found.append({"begin": record - 0.5, "end": record + 0.5, "region": region})
    return found


def _shades(found: Rows) -> Spec:
    scale = {"domain": list(REGIONS), "range": list(REGIONS.values())}
    legend = {"title": "region", "symbolType": "square", "columns": 3}
    colour = {"field": "region", "type": "nominal", "scale": scale, "legend": legend}
    span = {"x": quantity("begin"), "x2": {"field": "end"}, "fill": colour}
    return {"data": values(found), "mark": mark("rect", opacity=0.2), "encoding": span}


def _band(rows: Rows) -> Spec:
    """What most plausible chains say."""
    span = {"x": quantity("record"), "y": quantity("low"), "y2": {"field": "high"}}
    detail = {"detail": [{"field": "name"}, {"field": "side"}]}
    area = mark("area", color=PALETTE[0], opacity=0.15)
    sides = [row | {"side": row["record"] > 0} for row in rows]
    return {"data": values(sides), "mark": area, "encoding": span | detail}


def _lines(rows: Rows, names: Sequence[str]) -> Spec:
    axis = {"tickMinStep": 1, "grid": False, "format": "d"}
    sides = [{"side": row["record"] > 0} | row for row in rows]
    return {
        "data": values(sides),
        "mark": mark("line", strokeWidth=2, point={"size": 22}),
        "encoding": {
            "x": quantity("record", axis=axis, scale={"zero": False, "nice": False}),
            "y": quantity("influence"),
            "detail": {"field": "side"},
            **named_lines("name", names),
        },
    }
