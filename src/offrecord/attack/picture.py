"""The ratios of all secrets as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from offrecord.attack.result import Attack, Attacker

_POINTS = 400  # of a line
#: Colours that stay apart for colour-blind readers.
_PALETTE = ("#2e2585", "#337538", "#c26a77", "#dca237", "#5da899", "#9f4a96", "#7f7f7f", "#94cbec")


def ratio_chart(found: Attack) -> Any:
    """The log-ratio of every secret, sorted, a line for each attacker, between −ε and ε; what is
    infinite stands at the edge.
    """
    import altair as alt

    some = [one for one in found.attackers if len(one.found)]
    finite = [np.abs(one.ratios[np.isfinite(one.ratios)]).max(initial=0.0) for one in some]
    edge = 1.05 * max([*finite, found.epsilon])
    names = [one.name for one in some]
    scale = alt.Scale(
        domain=names, range=[_PALETTE[at % len(_PALETTE)] for at in range(len(names))]
    )
    lines = (
        alt.Chart(alt.Data(values=[row for one in some for row in _rows(one, edge)]))
        .mark_line(strokeWidth=2, interpolate="step-before")
        .encode(
            x=alt.X("share:Q", title="Secrets, sorted", axis=alt.Axis(format="%")),
            y=alt.Y("ratio:Q", title="Log-ratio of the likelihoods of what is released"),
            color=alt.Color(
                "attacker:N",
                title=None,
                scale=scale,
                legend=alt.Legend(labelLimit=400, orient="bottom", columns=2, symbolType="stroke"),
            ),
        )
    )
    levels = [
        {"level": sign * found.epsilon, "name": f"{text}ε"} for sign, text in ((1, ""), (-1, "−"))
    ]
    rule = (
        alt.Chart(alt.Data(values=levels))
        .mark_rule(strokeDash=[6, 4], color="black")
        .encode(y="level:Q")
    )
    label = rule.mark_text(align="left", dx=4, dy=-6).encode(x=alt.value(0), text="name:N")
    return alt.layer(rule, label, lines).properties(width=520, height=320)


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
