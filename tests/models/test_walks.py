"""Walks: what can occur, told from zeros, against every walk there is."""

from itertools import pairwise, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from offrecord.models.stationary import pattern_power, walked


@settings(max_examples=100, deadline=None)
@given(
    pattern=st.integers(1, 4).flatmap(
        lambda k: st.lists(st.booleans(), min_size=k * k, max_size=k * k).map(
            lambda cells: np.array(cells).reshape(k, k)
        )
    ),
    steps=st.integers(0, 5),
)
def test_a_power_of_a_pattern_says_between_which_values_a_walk_leads(pattern, steps):
    k = len(pattern)
    found = np.zeros((k, k), dtype=bool)
    for walk in product(range(k), repeat=steps + 1):
        if all(pattern[i, j] for i, j in pairwise(walk)):
            found[walk[0], walk[-1]] = True
    assert np.array_equal(pattern_power(pattern, steps), found)


def test_powers_of_a_cycle_come_round_after_as_many_steps_as_it_has_values():
    cycle = np.roll(np.eye(7, dtype=bool), 1, axis=1)
    assert np.array_equal(pattern_power(cycle, 7 * 10**15), np.eye(7))
    assert np.array_equal(pattern_power(cycle, 7 * 10**15 + 1), cycle)


def test_a_walk_multiplies_by_the_kernel_of_each_step():
    rng = np.random.default_rng(0)
    kernels, row = rng.dirichlet(np.ones(3), size=(4, 3)), rng.dirichlet(np.ones(3))
    rows = walked(row, kernels, 5)
    for t in range(5):
        assert np.allclose(rows[t], np.linalg.multi_dot([row, *kernels[:t], np.eye(3)]))
    assert np.allclose(walked(row, kernels[:1], 3)[2], row @ kernels[0] @ kernels[0])
