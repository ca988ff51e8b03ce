"""How charts look: colours, sizes, legends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: Rows that a chart is drawn from, a dictionary each.
Rows = Sequence[dict[str, Any]]

#: Colours that stay apart for colour-blind readers; the first three are those of the paper.
PALETTE = ("#2e2585", "#337538", "#c26a77", "#dca237", "#5da899", "#9f4a96", "#7f7f7f", "#94cbec")
#: Shades of the paper's regions.
REGION_COLOURS = {"L": "#c26a77", "M": "#dca237", "S": "#337538"}


def mechanism_colours(names: Sequence[str]) -> Any:
    """A colour for each mechanism, and a legend below."""
    import altair as alt

    scale = alt.Scale(domain=list(names), range=list(PALETTE[: len(names)]))
    return alt.Color(
        "mechanism:N",
        title=None,
        scale=scale,
        legend=alt.Legend(labelLimit=400, orient="bottom", columns=2, symbolType="stroke"),
    )
