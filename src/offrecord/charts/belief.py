"""What an attacker infers about a private record: before, after erasure, after the release."""

from __future__ import annotations

from offrecord.charts.chart import Chart
from offrecord.charts.look import PALETTE, Rows, layered, mark, quantity, values

_SHARE = "How likely the value is, to an attacker"
_COLOURS = ("#9b9ba8", PALETTE[2], PALETTE[0])


def belief_chart(rows: Rows, description: str) -> Chart:
    """A bar for each state of knowledge: how likely one value is.

    Args:
        rows: knowledge, probability, in the order of the bars.
        description: what the picture shows, in words.
    """
    names = [row["knowledge"] for row in rows]
    scale = {"domain": names, "range": [_COLOURS[at % 3] for at in range(len(names))]}
    wide = {"labelLimit": 320, "domain": False, "ticks": False}
    bar = {
        "y": {
            "field": "knowledge",
            "type": "nominal",
            "sort": names,
            "axis": wide,
        }
    }
    share = quantity(
        "probability",
        scale={"domain": [0, 1]},
        axis={"format": "%", "tickCount": 5},
    )
    colour = {"color": {"field": "knowledge", "scale": scale, "legend": None}}
    labelled = [row | {"text": f"{row['probability']:.1%}"} for row in rows]
    label = {"x": share, "text": {"field": "text"}}
    layers = [
        {"mark": mark("bar"), "encoding": bar | {"x": share} | colour},
        {"mark": mark("text", align="left", dx=4), "encoding": bar | label},
    ]
    drawn = [{"data": values(labelled)} | one for one in layers]
    spec = layered(*drawn, x=_SHARE, y=None, height=34 * len(rows))
    return Chart(spec, "What an attacker infers about a private record", description)
