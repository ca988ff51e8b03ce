"""Chains of order above 1 against the definition: leakage is exact (R6), or a bound (F8)."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import leakage_of_paths
from offrecord.theory.leakage import walked_output


def sequences(chain, n):
    """All sequences of an order-m chain with their probabilities."""
    m = chain.order
    paths = np.array(list(product(range(chain.k), repeat=n)))
    weight = chain.start[tuple(paths[:, :m].T)].copy()
    for t in range(m, n):
        weight = weight * chain.transition[tuple(paths[:, t - m : t + 1].T)]
    return paths[weight > 0], weight[weight > 0]


def leakage_by_definition(problem, redaction):
    return leakage_of_paths(*sequences(problem.chain, problem.n), problem, redaction)


@st.composite
def order_problems(draw, largest=6):
    m = draw(st.sampled_from([2, 2, 3]))
    n = draw(st.integers(m + 1, largest))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    transition = rng.dirichlet(np.ones(2), size=(2,) * m)
    if draw(st.booleans()):
        transition = np.round(transition, 1)  # zeros and ones among them
    start = None if draw(st.booleans()) else rng.dirichlet(np.ones(2**m)).reshape((2,) * m)
    try:
        chain = off.MarkovChain(transition, start, order=m)
    except off.InputError:
        chain = off.MarkovChain(transition, np.full((2,) * m, 2.0**-m), order=m)
    private = draw(st.sets(st.integers(1, n), min_size=1, max_size=2))
    return off.Problem(
        chain,
        n,
        private,
        draw(st.sampled_from([0.3, 1.0, 2.5])),
        draw(st.sampled_from(["run", "each"])),
    )


@settings(max_examples=120, deadline=None)
@given(problem=order_problems(), data=st.data())
def test_the_bound_is_never_below_the_leakage(problem, data):
    entry = st.sampled_from([0.0, 1.0, 1.0, 0.5, 0.05, 0.95])
    redaction = np.array([[data.draw(entry) for _ in range(2)] for _ in range(problem.n)])
    for secret in problem.secrets:
        core = problem.core(secret)
        redaction[core.first - 1 : core.last] = 1
    found = leakage_by_definition(problem, redaction)
    walked = walked_output(problem, redaction)
    assert walked.method == "tuple pairs (F8)"
    assert walked.leakage >= found - 1e-9
    worst = off.worst_output(problem, redaction)
    assert worst.exact == problem.chain.is_stationary
    assert worst.upper <= walked.upper
    assert worst.upper >= found - 1e-12
    if worst.exact:
        assert worst.leakage == pytest.approx(found, abs=1e-10)


@settings(max_examples=60, deadline=None)
@given(
    problem=order_problems(),
    mechanism=st.sampled_from([off.BestWindow(), off.ThreeRegion(), off.BestLocal()]),
)
def test_mechanisms_are_private_by_the_definition(problem, mechanism):
    policy = off.design(problem, mechanism)
    assert policy.worst.upper <= problem.epsilon
    assert leakage_by_definition(problem, policy.redaction) <= problem.epsilon + 1e-9
    paths, weight = sequences(problem.chain, problem.n)
    released = sum(1 - policy.redaction[t][paths[:, t]] for t in range(problem.n))
    assert policy.utility == pytest.approx(float((weight * released).sum() / problem.n), abs=1e-9)


def test_both_sides_start_from_the_tuple_not_from_the_private_record():
    """X₃ ≈ X₁ xor X₂, p = 2: each side alone tells nothing, together they tell nearly all."""
    noise = 0.05
    transition = np.array(
        [[[1 - noise, noise], [noise, 1 - noise]], [[noise, 1 - noise], [1 - noise, noise]]]
    )
    chain = off.MarkovChain(transition, np.full((2, 2), 0.25), order=2)
    problem = off.Problem(chain, 3, [2], 1.0)
    open_sides = np.array([[0.0, 0], [1, 1], [0, 0]])
    assert leakage_by_definition(problem, open_sides) == pytest.approx(2.944, abs=5e-4)
    worst = off.worst_output(problem, open_sides)
    assert (worst.method, worst.leakage) == ("contexts", pytest.approx(2.944439, abs=1e-6))
    assert str(worst).startswith("X_1 = ")
    # by F8, record 1 belongs to the tuple that must be redacted
    assert walked_output(problem, open_sides).leakage == np.inf
    closed = np.array([[1.0, 1], [1, 1], [0, 0]])
    assert walked_output(problem, closed).leakage >= leakage_by_definition(problem, closed)


def test_order_one_written_as_order_one_is_itself():
    chain = off.MarkovChain.binary(0.1, 0.3)
    assert chain.lifted is chain
    twice = np.stack([chain.transition, chain.transition])  # order 2 in form, order 1 in fact
    lifted = off.MarkovChain(twice, order=2)
    for record in (1, 2, 5):
        assert lifted.marginal(record) == pytest.approx(chain.marginal(record), abs=1e-12)
    records = np.array([1, 2, 4, 5, 7])
    assert off.pointwise_influence(lifted, 3, records) == pytest.approx(
        off.pointwise_influence(chain, 3, records), abs=1e-9
    )


def test_joint_distributions_are_those_of_the_sequences():
    rng = np.random.default_rng(4)
    chain = off.MarkovChain(rng.dirichlet(np.ones(2), size=(2, 2, 2)), order=3)
    paths, weight = sequences(chain, 6)
    for s in range(1, 6):
        for t in range(s + 1, 7):
            joint = np.zeros((2, 2))
            np.add.at(joint, (paths[:, s - 1], paths[:, t - 1]), weight)
            assert chain.joint(s, t) == pytest.approx(joint, abs=1e-12)


def test_influence_of_sets_is_the_definition():
    rng = np.random.default_rng(9)
    chain = off.MarkovChain(rng.dirichlet(np.ones(2), size=(2, 2)), order=2)
    paths, weight = sequences(chain, 6)
    for private, records in ((3, (1, 5)), (3, (1, 2, 4)), (1, (2, 3)), (6, (1, 4, 5))):
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


def test_model_files_keep_the_order(tmp_path):
    rng = np.random.default_rng(4)
    chain = off.MarkovChain(rng.dirichlet(np.ones(3), size=(3, 3)), labels=["a", "b", "c"], order=2)
    chain.save(tmp_path / "m.json")
    again = off.MarkovChain.load(tmp_path / "m.json")
    assert again.order == 2
    assert np.array_equal(again.transition, chain.transition)
    assert np.array_equal(again.start, chain.start)
    policy = off.design(off.Problem(chain, 20, [9], 1.5), off.ThreeRegion())
    policy.save(tmp_path / "p.json")
    loaded = off.Policy.load(tmp_path / "p.json")
    assert np.array_equal(loaded.redaction, policy.redaction)
    assert "exact leakage" in str(loaded)
    assert loaded.summary()["leakage_is_exact"] is True
    started = off.MarkovChain(chain.transition, np.full((3, 3), 1 / 9), order=2)
    bounded = off.design(off.Problem(started, 20, [9], 1.5), off.ThreeRegion())
    assert "leakage at most" in str(bounded)
    assert "(by tuple pairs (F8))" in str(bounded)
    assert bounded.summary()["leakage_is_exact"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(transition=np.full((2, 2), 0.5), order=2), "transition of order 2 must have 3 axes"),
        (dict(transition=np.full((2, 2), 0.5), order=0), "order must be from 1 to 10"),
        (dict(transition=np.full((2, 2), 0.5), order=1.5), "order must be a whole number"),
        (
            dict(transition=np.full((2, 2, 2), 0.5), start=[0.5, 0.5], order=2),
            "start of order 2 must have 2 axes",
        ),
        (dict(transition=np.full((40, 40, 40), 1 / 40), order=2), "at most 1024"),
    ],
)
def test_what_is_no_chain_of_that_order_is_refused(arguments, message):
    with pytest.raises(off.InputError, match=message):
        off.MarkovChain(**arguments)


def test_too_few_records_and_kernels_on_tuples_are_said():
    chain = off.MarkovChain(np.full((2, 2, 2), 0.5), order=2)
    with pytest.raises(off.InputError, match="n must exceed the chain's order 2"):
        off.Problem(chain, 2, [1], 1.0)
    with pytest.raises(off.InputError, match=r"ask its \.lifted chain"):
        chain.kernel(1)
    with pytest.raises(off.InputError, match="quilt takes stationary chains with two values"):
        off.design(off.Problem(chain, 5, [1], 1.0), off.MarkovQuilt())
