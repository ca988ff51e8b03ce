"""What is published of a model has four digits."""

from decimal import Decimal
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import offrecord as off
from definition import distributions, samples
from offrecord.fitting.intervals import rounded_shares
from offrecord.models.published_rounding import rounded_row


def digits(number):
    return len(Decimal(repr(number)).normalize().as_tuple().digits) if number else 0


@given(st.integers(2, 5).flatmap(distributions))
def test_a_rounded_row_has_four_digits_but_for_its_largest_and_sums_to_one(row):
    short = rounded_row([Decimal(p) for p in row.tolist()])
    assert abs(sum(short) - 1) < 1e-15 * len(short)
    largest = int(np.argmax(row))
    assert all(digits(p) <= 4 for i, p in enumerate(short) if i != largest)
    assert all((p == 0) == (q == 0) for p, q in zip(row, short, strict=True))
    assert np.allclose(short, row, rtol=0, atol=5e-4)
    again = off.MarkovChain([short] * len(short))
    assert again.rounded() is again


def test_models_of_every_kind():
    rng = np.random.default_rng(0)
    full = [
        off.MarkovChain(rng.dirichlet(np.ones(3), 3)),
        off.MarkovChain(rng.dirichlet(np.ones(2), 2), start=rng.dirichlet(np.ones(2))),
        off.MarkovChain(rng.dirichlet(np.ones(2), (4, 2)), start=rng.dirichlet(np.ones(2))),
        off.MarkovChain(rng.dirichlet(np.ones(2), (2, 2)), order=2),
        off.PhasedChain("weekday", rng.dirichlet(np.ones(2), (7, 2)), rng.dirichlet(np.ones(2), 7)),
    ]
    for model in full:
        short = model.rounded()
        assert short is not model
        assert type(short) is type(model)
        assert np.allclose(short.transition, model.transition, rtol=0, atol=5e-4)
        assert short.rounded() is short
        if isinstance(model, off.MarkovChain):
            assert short.is_stationary == model.is_stationary
    assert off.MarkovChain.binary(0.01, 0.8).rounded().alpha == 0.01


def test_rounding_does_not_hide_a_record_that_the_model_has_seen():
    """Why models must be learned from other records: with four digits, what is redacted can often
    still be computed.
    """
    chain = off.MarkovChain.binary(0.05, 0.3)
    told = 0
    for seed in range(12):
        values = samples(chain, 1, 300, np.random.default_rng(seed))[0]
        published = kernel_of(values)
        redacted = range(147, 154)  # the private record, 150, and three on each side
        possible = set()
        for guess in product((0, 1), repeat=len(redacted)):
            values[redacted] = guess
            if np.array_equal(kernel_of(values), published):
                possible.add(values[150])
        told += len(possible) == 1
    assert told >= 4


def kernel_of(values):
    counts = np.zeros((2, 2), dtype=np.int64)
    np.add.at(counts, (values[:-1], values[1:]), 1)
    return rounded_shares(counts)
