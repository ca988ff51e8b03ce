"""Pointwise and max-influence of one record on others, and the regions they make (Sec. II)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers
from offrecord.models.chain import MarkovChain
from offrecord.models.checking import whole_number
from offrecord.theory.problem import budget

_SMALL = 1e-150  # probabilities below are multiplied by logarithms
#: Far above what rounding may add to an influence (docs/proofs/rounding.md, "What F4 forces").
_FORCED_RELATIVE, _FORCED_ABSOLUTE = 1e-9, 1e-12


class Region(StrEnum):
    """How much a record can say about the private one."""

    LARGE = "L"
    MEDIUM = "M"
    SMALL = "S"


def pointwise_influence(chain: MarkovChain, private: int, records: int | ArrayLike) -> Floats:
    """i(X_p ⇝ X_t = x) of each value x (Definition 3).

    Args:
        chain: of any order.
        private: p, from 1.
        records: one record t or several, each on its own.

    Returns:
        (k,) for one record, (m, k) for several; ∞ at t = p, −∞ for a value that X_t never takes. In
        the paper's setting by the closed form of Proposition 1.

    Raises:
        InputError: For what is no record of the chain.
    """
    _check(chain, private)
    positions = _positions(chain, records)
    out = np.full((len(positions), chain.k), np.inf)
    for direction in (-1, 1):
        distances = (positions - private) * direction
        here = distances > 0
        if here.any():
            out[here] = _beside(chain, private, direction, distances[here])
    return out[0] if np.ndim(records) == 0 else out


def _positions(chain: MarkovChain, records: int | ArrayLike) -> Integers:
    positions = np.atleast_1d(np.asarray(records))
    if positions.dtype.kind not in "iu":
        raise InputError("records must be whole numbers")
    for record in {int(positions.min()), int(positions.max())} if len(positions) else ():
        _check(chain, record)
    return positions.astype(np.int64)  # differences of unsigned numbers would wrap around


def _beside(chain: MarkovChain, private: int, direction: int, distances: Integers) -> Floats:
    """(m, k) pointwise influence at some distances on one side."""
    if chain.order == 1:
        found = influence_beside(chain, private, direction, int(distances.max()))
        return np.asarray(found[distances - 1])
    records = (private + direction * distances).tolist()
    return np.array([_influence_of_joint(chain, private, record) for record in records])


def influence_beside(chain: MarkovChain, private: int, direction: int, count: int) -> Floats:
    """(count, k) pointwise influence by distance on one side, for chains of order 1."""
    if chain.is_paper_setting:
        return binary_influence(chain.alpha, chain.beta, np.arange(1, count + 1))
    logs = log_likelihoods(chain, private, direction, count)
    support = chain.support(private)
    taken = np.isfinite(logs).any(axis=1)
    if support.sum() < 2:
        return np.where(taken, 0.0, -np.inf)
    # each column's largest entry is 0
    return np.where(taken, -logs[:, support].min(axis=1), -np.inf)


def log_likelihoods(chain: MarkovChain, private: int, direction: int, count: int) -> Floats:
    """(count, k, k) log Pr(X at distance d = j | X_p = x), each column's largest entry 0.

    −∞ for private values and values that cannot be taken.
    """
    found = np.empty((count, chain.k, chain.k))
    kernels = np.broadcast_to(chain.kernels(private, private + direction * count), found.shape)
    state = np.diag(chain.support(private).astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        for step, logs in enumerate(_logs_of_products(state, kernels)):
            found[step] = logs
        highest = found.max(axis=1, keepdims=True)
        return np.where(np.isfinite(highest), found - highest, -np.inf)


def _logs_of_products(state: Floats, kernels: Floats) -> Iterator[Floats]:
    """By step, the logarithm of the state times all kernels so far."""
    logs, is_small = np.log(state), np.any((kernels > 0) & (kernels <= _SMALL))
    for kernel in kernels:
        # products of small numbers would vanish; once a state is small, it is left as it is
        if is_small or np.any((state > 0) & (state < _SMALL)):
            logs = _log_product(logs, np.log(kernel))
        else:
            state = state @ kernel
            logs = np.log(state)
        yield logs


def _log_product(left: Floats, right: Floats) -> Floats:
    """The logarithm of a product of matrices, from their logarithms."""
    return np.asarray(np.logaddexp.reduce(left[:, :, np.newaxis] + right, axis=1))


def binary_influence(alpha: float, beta: float, distances: Integers) -> Floats:
    """(m, 2) pointwise influence of both values in the paper's setting (Prop. 1).

    distances: (m,), at least 1.
    """
    # With s = (1 − α − β)^Δ, value 0 has |log (1 + (α/β)·s) − log(1 − s)|, value 1 the same with
    # β/α; each logarithm is written so that nothing cancels.
    steps: Floats = np.asarray(distances, dtype=np.float64)
    gap = math.fsum((1.0, -alpha, -beta))
    if alpha + beta == 1.0:  # independent, as in MarkovChain.binary
        return np.zeros((len(steps), 2))
    log_size = _log_size(alpha, beta, gap)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        power = np.exp(steps * log_size)  # |s|
        signed = np.where((steps % 2 == 1) & (gap < 0), -power, power)
        log_rest = _log_rest(signed, steps * log_size)
        columns = [
            np.abs(_log_top(own, other, signed, steps, abs(gap), log_size) - log_rest)
            for own, other in ((beta, alpha), (alpha, beta))
        ]
    return np.stack(columns, axis=1)


def _log_rest(signed: Floats, log_power: Floats) -> Floats:
    """log(1 − s), s = signed."""
    # 1 − |s| by its own formula where s is near 1, so that no digits are lost
    return np.where(signed > 0.5, np.log(-np.expm1(log_power)), np.log1p(-signed))


def _log_size(alpha: float, beta: float, gap: float) -> float:
    """log |1 − α − β|."""
    # from α + β or 2 − α − β where that is small, so that no digits are lost
    if gap > 0.5:
        return float(np.log1p(-(alpha + beta)))
    if gap < -0.5:
        return float(np.log1p(-((1.0 - alpha) + (1.0 - beta))))
    return float(np.log(abs(gap)))


def _log_top(
    own: float, other: float, signed: Floats, steps: Floats, size: float, log_size: float
) -> Floats:
    """log(1 + (other/own)·s), s = signed, |s| = size^steps."""
    ratio = other / own
    if ratio > 1e300:
        # too large to be multiplied; 1 + ratio·s is then that product, if s > 0 is known from 0
        return np.asarray(np.logaddexp(0.0, np.log(other) - np.log(own) + steps * log_size))
    # Where s < 0 brings 1 + ratio·s near 0, it is a sum of positive terms all the same:
    # 1 − ratio·|1 − α − β| = (α + β)(1 − other)/own, and what is gained beyond the first step.
    inner = (own + other) * (1.0 - other) / own - ratio * size * np.expm1((steps - 1) * log_size)
    return np.where(ratio * signed < -0.5, np.log(inner), np.log1p(ratio * signed))


def _influence_of_joint(chain: MarkovChain, private: int, record: int) -> Floats:
    joint = chain.joint(min(private, record), max(private, record))
    joint = joint if private < record else joint.T
    marginal = joint.sum(axis=1)
    given = joint[marginal > 0] / marginal[marginal > 0, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        influence = np.log(given.max(axis=0)) - np.log(given.min(axis=0))
    return np.where(given.max(axis=0) > 0, influence, -np.inf)


def max_influence(chain: MarkovChain, private: int, records: int | Iterable[int]) -> float:
    """I(X_p ⇝ X_S), the largest influence of a record or of a set of records (Definition 3).

    It is what a mechanism leaks that always releases X_S and nothing nearer (Corollary 3): of the
    two records beside a window, what the window leaks (Corollary 2).

    Args:
        chain: of any order for one record, of order 1 for several.
        private: p, from 1.
        records: S, one record or several.

    Returns:
        0 for no records, ∞ if p is one of them.

    Raises:
        InputError: For what is no record of the chain, and for several at order above 1.
    """
    if not isinstance(records, Iterable):
        return float(pointwise_influence(chain, private, records).max())
    wanted = {whole_number("record", t) for t in records}
    _check(chain, private)
    for record in wanted:
        _check(chain, record)
    if private in wanted:
        return np.inf
    if chain.order > 1:
        raise InputError("the influence of several records is computed for chains of order 1")
    support = chain.support(private)
    total = _ratios_beside(chain, private, wanted)[np.ix_(support, support)]
    return float(np.maximum(total, 0.0).max())


def _ratios_beside(chain: MarkovChain, private: int, records: Collection[int]) -> Floats:
    """(k, k) the largest log-ratio of values of the records between two private values."""
    total = np.zeros((chain.k, chain.k))
    for direction in (-1, 1):
        distances = [(t - private) * direction for t in records if (t - private) * direction > 0]
        if distances:  # given the nearest, those beyond say nothing more (Markov)
            total += _largest_ratios(chain, private, direction, min(distances))
    return total


def _largest_ratios(chain: MarkovChain, private: int, direction: int, distance: int) -> Floats:
    """(k, k) the largest log-ratio of a record's values between two private values."""
    logs = log_likelihoods(chain, private, direction, distance)[-1]
    with np.errstate(invalid="ignore"):
        ratios = logs[:, np.newaxis] - logs[np.newaxis]
    return np.asarray(np.where(logs[:, np.newaxis] > -np.inf, ratios, -np.inf).max(axis=2))


def influence_by_distance(
    chain: MarkovChain, private: int, count: int, direction: int = 1
) -> Floats:
    """I(X_p ⇝ X_t) of each of the nearest records on one side, each by itself.

    Args:
        chain: of any order.
        private: p, from 1.
        count: how many records.
        direction: 1 to the right, −1 to the left.

    Returns:
        (count,) by distance.

    Raises:
        InputError: For what is no record of the chain.
    """
    records = private + direction * np.arange(1, count + 1)
    return np.asarray(pointwise_influence(chain, private, records).max(axis=1, initial=0.0))


def is_forced(influence: Floats, epsilon: float) -> NDArray[np.bool_]:
    """Where the influence is above ε, so that every ε-private local mechanism redacts (F4)."""
    # what is above ε by rounding alone is not claimed: a bound on every mechanism must be right
    return np.asarray(influence > epsilon * (1 + _FORCED_RELATIVE) + _FORCED_ABSOLUTE)


def regions(
    chain: MarkovChain, private: int, records: ArrayLike, epsilon: float
) -> NDArray[np.str_]:
    """The region of each record at ε′ = epsilon (Sec. II).

    Args:
        chain: of any order.
        private: p, from 1.
        records: several.
        epsilon: ε′.

    Returns:
        (m,) "L", "M" or "S": none, some or all of the values it can take have influence ≤ ε′.

    Raises:
        InputError: For what is no record of the chain.
    """
    influence = pointwise_influence(chain, private, np.atleast_1d(np.asarray(records)))
    epsilon = budget(epsilon)
    possible = influence > -np.inf
    releasable = possible & (influence <= epsilon)
    some, every = releasable.any(axis=1), (releasable == possible).all(axis=1)
    return np.where(
        every, Region.SMALL.value, np.where(some, Region.MEDIUM.value, Region.LARGE.value)
    )


def _check(chain: MarkovChain, record: int) -> None:
    whole_number("record", record)
    chain.marginal(record)
