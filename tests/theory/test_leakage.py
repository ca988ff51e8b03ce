"""Exact leakage against its definition, for lists of chains, and every trap of naive code."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import (
    exact_leakage,
    leakage_by_definition,
    problems,
    rare_kernels,
    redactions,
)

FIG2 = off.MarkovChain.binary(0.01, 0.8)


@settings(max_examples=500, deadline=None)
@given(data=st.data())
def test_leakage_is_the_definition(data):
    problem = data.draw(problems(max_n=7))
    redaction = data.draw(redactions(problem))
    expected = leakage_by_definition(problem, redaction)
    assert off.leakage(problem, redaction) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_so_it_is_of_higher_order(data):
    """Windows and any other redaction, of starts of their own (R6)."""
    k, order = data.draw(st.sampled_from([(2, 2), (2, 3), (3, 2)]))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    kernel = rng.dirichlet(np.full(k, 0.7), size=(k,) * order)
    kernel[rng.random(kernel.shape) < data.draw(st.sampled_from([0, 0.2]))] = 0
    if np.any(kernel.sum(axis=-1) == 0):
        return
    kernel /= kernel.sum(axis=-1, keepdims=True)
    start = None
    if data.draw(st.booleans()):
        start = rng.dirichlet(np.ones(k**order)).reshape((k,) * order)
    try:
        chain = off.MarkovChain(kernel, start=start, order=order)
    except off.InputError:  # several closed classes
        return
    n = data.draw(st.integers(order + 1, 6 if k == 2 else 5))
    private = data.draw(st.sets(st.integers(1, n), min_size=1, max_size=3))
    problem = off.Problem(chain, n, private, 1.0, data.draw(st.sampled_from(["run", "each"])))
    entries = [0, 0, 1, 1, 1] if data.draw(st.booleans()) else [0, 1, 1, 0.3, 0.9]
    matrix = rng.choice(entries, size=(n, k)).astype(float)
    matrix[np.array(problem.private) - 1] = 1
    expected = leakage_by_definition(problem, matrix)
    assert off.leakage(problem, matrix) == pytest.approx(expected, abs=1e-9)


def test_windows_of_order_two():
    """V6, by the number of records on the left and on the right."""
    chain = off.MarkovChain([[[0.95, 0.05], [0.4, 0.6]], [[0.8, 0.2], [0.2, 0.8]]], order=2)
    problem, found = off.Problem(chain, 41, [21], 1.0), []
    for left, right in itertools.product(range(3), repeat=2):
        matrix = np.zeros((41, 2))
        matrix[20 - left : 21 + right] = 1
        found.append(off.leakage(problem, matrix))
    rows = (4.507189778, 4.329855762, 4.093513480, 4.329855762, 4.016095736, 3.700728921)
    assert found == pytest.approx([*rows, 4.093513480, 3.700728921, 3.347153901], abs=1e-9)


# transitions of half a year of hourly rain, by the two and three hours before
RAIN_2 = [[3813, 77], [37, 59], [76, 19], [58, 204]]
RAIN_3 = [[3744, 65], [31, 46], [33, 4], [17, 42], [64, 12], [6, 13], [43, 15], [41, 162]]


def rain(counts):
    """The chain of rows (N + ½) / (row + 1)."""
    rows = (np.array(counts) + 0.5) / (np.sum(counts, axis=1, keepdims=True) + 1)
    order = len(rows).bit_length() - 1
    return off.MarkovChain(rows.reshape((2,) * (order + 1)), order=order)


@pytest.mark.parametrize(
    ("chain", "size", "expected"),
    [
        (off.MarkovChain.binary(0.024, 0.27), 0, 6.829981),
        (off.MarkovChain.binary(0.024, 0.27), 4, 2.565),
        (off.MarkovChain.binary(0.024, 0.27), 7, 1.182038),
        (off.MarkovChain.binary(0.024, 0.27), 8, 0.88696),
        (off.MarkovChain.binary(0.0036, 0.012), 128, 1.009389),
        (off.MarkovChain.binary(0.0036, 0.012), 129, 0.995134),
        (off.MarkovChain([[0.95, 0.05, 0], [0.1, 0.8, 0.1], [0, 0.08, 0.92]]), 26, 1.032977),
        (off.MarkovChain([[0.95, 0.05, 0], [0.1, 0.8, 0.1], [0, 0.08, 0.92]]), 27, 0.966887),
        (rain(RAIN_2), 12, 1.061865),
        (rain(RAIN_3), 17, 1.011569),
        (rain(RAIN_3), 18, 0.886175),
        (rain(RAIN_3), (20, 16), 0.912187),
    ],
)
def test_windows_of_real_chains(chain, size, expected):
    left, right = size if isinstance(size, tuple) else (size, size)
    matrix = np.zeros((601, chain.k))
    matrix[300 - left : 301 + right] = 1
    problem = off.Problem(chain, 601, [301], 1.0)
    assert off.leakage(problem, matrix) == pytest.approx(expected, abs=1e-6)


def test_songs_class_of_two_chains():
    """Song et al.: influence of the first record, of the third one, and of both, on the second."""
    chains = [
        off.MarkovChain([[0.9, 0.1], [0.4, 0.6]], start=[0.8, 0.2]),
        off.MarkovChain([[0.8, 0.2], [0.3, 0.7]], start=[0.6, 0.4]),
    ]
    problem = off.Problem(chains[0], 3, [2], 1.0, models=chains)
    first, third, both = np.ones((3, 3, 2))
    first[0] = third[2] = both[[0, 2]] = 0
    found = [off.leakage(problem, matrix) for matrix in (first, third, both)]
    assert found == pytest.approx(np.log([6, 6, 36]), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_members_are_judged_as_if_each_were_alone(data):
    one = data.draw(problems(max_n=5))
    k, n, rng = one.chain.k, one.n, np.random.default_rng(data.draw(st.integers(0, 10**6)))
    chains = [
        off.MarkovChain(rng.dirichlet(np.ones(k), size=k), start=rng.dirichlet(np.ones(k)))
        for _ in range(3)
    ]
    problem = off.Problem(chains[0], n, one.private, 1.0, one.protect, models=chains)
    matrix = data.draw(redactions(problem))
    alone = [off.Problem(chain, n, one.private, 1.0, one.protect) for chain in chains]
    expected = [leakage_by_definition(each, matrix) for each in alone]
    assert off.leakages(problem, matrix) == pytest.approx(expected, abs=1e-9)
    assert off.leakage(problem, matrix) == pytest.approx(max(expected), abs=1e-9)


def test_the_figure_of_a_posterior_is_its_quantile():
    posterior = off.Posterior([[950, 50], [30, 70]], 1)
    chain = off.MarkovChain(posterior.mean.rows[0, 0])
    matrix = np.zeros((41, 2))
    matrix[15:26] = 1
    figures = []
    for coverage in (0.95, 0.99):
        problem = off.Problem(chain, 41, [21], 1.0, models=posterior, coverage=coverage)
        found = off.leakages(problem, matrix)
        figures.append(off.leakage(problem, matrix))
        assert (found <= figures[-1]).mean() >= coverage >= (found < figures[-1]).mean()
    assert figures[0] < figures[1]
    with pytest.raises(off.InputError, match=r"coverage must be 0.99 or 0.95, got 0.9"):
        off.Problem(chain, 41, [21], 1.0, models=posterior, coverage=0.9)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_more_redaction_never_leaks_more(data):
    problem = data.draw(problems(max_n=6))
    first, second = data.draw(redactions(problem)), data.draw(redactions(problem))
    more = np.maximum(first, second)
    assert (
        off.leakage(problem, more)
        <= min(off.leakage(problem, first), off.leakage(problem, second)) + 1e-12
    )


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_run_implies_each(data):
    problem = data.draw(problems(max_n=6))
    redaction = data.draw(redactions(problem))
    each, run = (
        off.leakage(off.Problem(problem.chain, problem.n, problem.private, 1.0, protect), redaction)
        for protect in ("each", "run")
    )
    assert each <= run + 1e-12


def test_trap_1_one_ulp_below_one_is_a_cliff():
    problem = off.Problem(FIG2, n=3, private=[1], epsilon=1.0)
    matrix = np.array([[1, 1], [1, 1.0], [0, 0]])
    assert off.leakage(problem, matrix) == pytest.approx(1.395, abs=5e-4)
    matrix[1, 1] = 1 - 2**-53
    assert off.leakage(problem, matrix) == pytest.approx(2.996, abs=5e-4)


@pytest.mark.parametrize("row", [[0.999, 1], [1, 1 - 2**-53], [0, 0]])
def test_trap_2_the_private_record_itself(row):
    problem = off.Problem(FIG2, n=2, private=[1], epsilon=1.0)
    assert off.leakage(problem, [row, [1, 1]]) == np.inf


def test_trap_2_a_private_value_that_never_occurs_may_have_any_probability():
    chain = off.MarkovChain([[0.5, 0.5, 0], [0.5, 0.5, 0], [0.5, 0.5, 0]])
    problem = off.Problem(chain, n=2, private=[1], epsilon=1.0)
    assert off.leakage(problem, [[1, 1, 0.2], [0, 0, 0]]) == 0.0


def test_trap_3_impossible_under_one_value_is_infinite_and_under_both_is_skipped():
    chain = off.MarkovChain(
        [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], start=[0.5, 0.5, 0.0]
    )
    problem = off.Problem(chain, n=2, private=[1], epsilon=1.0)
    assert (
        off.leakage(problem, [[1] * 3, [0.5, 1, 0]]) == np.inf
    )  # value 0 at record 2 only after 0
    assert off.leakage(problem, [[1] * 3, [1, 0.5, 0]]) == pytest.approx(
        np.log(2)
    )  # value 2 is never seen


def test_trap_3_a_side_that_never_stays_silent_has_no_silent_output():
    problem = off.Problem(off.MarkovChain.binary(0.25, 0.5), n=2, private=[1], epsilon=1.0)
    assert off.leakage(problem, [[1, 1], [0, 0]]) == pytest.approx(np.log(2))


def test_trap_4_long_walks_keep_the_ratio():
    """Far beyond what fits into a float: the common factor goes, the ratio stays."""
    chain = off.MarkovChain.binary(0.3, 0.4)
    matrix = np.tile([1e-3, 1.0], (4001, 1))
    matrix[0] = 1
    long, short = (
        off.leakage(off.Problem(chain, n=n, private=[1], epsilon=1.0), matrix[:n])
        for n in (4001, 401)
    )
    assert long == pytest.approx(short, rel=1e-12)
    assert np.isfinite(long)


def test_probabilities_too_small_for_plain_products_are_still_exact():
    """A chain that leaves its first value for good: still there after 5,000 steps has probability
    2^-5000, and tells all.
    """
    chain = off.MarkovChain([[0.5, 0.5], [0.0, 1.0]], start=[0.5, 0.5])
    n = 5001
    matrix = np.ones((n, 2))
    matrix[-1, 0] = 0.0  # value 0 at the end: only if it was 0 all along
    assert off.leakage(off.Problem(chain, n=n, private=[1], epsilon=1.0), matrix) == np.inf
    matrix[-1] = [1.0, 0.0]
    assert off.leakage(off.Problem(chain, n=n, private=[1], epsilon=1.0), matrix) == np.inf
    matrix[-1] = 1.0
    assert off.leakage(off.Problem(chain, n=n, private=[1], epsilon=1.0), matrix) == 0.0


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_transitions_however_rare_never_leak_more_than_is_said(data):
    """Against exact arithmetic; what is too small for floating point counts as endless."""
    k = data.draw(st.sampled_from([2, 2, 3]))
    n = data.draw(st.integers(2, 4 if k == 2 else 3))
    private = data.draw(st.sets(st.integers(1, n), min_size=1, max_size=2))
    try:
        start = data.draw(st.sampled_from([None, None, [0.5, *[0.5 / (k - 1)] * (k - 1)]]))
        chain = off.MarkovChain(data.draw(rare_kernels(k)), start=start)
        problem = off.Problem(chain, n, private, 3.0, data.draw(st.sampled_from(["run", "each"])))
        matrix = data.draw(redactions(problem))
        found = off.leakage(problem, matrix)
    except off.InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - refused only sometimes
        return
    truth = exact_leakage(problem, matrix)
    assert found == np.inf or found == pytest.approx(truth, rel=1e-9, abs=1e-9)


def test_trap_6_independent_records_leak_nothing():
    for alpha in (0.3, 0.1, 1 / 3):
        problem = off.Problem(
            off.MarkovChain.binary(alpha, 1 - alpha), n=5, private=[3], epsilon=0.0
        )
        redaction = np.zeros((5, 2))
        redaction[2] = 1
        assert off.leakage(problem, redaction) == 0.0


def test_directions_add_not_maxima():
    """F2: with α + β > 1 an odd and an even window leak less than their sum."""
    problem = off.Problem(off.MarkovChain.binary(0.6, 0.8), n=4, private=[2], epsilon=2.0)
    redaction = [[0, 0], [1, 1], [1, 1], [0, 0]]
    assert off.leakage(problem, redaction) == pytest.approx(1.386, abs=5e-4)
    alone = [float(off.max_influence(problem.chain, 2, t)) for t in (1, 4)]
    assert sum(alone) == pytest.approx(1.466, abs=5e-4)


def test_two_releases_with_the_same_coins_leak_what_their_minimum_leaks():
    """F3's figures: the pointwise minimum of two designs can leak more than the larger budget."""
    one, two = (
        off.design(off.Problem(FIG2, 10, [1], epsilon), off.ThreeRegion()).redaction
        for epsilon in (1.0, 1.5)
    )
    assert off.leakage(off.Problem(FIG2, 10, [1], 1.0), np.minimum(one, two)) == pytest.approx(
        1.789, abs=5e-4
    )


def test_leakage_does_not_depend_on_which_end_is_the_first():
    problem = off.Problem(FIG2, n=9, private=[3], epsilon=1.0)
    mirrored = off.Problem(FIG2, n=9, private=[7], epsilon=1.0)
    matrix = np.random.default_rng(5).uniform(0.2, 0.9, (9, 2))
    matrix[:, 1] = 1
    matrix[2] = 1
    assert off.leakage(problem, matrix) == pytest.approx(
        off.leakage(mirrored, matrix[::-1]), abs=1e-13
    )


@pytest.mark.parametrize(
    "matrix",
    [
        [[1, 1], [0.5, np.nan]],
        [[1, 1], [0.5, 1.5]],
        [[1, 1], [-0.1, 1]],
        [[1, 1]],
        [[1, 1], [0.5, "x"]],
        [[1, 1, 1], [1, 1, 1]],
    ],
)
def test_a_matrix_that_is_no_redaction_is_refused(matrix):
    with pytest.raises(off.InputError, match="redaction must"):
        off.leakage(off.Problem(FIG2, n=2, private=[1], epsilon=1.0), matrix)
