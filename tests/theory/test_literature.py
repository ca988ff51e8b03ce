"""Numbers that other papers and packages print, computed with this package's objects.

ON-OFF privacy, which is the case ε = 0, is in tests/mechanisms/owner/test_owner_policy.py.
"""

from itertools import chain as joined
from itertools import combinations, product

import numpy as np
import pytest

import offrecord as off

# Song, Wang, Chaudhuri, Pufferfish Privacy Mechanisms for Correlated Data (2017): the chains of
# the running example, from their start or from the stationary law.
THETA_1 = [[0.9, 0.1], [0.4, 0.6]]
THETA_2 = [[0.8, 0.2], [0.3, 0.7]]


def quilts(n, p):
    """Every quilt of record p with at most one record on each side, and how many it leaves near."""
    for left, right in product([None, *range(1, p)], [None, *range(p + 1, n + 1)]):
        first = 1 if left is None else left + 1
        last = n if right is None else right - 1
        yield [t for t in (left, right) if t is not None], last - first + 1


def noise_scale(chain, n, epsilon):
    """MQMExact, algorithm 3 of the paper: the largest over records of the least score of a quilt.

    The score of a quilt is (records near) / (ε − its max-influence).
    """
    largest = 0.0
    for p in range(1, n + 1):
        influences = [(off.max_influence(chain, p, quilt), near) for quilt, near in quilts(n, p)]
        scores = [near / (epsilon - one) for one, near in influences if one < epsilon]
        largest = max(largest, min(scores))
    return largest


@pytest.mark.parametrize(
    ("transition", "scale"),
    [(THETA_1, 11.758228), (THETA_2, 10.120014), ([[0.9, 0.1], [0.5, 0.5]], 9.897617)],
)
def test_noise_scales_of_markov_quilts(transition, scale):
    assert noise_scale(off.MarkovChain(transition), 12, 1.0) == pytest.approx(scale, abs=1e-6)


def test_scores_of_the_running_example():
    first = off.MarkovChain(THETA_1, start=[1.0, 0.0])
    second = off.MarkovChain(THETA_2, start=[0.9, 0.1])
    near = 9  # records strictly between X_3 and X_13
    assert near / (1 - off.max_influence(first, 8, [3, 13])) == pytest.approx(13.0219, abs=5e-5)
    assert noise_scale(second, 12, 1.0) == pytest.approx(10.6402, abs=5e-5)


TENTHS = [one / 10 for one in range(1, 10)]


@pytest.mark.parametrize(("alpha", "beta"), list(product(TENTHS, TENTHS)))
def test_influence_of_a_quilt_is_its_formula(alpha, beta):
    """The sum of both sides for the same pair of values, by the n-step kernel in closed form."""
    chain = off.MarkovChain.binary(alpha, beta)
    stationary = np.array([beta, alpha]) / (alpha + beta)
    for before, after in [(1, 1), (2, 5), (4, 3)]:

        def ratios(distance):
            decay = (1 - alpha - beta) ** distance
            kernel = stationary + decay * (np.eye(2) - stationary)
            # a chain of two values is reversible: the same kernel leads to the left
            return np.log(kernel[0] / kernel[1])

        sums = ratios(before)[:, None] + ratios(after)
        found = off.max_influence(chain, 8, [8 - before, 8 + after])
        assert found == pytest.approx(np.abs(sums).max(), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_temporal_leakage_has_the_max_influence_as_its_limit(k):
    """Cao, Yoshikawa, Xiao, Xiong, Quantifying Differential Privacy under Temporal Correlations
    (2017).

    Their loss is the largest over two rows q, d of the kernel and sets S of values of
    log((q(S)(e^a − 1) + 1) / (d(S)(e^a − 1) + 1)), for leakage a about the record before.
    """
    chain = off.MarkovChain(np.random.default_rng(k).dirichlet(np.ones(k), k))
    subsets = list(joined.from_iterable(combinations(range(k), size) for size in range(1, k + 1)))

    def loss(leakage):
        gain = np.expm1(leakage)
        return max(
            np.log1p(q[list(one)].sum() * gain) - np.log1p(d[list(one)].sum() * gain)
            for q, d in product(chain.transition, repeat=2)
            for one in subsets
        )

    limit = off.max_influence(chain, 1, 2)
    losses = [loss(leakage) for leakage in (0.1, 1.0, 5.0, 60.0)]
    assert losses == sorted(losses)
    assert losses[-2] < limit
    assert losses[-1] == pytest.approx(limit, rel=1e-9)


def test_transitions_of_rain_on_alofi():
    """The R package markovchain prints these counts and their maximum-likelihood matrix."""
    counts = np.array([[362, 126, 60], [136, 90, 68], [50, 79, 124]])
    printed = [
        [0.6605839, 0.2299270, 0.1094891],
        [0.4625850, 0.3061224, 0.2312925],
        [0.1976285, 0.3122530, 0.4901186],
    ]
    for factor, error in [(1, 1e-3), (10**6, 1e-7)]:  # the prior's 1/3 a cell fades
        mean = off.Posterior(counts * factor, 1).mean.rows[0, 0]
        np.testing.assert_allclose(mean, printed, atol=error)
    rows = counts.sum(axis=1, keepdims=True)
    mean = off.Posterior(counts, 1).mean.rows[0, 0]
    np.testing.assert_allclose(mean, (counts + 1 / 3) / (rows + 1), rtol=1e-12)
