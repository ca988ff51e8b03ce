"""Charts in one grammar, Vega-Lite, written as SVG, PNG or HTML without a browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from offrecord.errors import InputError
from offrecord.files import check_writable, write_bytes

FORMATS = ("svg", "png", "html")
#: Colours that stay apart for colour-blind readers; the first three are those of the paper.
PALETTE = ("#2e2585", "#337538", "#c26a77", "#dca237", "#5da899", "#9f4a96", "#7f7f7f")

Rows = Sequence[dict[str, Any]]


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

    colours = alt.Scale(domain=["L", "M", "S"], range=["#c26a77", "#dca237", "#337538"])
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
            color=_colours(names),
            order="epsilon:Q",
        )
        .properties(width=520, height=320, **({"title": title} if title else {}))
    )


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
            color=_colours(names),
        )
        .properties(width=520, height=320)
    )


def _colours(names: Sequence[str]) -> Any:
    import altair as alt

    scale = alt.Scale(domain=list(names), range=list(PALETTE[: len(names)]))
    return alt.Color(
        "mechanism:N",
        title=None,
        scale=scale,
        legend=alt.Legend(labelLimit=400, orient="bottom", columns=2, symbolType="stroke"),
    )


def check_picture(path: str | Path, *, force: bool) -> None:
    """InputError unless a chart could be written there."""
    if Path(path).suffix.removeprefix(".") not in FORMATS:
        raise InputError(
            f"picture must end in {', '.join('.' + name for name in FORMATS)}, got {path}"
        )
    check_writable(path, force=force)


def write_chart(chart: Any, path: str | Path, *, force: bool = False) -> None:
    """Write a chart; the file name's ending says how."""
    import io

    check_picture(path, force=force)
    kind = Path(path).suffix.removeprefix(".")
    if kind == "png":
        buffer = io.BytesIO()
        chart.save(buffer, format="png", ppi=160)
        write_bytes(path, buffer.getvalue(), force=force)
    else:
        text = io.StringIO()
        chart.save(text, format=kind, **({"inline": True} if kind == "html" else {}))
        write_bytes(path, text.getvalue().encode(), force=force)
