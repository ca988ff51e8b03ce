"""No walk is further from the truth than it says (docs/proofs/rounding.md), against 120 digits."""

import mpmath
import numpy as np
import pytest

import offrecord as off
from offrecord.theory import _walk

UNIT = 2.0**-53


def true_worst(kernel, rows):
    """F1 for one kernel, the numbers taken as they are, in 120 digits."""
    with mpmath.workdps(120):
        k = len(kernel)
        P = mpmath.matrix(kernel.tolist())
        V = mpmath.eye(k)
        worst = np.zeros((k, k), dtype=object)

        def note(column):
            for x in range(k):
                for other in range(k):
                    if column[x] > column[other]:
                        ratio = mpmath.log(column[x] / column[other])
                        worst[x, other] = max(worst[x, other], ratio)

        for row in rows.tolist():
            U = V * P
            for j in range(k):
                if row[j] < 1:
                    note([U[x, j] for x in range(k)])
            V = U * mpmath.diag(row)
        note([mpmath.fsum(V[x, j] for j in range(k)) for x in range(k)])
        return worst


def random_walk(rng):
    """A positive kernel and rows with entries of 1 and others of very different sizes."""
    k, m = int(rng.integers(2, 6)), int(rng.integers(1, 12))
    kernel = np.maximum(rng.dirichlet(np.full(k, 10 ** rng.uniform(-1.5, 1)), size=k), 1e-30)
    rows = 10.0 ** -(rng.choice([0.5, 3, 20, 100]) * rng.random((m, k)))
    rows[rng.random((m, k)) < 0.35] = 1.0
    return kernel, rows


def found_by(kernel, rows):
    """worst and rounding of every compiled walk that serves."""
    k, m = len(kernel), len(rows)
    stretches = (rows, np.ones(m, dtype=np.int64), 0, 1, m, False)
    if k == 2:
        ok, (high, _, _, low, _, _), rounding = _walk.binary(kernel[np.newaxis], stretches)
        if ok and rounding > 0:
            yield np.array([[0.0, np.log(high)], [-np.log(low), 0.0]]), rounding
    logs, support = np.log(kernel)[np.newaxis], np.ones(k, dtype=bool)
    for careful in (False, True):
        ok, worst, _, _, rounding = _walk.general(logs, support, stretches, careful)
        if ok and rounding > 0:
            yield worst, rounding


@pytest.mark.parametrize("seed", range(4))
def test_walks_are_off_by_no_more_than_they_say(seed):
    rng = np.random.default_rng(seed)
    looked = 0
    for _ in range(60):
        kernel, rows = random_walk(rng)
        truth = true_worst(kernel, rows)
        for worst, rounding in found_by(kernel, rows):
            for x, other in zip(*np.nonzero(~np.eye(len(kernel), dtype=bool)), strict=True):
                error = abs(float(truth[x, other] - max(worst[x, other], 0.0)))
                assert error <= rounding + 3 * UNIT * float(truth[x, other])
                looked += 1
    assert looked > 500


def test_a_jump_is_off_by_no_more_than_its_steps():
    kernel = np.array([[0.97, 0.02, 0.01], [0.015, 0.98, 0.005], [0.01, 0.03, 0.96]])
    rows = np.vstack((np.ones((40, 3)), [[0.4, 1.0, 1.0]] * 3))
    truth = true_worst(kernel, rows)
    stretches = (rows[[0, -1]], np.array([40, 3]), 0, 1, 2, False)
    for careful in (False, True):
        ok, worst, _, _, rounding = _walk.general(
            np.log(kernel)[np.newaxis], np.ones(3, dtype=bool), stretches, careful
        )
        assert ok
        assert np.all(np.abs((truth - np.maximum(worst, 0.0)).astype(float)) <= rounding)


def test_a_large_leakage_is_off_by_no_more_than_its_own_last_digits():
    """What `rounding` leaves out, under "Large leakages" on that page."""
    chain = off.MarkovChain.binary(1.7e-49, 0.3)
    worst = off.worst_output(off.Problem(chain, 2, [1], 1.0), [[1, 1], [1, 0]])
    with mpmath.workdps(60):
        kernel = mpmath.matrix(chain.transition.tolist())
        truth = mpmath.log(kernel[1, 1] / kernel[0, 1])
        missing = float(truth - worst.leakage)
    assert abs(missing) <= worst.rounding + 3 * UNIT * worst.leakage
