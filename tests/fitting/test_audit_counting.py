"""What the audit counts, and its limits, against their definitions."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from test_fit import chains_of, stationary_chains, tables

from offrecord.fitting.audit.across import across_chains
from offrecord.fitting.audit.chance import Drawing
from offrecord.fitting.audit.looks import Look, neighbours
from offrecord.fitting.audit.odds import ERROR, SEPARATE, Table, error_together, lower, upper
from offrecord.fitting.audit.periods import at_lag, by_phase, periods
from offrecord.fitting.audit.records import (
    FOLDS,
    HeldBack,
    Records,
    held_back,
    without_each,
)
from offrecord.models.chain import MarkovChain
from offrecord.models.hidden import value_kernel
from offrecord.models.phased import PhasedChain
from offrecord.models.records import Chains


def records_of(table):
    chains = chains_of(table)
    rows = len(chains.codes)
    return chains, Records.of(chains, HeldBack(np.array([0, 0, 0, 0, rows]), whole=False))


def fixed(records, window):
    return np.repeat(np.array(window)[:, np.newaxis], len(records), axis=1)


def drawn_values(kernel, n, rng):
    """(n,) values of a chain of any order, the slow way."""
    order, values = kernel.ndim - 1, [0] * (kernel.ndim - 1)
    for draw in rng.random(n):
        values.append(int(draw < kernel[(*values[-order:], 1)]))
    return np.array(values[order:], dtype=np.int8)


# ---- limits


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([0.05, 0.01, 1e-6]))
def test_limits_are_where_the_tail_is_as_likely_as_the_error(seen, rest, error):
    total = seen + rest
    low = float(lower(np.array([seen]), np.array([total]), error)[0])
    high = float(upper(np.array([seen]), np.array([total]), error)[0])
    if seen == 0:
        assert low == 0
    else:
        assert binom.sf(seen - 1, total, low) == pytest.approx(error, rel=1e-6)
    if rest == 0:
        assert high == 1
    else:
        assert binom.cdf(seen, total, high) == pytest.approx(error, rel=1e-6)


@st.composite
def counted(draw):
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.integers(2, 3)))
    size = math.prod(shape)
    counts = np.array(draw(st.lists(st.integers(0, 60), min_size=size, max_size=size)))
    shares = np.array(draw(st.lists(st.floats(0.05, 1), min_size=size, max_size=size)))
    separate = np.where(counts > 0, np.maximum((counts * shares).astype(int), 1), 0)
    return Table(counts.reshape(shape), separate.reshape(shape))


def slow_worst(table, error):
    """The largest lower limit over upper limit, cell by cell and pair by pair."""
    found = []
    groups, patterns, k = table.counts.shape
    for group in range(groups):
        totals = table.counts[group].sum(axis=0)
        for pattern in range(patterns):
            cells = list(
                zip(
                    table.counts[group, pattern],
                    table.separate[group, pattern],
                    totals,
                    strict=True,
                )
            )
            overlaps = [count / apart for count, apart, _ in cells if apart]
            for likelier in range(k):
                for other in range(k):
                    (seen, apart, total), (seen_other, apart_other, total_other) = (
                        cells[likelier],
                        cells[other],
                    )
                    if apart < SEPARATE or likelier == other:
                        continue
                    by = seen / apart
                    by_other = seen_other / apart_other if apart_other else max(overlaps)
                    low = lower(np.array([seen / by]), np.array([total / by]), error)
                    high = upper(
                        np.array([seen_other / by_other]),
                        np.array([total_other / by_other]),
                        error,
                    )
                    found.append(float(low[0] / high[0]))
    return max(found, default=None)


@settings(max_examples=150, deadline=None)
@given(counted(), st.sampled_from([ERROR, 0.001]))
def test_the_worst_cell_is_that_of_all_cells_and_pairs(table, error):
    worst, slow = table.worst(error), slow_worst(table, error)
    assert (worst is None) == (slow is None)
    if worst is None:
        assert table.at_least(error) == 1
        return
    assert worst.at_least == pytest.approx(max(slow, 1.0), rel=1e-12)
    assert table.at_least(error) == worst.at_least
    assert worst.odds >= worst.at_least
    groups = [one.at_least for one in table.worst_by_group(error)]
    assert max(groups) == worst.at_least


def test_limits_that_hold_together_are_wider():
    counts = np.array([[[400, 60], [100, 940]]])
    table = Table(counts, counts // 3)
    alone, together = table.worst(ERROR), table.worst(error_together(table.cells))
    assert 1 < together.at_least < alone.at_least < alone.odds == together.odds


# ---- what is seen


def slow_cases(table, window, depth):
    """(pattern, value) of every record with so many records released on each side."""
    for rows in table:
        known = [(place, value) for place, value in rows if value is not None]
        for place, value in known:
            before = [v for p, v in known if p < place - window[0]][::-1][: depth[0]]
            after = [v for p, v in known if p > place + window[1]][: depth[1]]
            if (len(before), len(after)) == depth:
                yield (*before, *after), value


@settings(max_examples=60, deadline=None)
@given(tables(), st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_neighbours_are_the_nearest_records_beyond_the_window(table, window):
    table = table * 30  # tables deeper than the data can carry are not counted
    _, records = records_of(table)
    if not len(records):
        return
    look = neighbours(records, fixed(records, window), 1.0)
    for depth, found in look.tables(records.codes, records.at, 3):
        expected = Counter(slow_cases(table, window, tuple(depth)))
        counts = found.counts.reshape((3,) * (sum(depth) + 1))
        assert {(i[:-1], i[-1]): c for i, c in np.ndenumerate(counts) if c} == expected


@settings(max_examples=60, deadline=None)
@given(tables(k=2), st.tuples(st.integers(0, 2), st.integers(0, 2)))
def test_the_faster_count_is_the_same(table, window):
    _, records = records_of(table * 8)
    if not len(records):
        return
    look = neighbours(records, fixed(records, window), 1.0)
    plain = [counted.counts for _, counted in look.tables(records.codes, records.at, 2)]
    faster = [counted.counts for counted in look.bounds(records.codes, records.at, 2)]
    assert len(plain) == len(faster)
    assert all(np.array_equal(one, other) for one, other in zip(plain, faster, strict=True))


def test_cases_are_separate_if_they_are_further_apart_than_what_is_looked_at():
    values = np.zeros(100, dtype=np.int8)
    chains = Chains(np.array([0, 60, 100]), values, np.arange(100), False, None)
    records = Records.of(chains, HeldBack(np.array([0, 0, 0, 0, 100]), whole=False))
    look = neighbours(records, fixed(records, (2, 2)), 1.0)
    _, table = next(look.tables(records.codes, records.at, 2))
    # records 3 to 59 of the first chain and 3 to 39 of the second; more than five apart
    assert table.counts[0, 0, 0] == 57 + 37
    assert table.separate[0, 0, 0] == len(range(3, 60, 6)) + len(range(3, 40, 6))


def test_nothing_is_seen_around_a_record_where_all_is_redacted():
    chains = Chains(np.array([0, 30]), np.zeros(30, dtype=np.int8), np.arange(30), False, None)
    records = Records.of(chains, HeldBack(np.array([0, 0, 0, 0, 30]), whole=False))
    windows = fixed(records, (1, 1))
    windows[:, :10] = -1
    _, table = next(neighbours(records, windows, 1.0).tables(records.codes, records.at, 2))
    assert table.counts.sum() == 20


# ---- phases, periods, chains


def test_phases_count_together_until_each_block_has_cases():
    rng = np.random.default_rng(0)
    values = (rng.random(2400) < 0.2).astype(np.int8)
    phases = np.arange(2400) % 24
    chains = Chains(np.array([0, 2400]), values, np.arange(2400), False, None)
    records = Records.of(chains, held_back(chains))
    near = neighbours(records, fixed(records, (0, 0)), 1.0)
    look = by_phase(near, "hour", phases, values.astype(np.int64))
    assert look.names[:2] == ("hours 0 to 2", "hours 3 to 5")
    _, table = next(look.tables(records.codes, records.at, 2))
    expected = np.zeros((8, 2, 2), dtype=int)
    for t in range(1, 2400):
        expected[phases[t] // 3, values[t - 1], values[t]] += 1
    assert np.array_equal(table.counts, expected)
    pairs = Counter((phase // 2, value) for phase, value in zip(phases, values, strict=True))
    # blocks of two are too small
    assert min(pairs.values()) < 30 <= expected[:, :, 1].sum(axis=1).min()
    rare = (np.arange(2400) % 50 == 0).astype(np.int64)  # 48 cases: no two halves have 30
    assert by_phase(near, "hour", phases, rare) is None


def daily(rng, days, share=0.85):
    """Hours of days: half of each is mostly 1, the other half mostly 0."""
    hours = np.arange(24 * days) % 24
    return (rng.random(24 * days) < np.where(hours < 12, share, 1 - share)).astype(np.int8)


def test_a_period_is_found_where_there_is_one():
    rng = np.random.default_rng(3)
    values = daily(rng, 120)
    chains = Chains(np.array([0, len(values)]), values, np.arange(len(values)), False, None)
    records = Records.of(chains, held_back(chains))
    assert periods(records) == [24]
    look = neighbours(records, fixed(records, (4, 4)), 1.0)
    lag = at_lag(look, records, fixed(records, (4, 4)), 24)
    tables_ = dict(lag.tables(records.codes, records.at, 2))
    expected = Counter(zip(values[:-24].tolist(), values[24:].tolist(), strict=True))
    assert {
        i: c for i, c in np.ndenumerate(tables_[1, 0].counts[0]) if c
    } == expected  # the value a day before, then the secret's
    assert at_lag(look, records, fixed(records, (4, 24)), 24) is None


def test_a_chain_that_only_forgets_has_no_period():
    rng = np.random.default_rng(5)
    for alpha, beta in ((0.02, 0.3), (0.3, 0.4), (0.004, 0.012)):
        values = drawn_values(MarkovChain.binary(alpha, beta).transition, 6000, rng)
        chains = Chains(np.array([0, 6000]), values, np.arange(6000), False, None)
        assert periods(Records.of(chains, held_back(chains))) == []


def test_chains_are_joined_where_they_share_time():
    rng = np.random.default_rng(1)
    order = np.concatenate([np.arange(0, 400), np.arange(100, 500), np.arange(1000, 1200)])
    values = (rng.random(1000) < 0.3).astype(np.int8)
    chains = Chains(np.array([0, 400, 800, 1000]), values, order, False, None)
    records = Records.of(chains, held_back(chains))
    (look,) = across_chains(records, order, 0.5, 10)
    assert look.names == ("chain 2 about chain 1", "chain 1 about chain 2")
    tables_ = dict(look.tables(records.codes, records.at, 2))
    one, other = values[100:400], values[400:700]  # both from 100 to 399
    same = Counter(zip(other.tolist(), one.tolist(), strict=True))
    assert {i: c for i, c in np.ndenumerate(tables_[1, 0].counts[0]) if c} == same
    after = Counter(
        zip(other.tolist(), values[401:701].tolist(), one.tolist(), strict=True)
    )  # at the same time, a step after, the secret
    counts = tables_[1, 1].counts[0].reshape(2, 2, 2)
    assert {i: c for i, c in np.ndenumerate(counts) if c} == after


# ---- what is held back


def test_whole_chains_are_held_back_where_there_are_enough():
    many = Chains(np.arange(0, 1001, 50), np.zeros(1000, np.int8), np.arange(1000), False, None)
    cut = held_back(many)
    assert cut.whole
    assert set(cut.bounds.tolist()) <= set(range(0, 1001, 50))
    assert str(cut) == "chains, a quarter of the records at a time"
    few = Chains(np.array([0, 900, 1000]), np.zeros(1000, np.int8), np.arange(1000), False, None)
    cut = held_back(few)
    assert not cut.whole
    assert cut.bounds.tolist() == [0, 250, 500, 750, 1000]


@pytest.mark.parametrize("count", [3, 40])
def test_parts_have_as_many_records_with_values_each(count):
    """Whichever chains have none: those that hold private records are left out so."""
    codes = np.zeros(count * 500, dtype=np.int8)
    codes[: 500 * (count // 2)] = -1
    codes[-250:] = -1
    chains = Chains(np.arange(0, len(codes) + 1, 500), codes, np.arange(len(codes)), False, None)
    cut = held_back(chains)
    sizes = [np.count_nonzero(codes[a:b] >= 0) for a, b in pairwise(cut.bounds)]
    assert sum(sizes) == np.count_nonzero(codes >= 0)
    assert min(sizes) >= 0.8 * max(sizes)
    assert cut.whole == (count == 40)


def test_a_model_sees_nothing_near_to_what_is_held_back():
    chains = Chains(np.array([0, 600, 2000]), np.zeros(2000, np.int8), np.arange(2000), False, None)
    cut = held_back(chains)
    for number, part in enumerate(without_each(chains, cut)):
        seen = np.flatnonzero(part.codes >= 0)
        held = np.arange(500 * number, 500 * (number + 1))
        distance = np.abs(seen[:, np.newaxis] - held).min(axis=1)
        same_chain = (seen < 600) == (held[0] < 600) if held[-1] < 600 or held[0] >= 600 else True
        assert np.all((distance > 50) | ~np.asarray(same_chain))
        assert len(seen) >= 2000 - 500 - 2 * 50
    assert number == FOLDS - 1


def test_of_very_many_records_the_first_of_each_part_are_looked_at():
    chains = Chains(np.array([0, 4000]), np.zeros(4000, np.int8), np.arange(4000), False, None)
    records = Records.of(chains, held_back(chains), largest=400)
    assert len(records) == 400
    assert records.rows.tolist() == [r for p in range(4) for r in range(1000 * p, 1000 * p + 100)]


# ---- chance


def drawn_from(model, chains, phases=None, seed=0):
    """One drawing along the records of a reference, kernels from what it shows."""
    records = Records.of(chains, held_back(chains))
    told = None if phases is None else phases[records.rows]
    return Drawing.along(model, records, told).drawn(np.random.default_rng(seed)).astype(int)


def shares(before, after, k):
    pairs = np.bincount(before * k + after, minlength=before.max() * k + k).reshape(-1, k)
    return pairs / pairs.sum(axis=1, keepdims=True)


def test_drawn_chains_follow_the_counts_across_gaps_too():
    kernel = np.array([[0.8, 0.15, 0.05], [0.3, 0.5, 0.2], [0.1, 0.3, 0.6]])
    places = np.cumsum(np.tile([1, 3], 30_000))
    values = stationary_chains(np.random.default_rng(1), kernel, 1, places[-1] + 1)[0][places]
    chains = Chains(np.array([0, len(places)]), values, places, False, places)
    codes = drawn_from(MarkovChain(kernel), chains)
    third = np.linalg.matrix_power(kernel, 3)
    assert np.abs(shares(codes[1::2][:-1], codes[2::2], 3) - kernel).max() < 0.03
    assert np.abs(shares(codes[::2], codes[1::2], 3) - third).max() < 0.03


def test_drawn_chains_follow_hidden_states():
    """More states than values: a regime that lasts, in which value 1 comes often or hardly ever."""
    kernel = np.array([[0.9, 0.08, 0.02], [0.7, 0.28, 0.02], [0.03, 0.03, 0.94]])
    model = MarkovChain(kernel, shows=[0, 1, 1])
    chains = Chains(np.array([0, 60_000]), np.zeros(60_000, np.int8), np.arange(60_000), True, None)
    codes = drawn_from(model, chains)
    expected = value_kernel(kernel, model.lifted.start, model.shows, 2)
    assert np.abs(shares(codes[:-1], codes[1:], 2) - expected).max() < 0.02
    ones = (codes[:-2] == 1) & (codes[1:-1] == 1)  # two ones: the regime, so another one
    assert codes[2:][ones].mean() > expected[1, 1] + 0.02


def test_drawn_chains_follow_an_order_and_phases():
    kernel = np.array([[[0.95, 0.05], [0.4, 0.6]], [[0.8, 0.2], [0.2, 0.8]]])
    n, rng = 60_000, np.random.default_rng(2)
    values = drawn_values(kernel, n, rng)
    chains = Chains(np.array([0, n]), values, np.arange(n), False, None)
    codes = drawn_from(MarkovChain(kernel, order=2), chains)
    found = shares(codes[:-2] * 2 + codes[1:-1], codes[2:], 2)
    assert np.abs(found - kernel.reshape(4, 2)).max() < 0.03
    kernels = np.array([[[0.9, 0.1], [0.2, 0.8]]] * 6 + [[[0.3, 0.7], [0.6, 0.4]]])
    phases = np.arange(n) % 7
    values = np.zeros(n, dtype=np.int8)
    for t, draw in enumerate(rng.random(n - 1)):
        values[t + 1] = draw < kernels[phases[t], values[t], 1]
    chains = Chains(np.array([0, n]), values, np.arange(n), False, None)
    model = PhasedChain("weekday", kernels, np.full((7, 2), 0.5))
    codes = drawn_from(model, chains, phases)
    found = shares(phases[:-1] * 2 + codes[:-1], codes[1:], 2).reshape(7, 2, 2)
    assert np.abs(found - kernels).max() < 0.04


def test_drawn_kernels_differ_as_much_as_the_counts_leave_open():
    """The share of ones after a one, over many drawings, spreads as the counts say."""
    kernel = np.array([[0.9, 0.1], [0.3, 0.7]])
    values = stationary_chains(np.random.default_rng(4), kernel, 1, 2000)[0]
    chains = Chains(np.array([0, 2000]), values, np.arange(2000), False, None)
    records = Records.of(chains, held_back(chains))
    drawing, rng = Drawing.along(MarkovChain(kernel), records, None), np.random.default_rng(0)
    after = [shares(codes[:-1], codes[1:], 2)[1, 1] for codes in _drawings(drawing, rng, 200)]
    visits = int(drawing.counts[0, 1].sum())
    binomial = np.sqrt(0.21 / visits)
    assert 1.2 * binomial < np.std(after) < 1.7 * binomial  # kernel and records: about √2 of one


def _drawings(drawing, rng, count):
    return [drawing.drawn(rng).astype(int) for _ in range(count)]


def test_a_look_has_a_group_for_each_name():
    empty = np.zeros((0, 1), dtype=np.int32)
    none = np.zeros(0, dtype=np.int32)
    look = Look("hour", 1.0, none, empty, empty, 1, none, ("a", "b"))
    shapes = [table.counts.shape for _, table in look.tables(np.zeros(0, np.int8), none, 2)]
    assert shapes == [(2, 2, 2), (2, 2, 2)]
