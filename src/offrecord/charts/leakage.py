"""Leakage over plausible chains: a histogram, with ε."""

from __future__ import annotations

import numpy as np

from offrecord.charts.chart import Chart
from offrecord.charts.look import PALETTE, REGIONS, layered, level, mark, quantity, values
from offrecord.models.base import Floats

_BINS = 40  # a bar is wide enough to be seen, and one chain in 8,000 shows as a line
_LEAKAGE = "Leakage of the release (log of odds)"


def leakage_chart(leakages: Floats, epsilon: float) -> Chart:
    """How many chains have which leakage; those above ε in another colour.

    leakages: (M,) of each chain; infinite ones stand in the last bar. epsilon: the budget.
    """
    finite = leakages[np.isfinite(leakages)]
    top = max(float(finite.max(initial=0.0)), epsilon) * 1.02 or 1.0
    # ε is an edge of two bars, so that no bar holds chains on both sides of it
    steps = int(np.ceil(_BINS * epsilon / top)) if epsilon > 0 else 0
    below = np.linspace(0.0, epsilon, steps + 1) if steps else np.zeros(1)
    edges = np.append(below, np.linspace(epsilon, top, max(_BINS - steps, 1) + 1)[1:])
    counts, _ = np.histogram(np.minimum(leakages, top), edges)
    rows = [
        {"from": low, "to": high, "chains": count, "above": low >= epsilon}
        for low, high, count in zip(
            edges.tolist(), edges[1:].tolist(), counts.tolist(), strict=False
        )
        if count
    ]
    above = int((leakages > epsilon).sum())
    colour = {"condition": {"test": "datum.above", "value": REGIONS["L"]}, "value": PALETTE[0]}
    bars = {
        "data": values(rows),
        "mark": mark("rect", opacity=0.85),
        "encoding": {
            "x": quantity("from", scale={"zero": True}),
            "x2": {"field": "to"},
            "y": quantity("chains", axis={"tickMinStep": 1}),
            "y2": {"datum": 0},
            "color": colour,
        },
    }
    median, high = np.quantile(leakages, (0.5, 0.99), method="higher").tolist()
    words = (
        f"Of {len(leakages):,} chains {above:,} exceed ε = {epsilon:g}; half of them leak at most"
        f" {median:.3g}, 99 % at most {high:.3g}."
    )
    spec = layered(
        bars, *level("x", epsilon, f"ε = {epsilon:g}"), x=_LEAKAGE, y="Plausible chains", height=220
    )
    return Chart(spec, "Leakage under the chains that the data leave plausible", words)
