"""Chains that begin unlike the rest: found, weighed, and held by the set of models."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

import offrecord as off
from definition import leakage_of_table, output_table
from offrecord.fitting.audit.calibration import Enlargement
from offrecord.fitting.beginnings import excess_near_beginning
from offrecord.fitting.believed import Reference
from offrecord.fitting.boxes import Sureness, begun_box
from offrecord.fitting.fit import fit_chains
from offrecord.fitting.verdict import objections
from offrecord.models.records import Chains

SURE = Sureness()
TWO = np.array([[0.7, 0.3], [0.4, 0.6]])
SLOW = np.array([[0.95, 0.05], [0.1, 0.9]])
THREE = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])


def simulated(kernel, start, count, length, random):
    """(count, length) chains that begin with a distribution."""
    values = np.empty((count, length), dtype=np.int8)
    values[:, 0] = random.choice(len(start), size=count, p=start)
    steps = np.cumsum(kernel, axis=1)
    for t in range(1, length):
        values[:, t] = (random.random(count)[:, np.newaxis] > steps[values[:, t - 1]]).sum(axis=1)
    return values


def as_chains(values):
    count, length = values.shape
    order = np.tile(np.arange(length), count)
    return Chains(np.arange(count + 1) * length, values.ravel(), order, False, None)


def counted(values, k):
    counts = np.zeros((k, k), dtype=np.int64)
    np.add.at(counts, (values[:, :-1].ravel(), values[:, 1:].ravel()), 1)
    return counts, np.bincount(values[:, 0], minlength=k)


def steps_back(kernels, start):
    """The kernels back in time of a chain, by Bayes, from its second record on."""
    here, found = np.asarray(start), []
    for kernel in kernels:
        joint = here[:, np.newaxis] * kernel
        here = joint.sum(axis=0)
        found.append((joint / here).T)
    return found


def between(low, high, shares):
    """Rows inside intervals that sum to 1: from what is least, the rest where shares say."""
    rows = low.copy()
    for row, most, wish in zip(rows, high, shares, strict=True):
        for value in np.argsort(-wish):
            row[value] += min(most[value] - row[value], 1.0 - row.sum())
    return rows


@settings(max_examples=40, deadline=None)
@given(
    kernel=st.sampled_from([TWO, SLOW, THREE]),
    weights=st.lists(st.integers(1, 30), min_size=3, max_size=3),
    since=st.integers(1, 8),
    seed=st.integers(0, 2**31),
)
def test_a_set_from_first_records_holds_every_step_back_of_every_chain_inside(
    kernel, weights, since, seed
):
    k, random = len(kernel), np.random.default_rng(seed)
    model = off.MarkovChain(kernel)
    counts = np.rint(2000 * model.start[:, np.newaxis] * kernel).astype(np.int64)
    firsts = 10 * np.array(weights[:k])
    box = begun_box(counts, firsts, model, SURE, since)
    assert box.since == since
    box.check_holds("transition", model.transition)
    model.with_box(box)  # holds its steps back, too
    kernels = [between(*box.forward, random.random((k, k))) for _ in range(12)]
    starts = [firsts / firsts.sum()]
    if k == 2:  # the ends of the interval of first records, by another way
        seen, total = int(firsts[1]), int(firsts.sum())
        ends = binomtest(seen, total).proportion_ci(1 - 0.05 / 3, "exact")
        starts += [np.array([1 - end, end]) for end in ends]
    for start in starts:
        for back in steps_back(kernels, start)[since - 1 :]:
            assert np.all(back >= box.backward.low - 1e-12)
            assert np.all(back <= box.backward.high + 1e-12)


@pytest.mark.parametrize(("kernel", "start"), [(SLOW, [0.3, 0.7]), (THREE, [0.2, 0.2, 0.6])])
def test_it_holds_the_truth_as_often_as_it_says(kernel, start):
    random, k = np.random.default_rng(5), len(kernel)
    truth, held = steps_back([kernel] * 30, start), 0
    for _ in range(120):
        counts, firsts = counted(simulated(kernel, start, 80, 30, random), k)
        shares = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
        box = begun_box(counts, firsts, off.MarkovChain(shares), SURE)
        pairs = [(box.forward, [kernel]), (box.backward, truth)]
        held += all(
            np.all(low <= one) and np.all(one <= high) for (low, high), two in pairs for one in two
        )
    assert held >= 0.95 * 120


# ---- what is found


def fitted(kernel, start, count=300, length=40):
    values = simulated(kernel, np.array(start), count, length, np.random.default_rng(2))
    return fit_chains(as_chains(values), list(range(len(kernel))), order=1)


def test_chains_that_begin_like_the_rest_are_stationary():
    found = fitted(SLOW, off.MarkovChain(SLOW).start)
    assert found.beginnings is None
    assert found.box.start == "stationary"
    assert found.box.is_its_own_reverse


def test_a_difference_that_the_chain_soon_forgets_does_not_matter():
    independent = np.array([[0.51, 0.49], [0.49, 0.51]])
    found = fitted(independent, [0.9, 0.1])
    assert found.stationarity.starts.p_value < 1e-9
    assert found.beginnings is None


def test_the_set_holds_chains_that_begin_as_first_records_say():
    found = fitted(SLOW, [0.4, 0.6])
    assert found.beginnings.held == "learned"
    assert found.box.start == "stationary"
    assert "so the promise covers that" in found.verdict
    assert objections(found.verdict) == []
    for back in steps_back([SLOW] * 40, [0.4, 0.6])[found.beginnings.since - 1 :]:
        assert np.all(back >= found.box.backward.low)
        assert np.all(back <= found.box.backward.high)
    assert found.summary()["beginnings"]["held"] == "learned"


@pytest.mark.parametrize(("kernel", "start"), [(SLOW, [1.0, 0.0]), (THREE, [0.0, 0.0, 1.0])])
def test_where_chains_all_begin_in_one_state_the_set_holds_from_a_later_record_on(kernel, start):
    found = fitted(kernel, start, length=90)
    since = found.beginnings.since
    assert found.beginnings.held == "learned"
    assert since > 1
    assert f"begin like these from record {since} on" in found.verdict
    assert objections(found.verdict) == []
    assert found.model.is_stationary  # what it is once it has forgotten how it began
    chain = found.begun.model
    assert chain.box.since == since
    assert np.array_equal(chain.start, found.beginnings.shares)
    assert np.array_equal(chain.settled.transition, found.model.transition)
    assert chain.settled.is_stationary
    assert chain.settled.box.since == 1
    for back in steps_back([kernel] * 90, start)[since - 1 :]:
        assert np.all(back >= chain.box.backward.low)
        assert np.all(back <= chain.box.backward.high)


def test_a_set_that_is_widened_holds_the_steps_back_that_follow():
    values = simulated(SLOW, np.array([1.0, 0.0]), 300, 60, np.random.default_rng(2))
    chains, none = as_chains(values), np.zeros(300, dtype=bool)
    reference = Reference(chains, [0, 1], none, {}, None, None, SURE)
    plain, found = (reference.fit(Enlargement(1, None, hull=hull)) for hull in (False, True))
    since = found.beginnings.since
    assert since == plain.beginnings.since > 1
    assert np.any(found.box.forward.low < plain.box.forward.low)
    random = np.random.default_rng(3)
    for _ in range(20):
        kernels = [between(*found.box.forward, random.random((2, 2))) for _ in range(30)]
        for back in steps_back(kernels, [1.0, 0.0])[since - 1 :]:
            assert np.all(back >= found.box.backward.low - 1e-12)
            assert np.all(back <= found.box.backward.high + 1e-12)


def test_where_two_values_are_forgotten_slowly_any_beginning_is_held():
    found = fitted(np.array([[0.98, 0.02], [0.1, 0.9]]), [0.0, 1.0], count=40, length=90)
    assert found.beginnings.held == "any"
    assert found.box.start == "any"
    assert "however they begin" in found.verdict
    assert found.begun.model.box.start == "any"


def test_the_later_a_set_holds_the_narrower_it_is():
    model = off.MarkovChain(THREE)
    counts = np.rint(20_000 * model.start[:, np.newaxis] * THREE).astype(np.int64)
    before = None
    for since in (2, 4, 8, 16):
        low, high = begun_box(counts, np.array([400, 0, 0]), model, SURE, since).backward
        if before is not None:
            assert np.all(low >= before[0])
            assert np.all(high <= before[1])
            assert np.any(high - low < before[1] - before[0])
        before = low, high


def test_what_the_set_does_not_hold_is_said():
    found = fitted(THREE, [0.0, 0.0, 1.0], count=40, length=3)
    assert found.beginnings.held is None
    assert "the promise does not cover that" in found.verdict
    assert objections(found.verdict) == [
        "First records differ from the stationary distribution, and the promise does not cover that"
    ]


# ---- against the definition


def largest_leakage(model, start, epsilon, n):
    """Over all places of a secret, under the chain with the model's kernel and another start."""
    truth = off.MarkovChain(model.transition, start=start)
    found = 0.0
    for place in range(1, n + 1):
        problem = off.Problem(model, n, place, epsilon)
        redaction = off.design(problem, off.BestLocal()).redaction
        found = max(found, leakage_of_table(output_table(truth, n, redaction, [place])))
    return found


@pytest.mark.parametrize(
    ("start", "epsilon", "breaks"),
    [([1.0, 0.0], 1.5, True), ([0.05, 0.95], 1.5, True), ([0.0, 1.0], 0.7, False)],
)
def test_near_first_records_a_stationary_model_may_break_its_promise_and_the_set_keeps_it(
    start, epsilon, breaks
):
    stationary = off.MarkovChain(TWO)
    assert (largest_leakage(stationary, start, epsilon, 6) > epsilon + 0.01) == breaks
    counts = np.rint(20_000 * stationary.start[:, np.newaxis] * TWO).astype(np.int64)
    firsts = np.rint(400 * np.array(start)).astype(np.int64)
    if min(start) > 0:
        box = begun_box(counts, firsts, stationary, SURE)
    else:
        box = off.Box.binary((0.29, 0.31), (0.39, 0.41), start="any")
    assert largest_leakage(stationary.with_box(box), start, epsilon, 6) <= epsilon + 1e-9


@settings(max_examples=30, deadline=None)
@given(
    alpha=st.floats(0.05, 0.6),
    beta=st.floats(0.05, 0.6),
    first=st.floats(0.01, 0.99),
    d=st.integers(1, 6),
)
def test_the_excess_is_what_first_releases_tell_beyond_what_they_should(alpha, beta, first, d):
    model = off.MarkovChain.binary(alpha, beta)
    start = np.array([1 - first, first])
    found = excess_near_beginning(model, start)
    reach = off.design(off.Problem(model, 201, 101, 2.0), off.BestWindow()).redaction
    left = int(reach[:100, 0].sum())
    power = np.linalg.matrix_power(model.transition, left + 1)

    def told(distribution):
        here = distribution @ power
        return np.log(
            power[:, :, None] / power[:, None, :] * here[None, None] / here[None, :, None]
        )

    assert found == pytest.approx(float((told(start) - told(model.start)).max()), abs=1e-9)


def test_a_fit_of_a_table_and_its_release_say_it(tmp_path):
    values = simulated(SLOW, np.array([1.0, 0.0]), 120, 40, np.random.default_rng(4))
    frame = pl.DataFrame(
        {
            "c": np.repeat(np.arange(120), 40),
            "t": np.tile(np.arange(40), 120),
            "v": values.ravel(),
            "p": (np.arange(4800) % 40 == 5) & (np.arange(4800) < 400),
        }
    )
    reading = {"value": "v", "order": "t", "by": "c", "private": "p"}
    model = off.fit(frame, **reading, chain_order=1, no_audit=True).model
    assert model.box.since > 1
    release = off.redact(
        frame, **reading, model=model, epsilon=1.0, dataset="d", key_file=tmp_path / "key.json"
    )
    assert release.certificate["model"]["set"]["since"] == model.box.since
    assert release.certificate["designs"]["kind"] == "owner"
    assert f"record {model.box.since} on" in release.certificate["learned"]["verdict"]
    assert (
        f"as far as record {model.box.since} of the chain" in release.certificate["assumptions"][0]
    )
    assert f"from its record {model.box.since} on" in release.summary.models
    assert math.isclose(release.certificate["claim"]["leakage"], 1.0, rel_tol=0.05)
