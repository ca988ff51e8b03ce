"""Deciding: side rules laid onto tables. layout.py: positions; settings.py: which rules a table
needs; local.py, stopping.py: the two kinds of rules; decide.py: what acts; geometry.py, expect.py:
what is expected of it.
"""

from offrecord.mechanisms.deciding.decide import (
    ALWAYS,
    AT_TIMES,
    NEVER,
    Certainty,
    certain,
    decide,
    local_redaction,
)
from offrecord.mechanisms.deciding.expect import expected_released
from offrecord.mechanisms.deciding.geometry import Geometry, geometry
from offrecord.mechanisms.deciding.layout import Draw, Mask, PlaceOf
from offrecord.mechanisms.deciding.settings import settings_needed

__all__ = [
    "ALWAYS",
    "AT_TIMES",
    "NEVER",
    "Certainty",
    "Draw",
    "Geometry",
    "Mask",
    "PlaceOf",
    "certain",
    "decide",
    "expected_released",
    "geometry",
    "local_redaction",
    "settings_needed",
]
