"""The least that any mechanism redacts (O2): the programme over all masks against one written down
from the definition, against known numbers, and between its bound and what mechanisms reach.
"""

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

import offrecord as off
from definition import sequences
from offrecord.theory.central import least_redactions, redactions_bound

#: α, β, ε; expected redactions with record 1 of 8 private, and with record 4.
EIGHT_RECORDS = [
    (0.1, 0.3, 1.0, 1.2823, 2.0957),
    (0.05, 0.1, 1.5, 1.9027, 3.8635),
    (0.3, 0.4, 0.5, 1.0833, 1.3646),
    (0.05, 0.1, 0.5, 3.8659, 5.2529),
    (0.2, 0.9, 0.5, 1.0326, 1.0652),
    (0.01, 0.8, 0.3, 1.1644, 1.3289),
    (0.021, 0.295, 1.0, 1.6145, 2.6955),
    (0.244, 0.327, 1.0, 1.0062, 1.4049),
    (0.6, 0.8, 1.0, 1.0411, 1.3279),
    (0.01, 0.8, 1.0, 1.0708, 1.1416),
]


def of_two_values(alpha, beta, n, private, epsilon, protect="run"):
    return off.Problem(off.MarkovChain.binary(alpha, beta), n, private, epsilon, protect)


def by_definition(problem):
    """One variable for each sequence and mask, one row for each output and ordered pair of values
    of each secret, private records released or not.
    """
    paths, chances = sequences(problem.chain, problem.n)
    masks = list(product((False, True), repeat=problem.n))  # true: released
    place = {pair: c for c, pair in enumerate(product(range(len(paths)), masks))}
    costs, sums = np.zeros(len(place)), np.zeros((len(paths), len(place)))
    outputs = {}
    for (s, mask), c in place.items():
        costs[c] = chances[s] * mask.count(False)
        sums[s, c] = 1
        shown = tuple(x if seen else None for x, seen in zip(paths[s], mask, strict=True))
        outputs.setdefault(shown, []).append((s, c))
    rows = []
    for first, last in problem.secrets:
        held = [tuple(path[first - 1 : last]) for path in paths]
        total = {v: sum(p for w, p in zip(held, chances, strict=True) if v == w) for v in set(held)}
        for members in outputs.values():
            likelihood = {v: np.zeros(len(place)) for v in total}
            for s, c in members:
                likelihood[held[s]][c] = chances[s] / total[held[s]]
            rows += [
                likelihood[v] - math.exp(problem.epsilon) * likelihood[w]
                for v, w in product(total, repeat=2)
                if v != w
            ]
    solved = linprog(costs, np.array(rows), np.zeros(len(rows)), sums, np.ones(len(paths)))
    return solved.fun


def test_it_is_the_programme_of_the_definition():
    rng = np.random.default_rng(7)
    for case in range(40):
        k, n = ((2, 2), (2, 3), (2, 4), (3, 2), (3, 3))[case % 5]
        transition = rng.dirichlet(np.full(k, 0.7), k)
        if case % 4 == 0:
            transition[0] = np.roll(np.eye(k)[0], 1)  # some steps are impossible
        start = None if case % 3 else rng.dirichlet(np.ones(k))
        private = rng.choice(np.arange(1, n + 1), size=1 + case % 2, replace=False)
        problem = off.Problem(
            off.MarkovChain(transition, start=start),
            n,
            private,
            float(rng.choice([0.1, 0.5, 1.0, 2.0])),
            ("run", "each")[case % 2],
        )
        assert least_redactions(problem) == pytest.approx(by_definition(problem), abs=1e-6)


@pytest.mark.parametrize("private", [1, 4])
@pytest.mark.parametrize(
    "setting",
    [*EIGHT_RECORDS[::4], *(pytest.param(s, marks=pytest.mark.soak) for s in EIGHT_RECORDS)],
)
def test_eight_records(setting, private):
    alpha, beta, epsilon, first, fourth = setting
    problem = of_two_values(alpha, beta, 8, private, epsilon)
    expected = first if private == 1 else fourth
    assert least_redactions(problem) == pytest.approx(expected, abs=6e-5)


def test_runs_cost_more_than_their_records():
    """The numbers of a run of two in six records."""
    run, each = (
        least_redactions(of_two_values(0.244, 0.327, 6, [3, 4], 1.0, protect))
        for protect in ("run", "each")
    )
    assert (run, each) == pytest.approx((2.4258, 2.1462), abs=6e-5)


@pytest.mark.parametrize("seed", range(15))
def test_no_mechanism_redacts_less_and_none_beats_the_bound(seed):
    rng = np.random.default_rng(seed)
    alpha, beta = rng.uniform(0.02, 0.95, 2)
    n = int(rng.integers(3, 7))
    private = rng.choice(np.arange(1, n + 1), size=1 + seed % 2, replace=False)
    problem = of_two_values(alpha, beta, n, private, float(rng.uniform(0.2, 2)))
    least = least_redactions(problem)
    assert redactions_bound(problem) <= least + 1e-6
    for mechanism in (off.BestWindow(), off.ThreeRegion(tuning="constant")):
        redacted = n * (1 - off.design(problem, mechanism).utility)
        assert least <= redacted + 1e-6


def test_two_records_by_hand():
    """The record beside the private one shows 1 with 0.1 given 0, with 0.7 given 1."""
    problem = of_two_values(0.1, 0.3, 2, 1, 1.0)
    given_1 = 0.7 - 0.1 * math.e  # hidden at least: of the 1s
    given_0 = 0.9 - 0.3 * math.e  # and of the 0s
    assert redactions_bound(problem) == pytest.approx(1 + 0.25 * given_1 + 0.75 * given_0)
    # what is hidden tells of 1 unless more is hidden given 0; there is enough of it
    assert given_0 < given_1 / math.e
    least = 1 + 0.25 * given_1 + 0.75 * given_1 / math.e
    assert least_redactions(problem) == pytest.approx(least, abs=1e-6)


def test_what_is_too_large_or_not_of_order_one_is_refused():
    with pytest.raises(off.InputError, match="up to 70,000 variables, got 131,072"):
        least_redactions(of_two_values(0.1, 0.3, 9, 1, 1.0))
    second = off.MarkovChain(np.full((2, 2, 2), 0.5), order=2)
    for asked in (least_redactions, redactions_bound):
        with pytest.raises(off.InputError, match="order 1 only"):
            asked(off.Problem(second, 4, 2, 1.0))


def test_the_bound_of_long_chains():
    """Records far away are free; both sides count."""
    long, longer = (
        redactions_bound(of_two_values(0.0036, 0.012, n, n // 2, 1.0)) for n in (1000, 2000)
    )
    assert long == pytest.approx(longer, abs=1e-9)
    assert 35 < long < 45
