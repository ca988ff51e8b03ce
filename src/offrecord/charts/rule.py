"""The rule around a private record: how likely each record beside it is redacted.

For local rules a line for each value, over the paper's regions L, M and S. For stopping rules the
probability that the walk has not stopped yet, with a bar for how likely it stops at each distance.
"""

from __future__ import annotations

from collections.abc import Sequence

from offrecord.charts.chart import Chart
from offrecord.charts.look import (
    INK,
    PALETTE,
    REGIONS,
    Rows,
    Spec,
    layered,
    mark,
    named_lines,
    quantity,
    values,
)

_DISTANCE = "Records before (−) and after the private one"
_CHANCE = "Probability of being redacted"


def rule_chart(
    rows: Rows, names: Sequence[str], stops: Rows = (), *, description: str = ""
) -> Chart:
    """The rule around one private record.

    rows: distance (below 0 before the private record), name, redaction. names: of the lines, in
    order. stops: distance, probability: where the walks stop, for stopping rules. description: what
    the picture shows, in words.
    """
    layers = [*_shades(region_bands(rows)), _private()]
    if stops:
        layers.append(_bars(stops))
    sides = [row | {"side": row["distance"] > 0} for row in rows if row["distance"]]
    layers.append(_lines(sides, "distance", names, {"detail": {"field": "side"}}))
    title = "How likely the records around a private one are redacted"
    return Chart(layered(*layers, x=_DISTANCE, y=_CHANCE, height=240), title, description)


def redaction_chart(rows: Rows, names: Sequence[str]) -> Chart:
    """Fig. 3: Pr(Y_t = ⊥ | X_t = 0) by record, a line for each mechanism.

    rows: record, name, redaction. names: the mechanisms in order.
    """
    lines = _lines(rows, "record", names, {})
    words = f"Lines of redaction probabilities by record, for {', '.join(names)}."
    return Chart(
        layered(lines, x="Record t", y=_CHANCE, height=300),
        "Probability of redacting the value 0",
        words,
    )


def region_bands(rows: Rows) -> list[dict[str, float | str]]:
    """Runs of distances of one region: from, to, region. L: redacted whatever the value, S: never.

    The private record itself belongs to no region.
    """
    chances: dict[int, list[float]] = {}
    for row in rows:
        chances.setdefault(row["distance"], []).append(row["redaction"])
    found: list[dict[str, float | str]] = []
    for distance, those in sorted(chances.items()):
        region = "L" if min(those) == 1 else "S" if max(those) == 0 else "M"
        if distance == 0:
            continue
        if found and found[-1]["region"] == region and found[-1]["to"] == distance - 0.5:
            found[-1]["to"] = distance + 0.5
        else:
            found.append({"from": distance - 0.5, "to": distance + 0.5, "region": region})
    return found


def _shades(found: Rows) -> list[Spec]:
    """A band of colour for each region, with its letter where it fits."""
    if not found:
        return []
    width = found[-1]["to"] - found[0]["from"]
    scale = {"domain": list(REGIONS), "range": list(REGIONS.values())}
    colour = {"field": "region", "type": "nominal", "scale": scale, "legend": None}
    span = {"x": quantity("from"), "x2": {"field": "to"}, "fill": colour}
    wide = [one for one in found if one["to"] - one["from"] > width / 40]
    letters = [one | {"middle": (one["from"] + one["to"]) / 2} for one in wide]
    return [
        {"data": values(found), "mark": mark("rect", opacity=0.2), "encoding": span},
        {
            "data": values(letters),
            "mark": mark("text", fontWeight="bold", baseline="bottom", dy=-4),
            "encoding": {"x": quantity("middle"), "y": {"value": 0}, "text": {"field": "region"}},
        },
    ]


def _private() -> Spec:
    """The private record itself, as a dark column."""
    where = {"x": quantity("from"), "x2": {"field": "to"}}
    data = values([{"from": -0.5, "to": 0.5}])
    return {"data": data, "mark": mark("rect", color=INK), "encoding": where}


def _bars(stops: Rows) -> Spec:
    where = {"x": quantity("distance"), "y": quantity("probability"), "y2": {"datum": 0}}
    bars = mark("rule", color=PALETTE[4], strokeWidth=5, opacity=0.75)
    return {"data": values(stops), "mark": bars, "encoding": where}


def _lines(rows: Rows, along: str, names: Sequence[str], more: Spec) -> Spec:
    axis = {"tickMinStep": 1, "grid": False, "format": "d"}
    points = {"point": {"size": 22}} if len(rows) < 200 else {}  # points that touch hide the line
    return {
        "data": values(rows),
        "mark": mark("line", strokeWidth=2, **points),
        "encoding": {
            "x": quantity(along, axis=axis, scale={"nice": False, "zero": False}),
            "y": quantity(
                "redaction",
                scale={"domain": [0, 1]},
                axis={"format": ".0%", "tickCount": 5},
            ),
            **named_lines("name", names),
            **more,
        },
    }
