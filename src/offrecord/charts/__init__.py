"""Charts in one grammar, Vega-Lite: specifications made here, drawn as SVG, PNG or HTML.

They know rows of numbers and nothing else of the package, so that every room may draw.
"""

from offrecord.charts.files import FORMATS, check_picture, write_chart
from offrecord.charts.images import image_tag
from offrecord.charts.influence import influence_chart
from offrecord.charts.posterior import posterior_chart
from offrecord.charts.redaction import redaction_chart
from offrecord.charts.utility import utility_chart

__all__ = [
    "FORMATS",
    "check_picture",
    "image_tag",
    "influence_chart",
    "posterior_chart",
    "redaction_chart",
    "utility_chart",
    "write_chart",
]
