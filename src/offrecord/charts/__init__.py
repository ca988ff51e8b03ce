"""Charts in Vega-Lite: specifications made here, drawn as SVG, PNG or HTML without a browser.

chart   a specification that can be drawn      look   colours, sizes, and the parts of pictures
pictures   what is drawn, from plain rows
"""

from offrecord.charts.chart import FORMATS, Chart, check_drawable, check_picture, undrawable
from offrecord.charts.pictures import (
    belief_chart,
    influence_chart,
    leakage_chart,
    ratio_chart,
    redaction_chart,
    rule_chart,
    utility_chart,
)

__all__ = [
    "FORMATS",
    "Chart",
    "belief_chart",
    "check_drawable",
    "check_picture",
    "influence_chart",
    "leakage_chart",
    "ratio_chart",
    "redaction_chart",
    "rule_chart",
    "undrawable",
    "utility_chart",
]
