"""Charts in Vega-Lite: specifications made here, drawn as SVG, PNG or HTML without a browser.

chart   a specification that can be drawn      look   colours and sizes, by day and by night
rule, influence, curve, leakage, beliefs, strip: one picture a file, made of plain rows
"""

from offrecord.charts.beliefs import belief_chart, ratio_chart
from offrecord.charts.chart import FORMATS, Chart, check_drawable, check_picture, undrawable
from offrecord.charts.curve import budgets_chart, utility_chart
from offrecord.charts.influence import bands, influence_chart
from offrecord.charts.leakage import leakage_chart
from offrecord.charts.rule import redaction_chart, rule_chart
from offrecord.charts.strip import strip_chart

__all__ = [
    "FORMATS",
    "Chart",
    "bands",
    "belief_chart",
    "budgets_chart",
    "check_drawable",
    "check_picture",
    "influence_chart",
    "leakage_chart",
    "ratio_chart",
    "redaction_chart",
    "rule_chart",
    "strip_chart",
    "undrawable",
    "utility_chart",
]
