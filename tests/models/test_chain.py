"""MarkovChain: kernels, marginals, reversal, model files, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import chains, exact_kernel, exact_log, exact_stationary, rare_kernels, sequences


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_marginals_and_kernels_are_those_of_the_joint_distribution(data):
    n = data.draw(st.integers(2, 5))
    chain = data.draw(chains(n))
    paths, weight = sequences(chain, n)
    joint = np.zeros((chain.k,) * n)
    np.add.at(joint, tuple(paths.T), weight)

    def pair(s, t):
        return (
            joint.sum(axis=tuple(i for i in range(n) if i not in (s - 1, t - 1)))
            if s < t
            else pair(t, s).T
        )

    for t in range(1, n + 1):
        one = joint.sum(axis=tuple(i for i in range(n) if i != t - 1))
        assert np.allclose(chain.marginal(t), one, atol=1e-12)
        for s in range(1, n + 1):
            if s != t:
                both, source = pair(s, t), pair(s, t).sum(axis=1)
                expected = both[source > 0] / source[source > 0, None]
                assert np.allclose(chain.n_step(s, t)[source > 0], expected, atol=1e-9)
    assert np.array_equal(chain.marginals(1, n)[1], chain.marginals(2, n)[0])


@pytest.mark.parametrize(
    ("alpha", "beta"), [(0.01, 0.8), (0.8, 0.01), (0.5, 0.5), (1.0, 1.0), (1e-20, 1e-8), (0.9, 1.0)]
)
def test_binary_chains_of_every_kind(alpha, beta):
    chain = off.MarkovChain.binary(alpha, beta)
    assert (chain.alpha, chain.beta) == (alpha, beta)
    assert chain.start[0] == pytest.approx(beta / (alpha + beta), rel=1e-15)
    assert chain.is_paper_setting
    assert chain.is_stationary


def test_binary_chain_with_alpha_plus_beta_one_is_independent_to_the_last_bit():
    for alpha in np.linspace(0.01, 0.99, 99):
        chain = off.MarkovChain.binary(alpha, 1 - alpha)
        assert np.array_equal(chain.transition[0], chain.transition[1])


def test_stationary_distribution_is_accurate_where_it_is_small():
    """A birth–death chain whose stationary distribution spans 50 orders of magnitude, known
    exactly.
    """
    k, up, down = 11, 1e-5, 0.5
    transition = np.zeros((k, k))
    for i in range(k):
        if i + 1 < k:
            transition[i, i + 1] = up
        if i:
            transition[i, i - 1] = down
        transition[i, i] = 1 - transition[i].sum()
    exact = (up / down) ** np.arange(k)
    assert np.allclose(off.MarkovChain(transition).start, exact / exact.sum(), rtol=1e-13, atol=0)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_stationary_distribution_of_transitions_however_rare(data):
    kernel = np.array(data.draw(rare_kernels(data.draw(st.sampled_from([2, 3, 4])))))
    try:
        start = off.MarkovChain(kernel).start
    except off.InputError as error:
        refused = str(error)
        if "separate closed classes" not in refused:
            assert "in the long run a value is taken with probability below 1e-250" in refused
            assert min(p for p in exact_stationary(exact_kernel(kernel)) if p) < 1e-250
        return
    for found, exact in zip(start.tolist(), exact_stationary(exact_kernel(kernel)), strict=True):
        assert (found == 0) == (exact == 0)
        assert exact == 0 or found == pytest.approx(float(exact), rel=1e-14, abs=5e-324)


def test_alpha_and_beta_do_not_speak_for_a_value_that_they_hide():
    """1 − alpha is 0 where a value stays with probability 1e-30, and alpha + beta is 1 where
    records are not independent.
    """
    for kernel in ([[1e-30, 1], [0.01, 0.99]], [[1e-250, 1], [1e-200, 1]], [[1, 1e-17], [1, 0]]):
        chain = off.MarkovChain(kernel)
        assert not chain.is_paper_setting
        exact = exact_kernel(kernel)
        for value in (0, 1):
            low, high = sorted((exact[0][value], exact[1][value]))
            influence = off.pointwise_influence(chain, 1, 2)[value]
            assert influence == (pytest.approx(exact_log(high / low)) if low else np.inf)


def test_transient_values_have_stationary_probability_zero():
    chain = off.MarkovChain([[0.5, 0.5, 0], [0, 0.3, 0.7], [0, 0.6, 0.4]])
    assert chain.start[0] == 0
    assert np.allclose(chain.start @ chain.transition, chain.start)


def test_a_start_that_is_stationary_is_recognised():
    chain = off.MarkovChain.binary(0.1, 0.3)
    assert off.MarkovChain(chain.transition, start=chain.start).is_stationary
    assert not off.MarkovChain(chain.transition, start=[0.5, 0.5]).is_stationary


def test_a_start_that_is_almost_stationary_is_not_taken_for_it():
    """Reversed kernels differ by whole factors where transitions are rare, however close the start
    is to stationary.
    """
    a = 2e-13
    chain = off.MarkovChain([[1 - a, a], [a, 1 - a]], start=[0.8, 0.2])
    assert not chain.is_stationary
    problem = off.Problem(chain, 2, [2], 29.5)
    assert off.leakage(problem, [[0, 0], [1, 1]]) == pytest.approx(30.62675, abs=1e-4)
    assert off.design(problem, off.BestWindow()).utility == 0.0


def test_values_too_rare_for_floating_point_are_possible_all_the_same():
    a = 1e-200
    chain = off.MarkovChain([[1 - a, a, 0], [0.5, 0.5 - a, a], [0, 0, 1]], start=[1, 0, 0])
    assert chain.marginal(3)[2] == 0.0
    assert chain.support(3).tolist() == [True, True, True]


def test_sixty_four_values_work():
    rng = np.random.default_rng(1)
    chain = off.MarkovChain(rng.dirichlet(np.ones(64), size=64))
    policy = off.design(off.Problem(chain, n=30, private=[15], epsilon=1.0), off.ThreeRegion())
    assert policy.leakage <= 1.0
    assert 0 < policy.utility < 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.5, 0.5], [0.5, 0.4]],), "transition row 2 must sum to 1 within 1e-09, got 0.9"),
        (([[0.5, 0.5]],), "transition must be a k × k matrix"),
        (([[1.0]],), "transition must be a k × k matrix"),
        (([[0.5, np.nan], [0.5, 0.5]],), "NaN or infinity"),
        (([[0.5, np.inf], [0.5, 0.5]],), "NaN or infinity"),
        (([[1.5, -0.5], [0.5, 0.5]],), "between 0 and 1"),
        (([["a", "b"], [0.5, 0.5]],), "transition must be numbers"),
        (([[0.5, 0.5], [0.5]],), "transition must be numbers"),
        (([["0.9", "0.1"], ["0.5", "0.5"]],), "transition must be numbers"),
        (([[10**400, 0], [0, 1]],), "transition must be numbers"),
        (([[0.5 + 0j, 0.5], [0.5, 0.5]],), "transition must be numbers"),
        (([[0.5, 0.5], [0.5, 0.5]], None, 5), "labels must be a list of values, got int"),
        (([[0.5, 0.5], [0.5, 0.5]], None, ["a", "b\n"]), "labels must be printable text"),
        (([[0.5, 0.5], [0.5, 0.5]], None, ["a", "\ud800"]), "labels must be printable text"),
        (([[1, 0], [0, 1]],), "start must be given: the chain has 2 separate closed classes"),
        (([[[1, 0], [0, 1]]],), "start must be given for a chain with one kernel per step"),
        (([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.6]), "start must sum to 1"),
        (([[0.5, 0.5], [0.5, 0.5]], [1.0]), "start must hold 2 probabilities"),
        (([[0.5, 0.5], [0.5, 0.5]], None, ["a", "a"]), "labels must differ"),
        (([[0.5, 0.5], [0.5, 0.5]], None, ["a"]), "labels must name 2 values"),
        (([[0.5, 0.5], [0.5, 0.5]], None, ["a", None]), "labels must be text, numbers or booleans"),
        (([[0.5, 0.5], [0.5, 0.5]], None, ["a", float("nan")]), "labels must be finite"),
    ],
)
def test_what_is_no_chain_is_refused(arguments, message):
    with pytest.raises(off.InputError) as caught:
        off.MarkovChain(*arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize("value", [0, -0.1, 1.1, float("nan"), float("inf"), "0.5", None, True])
def test_alpha_and_beta_out_of_range_are_refused(value):
    with pytest.raises(off.InputError, match="alpha must be"):
        off.MarkovChain.binary(value, 0.5)
    with pytest.raises(off.InputError, match="beta must be"):
        off.MarkovChain.binary(0.5, value)


def test_rows_within_the_tolerance_are_made_to_sum_to_one():
    chain = off.MarkovChain([[0.5, 0.5 + 9e-10], [0.2, 0.8]])
    assert chain.transition.sum(axis=1) == pytest.approx(1, abs=1e-15)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_model_files_come_back_as_they_were(data, tmp_path_factory):
    n = data.draw(st.integers(2, 4))
    chain = data.draw(chains(n))
    chain = off.MarkovChain(
        chain.transition, start=chain.start, labels=["no", "yes", 2.5][: chain.k]
    )
    path = tmp_path_factory.mktemp("model") / "model.json"
    chain.save(path)
    again = off.MarkovChain.load(path)
    assert np.array_equal(again.transition, chain.transition)
    assert np.array_equal(again.start, chain.start)
    assert again.labels == chain.labels


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2], "is not JSON, or is truncated"),
        (lambda text: "", "is not JSON, or is truncated"),
        (lambda text: "[1, 2]", 'not a model file: "format" must be'),
        (
            lambda text: text.replace('"version": 2', '"version": 1'),
            "model file version must be 2, got 1: fit again",
        ),
        (lambda text: text.replace("offrecord-model", "other"), '"format" must be'),
        (lambda text: text.replace('"transition"', '"transitions"'), "transition: Field required"),
        (lambda text: text.replace('"origin"', '"source"'), "Extra inputs are not permitted"),
        (lambda text: text.replace("0.8", "NaN"), "is not JSON"),
        (lambda text: text.replace("0.8", "1e999"), "NaN or infinity"),
        (lambda text: text.replace("0.8", '"0.x"'), "must be numbers"),
    ],
)
def test_damaged_model_files_are_refused_in_one_line(tmp_path, change, message):
    path = tmp_path / "model.json"
    off.MarkovChain.binary(0.01, 0.8).save(path)
    path.write_text(change(path.read_text()))
    with pytest.raises(off.InputError) as caught:
        off.MarkovChain.load(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_model_files_are_not_overwritten_by_accident(tmp_path):
    chain = off.MarkovChain.binary(0.01, 0.8)
    path = tmp_path / "model.json"
    chain.save(path)
    with pytest.raises(off.InputError, match="exists"):
        chain.save(path)
    chain.save(path, force=True)
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]


def test_records_count_from_one():
    chain = off.MarkovChain.binary(0.01, 0.8)
    with pytest.raises(off.InputError, match="records count from 1"):
        chain.marginal(0)
    steps = off.MarkovChain([[[0.5, 0.5], [0.1, 0.9]]], start=[0.5, 0.5])
    with pytest.raises(off.InputError, match="this chain has 2 records"):
        steps.marginal(3)
