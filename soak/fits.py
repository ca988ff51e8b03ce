"""Fits of tables that obey the model: no verdict may say that the promise is broken."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np

from offrecord.fitting.fit import fit
from soak.coverage import _drawn, _units, _walk
from soak.running import Campaign, Notes, ViolationError


def _obeys(units: int, records: int, rng: random.Random, folder: Path) -> Notes:
    k, order = rng.choice([(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1), (6, 1)])
    truth = _drawn(k, order, rng.randrange(2**31))
    rows = truth.transition.reshape(-1, k).cumsum(axis=1)
    draw = np.random.default_rng(rng.randrange(2**62))
    codes = np.array([_walk(rows, k, records, draw) for _ in range(units)])
    found = fit(_units(codes), list(range(k)))
    notes: Notes = Counter({"fits": 1})
    for one in found.model.verdicts:
        notes[one.verdict] += 1
        if one.verdict == "broken":
            raise ViolationError(
                f"broken at ε = {one.epsilon}: counted {one.counted}, promised {one.promised}"
            )
    return notes


CAMPAIGN = Campaign(
    {
        "one chain of 3,000": partial(_obeys, 1, 3000),
        "20 chains of 200": partial(_obeys, 20, 200),
        "100 chains of 60": partial(_obeys, 100, 60),
    },
    limit=300.0,
    words="Tables that come from one chain of order 1 to 3 with two to six values. A violation is"
    " a verdict *broken* at ε = 0.5, 1 or 2.",
)
