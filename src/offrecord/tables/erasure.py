"""What erasing the private records alone would have leaked: the reason this project exists."""

from __future__ import annotations

from itertools import product

import numpy as np

from offrecord.designs.needs import SurroundingCounts, distinct
from offrecord.models.base import Floats, Model
from offrecord.models.chain import MarkovChain
from offrecord.models.walks import pattern_power
from offrecord.tables.least_erasure import least_erasure
from offrecord.theory.leakage import combine

_MOST = 1 << 21  # windows of values that are tried
_LONGEST = 64  # private records, of which it matters how many they are


def erasure_leakage(model: Model, needs: SurroundingCounts) -> float | None:
    """The largest log-ratio about a secret if private records alone were redacted; in a set of
    models, no model of it gives less (`least_erasure`).

    None where it is not computed: the model is not stationary, its states are hidden, or there are
    too many histories. Exact: given the nearest `order` records on each side, all others are
    independent of the secret. For order above 1 a run of private records counts as if all but its
    last were known.
    """
    if len(needs) == 0:
        return 0.0
    if not model.is_stationary or model.shows is not None:
        return None  # what hidden states show depends on every record, not on the nearest ones
    chain = model.along()
    if chain.order > 1 and chain.k ** (2 * chain.order + 1) > _MOST:
        return None
    left, right = (np.minimum(room, chain.order) for room in (needs.left, needs.right))
    around = distinct(left, right, np.minimum(needs.length, _LONGEST))[0].tolist()
    if chain.box is not None:
        return least_erasure(chain.box, around)
    if chain.order > 1:
        return max(_window_leakage(chain, a, b) for a, b, _ in around)
    return max(_run_leakage(chain, *one) for one in around)


def _run_leakage(model: MarkovChain, left: int, right: int, length: int) -> float:
    """Of a run in a chain of order 1, its neighbours (if any) released: F2 and F9 at distance 1."""
    sides = []
    for present, kernel in ((left, model.reversed_kernel(2)), (right, model.kernel(1))):
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(kernel)
            # of x over x', the largest over what the neighbour shows
            ratios = np.where(kernel[:, None] > 0, logs[:, None] - logs[None], -np.inf).max(axis=2)
        sides.append(ratios if present else np.zeros_like(ratios))
    ends = pattern_power(model.transition > 0, length - 1)
    return combine(sides[0], sides[1], np.diag(model.support(1)) @ ends)[0]


def _window_leakage(model: MarkovChain, left: int, right: int) -> float:
    """Of one record whose `left` and `right` neighbours are released, in a chain of any order.

    Every window of values is tried.
    """
    n = left + 1 + right
    joint: Floats = np.zeros((model.k,) * n)
    tuples = model.start
    for values in product(range(model.k), repeat=n):
        if n < model.order:
            joint[values] = tuples[values].sum()
            continue
        mass = tuples[values[: model.order]]
        for t in range(model.order, n):
            mass = mass * model.transition[values[t - model.order : t + 1]]
        joint[values] = mass
    given = np.moveaxis(joint, left, 0).reshape(model.k, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(given / given.sum(axis=1, keepdims=True))
    logs = logs[given.sum(axis=1) > 0]
    seen = logs[:, np.any(np.isfinite(logs), axis=0)]
    return float((seen.max(axis=0) - seen.min(axis=0)).max()) if seen.size else 0.0
