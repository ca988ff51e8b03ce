"""What local designs tell, proven: against all outputs in whole numbers."""

import math
from fractions import Fraction
from itertools import pairwise, product

import flint
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.release.certificate import Model, ModelSet
from offrecord.verify import balls, verify
from offrecord.verify.alone import told
from offrecord.verify.problem import Problem, Secret, Stretch
from offrecord.verify.two_values import told as told_over

SHARES = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0])


def exactly(number):
    return Fraction(repr(number))


@st.composite
def distributions(draw, k):
    """Decimals that sum to 1, some of them 0."""
    parts = draw(st.lists(st.integers(0, 9), min_size=k, max_size=k).filter(any))
    tenths = [Fraction(part, sum(parts)).limit_denominator(10) for part in parts]
    rounded = [round(float(one), 2) for one in tenths[:-1]]
    return [*rounded, round(1 - sum(rounded), 2)]


@st.composite
def problems(draw):
    """A few records of a chain with a start, each with its own redaction."""
    k, n = draw(st.integers(2, 3)), draw(st.integers(2, 4))
    several = draw(st.booleans())
    kernels = [[draw(distributions(k)) for _ in range(k)] for _ in range(n - 1 if several else 1)]
    first = draw(st.integers(0, n - 1))
    last = draw(st.integers(first, min(first + 1, n - 1)))
    rows = [[draw(SHARES) for _ in range(k)] for _ in range(n)]
    for record in range(first, last + 1):
        rows[record] = [1.0] * k
    model = Model(
        order=1,
        labels=tuple(range(k)),
        transition=tuple(tuple(map(tuple, kernel)) for kernel in kernels)
        if several
        else tuple(map(tuple, kernels[0])),
        start=tuple(draw(distributions(k))),
        stationary=False,
    )
    stretches = tuple(Stretch(1, tuple(row)) for row in rows)
    return Problem(model, n, stretches, (Secret(first, last),), None)


def likelihoods(problem, kernels, start):
    """Of each value of the secret, of each output: by all sequences of values."""
    k, (secret,) = problem.model.k, problem.secrets
    rows = [stretch.row for stretch in problem.stretches for _ in range(stretch.records)]
    found = {}
    for values in product(range(k), repeat=problem.n):
        weight = start[values[0]]
        for t, (i, j) in enumerate(pairwise(values)):
            weight *= kernels[t][i][j]
        if weight == 0:
            continue
        hidden = values[secret.first : secret.last + 1]
        of = found.setdefault(hidden, {})
        for redacted in product((True, False), repeat=problem.n):
            chance = weight
            for row, value, is_redacted in zip(rows, values, redacted, strict=True):
                share = Fraction(row[value])
                chance *= share if is_redacted else 1 - share
            if chance:
                shown = zip(values, redacted, strict=True)
                output = tuple(None if gone else value for value, gone in shown)
                of[output] = of.get(output, 0) + chance
    return {x: {y: p / sum(of.values()) for y, p in of.items()} for x, of in found.items()}


def largest_ratio(by_secret):
    """None where an output is possible under one value alone."""
    worst = Fraction(1)
    for one, other in product(by_secret.values(), repeat=2):
        for output, chance in one.items():
            if output not in other:
                return None
            worst = max(worst, chance / other[output])
    return worst


def log_of(ratio):
    """A ball around the logarithm."""
    return flint.arb(flint.fmpq(ratio.numerator, ratio.denominator)).log()


@settings(max_examples=150, deadline=None)
@given(problems())
def test_the_model_alone_against_all_outputs(problem):
    model = problem.model
    steps = model.transition if model.length is not None else [model.transition] * (problem.n - 1)
    kernels = [[[exactly(p) for p in row] for row in kernel] for kernel in steps]
    ratio = largest_ratio(likelihoods(problem, kernels, [exactly(p) for p in model.start]))
    found = told(problem)
    if ratio is None:
        assert not found.is_finite()
    else:
        assert found.overlaps(log_of(ratio))
        assert found.rad() < 1e-12


@pytest.mark.parametrize("protect", ["run", "each"])
def test_a_stationary_model_is_judged_by_its_own_distribution(protect):
    """Start is written to the precision of a double; what counts is what the kernel keeps."""
    kernel = ((0.9, 0.1), (0.3, 0.7))
    model = Model(order=1, labels=(0, 1), transition=kernel, start=(0.75, 0.25), stationary=True)
    rows = [(0.0, 0.0), (0.5, 1.0), (1.0, 1.0), (1.0, 1.0), (0.25, 1.0), (0.0, 0.0)]
    secrets = [Secret(2, 3)] if protect == "run" else [Secret(2, 2), Secret(3, 3)]
    exact = [[exactly(p) for p in row] for row in kernel]
    worst = Fraction(1)
    for secret in secrets:
        problem = Problem(model, 6, tuple(Stretch(1, row) for row in rows), (secret,), None)
        start = [Fraction(3, 4), Fraction(1, 4)]
        ratio = largest_ratio(likelihoods(problem, [exact] * 5, start))
        assert told(problem).overlaps(log_of(ratio))
        worst = max(worst, ratio)
    problem = Problem(model, 6, tuple(Stretch(1, row) for row in rows), tuple(secrets), None)
    assert told(problem).overlaps(log_of(worst))


def test_long_stretches_are_as_good_as_one_record_after_the_other():
    kernel = ((0.99, 0.01), (0.02, 0.98))
    model = Model(order=1, labels=(0, 1), transition=kernel, start=(2 / 3, 1 / 3), stationary=True)
    whole = (Stretch(200, (1.0, 1.0)), Stretch(3, (0.0, 0.5)), Stretch(1, (0.0, 0.0)))
    apart = (*[Stretch(1, (1.0, 1.0))] * 200, *[Stretch(1, (0.0, 0.5))] * 3, whole[-1])
    with balls.precision(128):
        one, other = (
            told(Problem(model, 204, stretches, (Secret(0, 0),), None))
            for stretches in (whole, apart)
        )
    assert one.overlaps(other)
    assert one.rad() < 1e-20


@pytest.mark.parametrize("rates", [(0.3, 0.7), (0.1, 0.3)])
@pytest.mark.parametrize("private", [[3], [1], [6]])
def test_a_budget_of_nothing_is_kept_where_nothing_is_told(rates, private, tmp_path):
    """By independent records, and by redacting everything: exactly 0, not about 0."""
    table = pl.DataFrame({"t": range(1, 7), "v": [0, 1, 0, 0, 1, 1]})
    release = off.redact(
        table.with_columns(p=pl.col("t").is_in(private)),
        value="v", order="t", private="p", single_chain=True, epsilon=0.0,
        model=off.MarkovChain.binary(*rates), mechanism="best-local", dataset=f"{rates}{private}",
        accept_model=True,
    )  # fmt: skip
    release.write(tmp_path / "out.csv")
    verdict = verify(tmp_path / "out.csv.certificate.json")
    assert verdict.is_verified
    assert verdict.told == 0.0
    assert release.frame["v"].null_count() == (1 if sum(rates) == 1.0 else 6)


# ---- sets of two values


@st.composite
def boxes(draw):
    """Two intervals of the probability of a change."""
    ends = []
    for _ in range(2):
        low = draw(st.sampled_from([0.0, 0.05, 0.2, 0.5]))
        ends.append((low, draw(st.sampled_from([low, round(low + 0.1, 2), round(low + 0.4, 2)]))))
    return ends


def intervals(box):
    (a, b), (c, d) = box
    return (
        ((round(1 - b, 2), a), (c, round(1 - d, 2))),
        ((round(1 - a, 2), b), (d, round(1 - c, 2))),
    )


@st.composite
def over_sets(draw):
    box, n = draw(boxes()), draw(st.integers(2, 4))
    place = draw(st.integers(0, n - 1))
    rows = [[draw(SHARES) for _ in range(2)] for _ in range(n)]
    rows[place] = [1.0, 1.0]
    ends = intervals(box)
    (a, b), (c, d) = box
    model = Model(
        order=1,
        labels=(0, 1),
        transition=((1 - (a + b) / 2, (a + b) / 2), ((c + d) / 2, 1 - (c + d) / 2)),
        start=(0.5, 0.5),
        stationary=True,
        set=ModelSet(
            kind="box", confidence=None, interval=None, start="stationary",
            forward=ends, backward=ends,
        ),
    )  # fmt: skip
    stretches = tuple(Stretch(1, tuple(row)) for row in rows)
    return box, Problem(model, n, stretches, (Secret(place, place),), None)


def corners(box):
    (a, b), (c, d) = box
    for alpha, beta in product(map(exactly, (a, b)), map(exactly, (c, d))):
        yield [[1 - alpha, alpha], [beta, 1 - beta]]


def seen_on_a_side(rows, kernels):
    """(likelihood given 0, given 1) of every output, away from the secret by these kernels."""
    found = {0: {}, 1: {}}
    for x in range(2):
        for values in product(range(2), repeat=len(rows)):
            weight, before = Fraction(1), x
            for kernel, value in zip(kernels, values, strict=True):
                weight, before = weight * kernel[before][value], value
            for redacted in product((True, False), repeat=len(rows)):
                chance = weight
                for row, value, gone in zip(rows, values, redacted, strict=True):
                    chance *= Fraction(row[value]) if gone else 1 - Fraction(row[value])
                shown = zip(values, redacted, strict=True)
                output = tuple(None if gone else value for value, gone in shown)
                found[x][output] = found[x].get(output, 0) + chance
    return [(found[0][y], found[1][y]) for y in found[0] if found[0][y] or found[1][y]]


def side_ratios(rows, box):
    """The largest ratios 1 : 0 and 0 : 1 over outputs and corners; None is infinite."""
    most = [Fraction(0), Fraction(0)]
    for kernels in product(list(corners(box)), repeat=len(rows)):
        for zero, one in seen_on_a_side(rows, kernels):
            for at, (above, below) in enumerate(((one, zero), (zero, one))):
                if above and not below:
                    most[at] = None
                elif above and most[at] is not None:
                    most[at] = max(most[at], above / below)
    return most


@settings(max_examples=60, deadline=None)
@given(over_sets())
def test_a_set_of_two_values_against_all_outputs_and_corners(case):
    box, problem = case
    (secret,) = problem.secrets
    rows = [stretch.row for stretch in problem.stretches]
    left = side_ratios(rows[: secret.first][::-1], box)
    right = side_ratios(rows[secret.first + 1 :], box)
    ratios = [None if a is None or b is None else a * b for a, b in zip(left, right, strict=True)]
    found = told_over(problem)
    if None in ratios and 0 not in ratios:
        assert not found.is_finite()
    elif None not in ratios:
        assert found.overlaps(log_of(max(ratios)))


@settings(max_examples=80, deadline=None)
@given(boxes(), st.lists(st.tuples(SHARES, SHARES), min_size=1, max_size=3), st.integers(0, 2**32))
def test_kernels_forwards_alone_never_tell_more(box, rows, seed):
    """Chains with any start and any kernels of the box, told backwards (R4)."""
    ends = intervals(box)
    model = Model(
        order=1, labels=(0, 1), transition=((0.5, 0.5), (0.5, 0.5)), start=(0.5, 0.5),
        stationary=True,
        set=ModelSet(
            kind="box", confidence=None, interval=None, start="any", forward=ends, backward=ends
        ),
    )  # fmt: skip
    stretches = (*[Stretch(1, row) for row in rows], Stretch(1, (1.0, 1.0)))
    n = len(stretches)
    found = told_over(Problem(model, n, stretches, (Secret(n - 1, n - 1),), None))
    rng = np.random.default_rng(seed)
    problem = Problem(model, n, stretches, (Secret(n - 1, n - 1),), None)
    for _ in range(6):
        first = Fraction(float(rng.choice([1e-6, rng.random(), 1 - 1e-6])))
        kernels = []
        for _ in range(n - 1):
            alpha, beta = (exactly(float(rng.choice([low, high]))) for low, high in box)
            kernels.append([[1 - alpha, alpha], [beta, 1 - beta]])
        by_secret = likelihoods(problem, kernels, [1 - first, first])
        ratio = largest_ratio(by_secret)
        if ratio is None:
            assert not found.is_finite()
        else:
            assert not found < log_of(ratio)


# ---- numbers


@given(st.floats(1e-300, 1e300))
def test_upper_is_the_least_double_above(number):
    assert balls.upper(flint.arb(number)) == number
    with balls.precision(200):
        a_little_more = flint.arb(number) * (1 + flint.arb(2) ** -100)
        assert balls.upper(a_little_more) == math.nextafter(number, math.inf)


def test_precision_is_raised_until_it_is_decided():
    third = flint.fmpq(1, 3)
    tries = []

    def bound():
        tries.append(flint.ctx.prec)
        return flint.arb(third) + flint.arb(2) ** -150

    limit = math.nextafter(1 / 3, 0.0)
    assert not balls.decided(bound, limit)[0]
    assert tries == [balls.PRECISIONS[0]]
    kept, _ = balls.decided(
        lambda: flint.arb(flint.fmpq(1)).log().exp() - flint.arb(2) ** -200, 1.0
    )
    assert kept
    never, _ = balls.decided(lambda: flint.arb(1, 1e-3), 1.0)
    assert not never
