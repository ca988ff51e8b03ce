"""The smallest private constant q of two values: found, the same by loops of both kinds, and no
smaller one is private.
"""

import numpy as np
import pytest

import offrecord as off
from offrecord.mechanisms import _constant, three_region

CHAINS = [
    (0.05, 0.3),
    (0.3, 0.05),
    (0.001, 0.1),
    (0.01, 0.8),
    (0.44, 0.9),
    (0.9, 0.95),
    (0.7, 0.56),
]


def media(alpha, beta, n, p, shares):
    """Regions M of the right side of p, at shares of a budget."""
    problem = off.Problem(off.MarkovChain.binary(alpha, beta), n, [p], 1.0)
    side = problem.sides(problem.secrets[0])[1]
    for share in shares:
        medium = three_region._Medium.of(side, share)
        if medium is not None:
            yield medium, share


@pytest.mark.parametrize("rates", CHAINS)
@pytest.mark.parametrize("n", [3, 12, 300])
def test_no_smaller_constant_is_private(rates, n):
    for medium, share in media(*rates, n, 1, (0.02, 0.1, 0.4, 1.0, 2.5)):
        q = float(medium.constant(share).rows[medium.releasable].min())

        def leakage(q, medium=medium):
            rows = np.where(medium.releasable, q, 1.0)
            return medium.side.leakage(rows, medium.lengths, opens=medium.opens).worst.max()

        if q < 1:
            assert leakage(q) <= share + 1e-13
        if q > 2.0**-40:
            assert leakage(min(q, 1 - 2.0**-53) * (1 - 1e-12)) > share - 1e-13
        other = float(medium._searched(share).rows[medium.releasable].min())
        assert q == pytest.approx(other, rel=1e-12, abs=2.0**-39)


@pytest.mark.parametrize("rates", CHAINS)
def test_loops_of_both_kinds_find_the_same(rates):
    for medium, share in media(*rates, 40, 5, np.linspace(0.03, 3.0, 25).tolist()):
        given = medium.side.kernels(1), medium.releasable, medium.lengths, medium.opens, share
        search = _constant.smallest_constant
        assert search(*given) == search.plain(*given)
