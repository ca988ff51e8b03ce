"""From what is seen on both sides of a core to what it says about the private run in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.members import Members


class Core(NamedTuple):
    """A core with its private run, in steps from the chain's first record.

    first, last: of the core; the whole core is the secret where runs became one (`run` is None),
    else the records `run` of it are.
    """

    chain: int
    first: int
    last: int
    run: tuple[int, int] | None


class Inferred(NamedTuple):
    """What is inferred about private runs; (r,) and (r, k).

    ratio: the largest log-ratio of the likelihoods of the release between two values of a run;
    above 0 where the value of higher number is likelier, NaN where the release is impossible.
    prior, posterior: of the value of the run's first record.
    """

    ratio: Floats
    prior: Floats
    posterior: Floats


def read(
    core: Core, left: Floats, right: Floats, law: Floats, inner: Floats, mean: Members
) -> tuple[float, Floats, Floats]:
    """Ratio, prior and posterior.

    Args:
        core: the core and its run.
        left: (S,) probability of the left evidence together with the core's first context.
        right: (S,) likelihood of the right evidence given the core's last context.
        law: (S,) of the first context. inner: (S, S) from the first context to the last one.
        mean: the attacker's chain.
    """
    k, order = mean.k, mean.order
    begin, end = core.run or (core.first, core.last)
    near = core.first + order - 1
    joint = left * (inner @ right)
    place = near - begin if begin > near - order else order - 1
    value = np.arange(mean.contexts) // k**place % k
    prior, posterior = (_by(value, one, k) for one in (law, joint))
    total = float(posterior.sum())
    if not total > 0:
        return np.nan, prior, np.full(k, np.nan)
    if core.last == near and core.run is not None:
        held = np.arange(mean.contexts) // k ** (near - end) % k ** (end - begin + 1)
        mass = _by(held, law, k ** (end - begin + 1))
        seen = _by(held, joint, len(mass))
        ratio = _spread(np.divide(seen, mass, out=np.zeros_like(seen), where=mass > 0), mass > 0)
    else:
        ratio = _spread_of_ends(left, right, law, inner)
    return ratio, prior, posterior / total


def _by(held: Integers, weights: Floats, count: int) -> Floats:
    """(count,) sums of weights by what is held."""
    return np.asarray(np.bincount(held, weights=weights, minlength=count), dtype=np.float64)


def _spread_of_ends(left: Floats, right: Floats, law: Floats, inner: Floats) -> float:
    """Over first and last contexts of a core that occur together (O7)."""
    occurs = (law > 0)[:, np.newaxis] & (inner > 0)
    given = np.divide(left, law, out=np.zeros_like(left), where=law > 0)
    return _spread((given[:, np.newaxis] * right).reshape(-1), occurs.reshape(-1))


def _spread(likely: Floats, occurs: Mask) -> float:
    """The largest log-ratio, below 0 where the likeliest comes first."""
    with np.errstate(divide="ignore"):
        logs = np.log(likely)
    high, low = np.where(occurs, logs, -np.inf), np.where(occurs, logs, np.inf)
    gap = float(high.max() - low.min())
    return -gap if high.argmax() < low.argmin() else gap
