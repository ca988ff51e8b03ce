"""The best local mechanism: private by the definition, never worse than the others, and as good as
its bound says.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import offrecord as off
from definition import leakage_by_definition, problems, utility_by_definition
from offrecord.mechanisms.best_local.optimum import best_around
from offrecord.mechanisms.best_local.sequential_lp import improve

OTHERS = [
    off.BestWindow(),
    *(off.ThreeRegion(tuning) for tuning in ("relaxed", "convex", "constant")),
]


def random_setting(rng, largest=80):
    """A binary problem with α + β < 1 and one private record."""
    while True:
        alpha, beta = (
            rng.uniform(0.001, 0.999, 2) if rng.random() < 0.5 else 10 ** rng.uniform(-4, 0, 2)
        )
        if alpha + beta < 1 - 1e-6:
            break
    n = int(rng.integers(2, largest))
    return off.Problem(
        off.MarkovChain.binary(alpha, beta),
        n,
        [int(rng.integers(1, n + 1))],
        float(10 ** rng.uniform(-1.3, 0.7)),
    )


@pytest.mark.parametrize(
    ("seed", "settings"),
    [(seed, 30) for seed in range(4)]
    + [pytest.param(seed, 500, marks=pytest.mark.soak) for seed in range(4)],
)
def test_the_proven_gap_is_below_two_millionths(seed, settings):
    """Two hundred random settings; two thousand, these among them, are a soak."""
    rng = np.random.default_rng(seed)
    for _ in range(settings):
        problem = random_setting(rng)
        policy = off.design(problem)
        assert policy.leakage <= problem.epsilon
        assert policy.utility <= policy.utility_bound <= policy.utility + 2e-6


def test_fig_2_becomes():
    """The numbers of the best local mechanism in the setting of Fig. 2."""
    for epsilon, utility in (
        (0.1, 0.6290),
        (0.5, 0.7384),
        (1, 0.7957),
        (1.5, 0.8337),
        (2, 0.8618),
        (3, 0.9),
    ):
        problem = off.Problem(off.MarkovChain.binary(0.01, 0.8), 10, [1], float(epsilon))
        assert off.design(problem).utility == pytest.approx(utility, abs=5.1e-5)


def test_two_sides_and_an_uneven_split():
    problem = off.Problem(off.MarkovChain.binary(0.061, 0.15), 12, [6], 1.788)
    assert off.design(problem).utility == pytest.approx(0.3829, abs=5e-5)


def searched(problem, rng, starts):
    """The best utility a general-purpose optimiser finds: every entry free, leakage as a
    constraint, many starts.
    """
    n, k = problem.n, problem.chain.k
    weights = problem.chain.marginals(1, n)
    private = [p - 1 for p in problem.private]
    free = [t for t in range(n) if t not in private]
    best = 0.0
    for _ in range(starts):
        closed = rng.random((len(free), k)) < rng.uniform(0.2, 0.8)

        def matrix(values, closed=closed):
            rows = np.ones((n, k))
            rows[free] = np.where(
                closed, 1.0, np.clip(values.reshape(len(free), k), 0.0, 1 - 1e-12)
            )
            return rows

        def room(values, matrix=matrix):
            return problem.epsilon - min(off.leakage(problem, matrix(values)), 1e3)

        def loss(values, matrix=matrix):
            return float((weights * matrix(values)).sum() / n)

        found = minimize(
            loss,
            np.where(closed, 1.0, rng.uniform(0.3, 1, closed.shape)).ravel(),
            bounds=[(0, 1)] * closed.size,
            constraints=[{"type": "ineq", "fun": room}],
            method="SLSQP",
            options={"maxiter": 60},
        )
        rows = matrix(found.x)
        for _ in range(40):  # back into the budget, where the optimiser stopped just outside
            if off.leakage(problem, rows) <= problem.epsilon:
                best = max(best, 1 - float((weights * rows).sum() / n))
                break
            rows = np.minimum(rows * (1 + 1e-6), 1.0)
    return best


@pytest.mark.parametrize("seed", range(4))
def test_no_search_finds_a_binary_mechanism_above_the_bound(seed):
    rng = np.random.default_rng(100 + seed)
    problem = random_setting(rng, largest=6)
    policy = off.design(problem)
    assert searched(problem, rng, 12) <= policy.utility_bound + 1e-9


def test_no_pattern_of_a_small_binary_chain_beats_it():
    """Exhaustive over a grid: every matrix with entries 0, ¼, ½, ¾, 1 for the records beside the
    private one.
    """
    problem = off.Problem(off.MarkovChain.binary(0.1, 0.4), 3, [2], 1.9)
    bound = off.design(problem).utility_bound
    grid = (0.0, 0.25, 0.5, 0.75, 1.0)
    best = 0.0
    for entries in itertools.product(grid, repeat=4):
        matrix = np.ones((3, 2))
        matrix[[0, 2]] = np.reshape(entries, (2, 2))
        if off.leakage(problem, matrix) <= problem.epsilon:
            best = max(best, utility_by_definition(problem, matrix))
    assert 0 < best <= bound + 1e-9


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2, 3))]
)
def test_three_values_stay_within_a_ten_thousandth_of_a_many_start_search(seed):
    rng = np.random.default_rng(200 + seed)
    chain = off.MarkovChain(rng.dirichlet(np.ones(3), size=3))
    problem = off.Problem(
        chain, int(rng.integers(3, 6)), [int(rng.integers(1, 4))], float(rng.uniform(0.4, 1.5))
    )
    policy = off.design(problem)
    found = searched(problem, rng, 8)
    assert policy.utility >= found - 1e-4
    assert found <= policy.utility_bound + 1e-9


@settings(max_examples=40, deadline=None)
@given(problem=problems(max_n=5))
def test_every_best_policy_is_private_and_no_worse_than_the_others(problem):
    policy = off.design(problem)
    assert policy.leakage <= problem.epsilon
    assert leakage_by_definition(problem, policy.redaction) <= problem.epsilon + 1e-9
    assert policy.utility <= policy.utility_bound + 1e-9
    for other in OTHERS:
        assert policy.utility >= off.design(problem, other).utility - 1e-9


@settings(max_examples=15, deadline=None)
@given(
    alpha=st.floats(0.4, 1),
    beta=st.floats(0.61, 1),
    epsilon=st.floats(0.2, 3),
    p=st.integers(1, 12),
)
def test_chains_that_flip(alpha, beta, epsilon, p):
    problem = off.Problem(off.MarkovChain.binary(alpha, beta), 12, [p], epsilon)
    policy = off.design(problem)
    assert policy.leakage <= epsilon
    assert policy.utility <= policy.utility_bound
    for other in OTHERS:
        assert policy.utility >= off.design(problem, other).utility - 1e-9


def test_linear_programs_find_the_proven_optimum():
    """Two independent ways to the same number."""
    for alpha, beta, n, p, epsilon in (
        (0.01, 0.8, 10, 1, 1.0),
        (0.061, 0.15, 12, 6, 1.788),
        (0.05, 0.3, 30, 12, 1.0),
    ):
        problem = off.Problem(off.MarkovChain.binary(alpha, beta), n, [p], epsilon)
        start = off.design(problem, off.BestWindow()).redaction
        found = improve(problem, start, 0, (1e-6 * n, 40, 400))
        utility = 1 - float((found @ problem.chain.start).mean())
        optimum = off.design(problem)
        assert optimum.utility - 1e-5 <= utility <= optimum.utility_bound + 1e-9


def test_a_run_is_protected_as_one_secret():
    problem = off.Problem(off.MarkovChain.binary(0.2, 0.4), 6, [3, 4], 0.9)
    policy = off.design(problem)
    assert leakage_by_definition(problem, policy.redaction) <= 0.9 + 1e-9
    assert policy.utility_bound - policy.utility <= 1e-6
    rng = np.random.default_rng(7)
    assert searched(problem, rng, 12) <= policy.utility_bound + 1e-9


def test_several_private_records_gain_over_their_maximum():
    for protect in ("each", "run"):
        problem = off.Problem(off.MarkovChain.binary(0.02, 0.3), 30, range(3, 31, 5), 3.0, protect)
        best, constant = off.design(problem), off.design(problem, off.ThreeRegion())
        assert best.leakage <= 3.0
        assert best.utility > constant.utility + 0.1


def test_secrets_far_apart_are_improved_each_by_itself():
    chain = off.MarkovChain([[0.9, 0.06, 0.04], [0.3, 0.5, 0.2], [0.2, 0.2, 0.6]])
    one, two = (off.design(off.Problem(chain, 300, private, 0.8)) for private in ([60], [60, 240]))
    window = off.design(off.Problem(chain, 300, [60], 0.8), off.BestWindow())
    assert one.utility > window.utility + 1e-4
    assert 1 - two.utility == pytest.approx(2 * (1 - one.utility), abs=1e-5)


def test_relabelling_the_values_changes_nothing():
    policies = [
        off.design(off.Problem(off.MarkovChain.binary(*ab), 15, [5], 1.0))
        for ab in ((0.05, 0.3), (0.3, 0.05))
    ]
    assert policies[0].utility == pytest.approx(policies[1].utility, abs=1e-12)
    assert np.allclose(policies[0].redaction, policies[1].redaction[:, ::-1], atol=1e-12)


@pytest.mark.parametrize(
    ("alpha", "beta", "n", "p", "epsilon"),
    [
        (0.1, 0.2, 100, 5, 1e300),
        (5e-324, 0.3, 10, 5, 1.0),
        (5e-324, 5e-324, 10, 5, 1.0),
        (1e-17, 1e-17, 10, 5, 1.0),
        (1.0, 1.0, 10**5, 500, 0.1),
        (0.3, 0.7 - 1e-9, 50, 20, 1e-10),
        (1e-8, 0.5, 50, 20, 0.5),
        (1e-4, 1e-3, 20_000, 10_000, 0.5),
    ],
)
def test_extreme_chains_and_budgets_are_served(alpha, beta, n, p, epsilon):
    policy = off.design(off.Problem(off.MarkovChain.binary(alpha, beta), n, [p], epsilon))
    assert policy.leakage <= epsilon
    assert policy.utility <= policy.utility_bound


def test_nothing_to_release_is_said():
    policy = off.design(off.Problem(off.MarkovChain.binary(0.1, 0.2), 4, [2], 0.0))
    assert policy.utility == 0.0
    assert "nothing can be released" in str(policy)


def test_the_bound_is_about_the_whole_budget_not_the_reduced_one():
    """The design keeps a hair below ε; the bound must hold at ε itself, and above what is found
    there.
    """
    at = best_around(0.05, 0.3, 1.0, 1.0, (10, 10), together=False, n=21).least
    above = best_around(0.05, 0.3, 1.0, 1.1, (10, 10), together=False, n=21).least
    assert above < at
