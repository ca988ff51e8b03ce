"""What a budget means: how likely a private value is before a release, and at most after it."""

from __future__ import annotations

from typing import Any

from offrecord.charts.look import PALETTE, Rows


def posterior_chart(rows: Rows) -> Any:
    """The largest posterior over the prior, a line for each ε, named at its middle.

    rows: prior, posterior, epsilon.
    """
    import altair as alt

    budgets = sorted({row["epsilon"] for row in rows})
    scale = alt.Scale(domain=budgets, range=["#7f7f7f", *PALETTE[: len(budgets) - 1]])
    share = alt.Axis(format="%", tickCount=5)
    lines = (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("prior:Q", title="How likely the private value is before", axis=share),
            y=alt.Y("posterior:Q", title="At most after the release", axis=share),
            color=alt.Color("epsilon:O", scale=scale, legend=None),
            order="prior:Q",
        )
    )
    names = [
        {**row, "name": f"ε = {row['epsilon']:g}"} for row in (_middle(rows, b) for b in budgets)
    ]
    labels = (
        alt.Chart(alt.Data(values=names))
        .mark_text(align="left", baseline="top", dx=5, dy=2, fontSize=12, fontWeight="bold")
        .encode(
            x="prior:Q",
            y="posterior:Q",
            text="name:N",
            color=alt.Color("epsilon:O", scale=scale, legend=None),
        )
    )
    return alt.layer(lines, labels).properties(width=420, height=420)


def _middle(rows: Rows, budget: float) -> dict[str, Any]:
    """The point of a line that is furthest from where nothing is learned."""
    own = [row for row in rows if row["epsilon"] == budget]
    return min(own, key=lambda row: abs(row["prior"] + row["posterior"] - 1))
