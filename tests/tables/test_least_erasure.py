"""What is said of plain erasure holds for every model that the data leave likely."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.designs.needs import SurroundingCounts
from offrecord.tables.erasure import erasure_leakage
from offrecord.tables.least_erasure import _mass_bounds
from offrecord.text import odds_at_least


def needs_of(*rows):
    """Surroundings, of one secret each."""
    rows = np.array([(*row, 0) for row in rows])
    return SurroundingCounts.of(rows, np.ones(len(rows), dtype=np.int64), {})


def around(kernel, width):
    return np.clip(kernel - width, 0.0, 1.0), np.clip(kernel + width, 0.0, 1.0)


def inside(rng, low, high):
    """A kernel within an interval for each entry: corners and what lies between them."""
    rows = low.reshape(-1, low.shape[-1]).copy()
    for row, top in zip(rows, high.reshape(rows.shape), strict=True):
        for j in rng.permutation(len(row)):
            spare = 1.0 - row.sum()
            share = rng.choice([rng.random(), 1.0])
            row[j] += min(spare, top[j] - row[j]) * share
        for j in range(len(row)):
            row[j] += min(1.0 - row.sum(), top[j] - row[j])
    return rows.reshape(low.shape)


ROOMS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 3))


@given(st.integers(0, 2**32 - 1), st.sampled_from([(2, 1), (3, 1), (2, 2), (3, 2)]), ROOMS)
@settings(max_examples=60)
def test_no_model_of_the_set_tells_less(seed, shape, room):
    rng, (k, order) = np.random.default_rng(seed), shape
    kernel = rng.dirichlet(np.full(k, 0.7), size=(k,) * order)
    kernel = 0.97 * kernel + 0.03 / k
    nominal = off.MarkovChain(kernel, order=order)
    width = rng.choice([0.003, 0.02, 0.1])
    box = off.Box(around(kernel, width), around(nominal._lifted_reverse, 2 * width), order)
    needs = needs_of(room)
    told = erasure_leakage(nominal.with_box(box), needs)
    if order > 1 and room[2] > 1:
        assert told is None
        return
    assert 0 <= told <= erasure_leakage(nominal, needs) + 1e-9
    for _ in range(20):
        other = off.MarkovChain(inside(rng, *box.forward), order=order)
        try:
            other.with_box(box)  # it lies in the set, back in time too
        except off.InputError:
            continue
        assert told <= erasure_leakage(other, needs) + 1e-9


def test_two_values_at_the_corner_of_least_memory():
    box = off.Box.binary(alpha=(0.04, 0.06), beta=(0.25, 0.35))
    chain = off.MarkovChain.binary(0.05, 0.3).with_box(box)
    corner = off.MarkovChain.binary(0.06, 0.35)
    for room in ((5, 5, 1), (0, 5, 1), (5, 5, 2)):
        told = erasure_leakage(chain, needs_of(room))
        assert told == pytest.approx(erasure_leakage(corner, needs_of(room)))


def test_what_was_never_seen_adds_nothing():
    """A transition of half a count makes odds of the model alone as large as one likes."""
    rare = 1e-8
    kernel = np.array([[0.7, 0.3 - rare, rare], [0.3, 0.5, 0.2], [0.2, 0.2, 0.6]])
    chain = off.MarkovChain(kernel)
    back = chain.reversed_kernel(2)
    low = np.where(kernel == rare, 0.0, kernel - 0.02)
    low_back = np.where(back < 1e-6, 0.0, back - 0.02)
    box = off.Box((low, np.maximum(kernel + 0.02, 0.01)), (low_back, np.maximum(back + 0.02, 0.01)))
    needs = needs_of((5, 5, 1))
    assert np.exp(erasure_leakage(chain, needs)) > 1e6
    assert 1 < np.exp(erasure_leakage(chain.with_box(box), needs)) < 1e4


def test_what_lies_back_in_time_is_known_of_stationary_chains_alone():
    chain = off.MarkovChain.binary(0.05, 0.3)
    box = off.Box.binary(alpha=(0.04, 0.06), beta=(0.25, 0.35))
    settled = chain.with_box(box.with_start("settled"))
    assert erasure_leakage(settled, needs_of((5, 0, 1))) == 0
    both, right = (
        erasure_leakage(settled, needs_of((5, 5, 1))),
        erasure_leakage(chain.with_box(box), needs_of((0, 5, 1))),
    )
    assert both == right > 0


@pytest.mark.parametrize("seed", range(3))
def test_how_likely_values_can_be(seed):
    """The bounds hold for every kernel of the set, and some come near."""
    rng = np.random.default_rng(seed)
    kernel = 0.9 * rng.dirichlet(np.ones(2), size=(2, 2)) + 0.05
    nominal = off.MarkovChain(kernel, order=2)
    box = off.Box(around(kernel, 0.03), around(nominal._lifted_reverse, 0.5), 2)
    least, most = _mass_bounds(box)
    low, high = (ends.reshape(4, 2) for ends in box.forward)
    masses = []
    for corner in np.ndindex(2, 2, 2, 2):
        first = np.where(np.array(corner) == 0, low[:, 0], high[:, 0])
        rows = np.stack((first, 1 - first), axis=1)
        masses.append(off.MarkovChain(rows.reshape(2, 2, 2), order=2).marginal(5))
    assert np.min(masses, axis=0) == pytest.approx(least, abs=1e-9)
    assert np.max(masses, axis=0) == pytest.approx(most, abs=1e-9)


@given(st.floats(0, 40))
def test_digits_say_no_more_than_holds(leakage):
    said = float(odds_at_least(leakage).replace(",", ""))
    assert 0.989 * np.exp(leakage) <= said <= np.exp(leakage) * (1 + 1e-12)
