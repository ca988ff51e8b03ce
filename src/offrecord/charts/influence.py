"""Fig. 1: how much each record tells about the private one."""

from __future__ import annotations

from typing import Any

from offrecord.charts.look import LIGHT, REGION_COLOURS, Look, Rows, rows_of

_DISTANCE = "Distance t − p from the private record"


def influence_chart(rows: Rows, threshold: float) -> Any:
    """Fig. 1: pointwise influence of each record and value, and the regions a threshold ε′ makes.

    rows: record, value, influence, region.
    """
    level = [{"level": threshold, "name": f"ε′ = {threshold:g}"}]
    finite = [row for row in rows if row["influence"] != float("inf")]
    layers = influence_layers(finite, bands(rows), level, _DISTANCE)
    return layers.properties(width=520, height=300)


def influence_layers(
    rows: Rows | str, shades: Rows | str, level: Rows | str, along: str, look: Look = LIGHT
) -> Any:
    """The same of rows that are given later, under names.

    rows: record, side, value, influence, all finite. shades: begin, end, region. level: level,
    name. along: what records count.
    """
    import altair as alt

    rule = (
        alt.Chart(rows_of(level)).mark_rule(strokeDash=[6, 4], color=look.ink).encode(y="level:Q")
    )
    label = rule.mark_text(align="left", dx=4, dy=-6, color=look.ink).encode(
        x=alt.value(0), text="name:N"
    )
    return alt.layer(_region_shades(shades, look), rule, label, _influence_lines(rows, along, look))


def _region_shades(shades: Rows | str, look: Look) -> Any:
    """A band of colour behind the records of each region."""
    import altair as alt

    colours = alt.Scale(domain=list(REGION_COLOURS), range=list(REGION_COLOURS.values()))
    return (
        alt.Chart(rows_of(shades))
        .mark_rect(opacity=look.shade)
        .encode(
            x=alt.X("begin:Q"),
            x2="end:Q",
            color=alt.Color("region:N", title="region", scale=colours),
        )
    )


def _influence_lines(rows: Rows | str, along: str, look: Look) -> Any:
    """A line for each value and side; what is infinite is not drawn."""
    import altair as alt

    return (
        alt.Chart(rows_of(rows))
        .mark_line(point=True)
        .encode(
            x=alt.X(
                "record:Q",
                title=along,
                axis=alt.Axis(tickMinStep=1),
                scale=alt.Scale(zero=False, nice=False),
            ),
            y=alt.Y("influence:Q", title="Influence of record t with value x"),
            detail="side:N",
            strokeDash=alt.StrokeDash(
                "value:N", title="value x", legend=alt.Legend(symbolType="stroke")
            ),
            color=alt.value(look.accent),
        )
    )


def bands(rows: Rows) -> list[dict[str, Any]]:
    """Stretches of records of one region: begin, end, region."""
    found: list[dict[str, Any]] = []
    for record, region in sorted({(row["record"], row["region"]) for row in rows}):
        if found and found[-1]["region"] == region and found[-1]["end"] == record - 0.5:
            found[-1]["end"] = record + 0.5
        else:
            found.append({"begin": record - 0.5, "end": record + 0.5, "region": region})
    return found
