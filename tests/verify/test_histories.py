"""What local designs tell under a model of order above 1: by the definition, and by the design's
own side, on certificates of real releases too.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import offrecord as off
from offrecord.verify import histories
from offrecord.verify.balls import decided, precision, upper
from offrecord.verify.problem import Problem
from releases import certificate_of, judged, table_of
from small_chains import (
    decimals,
    fraction,
    model_of,
    nested,
    problem_of,
    random_redaction,
    told_by_definition,
)


def stationary_of(kernel, k, order):
    """The distribution of m records in fractions, by solving; None if there are several."""
    import flint

    size = k**order
    rows = flint.fmpq_mat(size, size)
    for code in range(size):
        for value in range(k):
            p = kernel[code][value]
            rows[code * k % size + value, code] += flint.fmpq(p.numerator, p.denominator)
        rows[code, code] -= 1
    for code in range(size):
        rows[size - 1, code] = 1
    right = flint.fmpq_mat(size, 1)
    right[size - 1, 0] = 1
    try:
        solved = rows.solve(right)
    except ZeroDivisionError:
        return None
    return [Fraction(int(solved[i, 0].p), int(solved[i, 0].q)) for i in range(size)]


def chain_of(rng, k, order, stationary, zeros):
    """A model, and the probability of all values of a chain."""
    size = k**order
    kernel = [decimals(rng, k, zeros) for _ in range(size)]
    exact = [[fraction(p) for p in row] for row in kernel]
    if stationary:
        start = stationary_of(exact, k, order)
        if start is None:
            return None
    else:
        start = [fraction(p) for p in decimals(rng, size, zeros)]
    model = model_of(
        nested(kernel, k, order + 1),
        nested([float(p) for p in start], k, order),
        k=k,
        order=order,
        stationary=stationary,
    )

    def likelihood(values):
        code = 0
        for value in values[:order]:
            code = code * k + value
        p = start[code]
        for value in values[order:]:
            p *= exact[code][value]
            code = code * k % size + value
        return p

    return model, likelihood


@pytest.mark.parametrize("seed", range(60))
def test_it_is_what_the_definition_says(seed):
    rng = np.random.default_rng(seed)
    k, order = ((2, 2), (2, 3), (3, 2))[seed % 3]
    n = int(rng.integers(order + 1, 7 if k == 2 else 6))
    made = chain_of(rng, k, order, bool(rng.integers(2)), rng.choice([0.0, 0.0, 0.3]))
    if made is None:
        pytest.skip("no one stationary distribution")
    model, likelihood = made
    first = int(rng.integers(n))
    last = min(first + int(rng.choice([0, 0, 1, 2])), n - 1)
    secrets = [(first, last)]
    matrix = random_redaction(rng, n, k, secrets)
    exact = told_by_definition(likelihood, matrix, secrets, k)
    with precision(96):
        found = histories.told(problem_of(model, matrix, secrets))
    if exact is None:
        assert not found.is_finite()
    else:
        assert float(found) == pytest.approx(math.log(exact), abs=1e-13)
        assert upper(found) >= math.log(exact) - 1e-15


def order_two(stationary=True):
    kernel = [[[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]]]
    return off.MarkovChain(kernel, None if stationary else [[0.4, 0.1], [0.2, 0.3]], order=2)


def written(chain):
    k, order = chain.k, chain.order
    return model_of(
        nested(chain.transition, k, order + 1),
        nested(chain.start, k, order),
        k=k,
        order=order,
        stationary=chain.is_stationary,
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_design_side_says_no_less_of_long_sides(seed):
    """Sides with too many outputs to follow are cut, or bounded by pairs of tuples."""
    rng = np.random.default_rng(seed)
    chain = order_two(stationary=seed % 3 > 0)
    first, n = int(rng.integers(2, 30)), 60
    last = first + int(rng.choice([0, 1, 4]))
    matrix = rng.random((n, 2)) * (rng.random((n, 1)) < 0.8)
    matrix[max(first - 12, 0) : last + 12] = 1.0
    expected = off.leakage(off.Problem(chain, n, range(first + 1, last + 2), 1.0), matrix)
    with precision(96):
        found = histories.told(problem_of(written(chain), matrix, [(first, last)]))
    assert upper(found) <= expected + 1e-12


@pytest.mark.parametrize("protect", ["run", "each"])
@pytest.mark.parametrize("mechanism", ["window", "3r-constant", "3r-relaxed", "best-local"])
@pytest.mark.parametrize("stationary", [True, False])
def test_certificates_of_releases_are_proven(mechanism, protect, stationary):
    chain = order_two(stationary)
    frame = table_of(chain, chains=2, n=24)
    certificate, _ = certificate_of(chain, mechanism, frame=frame, protect=protect)
    for proven, found, design in judged(certificate, histories.told):
        assert proven
        assert upper(found) <= design.leakage + 1e-12


def test_less_redaction_is_not_proven():
    """It never tells less (F3), and somewhere it tells more than a limit that was just kept."""
    chain = order_two()
    certificate, _ = certificate_of(chain, "3r-relaxed", frame=table_of(chain, chains=1, n=24))
    for design in certificate.designs.designs:
        problem = Problem.of(certificate.designs, design, certificate.model)
        with precision(96):
            limit = histories.told(problem)
            worse = [histories.told(one) for one in with_less_redaction(problem)]
        assert all(upper(one) >= float(limit.lower()) for one in worse)
        assert any(one > limit + 1e-6 for one in worse)
        assert not all(decided(lambda one=one: one, upper(limit))[0] for one in worse)


def with_less_redaction(problem):
    """In one stretch beside the secret at a time."""
    begin, (secret,) = 0, problem.secrets
    for at, stretch in enumerate(problem.stretches):
        beside = begin + stretch.records <= secret.first or begin > secret.last
        begin += stretch.records
        if beside and max(stretch.row) > 0:
            less = list(problem.stretches)
            less[at] = stretch._replace(row=tuple(0.9 * share for share in stretch.row))
            yield replace(problem, stretches=tuple(less))
