"""The log-ratio of every private run, sorted, a line for each attacker, between −ε and ε."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from offrecord.charts.chart import Chart
from offrecord.charts.look import layered, level, mark, named_lines, quantity, values
from offrecord.models.base import Floats

_POINTS = 400  # of a line, more than a screen shows


def ratio_chart(ratios: Mapping[str, Floats], epsilon: float) -> Chart:
    """What attackers infer.

    Args:
        ratios: by attacker, a log-ratio for each private run; NaN where none was found. Infinite
            ones stand at the edge.
        epsilon: the budget.
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
