"""Deciding: side rules laid onto tables. layout.py: positions, and which rules a table needs;
local.py, stopping.py: the two kinds of rules; decide.py: what acts; expect.py: what is expected.
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
from offrecord.mechanisms.deciding.expect import Geometry, expected_released, geometry
from offrecord.mechanisms.deciding.layout import Draw, Mask, PlaceOf, settings_needed

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
