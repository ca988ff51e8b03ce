"""Fig. 2: what each mechanism releases, over the privacy budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from offrecord.charts.look import LIGHT, Look, Rows, mechanism_colours, rows_of


def utility_chart(rows: Rows, names: Sequence[str], title: str | None = None) -> Any:
    """Utility over ε, a line for each mechanism.

    rows: epsilon, mechanism, utility. names: the mechanisms in order.
    """
    lines = _lines(rows, names, LIGHT)
    return lines.properties(width=520, height=320, **({"title": title} if title else {}))


def marked_utility_chart(
    rows: Rows | str, chosen: Rows | str, names: Sequence[str], look: Look = LIGHT
) -> Any:
    """The same with a chosen ε marked, and what a mechanism releases there.

    chosen: epsilon, mechanism, utility.
    """
    import altair as alt

    at = alt.Chart(rows_of(chosen)).encode(x="epsilon:Q")
    rule = at.mark_rule(strokeDash=[6, 4], color=look.ink)
    point = at.mark_point(filled=True, size=90, opacity=1).encode(
        y="utility:Q", color=mechanism_colours(names, look)
    )
    return alt.layer(_lines(rows, names, look), rule, point)


def _lines(rows: Rows | str, names: Sequence[str], look: Look) -> Any:
    import altair as alt

    return (
        alt.Chart(rows_of(rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("epsilon:Q", title="Privacy budget ε"),
            y=alt.Y(
                "utility:Q", title="Utility ν: expected share released", scale=alt.Scale(zero=False)
            ),
            color=mechanism_colours(names, look),
            order="epsilon:Q",
        )
    )
