"""The paper's bounds as printed, kept apart from the exact values."""

import numpy as np
import pytest

import offrecord as off


def test_theorem_2_in_the_setting_of_fig_2():
    chain = off.MarkovChain.binary(0.01, 0.8)
    for epsilon, utility in ((0.1, 0.5), (0.5, 0.7), (1, 0.7), (1.5, 0.8), (2, 0.8), (3, 0.9)):
        problem = off.Problem(chain, 10, [1], epsilon)
        assert off.theorem2_as_printed(problem) == pytest.approx(utility, abs=1e-12)
        assert off.data_independent_utility(problem) == pytest.approx(utility, abs=1e-12)


def test_theorem_2_is_off_by_exactly_one_record_at_most_for_positive_dependence():
    rng = np.random.default_rng(2)
    above = 0
    for _ in range(300):
        alpha, beta = np.sort(rng.uniform(0.01, 0.5, 2))
        n = int(rng.integers(4, 30))
        problem = off.Problem(
            off.MarkovChain.binary(alpha, beta), n, [int(rng.integers(2, n))], rng.uniform(0.1, 3)
        )
        exact, printed = off.data_independent_utility(problem), off.theorem2_as_printed(problem)
        assert exact <= printed + 1 / n + 1e-9
        above += exact > printed + 1e-9
    assert above > 0


def test_theorem_2_refuses_what_it_is_not_about():
    chain = off.MarkovChain.binary(0.01, 0.8)
    with pytest.raises(off.InputError, match="Theorem 2 is about one private record"):
        off.theorem2_as_printed(off.Problem(chain, 10, [1, 5], 1.0))


def test_algorithm_1_reaches_what_appendix_c_says():
    rng = np.random.default_rng(3)
    for _ in range(200):
        alpha, beta = np.sort(rng.uniform(0.01, 0.5, 2))
        n = int(rng.integers(4, 30))
        problem = off.Problem(
            off.MarkovChain.binary(alpha, beta), n, [int(rng.integers(1, n))], rng.uniform(0.1, 3)
        )
        assert (
            off.design(problem, off.MarkovQuilt()).utility
            >= off.quilt_utility_as_printed(problem) - 1e-9
        )


def test_the_relaxed_bound_is_not_the_leakage():
    problem = off.Problem(off.MarkovChain.binary(0.25, 0.5), 3, [1], 0.5)
    matrix = np.array([[1, 1], [0.99, 1], [0, 0]])
    assert off.relaxed_leakage_as_printed(problem, matrix) == pytest.approx(0.192, abs=5e-4)
    assert off.leakage(problem, matrix) == pytest.approx(0.405, abs=5e-4)


def test_the_relaxed_design_spends_its_bound_exactly():
    for p in (1, 6, 12):
        problem = off.Problem(off.MarkovChain.binary(0.01, 0.3), 12, [p], 1.0)
        policy = off.design(problem, off.ThreeRegion("relaxed", "even"))
        assert "M" in policy.regions
        assert off.relaxed_leakage_as_printed(problem, policy.redaction) == pytest.approx(
            1.0, abs=1e-9
        )
