"""What local designs tell where states are hidden: never less than the definition, and what the
design's own side says, on certificates of real releases too.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import offrecord as off
from offrecord.verify import hidden
from offrecord.verify.balls import precision, upper
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


def random_hidden(rng, shows):
    h, k = len(shows), max(shows) + 1
    kernel = [decimals(rng, h) for _ in range(h)]
    start = decimals(rng, h)
    model = model_of(nested(kernel, h, 2), tuple(start), k=k, shows=shows)
    exact = [[fraction(p) for p in row] for row in kernel]
    begun = [fraction(p) for p in start]

    def likelihood(values):
        forward = [p if shows[s] == values[0] else Fraction(0) for s, p in enumerate(begun)]
        for value in values[1:]:
            forward = [
                sum(forward[i] * exact[i][s] for i in range(h))
                if shows[s] == value
                else Fraction(0)
                for s in range(h)
            ]
        return sum(forward)

    return model, likelihood


@pytest.mark.parametrize("seed", range(20))
def test_it_is_never_less_than_the_definition(seed):
    rng = np.random.default_rng(seed)
    shows = ((0, 1, 1), (0, 0, 1, 1), (0, 1, 2, 2))[seed % 3]
    model, likelihood = random_hidden(rng, shows)
    k, n = max(shows) + 1, 5
    first = int(rng.integers(n))
    last = min(first + int(rng.choice([0, 1])), n - 1)
    matrix = random_redaction(rng, n, k, [(first, last)])
    exact = told_by_definition(likelihood, matrix, [(first, last)], k)
    with precision(96):
        found = hidden.told(problem_of(model, matrix, [(first, last)]))
    if exact is None:
        assert not found.is_finite()
    else:
        assert upper(found) >= math.log(exact) - 1e-15


STATES = [[0.85, 0.05, 0.1], [0.2, 0.5, 0.3], [0.2, 0.2, 0.6]]


@pytest.mark.parametrize("seed", range(12))
def test_the_design_side_says_the_same(seed):
    rng = np.random.default_rng(seed)
    shows = (0, 1, 1)
    chain = off.MarkovChain(STATES, shows=shows)
    model = model_of(
        nested(STATES, 3, 2), tuple(chain.start.tolist()), k=2, shows=shows, stationary=True
    )
    first, n = int(rng.integers(12)), 20
    last = first + int(rng.choice([0, 3]))
    matrix = random_redaction(rng, n, 2, [(max(first - 2, 0), last + 2)])
    expected = off.leakage(off.Problem(chain, n, range(first + 1, last + 2), 1.0), matrix)
    with precision(96):
        found = hidden.told(problem_of(model, matrix, [(first, last)]))
    assert float(found) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("mechanism", "protect"),
    list(product(["window", "3r-constant", "3r-relaxed", "best-local"], ["run", "each"])),
)
def test_certificates_of_releases_are_proven(mechanism, protect):
    chain = off.MarkovChain(STATES, shows=[0, 1, 1])
    frame = table_of(chain, chains=2, n=30)
    certificate, _ = certificate_of(chain, mechanism, frame=frame, protect=protect)
    for proven, found, design in judged(certificate, hidden.told):
        assert proven
        assert upper(found) == pytest.approx(design.leakage, abs=1e-12 + design.rounding)
