"""Charts in Vega-Lite: specifications made here, drawn as SVG, PNG or HTML without a browser.

chart   a specification that can be drawn      look   colours, sizes, and the parts of pictures
lines   rules, influence, utility over ε       bars   leakage, beliefs and what attackers find
"""

from offrecord.charts.bars import belief_chart, leakage_chart, ratio_chart
from offrecord.charts.chart import FORMATS, Chart, check_drawable, check_picture, undrawable
from offrecord.charts.lines import influence_chart, redaction_chart, rule_chart, utility_chart

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
