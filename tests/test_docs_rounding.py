"""The bound on rounding errors of docs/proofs/rounding.md: computed leakage against 400 bits."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from offrecord.mechanisms.rules import LocalRule, StoppingRule
from offrecord.models.posterior import Posterior
from offrecord.theory.pairs import ROUNDING, record_leakages

BITS = 400  # of the fixed point that stands for exact arithmetic
ONE = 1 << BITS


def exact(array):
    """The numbers of an array in fixed point."""
    shifted = [int(Fraction(float(one)) * ONE) for one in array.ravel()]
    return np.array(shifted, dtype=object).reshape(array.shape)


def product(left, right):
    return left.dot(right) >> BITS


def power(kernel, steps):
    result = exact(np.eye(len(kernel)))
    for bit in bin(steps)[2:]:
        result = product(result, result)
        result = product(result, kernel) if bit == "1" else result
    return result


def chain(members):
    """Kernel of contexts whose rows sum to 1, and its stationary law."""
    rows = exact(members.kernel()[0])
    kernel = (rows << BITS) // rows.sum(axis=1)[:, np.newaxis]
    return kernel, power(kernel, 1 << 22)[0]


def reverse(kernel, law):
    return (kernel.T * law[np.newaxis] // law[:, np.newaxis]).astype(object)


def sides(kernel, law):
    """Kernels to the left and to the right, as outcomes need them."""
    return reverse(kernel, law), kernel


def outcomes(rule, kernel):
    """(O, S) likelihoods in fixed point."""
    if isinstance(rule, LocalRule):
        order = int(np.log2(len(kernel)))
        return power(kernel, rule.reach + order).T
    distances, found, mass = [0, *rule.levels.tolist()], [], exact(np.eye(len(kernel)))
    for level, (near, far) in enumerate(pairwise(distances)):
        mass = product(mass, power(kernel, far - near))
        if level < len(rule.stop):
            stop = exact(rule.stop[level, 0])
            found += list((mass * stop >> BITS).T)
            mass = mass * (ONE - stop) >> BITS
    return np.array([*found, *mass.T], dtype=object)


def leakage(left, right, law, last):
    """Of a lone record; as `record_leakages`, with logarithms at the end."""
    given = []
    for value in range(2):
        here = last == value
        share = (law[here] << BITS) // law[here].sum()
        given.append((left[:, here] * share[np.newaxis] >> BITS).dot(right[:, here].T))
    one, other = given
    seen = (one > 0) | (other > 0)
    ratios = [Fraction(int(a), int(b)) for a, b in zip(one[seen], other[seen], strict=True)]
    return max(abs(np.log(float(ratio))) for ratio in ratios)


@pytest.mark.parametrize(("order", "distance"), [(1, 4), (1, 1000), (2, 60), (3, 200), (5, 300)])
@pytest.mark.parametrize("kind", ["window", "stopping"])
def test_leakage_is_off_by_less_than_the_bound(kind, order, distance):
    rng = np.random.default_rng(order * distance)
    contexts = 2**order
    rare = rng.integers(2, 40, size=contexts)
    counts = np.stack((500 - rare, rare), axis=1)
    counts[1::2] = counts[1::2, ::-1] // 3 + 1
    members = Posterior(counts, order).members(1, 5)
    kernel, law = chain(members)
    if kind == "window":
        rule = LocalRule.window(distance, 2)
    else:
        levels = np.unique(np.linspace(order, distance + order, 6).astype(int))
        stop = np.floor(rng.random((len(levels) - 1, 1, contexts, contexts)) * 2**60) / 2**64
        rule = StoppingRule(order, 2, levels, np.zeros(contexts, dtype=int), stop)
    computed = record_leakages(
        rule.outcomes(members, 0, "left"),
        rule.outcomes(members, 0, "right"),
        members.law(),
        members.last_value,
    )[0]
    left, right = (outcomes(rule, one) for one in sides(kernel, law))
    truth = leakage(left, right, law, members.last_value)
    assert computed == pytest.approx(truth, rel=1e-14, abs=1e-11)
    assert abs(computed - truth) < ROUNDING
