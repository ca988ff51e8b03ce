"""The page's pictures: specifications whose data are the rows of answers."""

from __future__ import annotations

from functools import cache
from typing import Any

from offrecord.charts.influence import influence_layers
from offrecord.charts.look import DARK, LIGHT, dressed
from offrecord.charts.redaction import profile_chart
from offrecord.charts.utility import marked_utility_chart
from offrecord.explorer.forms import Form
from offrecord.mechanisms import MECHANISMS


class Pictures(Form):
    """Vega-Lite specifications by name."""

    influence: dict[str, Any]
    profile: dict[str, Any]
    utility: dict[str, Any]


@cache
def pictures(*, dark: bool) -> Pictures:
    """The specifications, by day or by night."""
    look = DARK if dark else LIGHT
    names = list(reversed(MECHANISMS))  # the best first
    return Pictures(
        influence=dressed(
            influence_layers("influence", "regions", "threshold", "Record t", look), look
        ),
        profile=dressed(profile_chart("profile", look), look),
        utility=dressed(marked_utility_chart("points", "chosen", names, look), look, 400),
    )
