"""What draws allow where values are not known, against all values that there may have been: each
walk and each gap that is held out is followed one by one, as certificates say it.
"""

import base64
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offrecord.release.certificate import GapStopping
from offrecord.verify.table.owner.held import HeldOut
from offrecord.verify.table.owner.rule import gap_thresholds, held_states
from offrecord.verify.table.owner.thresholds import ANY, Thresholds, Walks

ALWAYS = 2**64 - 1  # stands for a threshold of 2⁶⁴
FEW = np.array([0, 1, 2**62, 2**63, 2**64 - 2**11, ALWAYS], dtype=np.uint64)


def lies_below(draw, limit):
    return int(limit) == ALWAYS or int(draw) < int(limit)


def fillings(values, k):
    """All that some values may have been."""
    return product(*(range(k) if value == ANY else [value] for value in values.tolist()))


def unknown(rng, shape, k):
    """Values of which some are not known."""
    return np.where(rng.random(shape) < 0.4, ANY, rng.integers(0, k, shape)).astype(np.int8)


def walked(limits, end, values, draws, reach):
    """The level at which a walk stops, and its label."""
    labels = limits.limits.shape[-1]
    for level, distance in enumerate(limits.levels[:-1].tolist()):
        ahead = values[level + 1] if limits.ahead else 0
        row = limits.limits[values[-1], level, end, values[level], ahead]
        if distance <= reach and lies_below(draws[level], row[-1]):
            return level, next(at for at in range(labels) if lies_below(draws[level], row[at]))
    return len(limits.levels) - 1, labels + values[-1]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([1, 2, 3]),
    st.integers(1, 4),
    st.booleans(),
    st.integers(1, 3),
)
def test_walks_may_do_what_some_values_make_them_do(seed, k, levels, ahead, labels):
    rng, count = np.random.default_rng(seed), 25
    shape = (k, levels - 1, k, k, k if ahead else 1, labels)
    limits = Thresholds(
        np.cumsum(rng.integers(1, 3, levels)), np.sort(rng.choice(FEW, shape), axis=-1)
    )
    walks = Walks(
        unknown(rng, count, k),
        unknown(rng, (count, levels), k),
        rng.integers(0, 2**64, (count, levels), dtype=np.uint64),  # one more than it needs
        rng.integers(0, 8, count),
    )
    found = limits.possible(walks)
    stops, told = np.zeros_like(found.stops), np.zeros_like(found.labels)
    for walk in range(count):
        for end, *values in fillings(np.append(walks.end[walk], walks.values[walk]), k):
            level, label = walked(limits, end, values, walks.draws[walk], walks.reach[walk])
            stops[walk, level] = told[walk, label] = True
    assert np.array_equal(found.stops, stops)
    assert np.array_equal(found.labels, told)


def left_over(limits, ends, values, draws):
    """The first and the last record that are released of a gap that is held out, 0 for nothing."""
    first, last = 1, len(values)
    states = held_states(len(values))
    while True:
        row = limits[states.index((first, last))]
        release, lose = row[ends[0], ends[1], values[first - 1], values[last - 1]]
        draw = draws[len(values) - (last - first + 1)]
        if lies_below(draw, release):
            return first, last
        if first == last:
            return 0, 0
        first, last = (first + 1, last) if lies_below(draw, lose) else (first, last - 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3]), st.integers(1, 4))
def test_gaps_may_leave_what_some_values_make_them_leave(seed, k, length):
    rng, count = np.random.default_rng(seed), 8
    stop = rng.choice(FEW, length * (length + 1) * k**4)
    written = base64.b64encode(stop.astype("<u8").tobytes()).decode()
    gap = GapStopping(length=length, budgets=(0.5, 0.5), stop=written)
    outcomes = [(0, 0), *held_states(length)]
    left, right, inside = (unknown(rng, shape, k) for shape in (count, count, (count, length)))
    draws = rng.integers(0, 2**64, (count, length), dtype=np.uint64)
    limits, seen = gap_thresholds(gap, k), [set() for _ in range(count)]
    for at in range(count):
        for one, other, *values in fillings(np.array([left[at], right[at], *inside[at]]), k):
            seen[at].add(left_over(limits, (one, other), values, draws[at]))
    for first, last in outcomes:
        shown = (np.full(count, first), np.full(count, last))
        found = HeldOut(left, right, inside, draws, *shown).possible(gap, k)
        assert found.tolist() == [(first, last) in each for each in seen]


@pytest.mark.parametrize("size", [1, 7])
def test_walks_some_at_a_time(size, monkeypatch):
    """As many as are looked at at once make no difference."""
    rng, k = np.random.default_rng(1), 2
    limits = Thresholds(
        np.arange(1, 5), rng.integers(0, 2**64, (k, 3, k, k, k, 1), dtype=np.uint64)
    )
    draws = rng.integers(0, 2**64, (50, 3), dtype=np.uint64)
    walks = Walks(unknown(rng, 50, k), unknown(rng, (50, 4), k), draws, np.full(50, 3))
    before = limits.possible(walks)
    monkeypatch.setattr("offrecord.verify.table.owner.thresholds._CELLS", size * k**3)
    for one, other in zip(before, limits.possible(walks), strict=True):
        assert np.array_equal(one, other)
