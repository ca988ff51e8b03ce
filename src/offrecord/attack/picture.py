"""The ratios of all secrets as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from offrecord.attack.result import Attack, Attacker

_SIZE = 520, 320

_POINTS = 400  # of a line
#: Colours that stay apart for colour-blind readers; the last ones are for what was not released.
_PALETTE = ("#2e2585", "#337538", "#c26a77", "#dca237", "#5da899", "#9f4a96", "#94cbec")
_INSTEAD = ("#7f7f7f", "#000000")
_DASHES = {"promised": [1, 0], "beyond": [6, 2], "original": [2, 2]}
_WIDTHS = {"promised": 2.5, "beyond": 1.5, "original": 1.5}


def ratio_chart(found: Attack) -> Any:
    """The log-ratio of every secret, sorted, a line for each attacker, between −ε and ε; what is
    infinite stands at the edge. What is promised is drawn last and thickest.
    """
    import altair as alt

    some = [one for one in found.attackers if len(one.found)]
    finite = [np.abs(one.ratios[np.isfinite(one.ratios)]).max(initial=0.0) for one in some]
    edge = 1.05 * max([*finite, found.epsilon])

    def scale(looks: list[Any]) -> Any:
        return alt.Scale(domain=[one.name for one in some], range=looks)

    lines = (
        alt.Chart(alt.Data(values=[row for one in some[::-1] for row in _rows(one, edge)]))
        .mark_line(interpolate="step-before")
        .encode(
            x=alt.X("share:Q", title="Secrets, sorted", axis=alt.Axis(format="%")),
            y=alt.Y("ratio:Q", title="Log-ratio of the likelihoods of what is released"),
            color=alt.Color(
                "attacker:N",
                title=None,
                scale=scale(_colours(some)),
                legend=alt.Legend(labelLimit=400, orient="bottom", columns=2, symbolType="stroke"),
            ),
            strokeDash=alt.StrokeDash(
                "attacker:N", title=None, scale=scale([_DASHES[one.kind] for one in some])
            ),
            strokeWidth=alt.StrokeWidth(
                "attacker:N", title=None, scale=scale([_WIDTHS[one.kind] for one in some])
            ),
        )
    )
    levels = [
        {"level": sign * found.epsilon, "name": f"{text}ε"} for sign, text in ((1, ""), (-1, "−"))
    ]
    data = alt.Data(values=levels)
    rule = alt.Chart(data).mark_rule(color="black").encode(y="level:Q")
    label = rule.mark_text(align="left", dx=6).encode(x=alt.value(_SIZE[0]), text="name:N")
    within = alt.Data(values=[{"low": -found.epsilon, "high": found.epsilon}])
    band = alt.Chart(within).mark_rect(color="#e8e8e8").encode(y="low:Q", y2="high:Q")
    return alt.layer(band, rule, label, lines).properties(width=_SIZE[0], height=_SIZE[1])


def _colours(some: Sequence[Attacker]) -> list[str]:
    """One for each attacker."""
    found, used = [], {True: 0, False: 0}
    for one in some:
        instead = one.kind == "original"
        palette = _INSTEAD if instead else _PALETTE
        found.append(palette[used[instead] % len(palette)])
        used[instead] += 1
    return found


def _rows(one: Attacker, edge: float) -> list[dict[str, Any]]:
    """Points of a sorted line, the first and the last among them."""
    ratios = np.sort(np.clip(one.ratios[~np.isnan(one.ratios)], -edge, edge))
    at = np.unique(np.linspace(0, len(ratios) - 1, _POINTS).round().astype(int))
    shares = np.append((at + 1) / len(ratios), 0.0)
    drawn = np.append(ratios[at], ratios[0])
    return [
        {"attacker": one.name, "share": float(share), "ratio": float(ratio)}
        for share, ratio in zip(shares, drawn, strict=True)
    ]
