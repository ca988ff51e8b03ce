"""Policies for problems: the README's table, ε = 0 by the numbers of ON-OFF privacy, files."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from offrecord.errors import InputError
from offrecord.mechanisms.base import Policy
from offrecord.mechanisms.owner.greedy import GreedyPolicy
from offrecord.mechanisms.owner.mechanism import OwnerStopping
from offrecord.models.chain import MarkovChain
from offrecord.theory.problem import Problem


def designed(chain, n, private, epsilon):
    return OwnerStopping().design(Problem(chain, n, private, epsilon))


@pytest.mark.parametrize(("epsilon", "utility"), [(0.5, 0.8867), (1.0, 0.8923), (2.0, 0.8982)])
def test_the_table_of_the_readme(epsilon, utility):
    policy = designed(MarkovChain.binary(0.01, 0.8), 10, [1], epsilon)
    assert policy.utility == pytest.approx(utility, abs=1e-4)
    assert policy.leakage <= epsilon


def expected_released(policy):
    """By every sequence and outcome."""
    problem, total = policy.problem, 0.0
    chain = problem.chain
    for values in product(range(chain.k), repeat=problem.n):
        chance = chain.start[values[0]] * np.prod(
            [chain.transition[a, b] for a, b in pairwise(values)]
        )
        total += chance * sum(share * mask.sum() for mask, share in policy.outcomes(values))
    return total / problem.n


@pytest.mark.parametrize("epsilon", [0.0, 0.7])
@pytest.mark.parametrize("private", [[1], [4], [4, 5], [7]])
def test_utility_is_the_mean_of_what_leaves(epsilon, private):
    policy = designed(MarkovChain.binary(0.3, 0.45), 7, private, epsilon)
    assert policy.is_private
    assert policy.utility == pytest.approx(expected_released(policy), abs=1e-12)


@pytest.mark.parametrize(
    ("alpha", "beta", "beyond"),
    [
        (0.1, 0.3, 1.5),
        (0.024, 0.266, 2.4482758621),
        (0.6, 0.8, 0.6666666667),
        (0.95, 0.9, 5.6666666667),
        (0.3, 0.7, 0.0),
    ],
)
def test_nothing_leaks_at_epsilon_zero(alpha, beta, beyond):
    policy = designed(MarkovChain.binary(alpha, beta), 200, [1], 0.0)
    assert (1 - policy.utility) * 200 - 1 == pytest.approx(beyond, abs=1e-10)
    assert policy.leakage <= 1e-9
    two = designed(MarkovChain.binary(alpha, beta), 2, [1], 0.0)
    assert (1 - two.utility) * 2 - 1 == pytest.approx(abs(1 - alpha - beta), abs=1e-12)


@pytest.mark.parametrize(("k", "order", "private"), [(2, 1, [3]), (3, 1, [2]), (2, 2, [4])])
def test_no_output_says_anything_at_epsilon_zero(k, order, private):
    rng = np.random.default_rng([k, order])
    chain = MarkovChain(
        rng.dirichlet(np.ones(k), k**order).reshape((k,) * (order + 1)), order=order
    )
    n = 6 if k == 2 else 5
    policy = designed(chain, n, private, 0.0)
    assert isinstance(policy, GreedyPolicy)
    members = chain.members()
    law, rows = members.law(0)[0], members.rows[0, 0]
    likely: dict[tuple[int, ...], np.ndarray] = {}
    for values in product(range(k), repeat=n):
        number = 0
        for value in values[:order]:
            number = number * k + value
        chance = law[number]
        for value in values[order:]:
            chance *= rows[number, value]
            number = (number * k + value) % k**order
        for mask, share in policy.outcomes(values):
            shown = tuple(v if kept else -1 for v, kept in zip(values, mask, strict=True))
            row = likely.setdefault(shown, np.zeros(k))
            row[values[private[0] - 1]] += chance * share
    prior = sum(likely.values())
    for row in likely.values():
        np.testing.assert_allclose(row / prior, row.sum(), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_files_say_all_of_it(tmp_path, epsilon):
    policy = designed(MarkovChain.binary(0.1, 0.3), 9, [4], epsilon)
    policy.save(tmp_path / "policy.json")
    read = Policy.load(tmp_path / "policy.json")
    assert type(read) is type(policy)
    assert (read.utility, read.leakage) == (policy.utility, policy.leakage)
    values = [0, 1, 1, 0, 1, 0, 0, 0, 1]
    before, after = (list(one.outcomes(values)) for one in (policy, read))
    assert [(mask.tolist(), share) for mask, share in before] == [
        (mask.tolist(), share) for mask, share in after
    ]
    assert sum(share for _, share in before) == pytest.approx(1.0)
    drawn = read.apply(values, np.random.default_rng(3))
    assert any(np.array_equal(drawn, mask) for mask, _ in before)
    with pytest.raises(InputError, match="9 values"):
        next(policy.outcomes([0, 1]))


def test_what_people_see():
    policy = designed(MarkovChain.binary(0.1, 0.3), 30, [10], 1.0)
    assert "not local" in str(policy)
    left, right = policy.stopping_law
    assert left.sum() == pytest.approx(1.0)
    assert right.sum() == pytest.approx(1.0)
    assert policy.summary()["mechanism"] == "owner"
