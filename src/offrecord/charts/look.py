"""How charts look: colours, sizes, legends, by day and by night."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

#: Rows that a chart is drawn from, a dictionary each.
Rows = Sequence[dict[str, Any]]

#: Colours that stay apart for colour-blind readers; the first three are those of the paper.
PALETTE = ("#2e2585", "#337538", "#c26a77", "#dca237", "#5da899", "#9f4a96", "#7f7f7f", "#94cbec")
#: Shades of the paper's regions.
REGION_COLOURS = {"L": "#c26a77", "M": "#dca237", "S": "#337538"}
_FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Look:
    """Colours: of text and rules, of grids, of lines by mechanism or value; how much of a region's
    colour shines through.
    """

    ink: str
    grid: str
    palette: tuple[str, ...]
    shade: float = 0.18

    @property
    def accent(self) -> str:
        """Of what there is but one."""
        return self.palette[0]


LIGHT = Look("#222222", "#e4e4ea", PALETTE)
DARK = Look(
    "#e8e8ee",
    "#3a3a48",
    ("#aaa2ff", "#7cc98c", "#ec9aa8", "#efc06a", "#86d4c5", "#dd96d5", "#b5b5b5"),
    0.36,
)


def rows_of(rows: Rows | str) -> Any:
    """What a chart is drawn from: rows, or the name under which whoever shows it will give them."""
    import altair as alt

    return alt.NamedData(rows) if isinstance(rows, str) else alt.Data(values=list(rows))


def mechanism_colours(names: Sequence[str], look: Look = LIGHT) -> Any:
    """A colour for each mechanism, and a legend below."""
    import altair as alt

    scale = alt.Scale(domain=list(names), range=list(look.palette[: len(names)]))
    return alt.Color(
        "mechanism:N",
        title=None,
        scale=scale,
        legend=alt.Legend(labelLimit=400, orient="bottom", columns=2, symbolType="stroke"),
    )


def dressed(chart: Any, look: Look, height: int = 300) -> dict[str, Any]:
    """The specification of a chart for a page: as wide as its place, on the page's own ground."""
    quiet = {"labelColor": look.ink, "titleColor": look.ink}
    spec: dict[str, Any] = chart.properties(width="container", height=height).to_dict()
    spec["background"] = None
    spec["autosize"] = {"type": "fit", "contains": "padding", "resize": True}
    spec["config"] = {
        "font": _FONT,
        "axis": {
            **quiet,
            "gridColor": look.grid,
            "domainColor": look.ink,
            "tickColor": look.ink,
            "titleFontWeight": "normal",
            "labelFontSize": 12,
            "titleFontSize": 12,
        },
        "legend": {**quiet, "titleFontWeight": "normal", "labelFontSize": 12, "orient": "bottom"},
        "view": {"stroke": None},
    }
    return spec
