"""Exact leakage against its definition, and every trap known to catch naive code."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import (
    exact_leakage,
    leakage_by_definition,
    output_table,
    problems,
    rare_kernels,
    redactions,
)
from offrecord.theory import _walk

FIG2 = off.MarkovChain.binary(0.01, 0.8)


@settings(max_examples=600, deadline=None)
@given(data=st.data())
def test_leakage_is_the_definition(data):
    problem = data.draw(problems(max_n=7))
    redaction = data.draw(redactions(problem))
    expected = leakage_by_definition(problem, redaction)
    worst = off.worst_output(problem, redaction)
    assert worst.leakage == pytest.approx(expected, abs=1e-9)
    assert worst.rounding < 1e-12


def test_a_side_that_tells_nothing_is_named_by_what_it_shows():
    chain = off.MarkovChain([[0, 1], [0.5, 0.5]], start=[0, 1])  # record 1 is always 1
    problem = off.Problem(chain, 5, [2], 1.0)
    worst = off.worst_output(problem, [[0, 0], [1, 1], [0, 0], [0, 0], [0, 0]])
    assert worst.leakage == np.inf
    assert (worst.left, worst.right) == (off.FirstRelease(1, 1), off.FirstRelease(3, 0))


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_the_worst_output_named_has_that_likelihood_ratio(data):
    problem = data.draw(problems(max_n=5))
    problem = off.Problem(problem.chain, problem.n, problem.private[:1], 1.0)
    redaction = data.draw(redactions(problem))
    worst = off.worst_output(problem, redaction)
    if worst.itself or worst.leakage == 0:
        return
    p = problem.private[0]
    values = np.flatnonzero(problem.chain.marginal(p) > 0).tolist()
    table = output_table(problem.chain, problem.n, redaction, [p])
    best = 0.0
    for y in itertools.product(
        range(problem.chain.k + 1), repeat=problem.n
    ):  # outputs that begin as the worst one does
        sides = (
            (list(range(p - 1, 0, -1)), worst.left),
            (list(range(p + 1, problem.n + 1)), worst.right),
        )
        if all(
            first_release(y, records, problem.chain.k) == _pair(seen) for records, seen in sides
        ):
            code = int("".join(map(str, y)), problem.chain.k + 1)
            more = table[values.index(worst.more_likely[0]), code]
            less = table[values.index(worst.less_likely[0]), code]
            if more > 0:
                best = max(best, np.log(more / less) if less > 0 else np.inf)
    assert best == pytest.approx(worst.leakage, abs=1e-9)


def first_release(y, records, silent):
    return next(((t, y[t - 1]) for t in records if y[t - 1] != silent), None)


def _pair(seen):
    return (seen.record, seen.value) if seen else None


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_both_walks_agree_on_two_values(data):
    problem = data.draw(problems(max_n=7, ks=(2,)))
    rows = data.draw(redactions(problem))
    for side in problem.sides(problem.secrets[0]):
        if side.room == 0 or side.independent:
            continue
        kernels = side.kernels(side.room)
        lengths = np.ones(side.room, dtype=np.int64)
        walked = rows[: side.room].copy()
        for opens in (False,):
            stretches = (walked, lengths, 0, 1, side.room, opens)
            ok, (high, _, _, low, _, _), _ = _walk.binary(kernels, stretches)
            with np.errstate(divide="ignore"):
                plain, careful = (
                    _walk.general(np.log(kernels), side.support, stretches, slow)
                    for slow in (False, True)
                )
                worst = careful[1]
                assert not plain[0] or np.allclose(plain[1], worst, atol=1e-9)
                assert careful[0]
                assert ok
                assert max(np.log(high), 0) == pytest.approx(max(worst[0, 1], 0), abs=1e-12)
                assert max(-np.log(low), 0) == pytest.approx(max(worst[1, 0], 0), abs=1e-12)


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


def test_sparse_and_dense_matrices_leak_the_same():
    problem = off.Problem(FIG2, n=40, private=[20], epsilon=1.0)
    policy = off.design(problem, off.ThreeRegion())
    assert off.leakage(problem, policy.sparse) == off.leakage(problem, policy.redaction)


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
    assert off.worst_output(problem, [row, [1, 1]]).itself


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
    check_rare_transitions(data)


@pytest.mark.soak
@settings(max_examples=500, deadline=None)
@given(data=st.data())
def test_transitions_however_rare_at_length(data):
    check_rare_transitions(data)


def check_rare_transitions(data):
    """A problem with tiny transition probabilities against exact arithmetic."""
    k = data.draw(st.sampled_from([2, 2, 3]))
    n = data.draw(st.integers(2, 4 if k == 2 else 3))
    private = data.draw(st.sets(st.integers(1, n), min_size=1, max_size=2))
    epsilon = data.draw(st.sampled_from([0.0, 0.5, 3.0, 50.0, 400.0, 800.0]))
    try:
        chain = off.MarkovChain(
            data.draw(rare_kernels(k)),
            start=data.draw(st.sampled_from([None, None, None, [0.5, *[0.5 / (k - 1)] * (k - 1)]])),
        )
        problem = off.Problem(
            chain, n, private, epsilon, data.draw(st.sampled_from(["run", "each"]))
        )
        matrix = data.draw(redactions(problem))
        worst = off.worst_output(problem, matrix)
        designed = [
            off.design(problem, off.BestLocal(effort=0.2)),
            off.design(problem, off.ThreeRegion()),
        ]
    except off.InputError as error:
        refused = str(error)
        assert "\n" not in refused
        assert any(said in refused for said in ("probability below 1e-", "separate closed classes"))
        return
    for redaction, said in (
        (matrix, worst),
        *((policy.redaction, policy.worst) for policy in designed),
    ):
        truth = exact_leakage(problem, redaction)
        assert said.upper >= truth * (1 - 1e-15)
        assert said.leakage == pytest.approx(truth, rel=1e-9, abs=1e-9)
    for policy in designed:
        assert policy.worst.upper <= epsilon


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


def test_a_jump_over_a_long_window_is_the_walk_over_it():
    for chain in (
        off.MarkovChain.binary(0.01, 0.02),
        off.MarkovChain([[0.97, 0.02, 0.01], [0.01, 0.98, 0.01], [0.01, 0.01, 0.98]]),
    ):
        k, n = chain.k, 101
        problem = off.Problem(chain, n=n, private=[1], epsilon=1.0)
        dense = np.ones((n, k))
        dense[80:] = [0.3, *[1.0] * (k - 1)]
        dense[-1] = 0
        sparse = off.Redaction.from_matrix(dense, n, k).compressed()
        assert len(sparse.starts) == 2
        assert off.leakage(problem, sparse) == pytest.approx(off.leakage(problem, dense), abs=1e-12)


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


@pytest.mark.parametrize(
    ("n", "k", "stretches"),
    [
        (4, 2, [(0, 4, [1, 1])]),
        (6, 3, [(0, 6, [1, 1, 1])]),
        (6, 2, [(0, 3, [1, 1]), (3, 6, [np.nan, 1])]),
        (6, 2, [(0, 3, [1, 1]), (3, 6, [7.0, 1])]),
        (6, 2, [(3, 6, [1, 1]), (0, 3, [1, 1])]),
        (6, 2, [(0, 4, [1, 1]), (3, 6, [1, 1])]),
        (6, 2, [(0, 7, [1, 1])]),
    ],
)
def test_a_sparse_matrix_that_is_no_redaction_is_refused(n, k, stretches):
    problem = off.Problem(off.MarkovChain.binary(0.1, 0.2), 6, [3], 1.0)
    with pytest.raises(off.InputError, match="redaction must"):
        off.leakage(problem, off.Redaction.of(n, k, stretches))


def test_the_worst_output_reads_as_a_sentence():
    problem = off.Problem(FIG2, n=10, private=[1], epsilon=1.0)
    text = str(off.design(problem, off.ThreeRegion()).worst)
    assert text == "X_4 = 1 first on the right: e^1 times likelier if X_1 = 1 than 0"
