"""One formula, three ways: in arrays, compiled, and in fractions from the definition."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import chains, distributions, exact_kernel, exact_log, redactions
from offrecord.theory import _walk
from offrecord.theory.first_release import directional_leakage
from offrecord.theory.leakage import combine, possible_ends, side_leakage
from offrecord.theory.redaction import Redaction


def exact_directional_leakage(kernels, redaction):
    """One side by Definition 1: every path and every output of its records, in fractions."""
    kernels = [exact_kernel(kernel) for kernel in kernels]
    chances = [[Fraction(float(q)) for q in row] for row in redaction]
    k, m = len(kernels[0]), len(chances)
    seen = {}
    for x, path in product(range(k), product(range(k), repeat=m)):
        weight, before = Fraction(1), x
        for kernel, value in zip(kernels, path, strict=True):
            weight, before = weight * kernel[before][value], value
        for silent in product((False, True), repeat=m) if weight else ():
            probability, output = weight, []
            for q, value, quiet in zip(chances, path, silent, strict=True):
                probability *= q[value] if quiet else 1 - q[value]
                output.append(None if quiet else value)
            if probability:
                mine = seen.setdefault(tuple(output), [Fraction(0)] * k)
                mine[x] += probability
    worst = np.zeros((k, k))
    for mine in seen.values():
        for x, other in product(range(k), repeat=2):
            if mine[x] > mine[other]:
                ratio = exact_log(mine[x] / mine[other]) if mine[other] else np.inf
                worst[x, other] = max(worst[x, other], ratio)
    return worst


entries = st.sampled_from([0.0, 0.0, 1.0, 1.0, 1.0, 0.5, 0.01, 0.99, 1 - 2**-53, 0.3])


@st.composite
def sides(draw, ks, most):
    """Kernels and redaction rows of one side, zeros and ones among them."""
    k, m = draw(st.sampled_from(ks)), draw(st.integers(1, most))
    kernels = [[draw(distributions(k)) for _ in range(k)] for _ in range(m)]
    rows = [[draw(entries) for _ in range(k)] for _ in range(m)]
    return np.array(kernels), np.array(rows)


@settings(max_examples=150, deadline=None)
@given(side=sides(ks=(2, 3), most=3))
def test_the_array_form_is_the_definition_in_fractions(side):
    expected = exact_directional_leakage(*side)
    assert directional_leakage(*side) == pytest.approx(expected, abs=1e-12)


def test_the_array_form_on_the_paper_s_example():
    """Example 1: α = ¼, β = ½ and q₂ = ⅛, by hand."""
    kernel, row = [[[0.75, 0.25], [0.5, 0.5]]], [[0.125, 1.0]]
    found = directional_leakage(kernel, row)
    assert found[0, 1] == pytest.approx(np.log(3 / 2), abs=1e-15)  # 0 is released: 3/4 over 1/2
    # nothing is released: (1/2·1/8 + 1/2) over (3/4·1/8 + 1/4)
    assert found[1, 0] == pytest.approx(np.log((9 / 16) / (11 / 32)), abs=1e-15)


@settings(max_examples=400, deadline=None)
@given(side=sides(ks=(2, 3, 4, 5), most=8), opens=st.booleans())
def test_the_compiled_walks_are_the_array_form(side, opens):
    kernels, rows = side
    k, m = kernels.shape[1], len(rows)
    walked = rows[:-1] if opens else rows  # a side that opens releases everything at its last step
    expected = directional_leakage(
        kernels, np.vstack((rows[:-1], np.zeros((1, k)))) if opens else rows
    )
    support, lengths = np.ones(k, dtype=bool), np.ones(m, dtype=np.int64)
    stretches = (walked, lengths, 0, 1, len(walked), opens)
    with np.errstate(divide="ignore"):
        for careful in (False, True):
            ok, worst, _, _, rounding = _walk.general(np.log(kernels), support, stretches, careful)
            assert ok
            assert np.maximum(worst, 0.0) == pytest.approx(expected, abs=1e-12)
            assert rounding < 1e-12
        if k == 2:
            ok, (high, _, _, low, _, _), rounding = _walk.binary(kernels, stretches)
            assert ok
            assert max(np.log(high), 0.0) == pytest.approx(expected[0, 1], abs=1e-12)
            assert max(-np.log(low), 0.0) == pytest.approx(expected[1, 0], abs=1e-12)
            assert rounding < 1e-12


def in_arrays(problem, secret, redaction):
    """The leakage about a secret by the array form alone: both sides, then F2 (or F9) over them."""
    left, right = problem.sides(secret)
    worst = []
    for side in (left, right):
        if side.room == 0:
            worst.append(np.zeros((side.chain.k, side.chain.k)))
            continue
        positions = side.edge - 1 + side.direction * np.arange(1, side.room + 1)
        rows = redaction[positions][:, side.shown_value_of_state]
        worst.append(directional_leakage(side.kernels(side.room), rows))
    single = secret.first == secret.last and problem.chain.order > 1
    values = left.secret_values if single else None
    return combine(*worst, possible_ends(problem, secret), values)[0]


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_leakage_is_the_array_form_on_both_sides(data):
    """Chains of every kind, two to five values, gaps between stretches of redactions."""
    n = data.draw(st.integers(2, 9))
    chain = data.draw(chains(n, ks=(2, 3, 4, 5)))
    p = data.draw(st.integers(1, n))
    problem = off.Problem(chain, n, [p], 1.0)
    redaction = data.draw(redactions(problem))
    redaction[p - 1] = 1.0
    if data.draw(st.booleans()):
        redaction[data.draw(st.integers(0, n - 1))] = 0.0
        redaction[p - 1] = 1.0
    expected = in_arrays(problem, problem.secrets[0], redaction)
    sparse = Redaction.from_matrix(redaction, n, chain.k).compressed()
    assert off.leakage(problem, redaction) == pytest.approx(expected, abs=1e-12)
    assert off.leakage(problem, sparse) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_order_two_is_the_array_form_of_the_lifted_chain(seed, data):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(2), size=(2, 2))
    if data.draw(st.booleans()):
        transition = np.round(transition, 1)  # zeros and ones among them
    chain = off.MarkovChain(transition, rng.dirichlet(np.ones(4)).reshape(2, 2), order=2)
    n = data.draw(st.integers(3, 8))
    p = data.draw(st.integers(1, n))
    problem = off.Problem(chain, n, [p], 1.0)
    redaction = np.array([[data.draw(entries) for _ in range(2)] for _ in range(n)])
    core = problem.core(problem.secrets[0])
    redaction[core.first - 1 : core.last] = 1.0
    expected = in_arrays(problem, problem.secrets[0], redaction)
    assert off.leakage(problem, redaction) == pytest.approx(expected, abs=1e-12)


def test_a_long_walk_keeps_its_ratio():
    """4,000 records redacted with probability 1/1000 each: V alone would be 10^-12000."""
    kernel = [[[0.7, 0.3], [0.4, 0.6]]]
    rows = np.tile([1e-3, 1.0], (4000, 1))
    problem = off.Problem(off.MarkovChain.binary(0.3, 0.4), 4001, [1], 1.0)
    matrix = np.vstack((np.ones((1, 2)), rows))
    side = problem.sides(problem.secrets[0])[1]
    redaction = Redaction.from_matrix(matrix, 4001, 2)
    walked = side_leakage(side, redaction, redaction.stops - redaction.starts).worst
    assert directional_leakage(kernel, rows) == pytest.approx(walked, rel=1e-12)
