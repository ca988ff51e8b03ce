"""Fig. 3: with which probability records are redacted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from offrecord.charts.look import LIGHT, Look, Rows, mechanism_colours, rows_of


def redaction_chart(rows: Rows, names: Sequence[str]) -> Any:
    """Fig. 3: Pr(Y_t = ⊥ | X_t = 0) by record, a line for each mechanism.

    rows: record, mechanism, redaction. names: the mechanisms in order.
    """
    lines = _lines(rows, "redaction:Q", "Probability of redacting the value 0")
    return lines.encode(color=mechanism_colours(names)).properties(width=520, height=320)


def profile_chart(rows: Rows | str, look: Look = LIGHT) -> Any:
    """The same of one mechanism, a line for each value, or for what else a record may meet.

    rows: record, series, probability.
    """
    import altair as alt

    legend = alt.Legend(labelLimit=400, orient="bottom", columns=2, symbolType="stroke")
    scale = alt.Scale(range=list(look.palette))
    return _lines(rows, "probability:Q", "Probability").encode(
        color=alt.Color("series:N", title=None, scale=scale, legend=legend),
        strokeDash=alt.StrokeDash("series:N", title=None, legend=legend),
    )


def _lines(rows: Rows | str, what: str, title: str) -> Any:
    import altair as alt

    return (
        alt.Chart(rows_of(rows))
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=alt.X(
                "record:Q",
                title="Record t",
                axis=alt.Axis(tickMinStep=1),
                scale=alt.Scale(zero=False, nice=False),
            ),
            y=alt.Y(what, title=title, scale=alt.Scale(domain=[0, 1])),
        )
    )
