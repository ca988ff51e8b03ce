"""Intervals of shares against their definitions, and as they are published."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offrecord.fitting.intervals import BOUND_DIGITS, clopper_pearson, mixture, rounded_outward


def tail(total, share, seen):
    """Pr(at least `seen` of `total`), exactly."""
    return sum(
        math.comb(total, i) * share**i * (1 - share) ** (total - i) for i in range(seen, total + 1)
    )


@settings(max_examples=100)
@given(
    total=st.integers(1, 60),
    data=st.data(),
    errors=st.tuples(*[st.sampled_from([5e-5, 0.0123, 0.025, 0.4])] * 2),
)
def test_clopper_pearson_ends_where_what_was_seen_has_the_error_for_its_probability(
    total, data, errors
):
    seen = data.draw(st.integers(0, total))
    low, high = clopper_pearson(seen, total, *errors).tolist()
    assert 0 <= low < high <= 1
    if seen == 0:
        assert low == 0.0
    else:
        reached = tail(total, Fraction(low), seen)
        assert errors[0] * (1 - 1e-6) < reached <= errors[0]
    if seen == total:
        assert high == 1.0
    else:
        reached = 1 - tail(total, Fraction(high), seen + 1)
        assert errors[1] * (1 - 1e-6) < reached <= errors[1]


def log_ratio(total, share, seen):
    """How much likelier the exits are under a share from Beta(½, ½): a log, by multiplying the
    shares that a person expects from one exit to the next.
    """
    mixed, ones = 0.0, 0
    for i in range(total):  # in any order: here the seen ones first
        one = i < seen
        mixed += math.log(((ones if one else i - ones) + 0.5) / (i + 1))
        ones += one
    at = seen * math.log(share) + (total - seen) * math.log1p(-share)
    return mixed - at


@settings(max_examples=100)
@given(
    total=st.integers(1, 3000), data=st.data(), error=st.sampled_from([1e-4, 0.0123, 0.025, 0.4])
)
def test_the_mixture_ends_where_the_martingale_reaches_one_over_the_error(total, data, error):
    seen = data.draw(st.integers(0, total))
    low, high = mixture(seen, total, error).tolist()
    if seen == 0:
        assert low == 0.0
    else:
        assert 0 <= log_ratio(total, low, seen) + math.log(error) < 1e-4
    if seen == total:
        assert high == 1.0
    else:
        assert 0 <= log_ratio(total, high, seen) + math.log(error) < 1e-4
    assert low < seen / total < high or seen in (0, total)


def test_where_nothing_was_seen_anything_may_be():
    assert clopper_pearson(0, 0, 0.025, 0.025).tolist() == [0.0, 1.0]
    assert mixture(0, 0, 0.05).tolist() == [0.0, 1.0]


def test_arrays_are_done_at_once_and_millions_of_exits_too():
    counts = np.array([[0, 3], [10**8, 7]])
    totals = np.array([[5], [10**8 + 7]])
    for ends in (clopper_pearson(counts, totals, 0.01, 0.02), mixture(counts, totals, 0.03)):
        assert ends.shape == (2, 2, 2)
        assert np.all(ends[..., 0] <= counts / totals)
        assert np.all(counts / totals <= ends[..., 1])
    assert ends[1, 0] == pytest.approx(1 - ends[1, 1, ::-1], abs=1e-15)
    one = clopper_pearson(7, 10**8 + 7, 0.01, 0.02)
    assert np.array_equal(clopper_pearson(counts, totals, 0.01, 0.02)[1, 1], one)


def digits(number):
    return len(Decimal(repr(number)).normalize().as_tuple().digits)


#: Multiples of 2⁻⁵²: what they leave of 1 is a float too.
probabilities = st.one_of(
    st.integers(0, 2**52), st.integers(0, 10**6), st.integers(2**52 - 10**6, 2**52)
).map(lambda times: times / 2**52)


@settings(max_examples=300)
@given(ends=st.tuples(probabilities, probabilities).map(sorted))
def test_ends_are_rounded_outward_to_three_digits_of_themselves_or_of_their_complement(ends):
    low, high = (end.item() for end in rounded_outward(*np.array(ends)[:, None]))
    assert 0 <= low <= ends[0]
    assert ends[1] <= high <= 1
    for given_end, end in zip(ends, (low, high), strict=True):
        nearer = min(given_end, 1 - given_end)
        assert abs(end - given_end) <= nearer * 10 ** (1 - BOUND_DIGITS) + 1e-15
        assert end in (0, 1) or min(digits(end), digits(float(1 - Decimal(repr(end))))) <= 3
    # those of a row of two values add up to 1
    other_low, other_high = rounded_outward(1 - np.array([ends[1]]), 1 - np.array([ends[0]]))
    assert low + other_high[0] == pytest.approx(1, abs=1e-15)
    assert high + other_low[0] == pytest.approx(1, abs=1e-15)


def test_a_value_that_nearly_always_stays_keeps_the_digits_of_what_it_leaves():
    low, high = rounded_outward(np.array([0.99812345, 0.0012345]), np.array([0.99912345, 0.1]))
    assert low.tolist() == [0.99812, 0.00123]
    assert high.tolist() == [0.999124, 0.1]  # what is short stays as it is
