"""Fig. 3: with which probability records are redacted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from offrecord.charts.look import Rows, mechanism_colours


def redaction_chart(rows: Rows, names: Sequence[str]) -> Any:
    """Fig. 3: Pr(Y_t = ⊥ | X_t = 0) by record, a line for each mechanism.

    rows: record, mechanism, redaction. names: the mechanisms in order.
    """
    import altair as alt

    return (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=alt.X("record:Q", title="Record t", axis=alt.Axis(tickMinStep=1)),
            y=alt.Y(
                "redaction:Q",
                title="Probability of redacting the value 0",
                scale=alt.Scale(domain=[0, 1]),
            ),
            color=mechanism_colours(names),
        )
        .properties(width=520, height=320)
    )
