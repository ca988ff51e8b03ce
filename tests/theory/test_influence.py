"""Influence: closed form against 50 digits, matrices against the joint distribution, regions and
Δ*.
"""

from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import chains, problems, redactions, sequences
from offrecord.theory.influence import is_forced, log_likelihoods

EXTREMES = [
    (alpha, beta)
    for total in (1e-8, 1e-5, 0.01, 0.5, 0.999999, 1.0, 1.0000001, 1.5, 1.99, 2 - 1e-5, 2 - 1e-8)
    for share in (0.5, 0.3, 0.01, 1e-6)
    for alpha, beta in ((total * share, total * (1 - share)),)
    if 0 < alpha <= 1 and 0 < beta <= 1
] + [
    (1 - 5e-9, 1 - 5e-9),
    (0.5, 1 - 1e-9),
    (1e-3, 1 - 1e-9),
    (1 - 1e-8, 1 - 1e-12),
    (1 - 1e-12, 1.0),
]


@pytest.mark.parametrize(("alpha", "beta"), EXTREMES)
def test_closed_form_matches_fifty_digits(alpha, beta):
    distances = np.unique(
        np.concatenate((np.arange(1, 30), np.geomspace(30, 10_000, 40).astype(int)))
    )
    chain = off.MarkovChain.binary(alpha, beta)
    ours = off.pointwise_influence(chain, 1, distances + 1)
    if alpha + beta == 1.0:
        assert not ours.any()
        return
    with mpmath.workdps(360):  # 50 digits remain after the cancellation in log(1 + 1e-300)
        a, b = mpmath.mpf(chain.alpha), mpmath.mpf(chain.beta)
        for distance, (zero, one) in zip(distances.tolist(), ours, strict=True):
            # App. F, from the n-step kernel itself
            s = (1 - a - b) ** distance
            to_one, to_zero = a / (a + b) * (1 - s), b / (a + b) * (1 - s)
            for value, exact in (
                (zero, abs(mpmath.log((1 - to_one) / to_zero))),
                (one, abs(mpmath.log((1 - to_zero) / to_one))),
            ):
                if exact == mpmath.inf:
                    assert value == np.inf
                elif exact > mpmath.mpf(10) ** -300:  # smaller ones are not floats
                    assert abs(value - exact) <= exact * mpmath.mpf("1e-10")
                else:
                    assert 0 <= value < 1e-299


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_pointwise_influence_is_the_definition(data):
    n = data.draw(st.integers(2, 5))
    chain = data.draw(chains(n))
    p = data.draw(st.integers(1, n))
    paths, weight = sequences(chain, n)
    for t in range(1, n + 1):
        ours = off.pointwise_influence(chain, p, t)
        if t == p:
            assert np.all(ours == np.inf)
            continue
        joint = np.zeros((chain.k, chain.k))
        np.add.at(joint, (paths[:, p - 1], paths[:, t - 1]), weight)
        joint = joint[joint.sum(axis=1) > 0]
        conditional = joint / joint.sum(axis=1, keepdims=True)
        for x in range(chain.k):
            column = conditional[:, x]
            if not column.any():
                assert ours[x] == -np.inf
            elif (column == 0).any():
                assert ours[x] == np.inf
            else:
                assert ours[x] == pytest.approx(np.log(column.max() / column.min()), abs=1e-9)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_influence_of_sets_is_the_definition(data):
    n = data.draw(st.integers(2, 5))
    chain = data.draw(chains(n))
    p = data.draw(st.integers(1, n))
    records = data.draw(st.sets(st.integers(1, n).filter(lambda t: t != p), max_size=3))
    paths, weight = sequences(chain, n)
    largest = 0.0
    for values in product(range(chain.k), repeat=len(records)):
        shown = dict(zip(sorted(records), values, strict=True))
        match = np.ones(len(paths), bool)
        for t, value in shown.items():
            match &= paths[:, t - 1] == value
        given_x = [
            weight[match & (paths[:, p - 1] == x)].sum() / weight[paths[:, p - 1] == x].sum()
            for x in range(chain.k)
            if (paths[:, p - 1] == x).any()
        ]
        if max(given_x) > 0:
            exact = np.log(max(given_x) / min(given_x)) if min(given_x) > 0 else np.inf
            largest = max(largest, exact)
    if chain.order > 1 and len(records) > 1:
        with pytest.raises(off.InputError, match="chains of order 1"):
            off.max_influence(chain, p, records)
    else:
        assert off.max_influence(chain, p, records) == pytest.approx(largest, abs=1e-9)


def test_influence_of_no_record_and_of_the_private_record():
    chain = off.MarkovChain.binary(0.25, 0.5)
    assert off.max_influence(chain, 3, []) == 0.0
    assert off.max_influence(chain, 3, [3, 5]) == np.inf


def test_influence_by_distance_is_that_of_each_record():
    chain = off.MarkovChain.binary(0.25, 0.5)
    found = off.influence_by_distance(chain, 5, 3, -1)
    assert found.tolist() == [off.max_influence(chain, 5, t) for t in (4, 3, 2)]


@settings(max_examples=100, deadline=None)
@given(alpha=st.floats(1e-6, 1), beta=st.floats(1e-6, 1), epsilon=st.floats(1e-6, 20))
def test_delta_star_is_the_smallest_distance(alpha, beta, epsilon):
    chain = off.MarkovChain.binary(alpha, beta)
    found = off.delta_star(chain, epsilon, limit=100_000)
    if found is None:
        assert off.max_influence(chain, 1, 100_001) > epsilon
    else:
        assert off.max_influence(chain, 1, 1 + found) <= epsilon
        assert found == 1 or off.max_influence(chain, 1, found) > epsilon


def test_delta_star_may_not_exist():
    assert off.delta_star(off.MarkovChain.binary(0.1, 0.2), 0.0, limit=1000) is None
    assert off.delta_star(off.MarkovChain.binary(1.0, 1.0), 5.0, limit=1000) is None
    assert off.delta_star(off.MarkovChain.binary(0.3, 0.7), 0.0, limit=1000) == 1


def test_fig3_regions():
    region = off.regions(off.MarkovChain.binary(0.01, 0.8), 1, np.arange(1, 11), 1.0)
    assert region.tolist() == ["L", "M", "M", *["S"] * 7]


def test_swapping_the_roles_of_the_values_swaps_their_influence():
    """The paper's footnote on α > β."""
    chain, swapped = off.MarkovChain.binary(0.1, 0.7), off.MarkovChain.binary(0.7, 0.1)
    records = np.arange(2, 8)
    assert np.array_equal(
        off.pointwise_influence(chain, 1, records),
        off.pointwise_influence(swapped, 1, records)[:, ::-1],
    )


def test_regions_of_three_values():
    chain = off.MarkovChain([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.1, 0.2, 0.7]])
    records = np.arange(1, 12)
    influence = off.pointwise_influence(chain, 4, records)
    for row, region in zip(influence, off.regions(chain, 4, records, 0.6), strict=True):
        assert region == {0: "L", 3: "S"}.get(int((row <= 0.6).sum()), "M")
    assert {"L", "M", "S"} == set(off.regions(chain, 4, records, 0.6))


def test_a_value_that_is_never_taken_decides_no_region():
    chain = off.MarkovChain([[0.9, 0.1, 0], [0.1, 0.9, 0], [0.5, 0.5, 0]])
    assert off.regions(chain, 1, [2], 0.5).tolist() == ["L"]
    assert off.regions(chain, 1, [2], 3.0).tolist() == ["S"]


def test_unsigned_records_are_records():
    chain = off.MarkovChain([[0.9, 0.08, 0.02], [0.2, 0.7, 0.1], [0.05, 0.15, 0.8]])
    records = np.array([1, 3, 9])
    for kind in (np.uint8, np.uint64, np.int16):
        assert np.array_equal(
            off.pointwise_influence(chain, 5, records.astype(kind)),
            off.pointwise_influence(chain, 5, records),
        )


def test_what_is_forced_is_above_epsilon_by_more_than_rounding():
    epsilon = 1.0
    influence = np.array([-np.inf, 0.5, 1.0, 1.0 + 1e-13, 1.0 + 1e-10, 1.0 + 1e-8, np.inf])
    assert is_forced(influence, epsilon).tolist() == [False] * 5 + [True] * 2
    assert is_forced(np.array([0.0, 1e-13, 1e-11]), 0.0).tolist() == [False, False, True]


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_what_is_forced_leaks_more_than_epsilon_if_released_at_all(data):
    """Lemma 1, with everything else redacted or released at random (F4)."""
    problem = data.draw(problems(max_n=6, epsilons=(0.1, 0.5, 1.0)))
    problem = off.Problem(problem.chain, problem.n, problem.private[:1], problem.epsilon)
    p = problem.private[0]
    redaction = data.draw(redactions(problem))
    redaction[p - 1] = 1.0
    for t in range(1, problem.n + 1):
        influence = off.pointwise_influence(problem.chain, p, t)
        for x in np.flatnonzero(is_forced(influence, problem.epsilon) & (t != p)):
            released = redaction.copy()
            released[t - 1, x] = 0.5
            assert off.leakage(problem, released) > problem.epsilon


@pytest.mark.parametrize("slow", [0.1, 1e-20, 1e-200])
def test_likelihoods_are_those_of_the_kernels_powers(slow):
    """Nearly a cycle: products of its small entries would vanish."""
    kernel = np.array([[slow, 0.5, 0.5], [0.2, 0.5, 0.3], [0.4, 0.6 - slow, slow]])
    chain = off.MarkovChain(kernel / kernel.sum(axis=1, keepdims=True))
    found = log_likelihoods(chain, 1, 1, 300)
    for distance in (1, 2, 65, 300):
        with np.errstate(divide="ignore"):
            exact = np.log(np.linalg.matrix_power(chain.transition, distance))
        assert np.allclose(found[distance - 1], exact - exact.max(axis=0), atol=1e-9)


def test_likelihoods_of_what_is_nearly_impossible_do_not_vanish():
    chain = off.MarkovChain([[0.5, 0.5], [0.0, 1.0]], start=[0.5, 0.5])
    found = log_likelihoods(chain, 1, 1, 3000)
    assert found[-1, 0, 0] == 0
    assert found[-1, 1, 0] == -np.inf
