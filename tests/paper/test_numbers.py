"""Every number of the paper beside ours."""

from collections import Counter

import numpy as np

from offrecord.paper.numbers import Check, checks


def test_every_number():
    found = list(checks())
    places = {"Table I": 4, "Example 1": 5, "Fig. 2": 18, "Fig. 3": 24, "beyond": 6}
    assert Counter(check.place for check in found) == places
    assert [check for check in found if not check.agrees] == []


def test_a_number_agrees_within_its_tolerance_alone():
    assert Check("", "", 0.5, 0.5 + 1e-4, 2e-4).agrees
    assert not Check("", "", 0.5, 0.5 + 3e-4, 2e-4).agrees
    assert not Check("", "", 0.5, np.nan, 1.0).agrees
