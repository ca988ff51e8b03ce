"""Fig. 1: how much each record tells about the private one."""

from __future__ import annotations

from typing import Any

from offrecord.charts.look import REGION_COLOURS, Rows


def influence_chart(rows: Rows, threshold: float) -> Any:
    """Fig. 1: pointwise influence of each record and value, and the regions a threshold ε′ makes.

    rows: record, value, influence, region.
    """
    import altair as alt

    rule = (
        alt.Chart(alt.Data(values=[{"level": threshold, "name": f"ε′ = {threshold:g}"}]))
        .mark_rule(strokeDash=[6, 4], color="black")
        .encode(y="level:Q")
    )
    label = rule.mark_text(align="left", dx=4, dy=-6).encode(x=alt.value(0), text="name:N")
    layers = alt.layer(_region_shades(rows), rule, label, _influence_lines(rows))
    return layers.properties(width=520, height=300)


def _region_shades(rows: Rows) -> Any:
    """A band of colour behind the records of each region."""
    import altair as alt

    colours = alt.Scale(domain=list(REGION_COLOURS), range=list(REGION_COLOURS.values()))
    return (
        alt.Chart(alt.Data(values=_bands(rows)))
        .mark_rect(opacity=0.18)
        .encode(
            x=alt.X("from:Q"),
            x2="to:Q",
            color=alt.Color("region:N", title="region", scale=colours),
        )
    )


def _influence_lines(rows: Rows) -> Any:
    """A line for each value and side; what is infinite is not drawn."""
    import altair as alt

    finite = [row for row in rows if row["influence"] != float("inf")]
    return (
        alt.Chart(alt.Data(values=finite))
        .mark_line(point=True)
        .encode(
            x=alt.X(
                "record:Q",
                title="Distance t − p from the private record",
                axis=alt.Axis(tickMinStep=1),
            ),
            y=alt.Y("influence:Q", title="Pointwise influence on record t with value x"),
            detail="side:N",
            strokeDash=alt.StrokeDash(
                "value:N", title="value x", legend=alt.Legend(symbolType="stroke")
            ),
            color=alt.value("#2e2585"),
        )
    )


def _bands(rows: Rows) -> list[dict[str, Any]]:
    """Stretches of records of one region: from, to, region."""
    bands: list[dict[str, Any]] = []
    for record, region in sorted({(row["record"], row["region"]) for row in rows}):
        if bands and bands[-1]["region"] == region and bands[-1]["to"] == record - 0.5:
            bands[-1]["to"] = record + 0.5
        else:
            bands.append({"from": record - 0.5, "to": record + 0.5, "region": region})
    return bands
