"""Fig. 2: what each mechanism releases, over the privacy budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from offrecord.charts.look import Rows, mechanism_colours


def utility_chart(rows: Rows, names: Sequence[str], title: str | None = None) -> Any:
    """Utility over ε, a line for each mechanism.

    rows: epsilon, mechanism, utility. names: the mechanisms in order.
    """
    import altair as alt

    return (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("epsilon:Q", title="Privacy budget ε"),
            y=alt.Y(
                "utility:Q", title="Utility ν: expected share released", scale=alt.Scale(zero=False)
            ),
            color=mechanism_colours(names),
            order="epsilon:Q",
        )
        .properties(width=520, height=320, **({"title": title} if title else {}))
    )
