"""Tails of distributions against scipy's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from offrecord.fitting.chance import binomial_tails, chi_square_tail


@given(degrees=st.integers(1, 5000), ratio=st.floats(0.01, 20))
def test_chi_square(degrees, ratio):
    expected = chi2.sf(degrees * ratio, degrees)
    assert chi_square_tail(degrees, degrees * ratio) == pytest.approx(
        expected, rel=1e-8, abs=1e-290
    )


def test_chi_square_of_nothing():
    assert chi_square_tail(0, 3.0) == chi_square_tail(4, 0.0) == 1.0


@given(count=st.integers(1, 3000), share=st.floats(1e-6, 1 - 1e-6), data=st.data())
def test_binomial(count, share, data):
    seen = data.draw(st.integers(0, count))
    below, above = binomial_tails(count, share, seen)
    assert below == pytest.approx(binom.cdf(seen, count, share), rel=1e-8, abs=1e-290)
    assert above == pytest.approx(binom.sf(seen - 1, count, share), rel=1e-8, abs=1e-290)
