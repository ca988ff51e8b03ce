"""Chains on hidden states: the bound against every path of states and every output."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import leakage_by_definition as leakage_of_values
from definition import leakage_of_paths
from definition import sequences as state_paths
from offrecord.theory.leakage import walked_output


def value_paths(chain, n):
    """Every sequence of values that states show, once for each path of states."""
    states, weight = state_paths(chain.lifted, n)
    return chain.coordinate(0)[states], weight


def leakage_by_definition(problem, redaction):
    """Of what is seen and secret: values."""
    return leakage_of_paths(*value_paths(problem.chain, problem.n), problem, redaction)


@st.composite
def hidden_chains(draw):
    shows = draw(st.sampled_from([(0, 0, 1), (0, 1, 1), (1, 0, 1), (0, 0, 1, 1), (0, 1, 2, 0)]))
    h = len(shows)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    transition = rng.dirichlet(np.ones(h), size=h)
    if draw(st.booleans()):
        transition = np.round(transition, 1)  # zeros among them
        transition[np.arange(h), transition.argmax(axis=1)] += 1 - transition.sum(axis=1)
    start = None if draw(st.booleans()) else rng.dirichlet(np.ones(h))
    try:
        return off.MarkovChain(transition, start, shows=shows)
    except off.InputError:  # several closed classes
        return off.MarkovChain(transition, np.full(h, 1 / h), shows=shows)


@st.composite
def hidden_problems(draw):
    chain = draw(hidden_chains())
    n = draw(st.integers(2, 5 if chain.k == 2 else 4))
    private = draw(st.sets(st.integers(1, n), min_size=1, max_size=2))
    epsilon, protect = (
        draw(st.sampled_from([0.3, 1.0, 2.5])),
        draw(st.sampled_from(["run", "each"])),
    )
    return off.Problem(chain, n, private, epsilon, protect)


@settings(max_examples=120, deadline=None)
@given(problem=hidden_problems(), data=st.data())
def test_the_bound_is_never_below_the_leakage(problem, data):
    entry = st.sampled_from([0.0, 1.0, 1.0, 0.5, 0.05, 0.95])
    k = problem.chain.k
    redaction = np.array([[data.draw(entry) for _ in range(k)] for _ in range(problem.n)])
    for p in problem.private:
        redaction[p - 1] = 1
    worst = off.worst_output(problem, redaction)
    assert not worst.exact
    assert worst.upper >= leakage_by_definition(problem, redaction) - 1e-9


@settings(max_examples=40, deadline=None)
@given(
    problem=hidden_problems(),
    mechanism=st.sampled_from([off.BestWindow(), off.ThreeRegion(), off.BestLocal()]),
)
def test_mechanisms_are_private_by_the_definition(problem, mechanism):
    policy = off.design(problem, mechanism)
    assert policy.worst.upper <= problem.epsilon
    assert leakage_by_definition(problem, policy.redaction) <= problem.epsilon + 1e-9
    paths, weight = value_paths(problem.chain, problem.n)
    released = sum(1 - policy.redaction[t][paths[:, t]] for t in range(problem.n))
    assert policy.utility == pytest.approx(float((weight * released).sum() / problem.n), abs=1e-9)


def test_a_secret_that_may_be_released_is_given_away():
    chain = off.MarkovChain(np.full((3, 3), 1 / 3), shows=[0, 0, 1])
    redaction = np.array([[1.0, 1], [0, 1], [1, 1]])
    worst = off.worst_output(off.Problem(chain, 3, [2], 1.0), redaction)
    assert worst.leakage == np.inf
    assert worst.itself


def test_a_regime_that_lasts_is_told_by_records_far_away():
    """Each regime's values are independent draws; the regime lasts, and order 1 does not see it."""
    calm, rough = [0.95, 0.05], [0.4, 0.6]
    stay = 0.99
    kernel = np.block(
        [
            [np.outer([stay, stay], calm), np.outer([1 - stay] * 2, rough)],
            [np.outer([1 - stay] * 2, calm), np.outer([stay, stay], rough)],
        ]
    )
    hidden = off.MarkovChain(kernel, shows=[0, 1, 0, 1])
    plain = off.MarkovChain(hidden.joint(1, 2) / hidden.marginal(1)[:, None])
    windows = [
        off.design(off.Problem(chain, 801, [401], 1.0), off.BestWindow())
        for chain in (hidden, plain)
    ]
    always = [int((policy.redaction == 1).all(axis=1).sum()) for policy in windows]
    assert always[0] > 10 * always[1]


# ---- cases that are known otherwise


def as_hidden(chain):
    """A chain of order m as one on hidden states: its tuples, each showing its last value."""
    lifted = chain.lifted
    start = None if lifted.is_stationary else lifted.start
    return off.MarkovChain(lifted.transition, start, shows=chain.coordinate(chain.order - 1))


@pytest.mark.parametrize("seed", range(12))
def test_tuples_as_hidden_states_are_the_chain_of_that_order(seed):
    """To the right of the secret the same bound as F8's, to the left at most that; and never below
    what the chain of that order leaks, which is known exactly.
    """
    rng = np.random.default_rng(seed)
    order = 2 + seed % 2
    chain = off.MarkovChain(rng.dirichlet(np.ones(2), size=(2,) * order), order=order)
    hidden, n, p = as_hidden(chain), 12, 6
    for record in (1, 2, 7):
        assert hidden.marginal(record) == pytest.approx(chain.marginal(record), abs=1e-12)
    assert hidden.joint(2, 6) == pytest.approx(chain.joint(2, 6), abs=1e-12)
    rows = rng.choice([1.0, 1.0, 0.5, 0.0], size=(n, 2))
    rows[p - order : p + order] = 1  # F8's core, and where no finite bound could be
    right_only = np.where(np.arange(n)[:, None] < p, 1.0, rows)
    problem, other = off.Problem(chain, n, [p], 1.0), off.Problem(hidden, n, [p], 1.0)
    bound = walked_output(problem, right_only).leakage
    assert 0 < bound < np.inf
    assert off.leakage(other, right_only) == pytest.approx(bound, abs=1e-10)
    assert off.leakage(other, rows) <= walked_output(problem, rows).leakage + 1e-10
    for matrix in (right_only, rows):
        worst = off.worst_output(problem, matrix)
        assert worst.exact
        assert worst.leakage <= off.leakage(other, matrix) + 1e-10


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.permutations(range(3)))
def test_states_that_are_values_by_another_name_are_the_plain_chain(seed, order):
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.ones(3), size=3)
    shows = np.array(order)
    plain = off.MarkovChain(kernel)
    renamed = off.MarkovChain(kernel[np.ix_(shows, shows)], shows=shows)
    assert renamed.shows is None
    assert np.array_equal(renamed.transition, plain.transition)
    problem = off.Problem(renamed, 4, [2], 1.0)
    redaction = rng.choice([0.0, 0.5, 1.0], size=(4, 3))
    redaction[1] = 1
    worst = off.worst_output(problem, redaction)
    assert worst.exact
    assert worst.leakage == pytest.approx(leakage_of_values(problem, redaction), abs=1e-9)


def test_twins_of_states_change_nothing():
    """A state split in two that behave alike: the same values, and the same leakage."""
    kernel = np.array([[0.9, 0.1], [0.3, 0.7]])
    share = 0.25
    twins = np.column_stack((kernel[:, 0] * share, kernel[:, 0] * (1 - share), kernel[:, 1]))[
        [0, 0, 1]
    ]
    split, plain = off.MarkovChain(twins, shows=[0, 0, 1]), off.MarkovChain(kernel)
    redaction = np.ones((9, 2))
    redaction[:3], redaction[7:] = [0.5, 1], 0
    for chain in (split, plain):
        assert off.leakage(off.Problem(chain, 9, [5], 1.0), redaction) == pytest.approx(
            leakage_of_values(off.Problem(plain, 9, [5], 1.0), redaction), abs=1e-9
        )


# ---- influence


@settings(max_examples=30, deadline=None)
@given(chain=hidden_chains(), private=st.integers(1, 4), record=st.integers(1, 4))
def test_influence_is_that_of_values(chain, private, record):
    paths, weight = value_paths(chain, 4)
    found = off.pointwise_influence(chain, private, record)
    if private == record:
        assert np.all(found == np.inf)
        return
    table = np.zeros((chain.k, chain.k))
    np.add.at(table, (paths[:, private - 1], paths[:, record - 1]), weight)
    table = table[table.sum(axis=1) > 0]
    given_x = table / table.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.log(given_x.max(axis=0)) - np.log(given_x.min(axis=0))
    assert found == pytest.approx(np.where(given_x.max(axis=0) > 0, wanted, -np.inf), abs=1e-9)


def test_influence_of_sets_is_the_definition():
    rng = np.random.default_rng(9)
    chain = off.MarkovChain(rng.dirichlet(np.ones(4), size=4), shows=[0, 1, 0, 1])
    paths, weight = value_paths(chain, 5)
    for private, records in ((3, (1, 5)), (3, (1, 2, 4)), (1, (2, 3))):
        largest = 0.0
        for values in product(range(2), repeat=len(records)):
            match = np.all(
                [paths[:, t - 1] == v for t, v in zip(records, values, strict=True)], axis=0
            )
            given_x = [
                weight[match & (paths[:, private - 1] == x)].sum()
                / weight[paths[:, private - 1] == x].sum()
                for x in (0, 1)
            ]
            exact = abs(np.log(given_x[0] / given_x[1]))
            largest = max(largest, exact)
            found = off.set_influence(chain, private, dict(zip(records, values, strict=True)))
            assert found == pytest.approx(exact, abs=1e-9)
        assert off.max_set_influence(chain, private, records) == pytest.approx(largest, abs=1e-9)
    with pytest.raises(off.InputError, match="stationary chain of order 1"):
        off.delta_star(chain, 1.0, 10)
