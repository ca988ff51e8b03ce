"""Cones of three states over arrays: to the last bit what the compiled loops say."""

import numpy as np
import pytest

from offrecord.theory.sets import _cone_arrays, filling, planar


def boxes(seed):
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(rng.uniform(0.3, 2, 3), 3)
    if seed % 3 == 1:  # transitions that never happen, or may not
        kernel[rng.integers(3), rng.integers(3)] = 0.0
    kernel /= kernel.sum(axis=1, keepdims=True)
    wide = rng.choice([0.0, 1e-9, 0.02, 0.3])
    low = np.maximum(kernel - wide * rng.random((3, 3)), 0.0)
    high = np.minimum(kernel + wide * rng.random((3, 3)), 1.0)
    return rng, low, np.where(kernel == 0, rng.choice([0.0, 0.1]), high)


def rows_of(rng):
    row = rng.random(3)
    row[rng.random(3) < 0.5] = 1.0
    row[rng.random(3) < 0.2] = 0.0
    return row


@pytest.mark.parametrize("seed", range(60))
def test_a_walk_of_cones(seed):
    rng, low, high = boxes(seed)
    rays = np.ones((seed % 2, 3))
    for _ in range(8):
        row = rows_of(rng)
        beyond = filling.seen(rays, row)
        assert np.array_equal(_cone_arrays.seen(rays, row), beyond)
        if not len(beyond):
            return
        for ours, loops in (
            (_cone_arrays.corners, filling.corners),
            (_cone_arrays.largest_ratios, filling.largest_ratios),
        ):
            mine, theirs = ours(low, high, beyond), loops(low, high, beyond)
            assert np.array_equal(mine[0], theirs[0])
            assert mine[1] == theirs[1]
        points = filling.corners(low, high, beyond)[0]
        kept, lost = planar.extreme(points)
        found, missed = _cone_arrays.extreme(points)
        assert np.array_equal(kept, found)
        assert lost == missed
        assert filling.spread(kept) == _cone_arrays.spread(kept)
        rays = kept
