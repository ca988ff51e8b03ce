"""What an attacker infers: beliefs about one private record, and the odds moved for all of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from offrecord.charts.chart import Chart
from offrecord.charts.look import (
    PALETTE,
    Rows,
    layered,
    level,
    mark,
    named_lines,
    quantity,
    values,
)
from offrecord.models.base import Floats

_SHARE = "How likely the value is, to an attacker"
_COLOURS = ("#9b9ba8", PALETTE[2], PALETTE[0])
_POINTS = 400  # of a line, more than a screen shows


def belief_chart(rows: Rows, description: str) -> Chart:
    """A bar for each state of knowledge: how likely one value is.

    rows: knowledge, probability, in the order of the bars. description: what the picture shows, in
    words.
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


def ratio_chart(ratios: Mapping[str, Floats], epsilon: float) -> Chart:
    """What attackers infer.

    ratios: by attacker, a log-ratio for each private run; NaN where none was found. Infinite ones
    stand at the edge. epsilon: the budget.
    """
    some = {name: one[~np.isnan(one)] for name, one in ratios.items()}
    finite = [np.abs(one[np.isfinite(one)]).max(initial=0.0) for one in some.values()]
    edge = 1.05 * max([*finite, epsilon])
    rows = [
        {"attacker": name, "share": share, "ratio": ratio}
        for name, one in some.items()
        for share, ratio in _sorted(one, edge)
    ]
    lines = {
        "data": values(rows),
        "mark": mark("line", interpolate="step-before", strokeWidth=2),
        "encoding": {
            "x": quantity("share", axis={"format": "%"}),
            "y": quantity("ratio"),
            **named_lines("attacker", list(some)),
        },
    }
    band = {
        "data": values([{"low": -epsilon, "high": epsilon}]),
        "mark": mark("rect", color="#e8e8e8", opacity=0.6),
        "encoding": {"y": quantity("low"), "y2": {"field": "high"}},
    }
    words = "; ".join(
        f"{name}: at most {np.abs(one).max(initial=0.0):.3g} in size" for name, one in some.items()
    )
    layers = [band, lines, *level("y", epsilon, "ε"), *level("y", -epsilon, "−ε")]
    spec = layered(*layers, x="Private runs, sorted", y="Log of how far the odds moved")
    return Chart(spec, "How far the release moved the odds on each private run", f"{words}.")


def _sorted(ratios: Floats, edge: float) -> list[tuple[float, float]]:
    """Points of a sorted line, the first and the last among them."""
    if not len(ratios):
        return []
    ordered = np.sort(np.clip(ratios, -edge, edge))
    at = np.unique(np.linspace(0, len(ordered) - 1, _POINTS).round().astype(int))
    shares = [0.0, *((at + 1) / len(ordered)).tolist()]
    return list(zip(shares, [ordered[0].item(), *ordered[at].tolist()], strict=True))
