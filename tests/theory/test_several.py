"""Several releases together (R8), against all values, coins and outputs in whole numbers."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.theory.several import joint_output, joint_redaction

QUARTERS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


def redaction(rows):
    matrix = np.array(rows, dtype=float)
    return off.Redaction.from_matrix(matrix, *matrix.shape)


def outcomes(shares, domains):
    """What one record of a value may show in each release, and how likely: coins of a domain are
    one of four quarters, each as likely.
    """
    found = {}
    for coins in product(range(4), repeat=max(domains) + 1):
        chance = Fraction(1, 4 ** len(coins))
        seen = tuple(
            coins[domain] < 4 * share for share, domain in zip(shares, domains, strict=True)
        )
        found[seen] = found.get(seen, 0) + chance
    return found


def told(kernel, start, matrices, domains, secret):
    """The largest ratio of joint outputs under two values of the secret; None is infinite."""
    n, k = matrices[0].shape
    by_secret = [{} for _ in range(k)]
    for values in product(range(k), repeat=n):
        weight = start[values[0]]
        for i, j in pairwise(values):
            weight *= kernel[i][j]
        each = [
            outcomes([matrix[t, value] for matrix in matrices], domains)
            for t, value in enumerate(values)
        ]
        for seen in product(*(one.items() for one in each)):
            chance, output = weight, []
            for value, (redacted, likely) in zip(values, seen, strict=True):
                chance *= likely
                output.append(tuple(None if gone else value for gone in redacted))
            into = by_secret[values[secret]]
            into[tuple(output)] = into.get(tuple(output), 0) + chance
    by_secret = [{y: p / sum(of.values()) for y, p in of.items()} for of in by_secret]
    worst = Fraction(1)
    for one, other in product(by_secret, repeat=2):
        for output, chance in one.items():
            if chance and not other.get(output):
                return None
            if chance:
                worst = max(worst, chance / other[output])
    return worst


@st.composite
def several(draw):
    n, count = draw(st.integers(2, 3)), draw(st.integers(2, 3))
    secret = draw(st.integers(0, n - 1))
    domains = [0, *(draw(st.integers(0, 1)) for _ in range(count - 1))]
    matrices = []
    for _ in range(count):
        matrix = np.array([[draw(QUARTERS), draw(QUARTERS)] for _ in range(n)])
        matrix[draw(st.integers(0, n - 1)) :] = 1.0 if draw(st.booleans()) else matrix[-1]
        matrix[secret] = 1.0
        matrices.append(matrix)
    return secret, domains, matrices


@settings(max_examples=40, deadline=None)
@given(several(), st.sampled_from([(0.25, 0.5), (0.125, 0.125), (0.5, 0.75)]))
def test_against_all_values_coins_and_outputs(case, rates):
    secret, domains, matrices = case
    alpha, beta = map(Fraction, rates)
    kernel = [[1 - alpha, alpha], [beta, 1 - beta]]
    start = [beta / (alpha + beta), alpha / (alpha + beta)]
    ratio = told(kernel, start, matrices, domains, secret)
    by_coins = {}
    for domain, matrix in zip(domains, matrices, strict=True):
        by_coins.setdefault(domain, []).append(redaction(matrix))
    problem = off.Problem(
        off.MarkovChain.binary(*rates), n=len(matrices[0]), private=[secret + 1], epsilon=1.0
    )
    found = joint_output(problem, by_coins).leakage
    if ratio is None:
        assert found == np.inf
    else:
        assert found == pytest.approx(float(np.log(float(ratio))), abs=1e-12)


def test_budgets_do_not_add_up():
    chain = off.MarkovChain.binary(0.0012735656990382953, 0.9831508196591933)
    problem = off.Problem(chain, n=5, private=[1], epsilon=1.0)
    one = redaction([(1, 1), (0.128, 1), (1, 1), (0.601, 0), (0.775, 0.928)])
    other = redaction([(1, 1), (0.671, 1), (0.992, 0.615), (0.113, 1), (0.347, 1)])
    for releases, expected in (
        ({"a": [one]}, 0.120080665),
        ({"a": [other]}, 0.250554266),
        ({"a": [one, other]}, 0.879807589),
        ({"a": [one], "b": [other]}, 1.096892247),
    ):
        assert joint_output(problem, releases).leakage == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("lag", "expected"),
    [(0, 3.94), (1, 3.08), (2, 2.52), (4, 1.72), (6, 1.18), (7, 0.989), (8, 0.989)],
)
def test_daily_releases_of_a_growing_table(lag, expected):
    """A row leaves after a lag; who opts out on a day is known from that day on."""
    n, day = 41, 20
    problem = off.Problem(off.MarkovChain.binary(0.0209, 0.2938), n, [day + 1], 1.0)
    window = np.array(off.design(problem, "window").redaction)
    daily = []
    for today in range(n + lag):
        rows = np.ones((n, 2))
        grown = max(today - lag + 1, 0)
        rows[:grown] = window[:grown] if today >= day else 0.0
        daily.append(redaction(rows))
    assert joint_output(problem, {"coins": daily}).leakage == pytest.approx(expected, abs=5e-3)


@given(st.integers(0, 2**32))
def test_stretches_are_as_good_as_rows(seed):
    rng = np.random.default_rng(seed)
    n = 30
    dense = [np.where(rng.random((n, 2)) < 0.3, 1.0, rng.random((n, 2)).round(1)) for _ in range(3)]
    sparse = [redaction(rows).compressed() for rows in dense]
    found = joint_redaction({0: sparse[:2], 1: sparse[2:]}).matrix()
    expected = np.minimum(dense[0], dense[1]) * dense[2]
    assert np.all(found <= expected)
    assert np.allclose(found, expected, rtol=1e-15, atol=0)


def test_nothing_is_no_release():
    with pytest.raises(off.InputError, match="at least one"):
        joint_redaction({})
    short, long = redaction([(1, 1)]), redaction([(1, 1), (0, 0)])
    with pytest.raises(off.InputError, match="1 records"):
        joint_redaction({0: [short, long]})
