"""Learning a model from reference data, and judging how well it fits."""

from offrecord._moved import names_moved

__getattr__ = names_moved(__name__)
