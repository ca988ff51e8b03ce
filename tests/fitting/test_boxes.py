"""Sets of models from counts: what lies in them, how often the truth does, and what they tell."""

import csv
from datetime import datetime, timedelta
from decimal import Decimal
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offrecord.errors import InputError
from offrecord.fitting.boxes import Sureness, learned_box
from offrecord.fitting.fit import fit_chains
from offrecord.fitting.intervals import clopper_pearson, mixture, rounded_shares
from offrecord.models.chain import MarkovChain
from offrecord.models.clock import phase_count
from offrecord.models.phased import PhasedChain
from offrecord.tables.chains import Chains

SURE = Sureness()
INTERVALS = ("clopper-pearson", "mixture")
#: P(0→1) and P(1→0) of a room that is seldom entered and seldom left.
RARE = np.array([[1 - 0.0036, 0.0036], [0.012, 1 - 0.012]])
THREE = np.array([[0.90, 0.08, 0.02], [0.10, 0.80, 0.10], [0.05, 0.15, 0.80]])


def one_kernel(counts, order=1):
    return MarkovChain(rounded_shares(counts), order=order)


def by_phase(counts, phase="weekday"):
    marginals = rounded_shares(counts.sum(axis=2))
    return PhasedChain(phase, rounded_shares(counts), marginals)


# ---- what lies inside


def reverse_by_definition(model, phase=None):
    """Pr(record | the `order` records after it), from the probability of every short sequence."""
    k, order = model.k, model.order
    kernel, start = model.transition, model.start
    if phase is not None:
        kernel, start = kernel[phase], start[phase]
    back = np.zeros((k,) * (order + 1))
    for values in np.ndindex(*back.shape):
        likely = start[values[:-1]] * kernel[values]
        after = sum(
            start[(first, *values[1:-1])] * kernel[(first, *values[1:])] for first in range(k)
        )
        back[(*values[1:], values[0])] = likely / after
    return back


@st.composite
def all_counts(draw):
    """Counts of one kernel of some order, or of a kernel for each weekday."""
    kind = draw(st.sampled_from(["order", "phases"]))
    k = draw(st.integers(2, 4))
    order = draw(st.integers(1, {2: 4, 3: 2, 4: 2}[k])) if kind == "order" else 1
    shape = ((phase_count("weekday"),) if kind == "phases" else ()) + (k,) * (order + 1)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    scale = draw(st.sampled_from([1, 10, 1000, 10**6]))
    counts = rng.integers(0, scale + 1, shape) * (rng.random(shape) < 0.8)
    return kind, order, counts


@settings(max_examples=120)
@given(
    given_counts=all_counts(),
    confidence=st.sampled_from([0.01, 0.5, 0.95, 0.999999]),
    interval=st.sampled_from(INTERVALS),
)
def test_the_set_holds_the_model_its_reverse_and_the_shares_of_both_directions(
    given_counts, confidence, interval
):
    kind, order, counts = given_counts
    model = by_phase(counts) if kind == "phases" else one_kernel(counts, order)
    box = learned_box(counts, model, Sureness(confidence, interval))
    assert model.with_box(box).box is box  # no complaint: it is a set of such models
    assert (box.confidence, box.interval, box.start) == (confidence, interval, "stationary")
    reverse = (
        np.stack([reverse_by_definition(model, phase) for phase in range(7)])
        if kind == "phases"
        else reverse_by_definition(model)
    )
    box.check_holds("transition", model.transition)
    box.check_holds("backward", reverse, back=True)
    if confidence >= 0.95:
        for pair, seen in zip(
            box.directions, (counts, np.moveaxis(counts, -1 - order, -1)), strict=True
        ):
            total = seen.sum(axis=-1, keepdims=True)
            shares = np.where(total > 0, seen / np.maximum(total, 1), model.transition)
            if pair is box.backward and box.is_its_own_reverse:
                continue  # the edges of chains make the transposed counts differ
            assert np.all(pair.low <= np.where(total > 0, shares, 1) + 1e-12)
            assert np.all(pair.high >= np.where(total > 0, shares, 0) - 1e-12)
    assert np.all(box.forward.low[counts == 0] == 0) or confidence < 0.5
    for ends in (*box.forward, *box.backward):
        for end in ends.ravel().tolist():
            short = (Decimal(repr(end)), 1 - Decimal(repr(end)))
            assert min(len(number.normalize().as_tuple().digits) for number in short) <= 3


@pytest.mark.parametrize("interval", INTERVALS)
def test_two_values_spend_the_error_on_the_lower_ends_and_are_their_own_reverse(interval):
    counts = np.array([[7970, 170], [171, 411]])
    box = learned_box(counts, one_kernel(counts), Sureness(0.95, interval))
    assert box.is_its_own_reverse
    lows, highs = (0.05 - 1e-4) / 2, 1e-4 / 2
    for i in (0, 1):
        seen, total = counts[i, 1 - i], counts[i].sum()
        ends = (
            mixture(seen, total, 0.025)
            if interval == "mixture"
            else clopper_pearson(seen, total, lows, highs)
        )
        assert box.forward.low[i, 1 - i] == pytest.approx(ends[0], rel=0.01)
        assert box.forward.low[i, 1 - i] <= ends[0]
        assert box.forward.high[i, 1 - i] == pytest.approx(ends[1], rel=0.01)
        assert box.forward.high[i, 1 - i] >= ends[1]
        assert box.forward.low[i, i] == 1 - box.forward.high[i, 1 - i]
        assert box.forward.high[i, i] == 1 - box.forward.low[i, 1 - i]


@pytest.mark.parametrize(
    ("kind", "k", "cells"),
    [
        ("order 1", 3, 18),
        ("order 2", 2, 8),
        ("order 3", 2, 16),
        ("order 2", 3, 54),
        ("phases", 2, 28),
        ("phases", 3, 126),
    ],
)
def test_the_error_is_shared_by_every_interval_of_both_directions(kind, k, cells):
    """Two values of a history have one interval between them."""
    rng = np.random.default_rng(3)
    order = 1 if kind == "phases" else int(kind[-1])
    kernels = rng.dirichlet(np.full(k, 5), ((7,) if kind == "phases" else ()) + (k,) * order)
    start = MarkovChain(kernels[0]).start if kind == "phases" else None
    drawn = MarkovChain(kernels, None, order=order) if start is None else None
    first = np.tile(start, (7, 1)) if drawn is None else drawn.start
    # as many of each as a chain with these kernels would show: reverse and shares agree
    counts = np.rint(10**5 * first[..., None] * kernels).astype(int)
    model = by_phase(counts) if kind == "phases" else one_kernel(counts, order)
    box = learned_box(counts, model, SURE)
    each = (1 - 0.95) / cells / 2
    for pair, seen in zip(
        box.directions, (counts, np.moveaxis(counts, -1 - order, -1)), strict=True
    ):
        ends = clopper_pearson(seen, seen.sum(axis=-1, keepdims=True), each, each)
        low, high = ends[..., 0], ends[..., 1]
        # or what the row's other intervals leave
        low = np.maximum(low, 1 - (high.sum(axis=-1, keepdims=True) - high))
        high = np.minimum(high, 1 - (ends[..., 0].sum(axis=-1, keepdims=True) - ends[..., 0]))
        for end, exact, sign in ((pair.low, low, 1), (pair.high, high, -1)):
            off = sign * (exact - end) / np.minimum(exact, 1 - exact)
            assert np.all(off > -1e-9)
            assert np.all(off < 0.01)


# ---- how often the truth lies inside


def simulated(rng, kernel, chains, length):
    """(chains, k, k) transitions of stationary chains."""
    model, k = MarkovChain(kernel), len(kernel)
    edges = np.cumsum(kernel, axis=1)[:, :-1]
    at = rng.choice(k, chains, p=model.start)
    counts = np.zeros((chains, k, k), dtype=np.int64)
    for _ in range(length):
        after = (rng.random(chains)[:, None] > edges[at]).sum(axis=1)
        counts[np.arange(chains), at, after] += 1
        at = after
    return counts


def coverage(kernel, chains, length, interval, seed=1):
    """How often a set holds the true kernel and its reverse."""
    truth = MarkovChain(kernel)
    reverse = reverse_by_definition(truth)
    held = 0
    for counts in simulated(np.random.default_rng(seed), kernel, chains, length):
        box = learned_box(counts, one_kernel(counts), Sureness(0.95, interval))
        ahead, back = (
            np.all((pair.low <= true) & (true <= pair.high))
            for pair, true in zip(box.directions, (kernel, reverse), strict=True)
        )
        held += bool(ahead and back)
    return held / chains


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("kernel", [RARE, THREE], ids=["two rare values", "three values"])
@pytest.mark.parametrize(
    "chains", [400, pytest.param(2000, marks=pytest.mark.soak)], ids=["some", "all"]
)
def test_the_truth_lies_inside_as_often_as_is_said(kernel, interval, chains):
    """Transitions as rare as these are what intervals by normal approximation miss."""
    assert coverage(kernel, chains, 1000, interval) >= 0.95


# ---- what is said


def rain():
    """The demo's year of rain, hour by hour."""
    text = (files("offrecord") / "demo" / "jfk_rain_2013.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    times = [datetime.fromisoformat(row["time"]) for row in rows]
    places = np.array([(time - times[0]) // timedelta(hours=1) for time in times])
    codes = np.array([int(row["rain"]) for row in rows], dtype=np.int8)
    return Chains(np.array([0, len(rows)]), codes, places, False, places)


def test_a_year_of_rain():
    fit = fit_chains(rain(), range(2))
    assert fit.transitions == 8691
    assert fit.box.forward.low[[0, 1], [1, 0]].tolist() == [0.0178, 0.256]
    assert np.array_equal(fit.intervals, np.stack(fit.box.forward, axis=-1))
    assert fit.summary()["set"] == fit.box.to_dict()
    assert "With confidence 95 % the true one-step probabilities" in fit.verdict
    assert "0.0178 to 0.0277" in str(fit)
    proven = fit_chains(rain(), range(2), sure=Sureness(0.95, "mixture"))
    assert proven.box.forward.low[[0, 1], [1, 0]].tolist() == [0.0149, 0.225]
    surer = fit_chains(rain(), range(2), sure=Sureness(0.99))
    assert surer.box.forward.low[[0, 1], [1, 0]].tolist() == [0.0169, 0.245]


def test_transitions_never_seen_are_too_few_transitions():
    codes = np.array([0, 0, 1, 1, 2, 0, 1, 2, 0, 0, 1, 1, 2, 2, 0] * 5, dtype=np.int8)
    chains = Chains(np.array([0, len(codes)]), codes, np.arange(len(codes)), False, None)
    fit = fit_chains(chains, ["home", "work", "away"])
    assert fit.box.has_unseen
    assert "Too few transitions: 3 of 9 were never seen" in fit.verdict
    assert "home → away; work → home; away → work" in fit.verdict
    assert "merge values or bring more data" in fit.verdict
    assert "ε" not in fit.verdict


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95, float("nan"), "high", None, True])
def test_a_confidence_is_between_0_and_1(confidence):
    with pytest.raises(InputError, match="confidence must be between 0 and 1"):
        Sureness(confidence)


def test_intervals_have_names():
    with pytest.raises(InputError, match="clopper-pearson, mixture"):
        Sureness(0.95, "normal")
