"""Charts in one grammar, Vega-Lite: specifications made here, drawn as SVG, PNG or HTML.

They know rows of numbers and nothing else of the package, so that every room may draw.
"""

from offrecord.charts.budgets import budgets_chart
from offrecord.charts.drawing import start, svg_of
from offrecord.charts.engine import check_drawable, undrawable
from offrecord.charts.files import FORMATS, check_picture, write_chart
from offrecord.charts.images import image_tag
from offrecord.charts.influence import influence_chart, influence_layers
from offrecord.charts.posterior import posterior_chart
from offrecord.charts.redaction import profile_chart, redaction_chart
from offrecord.charts.rule import rule_chart
from offrecord.charts.utility import marked_utility_chart, utility_chart

__all__ = [
    "FORMATS",
    "budgets_chart",
    "check_drawable",
    "check_picture",
    "image_tag",
    "influence_chart",
    "influence_layers",
    "marked_utility_chart",
    "posterior_chart",
    "profile_chart",
    "redaction_chart",
    "rule_chart",
    "start",
    "svg_of",
    "undrawable",
    "utility_chart",
    "write_chart",
]
