"""Chains learned from data: counts, rounding, intervals, BIC, tests of stationarity, phases, files,
and the data inside.
"""

import csv
import json
import math
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offrecord.errors import InputError
from offrecord.fitting.checks import Check
from offrecord.fitting.counting import linked_records
from offrecord.fitting.fit import fit_chains
from offrecord.fitting.hidden import fit_states
from offrecord.fitting.intervals import rounded_shares
from offrecord.fitting.orders import (
    bic_by_order,
    checked_order,
    chosen_order,
    deepest_order,
    kernels_used,
    largest_order,
)
from offrecord.models.chain import MarkovChain
from offrecord.models.clock import phases_of
from offrecord.models.loading import load_model
from offrecord.models.phased import PhasedChain
from offrecord.tables.chains import Chains

THREE = np.array([[0.90, 0.08, 0.02], [0.10, 0.80, 0.10], [0.05, 0.15, 0.80]])


# ---- data, and the slow way to count it


@st.composite
def tables(draw, k=3):
    """Lists of (place, value) records, value None where there is none; a few places are
    left out.
    """
    chain = st.lists(
        st.tuples(
            st.sampled_from([1, 1, 1, 1, 2, 3]), st.sampled_from([None, *range(k), *range(k)])
        ),
        max_size=12,
    )
    lists = draw(st.lists(chain, min_size=1, max_size=5).filter(any))
    table = []
    for records in lists:
        place = -records[0][0] if records else 0
        rows = []
        for gap, value in records:
            place += gap
            rows.append((place, value))
        if rows:
            table.append(rows)
    return table


def chains_of(table):
    starts = np.cumsum([0, *(len(rows) for rows in table)])
    codes = np.array(
        [-1 if value is None else value for rows in table for _, value in rows], dtype=np.int8
    )
    places = np.array([place for rows in table for place, _ in rows], dtype=np.int64)
    return Chains(starts, codes, places.copy(), False, places)


def coded(table):
    """Values and which of them have a predecessor, of all chains one after the other."""
    chains = chains_of(table)
    return chains.codes, linked_records(chains.codes, chains.starts, chains.steps)


def windows(table, length):
    """(chain, last place, values) of every stretch of neighbouring records that all have values."""
    for chain, rows in enumerate(table):
        known = {place: value for place, value in rows if value is not None}
        for place in known:
            values = tuple(known.get(place - back) for back in range(length - 1, -1, -1))
            if None not in values:
                yield chain, place, values


def slow_counts(table, order, k):
    counts = np.zeros((k,) * (order + 1), dtype=int)
    for values, count in Counter(values for _, _, values in windows(table, order + 1)).items():
        counts[values] = count
    return counts


def stationary_chains(rng, kernel, count, length, start=None):
    """Chains drawn from a first-order kernel, one below the other."""
    begin = MarkovChain(kernel).start if start is None else start
    values = np.empty((count, length), dtype=np.int8)
    values[:, 0] = rng.choice(len(begin), count, p=begin)
    edges = np.cumsum(kernel, axis=1)[:, :-1]
    for t in range(1, length):
        values[:, t] = (rng.random(count)[:, None] > edges[values[:, t - 1]]).sum(axis=1)
    return values


def as_chains(values):
    count, length = values.shape
    return Chains(
        np.arange(0, count * length + 1, length),
        values.ravel(),
        np.tile(np.arange(length), count),
        False,
        None,
    )


# ---- counting


@settings(max_examples=200)
@given(table=tables(), order=st.sampled_from([1, 2]))
def test_counts_are_those_of_neighbours_with_values_and_gaps_and_nulls_count_for_nothing(
    table, order
):
    expected = slow_counts(table, order, 3)
    if not expected.any():
        with pytest.raises(InputError, match="nothing to learn"):
            fit_chains(chains_of(table), range(3), order=order)
        return
    fit = fit_chains(chains_of(table), range(3), order=order)
    assert np.array_equal(fit.counts, expected)
    assert fit.transitions == expected.sum()
    assert fit.records == sum(value is not None for rows in table for _, value in rows)
    assert fit.chains == len(table)


@settings(max_examples=60)
@given(table=tables(), data=st.data())
def test_the_order_of_chains_does_not_matter(table, data):
    shuffled = data.draw(st.permutations(table))
    if slow_counts(table, 1, 3).any():
        one, other = (
            fit_chains(chains_of(table), range(3)),
            fit_chains(chains_of(shuffled), range(3)),
        )
        assert np.array_equal(one.counts, other.counts)
        assert np.array_equal(one.model.transition, other.model.transition)
        assert one.bic == other.bic
        assert one.stationarity == other.stationarity


@settings(max_examples=60)
@given(table=tables(), data=st.data())
def test_dropped_chains_leave_no_trace(table, data):
    out = data.draw(st.lists(st.booleans(), min_size=len(table), max_size=len(table)))
    kept = [rows for rows, gone in zip(table, out, strict=True) if not gone]
    if kept and slow_counts(kept, 1, 3).any():
        fit = fit_chains(chains_of(table), range(3), dropped=np.array(out))
        alone = fit_chains(chains_of(kept), range(3))
        assert {**fit.summary(), "chains_dropped": 0} == alone.summary()
        assert (fit.chains, fit.dropped) == (len(kept), sum(out))


def test_neighbours_without_steps_are_one_step_apart_and_chains_end_where_they_end():
    chains = Chains(
        np.array([0, 3, 5]),
        np.array([0, 1, 1, 1, 0], dtype=np.int8),
        np.array([5, 90, 91, 1, 7]),
        False,
        None,
    )
    assert fit_chains(chains, ["a", "b"]).counts.tolist() == [[0, 1], [1, 1]]


# ---- estimates


@settings(max_examples=200)
@given(row=st.lists(st.one_of(st.integers(0, 30), st.integers(0, 10**7)), min_size=2, max_size=64))
def test_rounded_rows_have_four_digits_and_sum_to_one(row):
    share = rounded_shares(np.array([row]))[0]
    assert abs(math.fsum(share) - 1) <= 1e-12
    largest = row.index(max(row))
    total = Fraction(sum(row)) + Fraction(len(row), 2)
    for i, (count, number) in enumerate(zip(row, share.tolist(), strict=True)):
        exact = (count + Fraction(1, 2)) / total
        assert number > 0
        if i != largest:
            digits = Decimal(repr(number)).normalize().as_tuple()
            assert len(digits.digits) <= 4
            # nearest: half a unit of the fourth digit away at most
            unit = Fraction(10) ** (math.floor(math.log10(number) + 1e-12) - 3)
            assert abs(Fraction(repr(number)) - exact) <= unit / 2
    assert sum(Fraction(repr(number)) for number in share.tolist()) == pytest.approx(1, abs=1e-15)


def test_halves_are_rounded_to_even_in_decimals():
    """2469 of 20000 halves is 0.12345, 2471 of 20000 is 0.12355: exactly halfway, which binary
    numbers are not.
    """
    down = rounded_shares(np.array([[1234, 8765]]))[0]  # (2·1234 + 1) / (2·9999 + 2) = 2469/20000
    up = rounded_shares(np.array([[1235, 8764]]))[0]
    assert down.tolist() == [0.1234, 0.8766]
    assert up.tolist() == [0.1236, 0.8764]


# ---- orders


@settings(max_examples=100)
@given(table=tables())
def test_bic_is_minus_twice_the_log_likelihood_plus_the_penalty_on_the_same_records(table):
    if not slow_counts(table, 1, 3).any():
        return
    deepest = max(order for order in (1, 2, 3) if any(windows(table, order + 1)))
    paths = [values for _, _, values in windows(table, deepest + 1)]
    by_order, records = bic_by_order(*coded(table), 3, deepest)
    assert set(by_order) == set(range(deepest + 1))
    assert records == len(paths)
    for order, bic in by_order.items():
        contexts = [path[deepest - order : deepest] for path in paths]
        seen = Counter(zip(contexts, (path[-1] for path in paths), strict=True))
        visits = Counter(contexts)
        log_likelihood = sum(
            math.log(seen[context, path[-1]] / visits[context])
            for context, path in zip(contexts, paths, strict=True)
        )
        assert bic == pytest.approx(
            3**order * 2 * math.log(len(paths)) - 2 * log_likelihood, abs=1e-9
        )


def test_many_values_are_merged_as_few_are():
    """64 values have 16.7 million tuples of order 3: counted without a table of them all."""
    rng = np.random.default_rng(3)
    few = rng.integers(0, 4, (3, 500)).astype(np.int8)
    linked = np.ones(1500, dtype=bool)
    linked[::500] = False
    large, records = bic_by_order(few.ravel() * 21, linked, 64, 3)  # 0, 21, 42, 63
    small, same = bic_by_order(few.ravel(), linked, 4, 3)
    assert records == same == 3 * 497
    for order in range(4):
        assert large[order] - 64**order * 63 * math.log(records) == pytest.approx(
            small[order] - 4**order * 3 * math.log(records)
        )


@settings(max_examples=60)
@given(table=tables(k=2), copies=st.sampled_from([1, 10, 40]))
def test_orders_are_compared_as_far_as_the_data_carry_their_parameters(table, copies):
    """Ten records for each parameter, and half of all that have a predecessor."""
    table = table * copies
    if not slow_counts(table, 1, 2).any():
        return
    records = {order: len([*windows(table, order + 1)]) for order in range(1, 9)}
    carried = [
        order
        for order, count in records.items()
        if count >= max(10 * 2**order, records[1] / 2) or order == 1
    ]
    assert deepest_order(coded(table)[1], 2) == max(carried)


@pytest.mark.parametrize(
    ("k", "largest"), [(2, 8), (3, 5), (4, 4), (6, 3), (7, 2), (16, 2), (17, 1)]
)
def test_orders_are_learned_up_to_256_histories(k, largest):
    assert largest_order(k) == largest
    assert checked_order(largest, k) == largest
    assert checked_order("auto", k) is None
    with pytest.raises(InputError, match=f"for {k} values, or auto, got {largest + 1}"):
        checked_order(largest + 1, k)


def test_the_order_is_chosen_by_bic_among_those_that_are_learned():
    assert chosen_order({0: 1.0, 1: 2.0, 2: 3.0}, 2) == 1  # no memory at all is one case of order 1
    assert chosen_order({0: 9.0, 1: 5.0, 2: 3.0, 3: 4.0}, 2) == 2
    assert chosen_order({0: 9.0, 1: 5.0, 2: 5.0}, 2) == 1
    assert chosen_order({0: 9.0, 1: 5.0, 2: 3.0}, 64) == 1


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_bic_finds_the_order_that_made_the_data(order):
    rng = np.random.default_rng(order)
    values = rng.integers(0, 2, 6000).astype(np.int8)
    for t in range(order, 6000):
        if order and rng.random() < 0.6:
            values[t] = (
                values[t - order : t].sum() % 2
            )  # the parity of as many records as the order
    fit = fit_chains(as_chains(values[None]), range(2))
    assert fit.preferred_order == order
    said = {
        0: "simpler than the order 1 fitted",
        1: "the one fitted",
        2: "fit order 2.",
        3: "fit order 3.",
    }[order]
    assert said in fit.verdict
    chosen = fit_chains(as_chains(values[None]), range(2), order="auto")
    assert chosen.model.order == max(order, 1)
    assert chosen.box.order == max(order, 1)
    assert ("the one fitted" in chosen.verdict) == (order > 0)


# ---- stationarity


def explicit_ratio(groups):
    """Twice the gain in log-likelihood by a kernel for each group, over lists of (group, context,
    next).
    """

    def log_likelihood(steps):
        seen, visits = Counter(steps), Counter(context for context, _ in steps)
        return sum(
            count * math.log(count / visits[context]) for (context, _), count in seen.items()
        )

    together = log_likelihood([(context, after) for _, context, after in groups])
    apart = log_likelihood([((group, context), after) for group, context, after in groups])
    return 2 * (apart - together)


@settings(max_examples=100)
@given(table=tables(), order=st.sampled_from([1, 2]))
def test_halves_are_compared_by_their_likelihood(table, order):
    if not slow_counts(table, order, 3).any():
        return
    last = [rows[-1][0] for rows in table]
    steps = []
    for chain, place, values in windows(table, order + 1):
        middle = place - order / 2
        steps.append((middle > last[chain] / 2, values[:-1], values[-1]))
    check = fit_chains(chains_of(table), range(3), order=order).stationarity.halves
    both = {c for half, c, _ in steps if half} & {c for half, c, _ in steps if not half}
    if not both:
        assert check is None
        return
    assert check.statistic == pytest.approx(explicit_ratio(steps), abs=1e-9)
    assert check.degrees == sum(
        len({after for _, c, after in steps if c == context}) - 1 for context in both
    )


def largest_distance_from_uniform(p_values):
    ranks = np.arange(1, len(p_values) + 1) / len(p_values)
    return float(np.abs(np.sort(p_values) - ranks).max())


def test_p_values_are_uniform_if_the_chain_is_stationary():
    """The 0.1 % quantile of Kolmogorov's distance is 1.95 over the square root of the number.
    Chains are short on purpose.
    """
    rng = np.random.default_rng(11)
    fits = [
        fit_chains(as_chains(stationary_chains(rng, THREE, 150, 10)), range(3)).stationarity
        for _ in range(250)
    ]
    for p_values in ([f.halves.p_value for f in fits], [f.starts.p_value for f in fits]):
        assert largest_distance_from_uniform(p_values) < 1.95 / math.sqrt(250)
    assert {f.starts.degrees for f in fits} == {2}
    assert {f.halves.degrees for f in fits} == {6}


def test_a_kernel_that_changes_is_seen_and_sized():
    rng = np.random.default_rng(12)
    first = stationary_chains(rng, THREE, 200, 40)
    later = THREE.copy()
    later[0] = [0.70, 0.20, 0.10]
    second = np.concatenate(
        [stationary_chains(rng, later, 1, 40, np.eye(3)[value]) for value in first[:, -1]]
    )
    fit = fit_chains(as_chains(np.concatenate([first, second], axis=1)), range(3))
    assert fit.stationarity.halves.p_value < 1e-6
    assert fit.stationarity.halves.change == pytest.approx(0.20, abs=0.04)
    assert "drifts" in fit.verdict
    assert "p below 0.000001" in fit.verdict


def test_starts_that_are_not_stationary_are_seen_and_sized():
    rng = np.random.default_rng(13)
    fit = fit_chains(
        as_chains(stationary_chains(rng, THREE, 300, 30, np.array([0.05, 0.05, 0.9]))), range(3)
    )
    assert fit.stationarity.starts.p_value < 1e-6
    assert fit.stationarity.starts.change == pytest.approx(
        0.9 - MarkovChain(THREE).start[2], abs=0.1
    )
    assert "First records differ from the stationary distribution" in fit.verdict


def test_few_chains_say_nothing_about_starts():
    values = stationary_chains(np.random.default_rng(1), THREE, 19, 20)
    fit = fit_chains(as_chains(values), range(3))
    assert fit.stationarity.starts is None
    assert "Not tested: first records." in fit.verdict
    short = as_chains(np.array([[0, 1]]))
    assert "Not tested: drift, first records." in fit_chains(short, range(2)).verdict


def test_rare_values_among_first_records_are_tested_together():
    rng = np.random.default_rng(5)
    kernel = np.full((20, 20), 0.001)
    kernel[:, :2] = [0.6, 0.382]
    fit = fit_chains(as_chains(stationary_chains(rng, kernel, 60, 50)), range(20))
    assert (
        fit.stationarity.starts.degrees == 1
    )  # the 18 rare ones are taken with the rarer of the others
    assert fit.stationarity.starts.p_value > 0.001


# ---- phases


@settings(max_examples=60)
@given(table=tables(), data=st.data())
def test_a_step_counts_for_the_phase_it_leaves_from(table, data):
    begins = data.draw(st.lists(st.integers(0, 6), min_size=len(table), max_size=len(table)))
    if not slow_counts(table, 1, 3).any():
        return
    phase_at = {
        (c, place): (begin + place) % 7 for c, begin in enumerate(begins) for place, _ in table[c]
    }
    phases = np.array([phase_at[c, place] for c, rows in enumerate(table) for place, _ in rows])
    fit = fit_chains(chains_of(table), range(3), phases=phases, phase="weekday")
    expected, marginals, steps = np.zeros((7, 3, 3)), np.zeros((7, 3)), []
    for c, place, (before, after) in windows(table, 2):
        expected[phase_at[c, place - 1], before, after] += 1
        steps.append((phase_at[c, place - 1], before, after))
    for c, place, (value,) in windows(table, 1):
        marginals[phase_at[c, place], value] += 1
    assert np.array_equal(fit.counts, expected)
    assert np.allclose(
        fit.model.transition,
        (expected + 0.5) / (expected.sum(axis=2, keepdims=True) + 1.5),
        atol=1e-3,
    )
    assert np.allclose(
        fit.model.start, (marginals + 0.5) / (marginals.sum(axis=1, keepdims=True) + 1.5), atol=1e-3
    )
    check = fit.stationarity.phases
    assert check is None or check.statistic == pytest.approx(explicit_ratio(steps), abs=1e-9)


def test_phases_that_matter_are_told_from_phases_that_do_not():
    rng = np.random.default_rng(21)
    phases = np.arange(6000) % 7
    values = np.zeros(6000, dtype=np.int8)
    for t in range(1, 6000):
        stay = 0.9 if phases[t - 1] < 5 else 0.4
        values[t] = values[t - 1] if rng.random() < stay else 1 - values[t - 1]
    fit = fit_chains(as_chains(values[None]), range(2), phases=phases, phase="weekday")
    assert fit.stationarity.phases.p_value < 1e-6
    assert fit.stationarity.phases.change == pytest.approx(0.5, abs=0.1)
    assert fit.model.transition[6, 0, 0] == pytest.approx(0.4, abs=0.1)
    assert "Kernels differ by weekday" in fit.verdict

    null = []
    for _ in range(150):
        plain = as_chains(stationary_chains(rng, THREE, 40, 50))
        null.append(
            fit_chains(
                plain, range(3), phases=rng.integers(0, 7, 2000), phase="weekday"
            ).stationarity.phases.p_value
        )
    assert largest_distance_from_uniform(null) < 1.95 / math.sqrt(150)


@settings(max_examples=60)
@given(table=tables(), data=st.data())
def test_with_phases_orders_are_compared_given_the_phase(table, data):
    """BIC of the definition, over records by the phase that their last step leaves from."""
    if not slow_counts(table, 1, 3).any():
        return
    phase_at = {
        (c, place): data.draw(st.integers(1, 5))
        for c, rows in enumerate(table)
        for place, _ in rows
    }
    phases = np.array([phase_at[c, place] for c, rows in enumerate(table) for place, _ in rows])
    fit = fit_chains(chains_of(table), range(3), phases=phases, phase="weekday")
    kernels = len({phase_at[c, place - 1] for c, place, _ in windows(table, 2)})
    assert fit.kernels == kernels
    codes, linked = coded(table)
    deepest = max(order for order in (1, 2, 3) if any(windows(table, order + 1)))
    used = kernels_used(linked, phases)
    by_order, records = bic_by_order(codes, linked, 3, deepest, used)
    paths = [(phase_at[c, place - 1], *values) for c, place, values in windows(table, deepest + 1)]
    assert records == len(paths)
    if max(fit.bic) == deepest:
        assert fit.bic == by_order
    for order, bic in by_order.items():
        contexts = [(path[0], *path[1 + deepest - order : -1]) for path in paths]
        seen = Counter(zip(contexts, (path[-1] for path in paths), strict=True))
        visits = Counter(contexts)
        log_likelihood = sum(
            count * math.log(count / visits[context]) for (context, _), count in seen.items()
        )
        free = kernels * 3**order * 2
        assert bic == pytest.approx(free * math.log(len(paths)) - 2 * log_likelihood, abs=1e-9)


def test_a_chain_of_order_one_given_the_weekday_is_not_called_approximate():
    """Without the weekday the record before last tells something of it."""
    rng, phases = np.random.default_rng(4), np.tile(np.arange(350) % 7, 40)
    values = np.zeros(14_000, dtype=np.int8)
    for t in range(1, 14_000):
        rare = 0.05 if phases[t - 1] < 5 else 0.6
        values[t] = rng.random() < (rare if values[t - 1] == 0 else 0.7)
    chains = as_chains(values.reshape(40, 350))
    assert "earlier records tell more" in fit_chains(chains, range(2), order=1).verdict
    fit = fit_chains(chains, range(2), phases=phases, phase="weekday")
    assert fit.verdict.startswith("Given the weekday, BIC prefers order 1 among orders 0 to ")
    assert "approximate" not in fit.verdict
    assert "BIC, given the weekday" in str(fit)


def test_a_longer_memory_given_the_weekday_is_told():
    rng, phases = np.random.default_rng(5), np.tile(np.arange(350) % 7, 40)
    values = rng.integers(0, 2, (40, 350)).astype(np.int8)
    for t in range(2, 350):
        stays = rng.random(40) < 0.9
        values[:, t] = np.where(stays, values[:, t - 2], 1 - values[:, t - 2])
    fit = fit_chains(as_chains(values), range(2), phases=phases, phase="weekday")
    assert "BIC prefers order 2" in fit.verdict
    assert "so here it is approximate." in fit.verdict


def test_first_records_are_compared_with_all_records_of_their_phase():
    rng = np.random.default_rng(22)
    by_phase = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.8, 0.15, 0.05], [0.3, 0.3, 0.4]] * 3)
    phases = (
        3 * rng.integers(0, 2, (100, 1)) + np.arange(40)
    ) % 12  # chains begin in two phases that differ much
    p_values = []
    for _ in range(150):
        values = (
            (rng.random((100, 40, 1)) > by_phase.cumsum(axis=1)[phases, :2])
            .sum(axis=2)
            .astype(np.int8)
        )
        fit = fit_chains(as_chains(values), range(3), phases=phases.ravel(), phase="month")
        p_values.append(fit.stationarity.starts.p_value)
    assert largest_distance_from_uniform(p_values) < 1.95 / math.sqrt(150)
    values[:, 0] = 2
    fit = fit_chains(as_chains(values), range(3), phases=phases.ravel(), phase="month")
    assert fit.stationarity.starts.p_value < 1e-6
    assert "First records differ from other records of their phase" in fit.verdict


def test_a_phase_without_records_is_said():
    values = stationary_chains(np.random.default_rng(2), THREE, 30, 40)
    fit = fit_chains(as_chains(values), range(3), phases=np.arange(1200) % 9, phase="month")
    assert "3 of 12 phases were never seen" in fit.verdict
    assert "First records look like other records of their phase" in fit.verdict


def test_along_a_stretch_of_phases_the_model_is_a_chain_with_its_kernels():
    rng = np.random.default_rng(4)
    model = PhasedChain(
        "weekday", rng.dirichlet(np.ones(3), (7, 3)), rng.dirichlet(np.ones(3), 7), ["a", "b", "c"]
    )
    chain = model.along([5, 6, 0, 1])
    assert chain.length == 4
    for record, phase in enumerate([5, 6, 0], start=1):
        assert np.array_equal(chain.kernel(record), model.transition[phase])
    assert np.array_equal(chain.start, model.start[5])
    assert chain.labels == ("a", "b", "c")
    assert np.array_equal(model.along([3]).marginal(1), model.start[3])
    with pytest.raises(InputError, match="from 0 to 6"):
        model.along([6, 7])


@settings(max_examples=100)
@given(seconds=st.integers(-8 * 10**9, 9 * 10**9))
def test_phases_are_those_of_the_calendar(seconds):
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    at = np.array([seconds * 10**9])
    assert phases_of(at, "hour", None)[0] == when.hour
    assert phases_of(at, "weekday", "UTC")[0] == when.weekday()
    assert phases_of(at, "month", None)[0] == when.month - 1


def test_phases_follow_the_clock_of_their_zone():
    times = [
        "2013-03-10T06:00:00",
        "2013-03-10T07:00:00",
        "2013-11-03T05:00:00",
        "2013-11-03T06:00:00",
        "2013-01-01T04:00:00",
    ]
    at = np.array(times, dtype="datetime64[ns]").astype(np.int64)
    assert phases_of(at, "hour", "America/New_York").tolist() == [1, 3, 1, 1, 23]
    assert phases_of(at, "month", "America/New_York").tolist() == [2, 2, 10, 10, 11]
    with pytest.raises(InputError, match="name of a time zone"):
        phases_of(at, "hour", "New York")


# ---- files


def numbers_in(content):
    if isinstance(content, list):
        return [number for item in content for number in numbers_in(item)]
    return [content]


def check_rows(rows):
    """Every number but one of a row has four digits at most, and that one is what the
    others leave.
    """
    for row in rows:
        long = [
            i
            for i, number in enumerate(row)
            if len(Decimal(repr(number)).normalize().as_tuple().digits) > 4
        ]
        assert len(long) <= 1
        left = row.index(max(row))
        assert not long or long == [left]
        assert row[left] == float(
            1 - sum(Decimal(repr(number)) for i, number in enumerate(row) if i != left)
        )


@pytest.mark.parametrize("kind", ["order 1", "order 2", "phases"])
def test_a_model_file_holds_neither_counts_nor_full_precision(kind, tmp_path):
    rng = np.random.default_rng(8)
    values = stationary_chains(rng, THREE, 40, 800)
    given_phases = (
        dict(phases=np.arange(values.size) % 7, phase="weekday", zone="Europe/Berlin")
        if kind == "phases"
        else {}
    )
    fit = fit_chains(
        as_chains(values), ["x", "y", "z"], order=2 if kind == "order 2" else 1, **given_phases
    )
    fit.model.save(tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    content = json.loads(text)
    expected = {"format", "version", "order", "labels", "transition", "start", "set"} | (
        {"phase", "zone"} if given_phases else set()
    )
    assert set(content) == expected
    check_rows(np.array(content["transition"]).reshape(-1, 3).tolist())
    if given_phases:
        check_rows(content["start"])
        assert (content["phase"], content["zone"]) == ("weekday", "Europe/Berlin")
    else:
        assert content["start"] is None
    shares = fit.counts / fit.counts.sum(axis=-1, keepdims=True)
    smoothed = (fit.counts + 0.5) / (fit.counts.sum(axis=-1, keepdims=True) + 1.5)
    in_set = numbers_in([content["set"]["forward"], content["set"]["backward"]])
    in_file = {*numbers_in(content["transition"]), *numbers_in(content["start"]), *in_set}
    assert not in_file & (set(shares.ravel().tolist()) | set(smoothed.ravel().tolist()))
    for count in {int(c) for c in fit.counts.ravel() if c > 99} | {fit.records, fit.transitions}:
        assert not re.search(rf"(?<![\d.]){count}(?!\d)", text)
    again = load_model(tmp_path / "model.json")
    assert type(again) is type(fit.model)
    assert np.array_equal(again.transition, fit.model.transition)
    assert np.array_equal(again.start, fit.model.start)
    assert again.labels == fit.model.labels
    assert again.box.to_dict() == fit.box.to_dict()


def test_the_model_is_stationary_and_its_kernel_close_to_the_smoothed_shares():
    values = stationary_chains(np.random.default_rng(9), THREE, 20, 200)
    for order in (1, 2):
        fit = fit_chains(as_chains(values), range(3), order=order)
        smoothed = (fit.counts + 0.5) / (fit.counts.sum(axis=-1, keepdims=True) + 1.5)
        assert fit.model.is_stationary
        assert fit.model.order == order
        assert np.allclose(fit.model.transition, smoothed, rtol=0, atol=5e-4)


def test_a_model_with_phases_is_refused_where_one_chain_is_expected(tmp_path):
    PhasedChain("month", np.full((12, 2, 2), 0.5), np.full((12, 2), 0.5)).save(
        tmp_path / "phased.json"
    )
    MarkovChain.binary(0.1, 0.2).save(tmp_path / "plain.json")
    with pytest.raises(InputError, match="kernel for each phase"):
        MarkovChain.load(tmp_path / "phased.json")
    with pytest.raises(InputError, match='lacks "phase"'):
        PhasedChain.load(tmp_path / "plain.json")
    assert PhasedChain.load(tmp_path / "phased.json").k == 2
    assert load_model(tmp_path / "plain.json").alpha == 0.1
    (tmp_path / "other.json").write_text("[1]")
    with pytest.raises(InputError, match="not a model file"):
        load_model(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(phase="minute"), "hour, weekday, month"),
        (dict(transition=np.full((7, 2, 2), 0.5)), "12 k × k matrices"),
        (dict(transition=np.full((12, 2, 2), 0.4)), "must sum to 1"),
        (dict(start=np.full((12, 3), 1 / 3)), "12 rows of 2"),
        (dict(start=np.full((12, 2), 0.4)), "must sum to 1"),
        (dict(labels=["a"]), "labels must name 2"),
        (dict(zone=3), "zone must be"),
    ],
)
def test_what_is_no_chain_with_phases_is_refused(change, message):
    right = dict(
        phase="month",
        transition=np.full((12, 2, 2), 0.5),
        start=np.full((12, 2), 0.5),
        labels=["a", "b"],
    )
    with pytest.raises(InputError, match=message):
        PhasedChain(**{**right, **change})


# ---- what is refused, what is said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(order=9), "order must be from 1 to 8 for 2 values, or auto, got 9"),
        (dict(order=0), "order must be from 1 to 8 for 2 values, or auto, got 0"),
        (dict(order="two"), "order must be auto or a whole number, got 'two'"),
        (dict(order=1.5), "order must be a whole number, got 1.5"),
        (dict(order=4), "no 5 records with values stand one step apart"),
        (dict(phase="hour"), "give both or neither"),
        (dict(order=2, phase="hour", phases=np.zeros(8, dtype=int)), "need order 1"),
        (dict(phase="hour", phases=np.zeros(7, dtype=int)), "each of 8 records, got 7"),
        (dict(phase="hour", phases=np.full(8, 24)), "from 0 to 23"),
        (dict(phase="second", phases=np.zeros(8, dtype=int)), "hour, weekday, month"),
        (dict(dropped=np.array([True, True])), "every one holds a private record"),
        (dict(dropped=np.array([True])), "each of 2 chains"),
    ],
)
def test_wrong_input_is_one_line(options, message):
    chains = as_chains(np.array([[0, 1, 0, 1], [1, 1, 0, 0]], dtype=np.int8))
    with pytest.raises(InputError, match=message) as caught:
        fit_chains(chains, range(2), **options)
    assert "\n" not in str(caught.value)


def test_order_2_of_many_values_is_refused_before_counting():
    with pytest.raises(InputError, match="order must be 1 for 64 values, or auto, got 2"):
        fit_chains(as_chains(np.zeros((1, 5), dtype=np.int8)), range(64), order=2)


def test_summary_is_json_and_the_text_shows_every_transition_of_a_small_model():
    values = stationary_chains(np.random.default_rng(10), THREE, 50, 100)
    fit = fit_chains(as_chains(values), ["home", "work", "away"])
    assert json.loads(json.dumps(fit.summary(), allow_nan=False)) == fit.summary()
    assert fit.summary()["verdict"] == fit.verdict
    lines = str(fit).splitlines()
    assert max(len(line) for line in lines) <= 110
    assert sum(line.startswith(("home ", "work ", "away ")) for line in lines) == 9
    large = fit_chains(
        as_chains(np.random.default_rng(1).integers(0, 17, (30, 50)).astype(np.int8)), range(17)
    )
    assert len(str(large).splitlines()) < 20
    assert "transitions were seen fewer than 5 times" in large.verdict


def test_a_check_passes_unless_it_is_unlikely():
    assert Check(1.0, 1, 0.3, None, 10).passed
    assert not Check(9.0, 1, 0.003, 0.1, 10).passed


# ---- the data inside the package


def test_the_rain_inside_the_package_is_what_its_page_says():
    folder = Path(str(files("offrecord") / "demo"))
    page = (folder / "README.md").read_text(encoding="utf-8")
    with (folder / "jfk_rain_2013.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    times = [datetime.fromisoformat(row["time"]) for row in rows]
    hours = [(after - before) / timedelta(hours=1) for before, after in pairwise(times)]
    gaps = Counter(hour - 1 for hour in hours if hour != 1)
    assert all(row["time"].endswith("Z") for row in rows)
    assert min(hours) == 1
    assert set(rows[0]) == {"time", "rain"}
    rain = Counter(row["rain"] for row in rows)
    assert set(rain) == {"0", "1"}
    said = re.search(
        r"(\d+) rows from (\S+) to (\S+), (\d+) of them with rain\. (\d+) gaps, (\d+) hours"
        r" missing",
        page,
    )
    assert said.groups() == (
        str(len(rows)),
        rows[0]["time"],
        rows[-1]["time"],
        str(rain["1"]),
        str(gaps.total()),
        str(int(sum(length * count for length, count in gaps.items()))),
    )
    assert gaps == {1: 10, 2: 2, 5: 2}  # in words on the page
    assert "ten gaps of 1 hour, two of 2 hours, two of 5 hours" in page

    places = np.array([(time - times[0]) // timedelta(hours=1) for time in times])
    codes = np.array([int(row["rain"]) for row in rows], dtype=np.int8)
    fit = fit_chains(
        Chains(np.array([0, len(rows)]), codes, places, False, places), range(2), order=2
    )
    assert fit.preferred_order == 3  # rain remembers more than two hours: the demo says so
    assert "not the order 2 fitted" in fit.verdict
    assert "fit order 3." in fit.verdict
    assert fit.counts.sum() == sum(one == two == 1 for one, two in pairwise(hours))


# ---- hidden states beside it


def test_hidden_states_are_the_model_where_they_foretell_better():
    """Two regimes that show the same value: an hour is long in one and short in the other."""
    rng = np.random.default_rng(4)
    kernel = np.array([[0.995, 0.001, 0.004], [0.01, 0.79, 0.2], [0.02, 0.28, 0.7]])
    shows = np.array([0, 0, 1], dtype=np.int8)  # dry for long, dry between showers, wet
    values = shows[stationary_chains(rng, kernel, 12, 500)].astype(np.int8)
    fit = fit_chains(as_chains(values), ["dry", "wet"])
    hidden = fit_states(as_chains(values), ["dry", "wet"], states=3)
    both = fit.with_hidden(hidden)
    assert hidden.is_preferred
    assert both.model.shows.tolist() == [0, 0, 1]
    assert both.model.box is None
    assert both.chain is fit.model
    assert both.box is fit.box
    assert "A chain on 3 hidden states (dry, dry, wet) foretells records held back" in both.verdict
    assert json.loads(json.dumps(both.summary()))["hidden"]["states"] == 3
    assert str(both).startswith(str(fit).splitlines()[0])

    plain = as_chains(stationary_chains(rng, np.array([[0.9, 0.1], [0.3, 0.7]]), 12, 100))
    alone = fit_chains(plain, ["dry", "wet"])
    kept = alone.with_hidden(replace(hidden, held_out=-9.0))
    assert kept.model is alone.model
    assert "it is not used" in kept.verdict
