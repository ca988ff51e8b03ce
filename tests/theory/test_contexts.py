"""Chains of order m, exactly (R6): windows by contexts and any redaction by generators, against the
definition.
"""

import csv
import math
from datetime import datetime
from fractions import Fraction
from importlib.resources import files
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import (
    exact_kernel,
    exact_log,
    exact_stationary,
    leakage_of_table,
    table_of_paths,
)
from offrecord.theory import generators
from offrecord.theory.contexts import context_windows, contexts_of, window_leakage
from offrecord.theory.leakage import walked_output

V6 = off.MarkovChain([[[0.95, 0.05], [0.4, 0.6]], [[0.8, 0.2], [0.2, 0.8]]], order=2)


def leakage_by_definition(chain, redaction, first, last):
    """Every sequence, every output."""
    n, k = redaction.shape
    paths = np.array(list(product(range(k), repeat=n)))
    longer = list(product(range(k), repeat=max(chain.order - n, 0)))
    weight = np.zeros(len(paths))
    for i, path in enumerate(paths):  # a chain shorter than its order: what follows is summed out
        for tail in longer:
            whole = (*path, *tail)
            mass = chain.start[whole[: chain.order]]
            for t in range(chain.order, n):
                mass *= chain.transition[whole[t - chain.order : t + 1]]
            weight[i] += mass
    paths, weight = paths[weight > 0], weight[weight > 0]
    return leakage_of_table(table_of_paths(paths, weight, k, redaction, range(first, last + 1)))


@st.composite
def chains(draw):
    """Of order 1 to 3, some with transitions that are rare or impossible."""
    k, order = draw(st.sampled_from([(2, 2), (2, 2), (2, 3), (3, 2), (2, 1), (3, 1)]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    transition = rng.dirichlet(np.full(k, draw(st.sampled_from([0.2, 1.0, 5.0]))), (k,) * order)
    if draw(st.booleans()):
        likeliest = transition == transition.max(axis=-1, keepdims=True)
        transition = np.where(transition < 0.15, 0.0, np.round(transition, 1) + likeliest)
        transition /= transition.sum(axis=-1, keepdims=True)
    try:
        return off.MarkovChain(transition, order=order)
    except off.InputError:  # several closed classes
        return V6


@st.composite
def secrets(draw, chain):
    """n records, the first and last of a secret."""
    n = draw(st.integers(max(chain.order + 1, 2), 6 if chain.k == 2 else 5))
    first = draw(st.integers(1, n))
    return n, first, draw(st.integers(first, min(first + 3, n)))


def windows_are_exact(chain, data):
    n, first, last = data.draw(secrets(chain))
    left, right = data.draw(st.integers(0, first - 1)), data.draw(st.integers(0, n - last))
    redaction = np.zeros((n, chain.k))
    redaction[first - 1 - left : last + right] = 1
    exact = leakage_by_definition(chain, redaction, first, last)
    found = window_leakage(chain, left, right, first - 1, n - last, last - first + 1)
    assert found >= exact - 1e-14
    assert found == pytest.approx(exact, abs=1e-11)
    if chain.order > 1:
        worst = off.worst_output(off.Problem(chain, n, range(first, last + 1), 1.0), redaction)
        assert worst.method == "contexts"
        assert worst.leakage == pytest.approx(exact, abs=1e-11)


def redactions_are_exact(chain, data):
    n, first, last = data.draw(secrets(chain))
    entry = st.sampled_from([0.0, 0.0, 1.0, 1.0, 0.5, 0.01, 1 - 2**-53])
    redaction = np.array([[data.draw(entry) for _ in range(chain.k)] for _ in range(n)])
    for t in range(n):
        kind = data.draw(st.integers(0, 3))
        redaction[t] = redaction[t] if kind > 1 else kind
    redaction[first - 1 : last] = 1
    exact = leakage_by_definition(chain, redaction, first, last)
    left, right = redaction[: first - 1][::-1], redaction[last:]
    sides = ([(row, 1) for row in rows] for rows in (left, right))
    told = generators.told_by(chain, *sides, last - first + 1)
    assert told.is_exact
    assert told.leakage + told.rounding >= exact - 1e-14
    assert told.leakage == pytest.approx(exact, abs=1e-10)


@settings(max_examples=80, deadline=None)
@given(chain=chains(), data=st.data())
def test_a_window_leaks_what_the_definition_says(chain, data):
    windows_are_exact(chain, data)


@settings(max_examples=80, deadline=None)
@given(chain=chains(), data=st.data())
def test_any_redaction_leaks_what_the_definition_says(chain, data):
    redactions_are_exact(chain, data)


@pytest.mark.soak
@settings(max_examples=1500, deadline=None)
@given(chain=chains(), data=st.data())
def test_windows_and_redactions_of_many_chains(chain, data):
    windows_are_exact(chain, data)
    redactions_are_exact(chain, data)


@pytest.mark.parametrize("most", [1, 6, 30])
def test_where_outputs_are_too_many_the_nearest_ones_bound_them(most, monkeypatch):
    """All that lies further out counts as released: never below the leakage, nor below F3's."""
    monkeypatch.setattr(generators, "MOST", most)
    monkeypatch.setattr(generators, "_CONTEXTS", max(most // 4, 1))
    rng = np.random.default_rng(most)
    seen = set()
    for _ in range(25):
        chain = off.MarkovChain(rng.dirichlet(np.ones(2), (2, 2)), order=2)
        redaction = rng.choice([0.0, 1.0, 0.5, 0.9], size=(7, 2))
        redaction[2] = redaction[3] = 1
        exact = leakage_by_definition(chain, redaction, 4, 4)
        problem = off.Problem(chain, 7, [4], 1.0)
        worst = off.worst_output(problem, redaction)
        assert worst.upper >= exact - 1e-13
        assert worst.upper <= walked_output(problem, redaction).upper
        seen.add(worst.method)
    assert seen <= {"generators", "contexts", "nearest generators (F3)", "tuple pairs (F8)"}
    assert ("generators" if most == 30 else "nearest generators (F3)") in seen


def test_the_window_within_a_redaction_bounds_it():
    """A thousand records that are sometimes redacted: no output can be listed, the window's can."""
    redaction = np.full((1001, 2), [0.5, 0.6])
    redaction[480:521] = 1
    problem = off.Problem(V6, 1001, [501], 1.0)
    worst = off.worst_output(problem, redaction)
    assert not worst.exact
    inside = window_leakage(V6, 20, 20)
    assert worst.leakage <= inside
    redaction[:480] = redaction[521:] = 0
    whole = off.worst_output(problem, redaction)
    assert whole.method == "contexts"
    assert whole.upper == pytest.approx(inside, abs=1e-12)


def test_vectors_of_the_mathematics():
    """V6, all digits given."""
    assert [[window_leakage(V6, left, right) for right in range(3)] for left in range(3)] == [
        pytest.approx(row, abs=6e-10)
        for row in (
            [4.507189778, 4.329855762, 4.093513480],
            [4.329855762, 4.016095736, 3.700728921],
            [4.093513480, 3.700728921, 3.347153901],
        )
    ]


def test_order_one_has_the_leakage_of_its_walks():
    chain = off.MarkovChain([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])
    for left, right, length in ((0, 2, 1), (3, 1, 1), (2, 2, 3)):
        n = left + right + length + 6
        first = left + 4
        redaction = np.zeros((n, 3))
        redaction[first - 1 - left : first + length - 1 + right] = 1
        problem = off.Problem(chain, n, range(first, first + length), 1.0)
        walked = off.leakage(problem, redaction)
        assert window_leakage(chain, left, right, length=length) == pytest.approx(walked, abs=1e-12)


def exact_window_leakage(chain, left, right, length):
    """A window of unlimited room in fractions, for secrets shorter than a tuple."""
    k, order = chain.k, chain.order
    states = list(product(range(k), repeat=order))
    kernel = {z: exact_kernel([chain.transition[z]])[0] for z in states}
    lifted = [
        [kernel[z][w[-1]] if z[1:] == w[:-1] else Fraction(0) for w in states] for z in states
    ]
    masses = exact_stationary(lifted)
    prior = {}
    for z, mass in zip(states, masses, strict=True):
        prior[z[-length:]] = prior.get(z[-length:], 0) + mass
    largest = Fraction(1)
    for before in states:
        forward = {before: Fraction(1)}
        for _ in range(left + length):
            forward = walked(forward, kernel)
        ends = {}
        for value, chance in prior.items():
            after = {z: mass for z, mass in forward.items() if z[-length:] == value}
            for _ in range(right + order):
                after = walked(after, kernel)
            for z, mass in after.items():
                ends.setdefault(z, []).append(mass / chance)
        for told in ends.values():
            largest = max(largest, max(told) / min(told))
    return exact_log(largest)


def walked(masses, kernel):
    found = {}
    for z, mass in masses.items():
        for value, step in enumerate(kernel[z]):
            key = (*z[1:], value)
            found[key] = found.get(key, 0) + mass * step
    return found


@pytest.mark.parametrize(
    ("order", "window", "length"), [(2, (9, 4), 1), (3, (5, 5), 2), (2, (0, 30), 1), (3, (0, 0), 1)]
)
def test_rounding_is_less_than_it_is_said_to_be(order, window, length):
    """Against fractions: nothing is off by more than is added, and that is little."""
    rng = np.random.default_rng(order)
    chain = off.MarkovChain(rng.dirichlet([0.3, 1.0], (2,) * order), order=order)
    found, rounding = contexts_of(chain).leakage(window, (None, None), length)
    exact = exact_window_leakage(chain, *window, length)
    assert abs(found - exact) <= rounding < 1e-11
    n = sum(window) + length + 2 * order
    first = window[0] + order + 1
    redaction = np.zeros((n, 2))
    redaction[first - 1 - window[0] : first + length - 1 + window[1]] = 1
    worst = off.worst_output(off.Problem(chain, n, range(first, first + length), 1.0), redaction)
    assert abs(worst.leakage - exact) <= worst.rounding < 1e-11


# ---- the smallest windows


def smallest_by_trying(chain, epsilon, rooms, length):
    sizes = product(range(rooms[0] + 1), range(rooms[1] + 1))
    kept = [w for w in sizes if window_leakage(chain, *w, *rooms, length) <= epsilon]
    return min(kept, key=lambda window: (sum(window), window[0]))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rooms=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    length=st.integers(1, 4),
    epsilon=st.sampled_from([0.0, 0.2, 1.0, 3.0]),
)
def test_no_smaller_window_keeps_within_epsilon(seed, rooms, length, epsilon):
    rng = np.random.default_rng(seed)
    order = int(rng.integers(1, 4))
    chain = off.MarkovChain(rng.dirichlet(np.ones(2), (2,) * order), order=order)
    found = context_windows(chain, epsilon, *rooms, length)
    assert found == smallest_by_trying(chain, epsilon, rooms, length)


def test_more_of_a_window_never_tells_more():
    chain = off.MarkovChain(np.random.default_rng(3).dirichlet([1, 1], (2, 2, 2)), order=3)
    for rooms in ((None, None), (6, 6)):
        table = [[window_leakage(chain, i, j, *rooms) for j in range(7)] for i in range(7)]
        assert np.all(np.diff(table, axis=0) <= 1e-12)
        assert np.all(np.diff(table, axis=1) <= 1e-12)


def test_what_is_never_forgotten_has_no_window_without_end():
    """0011 0011 …: two neighbours tell the rest for ever, one alone tells half of the records."""
    stuck = np.zeros((2, 2, 2))
    for x, y in product(range(2), repeat=2):
        stuck[x, y, (x + 1) % 2] = 1.0
    chain = off.MarkovChain(stuck, order=2)
    assert context_windows(chain, 1.0) is None
    assert window_leakage(chain, 100, 100) == math.inf
    assert context_windows(chain, 1.0, 3, 4) == (2, 4)
    assert context_windows(chain, 1.0, 10**9, 4) == (10**9, 4)


def test_independent_records_tell_nothing():
    chain = off.MarkovChain(np.broadcast_to([0.3, 0.7], (2, 2, 2)), order=2)
    assert window_leakage(chain, 0, 0) == 0.0
    assert context_windows(chain, 0.0) == (0, 0)
    problem = off.Problem(chain, 5, [3], 0.0)
    assert off.design(problem, off.BestWindow()).utility == pytest.approx(0.8)


def test_what_is_too_rare_is_left_to_walks():
    """Steps of 1e-200: two of them are no float, so contexts say nothing and F8 does."""
    rare = 1e-200
    transition = [[[1 - rare, rare], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]]
    chain = off.MarkovChain(transition, order=2)
    assert window_leakage(chain, 4, 4) == math.inf
    redaction = np.zeros((12, 2))
    redaction[1:11] = 1
    worst = off.worst_output(off.Problem(chain, 12, [6], 1.0), redaction)
    assert worst.method == "tuple pairs (F8)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 0), "a window must be from 0"),
        ((3, 0, 2), "a window must be from 0 to its room 2, got 3"),
        ((0, 0, None, None, 0), "length must be at least 1"),
    ],
)
def test_what_is_no_window_is_refused(arguments, message):
    with pytest.raises(off.InputError, match=message):
        window_leakage(V6, *arguments)
    started = off.MarkovChain(V6.transition, np.array([[0.7, 0.1], [0.1, 0.1]]), order=2)
    with pytest.raises(off.InputError, match="stationary"):
        window_leakage(started, 1, 1)


# ---- a year of rain


def rain(order):
    """The kernel of JFK's hourly rain, 2013: counts and one half, of hours one after the other."""
    with (files("offrecord") / "demo" / "jfk_rain_2013.csv").open() as source:
        rows = list(csv.DictReader(source))
    hours = np.array([int(datetime.fromisoformat(r["time"]).timestamp()) // 3600 for r in rows])
    values = np.array([int(row["rain"]) for row in rows])
    size = len(values) - order
    linked = np.all([np.diff(hours)[i : i + size] == 1 for i in range(order)], axis=0)
    counts = np.full((2,) * (order + 1), 0.5)
    np.add.at(counts, tuple(values[i : i + size][linked] for i in range(order + 1)), 1.0)
    return off.MarkovChain(counts / counts.sum(axis=-1, keepdims=True), order=order)


@pytest.mark.parametrize(
    ("order", "told", "window", "redactions_f8"),
    [(2, 2.263, (12, 12), 28), (3, 3.031, (15, 18), 40)],
)
def test_rain_remembers_more_than_one_hour(order, told, window, redactions_f8):
    """What the window of order 1 tells if the order is higher, and the windows that it takes."""
    assert context_windows(rain(1), 1.0) == (7, 8)
    chain = rain(order)
    assert window_leakage(chain, 7, 8) == pytest.approx(told, abs=5e-4)
    assert context_windows(chain, 1.0) == window
    problem = off.Problem(chain, 401, [201], 1.0)
    policy = off.design(problem, off.BestWindow())
    assert (policy.first, policy.last, policy.worst.method) == (1, 401, "contexts")
    redacted = np.flatnonzero(policy.redaction[:, 0])
    assert (201 - redacted[0] - 1, redacted[-1] - 200) == window
    assert off.BestWindow().walked(problem).redaction[:, 0].sum() == redactions_f8 + 1


def test_higher_orders_are_cheap():
    """64 tuples and a window of 49 records."""
    transition = np.random.default_rng(0).dirichlet([20, 1], size=(2,) * 6)
    chain = off.MarkovChain(transition, order=6)
    assert sum(context_windows(chain, 1.0)) == 49
    policy = off.design(off.Problem(chain, 200, [100], 1.0), off.BestWindow())
    assert policy.worst.upper <= 1.0
    assert policy.redaction[:, 0].sum() == 50
