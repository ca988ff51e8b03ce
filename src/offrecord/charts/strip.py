"""A strip of a release: records in a row, as they leave."""

from __future__ import annotations

from collections.abc import Sequence

from offrecord.charts.chart import Chart
from offrecord.charts.look import PALETTE, Spec, layered, mark, quantity, values

PRIVATE, GONE = "private", "redacted"
_LONGEST = 4  # characters that fit into a cell
_COLOURS = {PRIVATE: "#444444", GONE: "#a9a9b5"}


def strip_chart(first: int, shown: Sequence[str | None], private: Sequence[int]) -> Chart:
    """Records in order; what is redacted is empty.

    first: number of the first record. shown: the released values, None where there is none.
    private: numbers of the private records.
    """
    rows = []
    for at, value in enumerate(shown, first):
        kind = PRIVATE if at in private else GONE if value is None else "released"
        text = "?" if kind == PRIVATE else "" if value is None else value[:_LONGEST]
        rows.append({"from": at - 0.46, "to": at + 0.46, "record": at, "kind": kind, "text": text})
    kinds = ["released", GONE, PRIVATE]
    scale = {"domain": kinds, "range": [PALETTE[7], _COLOURS[GONE], _COLOURS[PRIVATE]]}
    legend = {"title": None, "symbolType": "square", "columns": 3}
    cells: Spec = {
        "data": values(rows),
        "layer": [
            {
                "mark": mark("rect"),
                "encoding": {
                    "x": quantity("from", axis={"tickMinStep": 1, "format": "d"}),
                    "x2": {"field": "to"},
                    "color": {
                        "field": "kind",
                        "type": "nominal",
                        "scale": scale,
                        "legend": legend,
                    },
                },
            },
            {
                "mark": mark("text"),
                "encoding": {
                    "x": quantity("record"),
                    "text": {"field": "text"},
                    "color": {
                        "condition": {"test": f"datum.kind == '{PRIVATE}'", "value": "#ffffff"},
                        "value": "#1c1c24",
                    },
                },
            },
        ],
        "encoding": {"x": {"scale": {"zero": False, "nice": False}}},
    }
    gone = sum(value is None for value in shown)
    words = f"{len(shown):,} records from number {first:,} on, {gone:,} of them redacted."
    return Chart(layered(cells, x="Record", y=None, height=36), "A part of the release", words)
