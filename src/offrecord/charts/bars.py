"""Pictures of amounts: leakage over plausible chains, beliefs, and what attackers find."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from offrecord.charts.chart import Chart
from offrecord.charts.look import (
    PALETTE,
    REGIONS,
    Rows,
    Spec,
    layer,
    layered,
    level,
    lines,
    number,
    scaled,
)
from offrecord.models.base import Floats

_BINS = 40  # a bar is wide enough to be seen, and one chain in 8,000 shows as a line
_KNOWLEDGE = ("#9b9ba8", PALETTE[2], PALETTE[0])  # before, erasure, release
_POINTS = 400  # of a line, more than a screen shows


def leakage_chart(leakages: Floats, epsilon: float) -> Chart:
    """How many chains have which leakage; those above ε in another colour.

    leakages: (M,) of each chain; infinite ones stand in the last bar. epsilon: the budget.
    """
    rows = _histogram(leakages, epsilon)
    colour = {"condition": {"test": "datum.above", "value": REGIONS["L"]}, "value": PALETTE[0]}
    channels = {
        "x": number("from", scale={"zero": True}),
        "x2": {"field": "to"},
        "y": number("chains", axis={"tickMinStep": 1}),
        "y2": {"datum": 0},
        "color": colour,
    }
    layers = [layer("rect", rows, channels, opacity=0.85), *level("x", epsilon, f"ε = {epsilon:g}")]
    median, high = np.quantile(leakages, (0.5, 0.99), method="higher").tolist()
    words = (
        f"Of {len(leakages):,} chains {int((leakages > epsilon).sum()):,} exceed ε = {epsilon:g};"
        f" half of them leak at most {median:.3g}, 99 % at most {high:.3g}."
    )
    along = "Leakage of the release (log of odds)"
    spec = layered(layers, x=along, y="Plausible chains", height=220)
    return Chart(spec, "Leakage under the chains that the data leave plausible", words)


def _histogram(leakages: Floats, epsilon: float) -> list[Spec]:
    """Bars that hold a chain: from, to, chains, above."""
    finite = leakages[np.isfinite(leakages)]
    top = max(float(finite.max(initial=0.0)), epsilon) * 1.02 or 1.0
    # ε is an edge of two bars, so that no bar holds chains on both sides of it
    steps = int(np.ceil(_BINS * epsilon / top)) if epsilon > 0 else 0
    below = np.linspace(0.0, epsilon, steps + 1)
    edges = np.append(below, np.linspace(epsilon, top, max(_BINS - steps, 1) + 1)[1:])
    counts, _ = np.histogram(np.minimum(leakages, top), edges)
    bars = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
    return [
        {"from": low, "to": high, "chains": count, "above": low >= epsilon}
        for low, high, count in bars
        if count
    ]


def belief_chart(rows: Rows, description: str) -> Chart:
    """A bar for each state of knowledge: how likely one value is.

    rows: knowledge, probability, in the order of the bars. description: what the picture shows, in
    words.
    """
    names = [row["knowledge"] for row in rows]
    labelled = [row | {"text": f"{row['probability']:.1%}"} for row in rows]
    wide = {"labelLimit": 320, "domain": False, "ticks": False}
    share = number("probability", scale={"domain": [0, 1]}, axis={"format": "%", "tickCount": 5})
    bar = {
        "x": share,
        "y": {"field": "knowledge", "type": "nominal", "sort": names, "axis": wide},
    }
    colour = {"color": scaled("knowledge", names, _KNOWLEDGE, legend=None)}
    text = {"text": {"field": "text"}}
    layers = [
        layer("bar", labelled, bar | colour),
        layer("text", labelled, bar | text, align="left", dx=4),
    ]
    along = "How likely the value is, to an attacker"
    spec = layered(layers, x=along, y=None, height=34 * len(rows))
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
    within = [{"low": -epsilon, "high": epsilon}]
    between = {"y": number("low"), "y2": {"field": "high"}}
    share = number("share", axis={"format": "%"})
    layers = [
        layer("rect", within, between, color="#e8e8e8", opacity=0.6),
        lines(rows, share, number("ratio"), "attacker", list(some), interpolate="step-before"),
        *level("y", epsilon, "ε"),
        *level("y", -epsilon, "−ε"),
    ]
    most = [f"{name}: at most {np.abs(one).max(initial=0.0):.3g}" for name, one in some.items()]
    words = "; ".join(f"{one} in size" for one in most)
    spec = layered(layers, x="Private runs, sorted", y="Log of how far the odds moved")
    return Chart(spec, "How far the release moved the odds on each private run", f"{words}.")


def _sorted(ratios: Floats, edge: float) -> list[tuple[float, float]]:
    """Points of a sorted line, the first and the last among them."""
    if not len(ratios):
        return []
    ordered = np.sort(np.clip(ratios, -edge, edge))
    at = np.unique(np.linspace(0, len(ordered) - 1, _POINTS).round().astype(int))
    shares = [0.0, *((at + 1) / len(ordered)).tolist()]
    return list(zip(shares, [ordered[0].item(), *ordered[at].tolist()], strict=True))
