"""Clusters that are cut all at once are those that are cut one by one, from the left."""

from __future__ import annotations

import numpy as np
import pytest

from offrecord.designs import clusters
from offrecord.models.records import Chains


def _one_after_the_other(after):
    begin, at = [], 0
    while at < len(after):
        if after[at] - at > 1:
            begin.append(at)
        at = int(after[at])
    return begin


@pytest.mark.parametrize("few", [0, 5, 10**6])
def test_begun_is_what_going_from_the_left_finds(monkeypatch, few):
    monkeypatch.setattr(clusters, "_FEW", few)
    rng = np.random.default_rng(few)
    lengths = []
    for _ in range(500):
        count = int(rng.integers(1, 120))
        joins = rng.random(count) < rng.random()
        joins[-1] = False
        after = np.arange(1, count + 1)
        for at, most in enumerate(rng.integers(1, 6, count)):
            while joins[after[at] - 1] and after[at] - at < most:
                after[at] += 1
        found = clusters._begun(after, joins)
        assert found.tolist() == _one_after_the_other(after)
        lengths.append(len(found))
    assert max(lengths) > 10


@pytest.mark.parametrize("steps", [None, np.array([0, 1, 5, 0, 0, 2])])
def test_width_is_more_than_any_place(steps):
    chains = Chains(np.array([0, 3, 4, 6]), np.zeros(6, dtype=np.int8), np.arange(6), False, steps)
    assert chains.width == chains.places.max() + 2
    none = Chains(np.array([0]), np.zeros(0, dtype=np.int8), np.arange(0), False, None)
    assert none.width == 2
