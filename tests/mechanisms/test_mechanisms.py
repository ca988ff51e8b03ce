"""Mechanisms: never above ε, and each as good as it claims to be."""

import itertools

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import (
    leakage_by_definition,
    problems,
    told_by_outcomes,
    utility_by_definition,
)
from offrecord.mechanisms.three_region import SHARES, convex_minorant_slopes
from offrecord.theory.one_side import OneSide

EVERY_CHAIN = [
    off.BestWindow(),
    *(off.ThreeRegion(tuning) for tuning in ("relaxed", "convex", "constant")),
]


def binary_problems(max_n=12):
    number = st.one_of(st.floats(0.001, 1), st.sampled_from([0.5, 1.0, 0.3, 0.7, 0.01]))
    return st.builds(
        lambda alpha, beta, n, p, epsilon: off.Problem(
            off.MarkovChain.binary(alpha, beta), n, [min(p, n)], epsilon
        ),
        number,
        number,
        st.integers(2, max_n),
        st.integers(1, max_n),
        st.one_of(st.floats(0.01, 4), st.just(0.0)),
    )


@settings(max_examples=120, deadline=None)
@given(problem=problems(max_n=5), mechanism=st.sampled_from(EVERY_CHAIN))
def test_every_policy_is_private_by_the_definition(problem, mechanism):
    policy = off.design(problem, mechanism)
    assert policy.leakage <= problem.epsilon
    assert leakage_by_definition(problem, policy.redaction) <= problem.epsilon + 1e-9
    assert policy.utility == pytest.approx(
        utility_by_definition(problem, policy.redaction), abs=1e-12
    )


def check_outcomes(problem, mechanism):
    policy = off.design(problem, mechanism)
    leakage, released = told_by_outcomes(problem, policy)
    assert policy.is_private
    assert leakage <= policy.leakage + 1e-9
    assert policy.leakage <= problem.epsilon
    assert policy.utility == pytest.approx(released, abs=1e-9)
    return policy


@pytest.mark.parametrize(
    "mechanism", [name for name in off.MECHANISMS if name not in ("quilt", "owner")]
)
def test_what_every_mechanism_does_is_private_by_the_definition(mechanism):
    """By its outcomes alone; the owner's mechanism has tests of its own."""
    count = 10 if mechanism == "best-local" else 20

    @settings(max_examples=count, deadline=None)
    @given(problem=problems(max_n=5))
    def check(problem):
        check_outcomes(problem, mechanism)

    check()


def test_so_is_algorithm_1_on_the_papers_chain():
    for n, p, epsilon in ((6, 1, 0.5), (6, 3, 1.0), (5, 5, 2.0)):
        check_outcomes(off.Problem(off.MarkovChain.binary(0.1, 0.3), n, [p], epsilon), "quilt")


@settings(max_examples=100, deadline=None)
@given(
    problem=binary_problems(), split=st.one_of(st.sampled_from(["best", "even"]), st.floats(0, 1))
)
def test_the_papers_mechanisms_are_private_on_the_papers_chain(problem, split):
    for mechanism in [
        off.MarkovQuilt(),
        *(off.ThreeRegion(t, split) for t in ("relaxed", "convex", "constant")),
    ]:
        policy = off.design(problem, mechanism)
        assert policy.leakage <= problem.epsilon
        if problem.n <= 7:
            assert leakage_by_definition(problem, policy.redaction) <= problem.epsilon + 1e-9


@settings(max_examples=60, deadline=None)
@given(problem=problems(max_n=6))
def test_no_data_independent_mechanism_beats_the_window(problem):
    """Exhaustive: every set of records that could be released, for each secret on its own."""
    for secret in problem.secrets:
        one = off.Problem(
            problem.chain, problem.n, range(secret.first, secret.last + 1), problem.epsilon
        )
        most = 0
        for released in itertools.product((0, 1), repeat=problem.n):
            matrix = np.repeat(1.0 - np.array(released)[:, None], problem.chain.k, axis=1)
            if any(released[t - 1] for t in range(secret.first, secret.last + 1)):
                continue
            if sum(released) > most and off.leakage(one, matrix) <= problem.epsilon:
                most = sum(released)
        assert round(off.design(one, off.BestWindow()).utility * problem.n) == most


@settings(max_examples=80, deadline=None)
@given(problem=binary_problems(), tuning=st.sampled_from(["relaxed", "convex", "constant"]))
def test_the_best_split_is_no_worse_than_any_of_201(problem, tuning):
    best = off.design(problem, off.ThreeRegion(tuning, "best")).utility
    for share in (0, 0.25, 0.5, 0.745, 1, 0.005):
        assert round(share * (SHARES - 1)) == pytest.approx(share * (SHARES - 1))
        assert best >= off.design(problem, off.ThreeRegion(tuning, share)).utility - 1e-9


@settings(max_examples=80, deadline=None)
@given(problem=binary_problems(), split=st.sampled_from(["even", 0.3]))
def test_the_tunings_come_in_order(problem, split):
    """The smallest exact q is at least as good as the closed form, and App. A's program as the
    closed form.
    """
    relaxed, convex, constant = (
        off.design(problem, off.ThreeRegion(tuning, split)).utility
        for tuning in ("relaxed", "convex", "constant")
    )
    assert constant >= relaxed - 1e-9
    assert convex >= relaxed - 1e-9


@settings(max_examples=60, deadline=None)
@given(problem=problems(max_n=6, epsilons=(0.3, 1.0)))
def test_the_constant_q_is_the_smallest_on_each_side(problem):
    """A hair less redaction in M breaks the side's share, unless q is 0 already."""
    chain, p = problem.chain, problem.private[0]
    for side in OneSide.both(problem, off.Secret(p, p)):
        if side.is_independent:
            continue
        share = problem.epsilon
        rows = off.ThreeRegion("constant")._plans(side, [share])[0].rows
        inner = (rows > 0) & (rows < 1)
        assert side.worst(rows[np.newaxis])[0] <= share
        if inner.any():
            less = np.where(inner, rows * (1 - 1e-6), rows)
            assert side.worst(less[np.newaxis])[0] > share
        assert chain.k == rows.shape[1]


def solve_with_clarabel(caps):
    """Appendix A: min Σ q_t subject to −Σ_{i ≤ t} log q_i ≤ caps[t], in z = −log q."""
    z = cvxpy.Variable(len(caps))
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum(cvxpy.exp(-z))), [cvxpy.cumsum(z) <= caps, z >= 0]
    )
    problem.solve(solver=cvxpy.CLARABEL)
    return np.exp(-z.value)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.01, 2), min_size=1, max_size=12))
def test_the_convex_program_has_the_closed_solution(caps):
    """F13, against a convex solver that knows nothing of it."""
    ours = np.exp(-convex_minorant_slopes(np.array(caps)))
    assert np.all(np.cumsum(-np.log(ours)) <= np.array(caps) + 1e-12)
    assert ours.sum() == pytest.approx(solve_with_clarabel(np.array(caps)).sum(), abs=1e-5)


def test_three_r_convex_is_the_program_of_the_paper():
    problem = off.Problem(off.MarkovChain.binary(0.01, 0.8), n=10, private=[1], epsilon=0.3)
    redaction = off.design(problem, off.ThreeRegion("convex")).redaction
    region = off.regions(problem.chain, 1, np.arange(1, 11), 0.3)
    medium = np.flatnonzero(region == "M")
    influence = off.pointwise_influence(problem.chain, 1, np.arange(1, 11))
    deltas = [influence[t + 1, 0] if region[t + 1] == "M" else influence[t + 1, 1] for t in medium]
    theirs = solve_with_clarabel(0.3 - np.array(deltas))
    assert redaction[medium, 0] == pytest.approx(theirs, abs=2e-4)
    assert redaction[medium, 0].sum() == pytest.approx(theirs.sum(), abs=1e-6)


def test_numbers_of_an_uneven_split():
    """F6's chain: even split 0.2065, best window 0.3333."""
    problem = off.Problem(off.MarkovChain.binary(0.061, 0.15), n=12, private=[6], epsilon=1.788)
    assert off.design(problem, off.ThreeRegion("constant", "even")).utility == pytest.approx(
        0.2065, abs=5e-5
    )
    assert off.design(problem, off.BestWindow()).utility == pytest.approx(1 / 3, abs=1e-12)


def test_algorithm_1_as_printed():
    chain = off.MarkovChain.binary(0.25, 0.5)

    def window(n, p, epsilon):
        rows = off.design(off.Problem(chain, n, [p], epsilon), off.MarkovQuilt()).redaction[:, 0]
        assert set(rows) <= {0.0, 1.0}
        return (np.flatnonzero(rows) + 1).tolist()

    delta, half = off.delta_star(chain, 0.5, 50), off.delta_star(chain, 0.25, 50)
    assert (delta, half) == (2, 2)
    assert window(20, 1, 0.5) == [1, 2, 3]  # p = 1: Δ_ℓ = 0, Δ_r = Δ*(ε)
    assert window(20, 2, 0.5) == [2 - half + 1, 2, 3, 4][:4]  # two-sided, cut at the chain's end
    assert window(20, 8, 0.5) == [6, 7, 8, 9, 10]
    assert window(20, 13, 0.5) == [
        21 - t for t in reversed(window(20, 8, 0.5))
    ]  # re-indexed for p > n/2


def test_quilt_says_which_chains_it_takes():
    chain = off.MarkovChain([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    with pytest.raises(off.InputError, match="quilt takes stationary chains with two values"):
        off.design(off.Problem(chain, 5, [1], 1.0), off.MarkovQuilt())


def test_epsilon_zero_redacts_all_that_depends_on_the_private_record():
    for mechanism in [off.MarkovQuilt(), *EVERY_CHAIN[1:]]:
        dependent = off.design(
            off.Problem(off.MarkovChain.binary(0.1, 0.3), 600, [300], 0.0), mechanism
        )
        assert dependent.utility == 0.0
        assert dependent.leakage == 0.0
        independent = off.design(
            off.Problem(off.MarkovChain.binary(0.3, 0.7), 6, [3], 0.0), mechanism
        )
        assert independent.leakage == 0.0
        least = (
            1 if mechanism != off.MarkovQuilt() else 3
        )  # Algorithm 1 redacts a record more a side
        assert round(6 * (1 - independent.utility)) <= least


def test_epsilon_zero_is_what_floating_point_knows_of_it():
    """A window leaks nothing that is above rounding: at most 1e-12."""
    chain = off.MarkovChain.binary(0.1, 0.3)
    policy = off.design(off.Problem(chain, 600, [300], 0.0), off.BestWindow())
    edges = np.flatnonzero(policy.redaction[:, 0]) + 1
    beside = [float(off.max_influence(chain, 300, t)) for t in (edges[0] - 1, edges[-1] + 1)]
    assert 0 < sum(beside) < 1.1e-12


def test_alpha_equal_beta_leaves_no_medium_region():
    policy = off.design(off.Problem(off.MarkovChain.binary(0.2, 0.2), 30, [15], 0.7))
    assert set(policy.regions) == {"private", "L", "S"}


def test_several_private_records_take_the_maximum_of_their_designs():
    chain = off.MarkovChain.binary(0.05, 0.3)
    together = off.design(
        off.Problem(chain, 60, [10, 30, 31], 1.0, protect="each"), off.ThreeRegion()
    ).redaction
    alone = [
        off.design(off.Problem(chain, 60, [p], 1.0), off.ThreeRegion()).redaction
        for p in (10, 30, 31)
    ]
    assert np.allclose(together, np.max(alone, axis=0), atol=1e-12)


def test_secrets_that_share_a_design_get_what_they_would_alone():
    chain = off.MarkovChain.binary(0.1, 0.4)
    private = [3, 40, 90, 140, 197]
    shared = off.design(off.Problem(chain, 200, private, 1.0), off.ThreeRegion()).redaction
    alone = np.max(
        [
            off.design(off.Problem(chain, 200, [p], 1.0), off.ThreeRegion()).redaction
            for p in private
        ],
        axis=0,
    )
    assert np.allclose(shared, alone, atol=1e-12)


def test_a_long_chain_costs_what_its_windows_do():
    chain = off.MarkovChain.binary(0.1, 0.3)
    for mechanism in EVERY_CHAIN:
        small, large = (
            off.design(off.Problem(chain, n, [n // 2], 0.5), mechanism) for n in (1000, 10**6)
        )
        assert (1 - large.utility) * 10**6 == pytest.approx((1 - small.utility) * 1000, rel=1e-6)


def test_a_chain_that_never_forgets_is_redacted_whole():
    policy = off.design(off.Problem(off.MarkovChain.binary(1.0, 1.0), 10**5, [5], 3.0))
    assert (policy.utility, policy.leakage) == (0.0, 0.0)


def test_names_and_the_nearest_one():
    assert [off.mechanism_named(name).name for name in off.MECHANISMS] == list(off.MECHANISMS)
    with pytest.raises(off.InputError, match=r"did you mean 3r-relaxed\?"):
        off.mechanism_named("3r-relaxd")
    with pytest.raises(off.InputError, match="split is for the 3R mechanisms"):
        off.mechanism_named("window", split="even")


@pytest.mark.parametrize("split", ["uneven", -0.1, 1.1, float("nan"), True])
def test_splits_out_of_range_are_refused(split):
    with pytest.raises(off.InputError, match="split must be"):
        off.ThreeRegion(split=split)
