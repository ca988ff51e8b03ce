"""Kernels of a set that are about the worst for an output: in the set, met, nearly the worst."""

import numpy as np
import pytest

import offrecord as off
from offrecord.mechanisms.best_local.set_walks import (
    Outputs,
    never_released,
    slopes_under,
    told_under,
    worst_kernels,
)
from offrecord.theory.sets import binary, many


def setting(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 4))
    kernel = 0.5 * rng.dirichlet(np.full(k, 2.0), k) + 0.5 * np.eye(k)
    wide = rng.uniform(0.01, 0.08)
    rows = rng.random((5, k))
    rows[rng.random(rows.shape) < 0.4] = 1.0
    rows[0] = 1.0
    return rng, np.maximum(kernel - wide, 0.004), np.minimum(kernel + wide, 1.0), rows


def told_by_products(kernels, rows, distance, value, above, below):
    """F1 as it is defined: redacted on the way, then released, or never released."""
    likely = []
    for x in (above, below):
        masses = np.eye(rows.shape[1])[x]
        for step in range(distance):
            masses = masses @ kernels[step]
            if step < distance - 1 or value < 0:
                masses = masses * rows[step]
        likely.append(masses.sum() if value < 0 else masses[value])
    return np.log(likely[0] / likely[1])


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("ends", [False, True])
def test_kernels_are_in_the_set_and_about_the_worst(seed, ends):
    _, low, high, rows = setting(seed)
    k = rows.shape[1]
    outputs = Outputs.of(rows < 1, ends)
    kernels = worst_kernels(low, high, rows, outputs)
    told = told_under(kernels, rows, outputs)
    kernels = np.moveaxis(kernels, -1, 0)  # output by output
    assert np.all((kernels > low - 1e-12) & (kernels < high + 1e-12))
    assert np.allclose(kernels.sum(axis=-1), 1.0)
    each = zip(outputs.distances, outputs.values, outputs.above, outputs.below, strict=True)
    for number, output in enumerate(each):
        if not np.any(np.all(rows[: output[0] - 1] == 0, axis=1)):
            assert told[number] == pytest.approx(told_by_products(kernels[number], rows, *output))
    met = np.zeros((k, k))
    np.maximum.at(met, (outputs.above, outputs.below), told)
    closed = rows if ends else np.vstack((rows, np.zeros(k)))
    if not ends:  # a record follows that is released
        outputs = Outputs.of(closed < 1, ends=False)
        told = told_under(worst_kernels(low, high, closed, outputs), closed, outputs)
        np.maximum.at(met, (outputs.above, outputs.below), told)
    if k == 3:
        exact = many.bound(rows, np.ones(len(rows), int), not ends, low[None], high[None]).worst
        assert np.all(met <= exact + 1e-9)
        assert np.all(met >= 0.95 * exact - 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_slopes_are_derivatives(seed):
    rng, low, high, rows = setting(seed)
    outputs = Outputs.of(rows < 1, ends=True)
    kernels = worst_kernels(low, high, rows, outputs)
    told, slopes = slopes_under(kernels, rows, outputs)
    for _ in range(5):
        at = tuple(rng.integers(rows.shape))
        step = -1e-6 if rows[at] > 0.5 else 1e-6
        moved = rows.copy()
        moved[at] += step
        change = (slopes_under(kernels, moved, outputs)[0] - told) / step
        assert np.allclose(change, slopes[:, at[0], at[1]], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_never_released_may_not_be(seed):
    _, low, high, rows = setting(seed)
    k = rows.shape[1]
    never = never_released(low.tobytes(), high.tobytes(), k, 6, 0.7)
    exact = many if k == 3 else binary
    influences = exact.influences(6, low[None], high[None])
    assert np.all(influences[never] > 0.7)


@pytest.mark.parametrize("seed", range(4))
def test_designs_keep_within_the_budget_and_redact_less_than_windows_and_3r(seed):
    rng = np.random.default_rng(seed)
    kernel = 0.7 * rng.dirichlet(np.full(3, 2.0), 3) + 0.3 * np.eye(3)
    wide = 0.03 * np.ones((3, 3))
    symmetric = (kernel + kernel.T) / 2  # its own reverse
    symmetric += np.diag(1 - symmetric.sum(axis=1))
    intervals = np.maximum(symmetric - wide, 0.001), symmetric + wide
    chain = off.MarkovChain(symmetric, box=off.Box(intervals, intervals))
    for private in ([6], [1], [4, 5], [3, 7]):
        problem = off.Problem(chain, 11, private, 0.8)
        best = off.design(problem, off.BestLocal())
        assert off.worst_output(problem, best.redaction).upper <= 0.8
        for other in (off.BestWindow(), off.ThreeRegion("relaxed"), off.ThreeRegion("constant")):
            assert best.utility >= off.design(problem, other).utility - 0.002
