"""From what is seen on both sides of a core to what it says about the private run in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from offrecord.attack.paths import Paths
from offrecord.models.base import Floats, Integers, Mask


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


def read(paths: Paths, core: Core, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
    """Ratio, prior and posterior.

    Args:
        paths: the attacker's chain on the table.
        core: the core and its run.
        left: (S,) probability of the left evidence together with the core's first context.
        right: (S,) likelihood of the right evidence given the core's last context.
    """
    mean = paths.mean
    k, near = mean.k, core.first + mean.order - 1
    begin, end = core.run or (core.first, core.last)
    law, inner = paths.law(core.chain, near), paths.ahead(core.chain, near, core.last - near)
    joint = left * (inner @ right)
    value = np.arange(mean.contexts) // k ** (near - begin) % k
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
