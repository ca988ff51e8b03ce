"""Pointwise and max-influence of one record on others, and the regions they make (Sec. II).

Of the chain itself, also where it comes in a set of models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from itertools import pairwise, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers, Label
from offrecord.models.chain import MarkovChain
from offrecord.models.checking import whole_number
from offrecord.theory.problem import budget
from offrecord.theory.side import Side, binary_influence

_MOST_REALIZATIONS = 4096
_NEVER_TOGETHER = "these values cannot occur together"
#: Far above what rounding may add to an influence (docs/proofs/rounding.md, "What F4 forces").
_FORCED_RELATIVE, _FORCED_ABSOLUTE = 1e-9, 1e-12


class Region(StrEnum):
    """How much a record can tell about the private one."""

    LARGE = "L"
    MEDIUM = "M"
    SMALL = "S"


def pointwise_influence(chain: MarkovChain, private: int, records: int | ArrayLike) -> Floats:
    """i(X_p ⇝ X_t = x) of each value x: (k,) for one record t, (m, k) for m, each on its own.

    Definition 3. ∞ at t = p; −∞ for a value that X_t never takes. In the paper's setting by the
    closed form of Proposition 1, else O(distance·k³).
    """
    _check(chain, private)
    positions = np.atleast_1d(np.asarray(records))
    if positions.dtype.kind not in "iu":
        raise InputError("records must be whole numbers")
    for record in {int(positions.min()), int(positions.max())} if len(positions) else ():
        _check(chain, record)
    positions = positions.astype(np.int64)  # differences of unsigned numbers would wrap around
    out = np.full((len(positions), chain.k), np.inf)
    away = np.flatnonzero(positions != private)
    if chain.has_states:
        for i in away:
            out[i] = _influence_of_joint(chain, private, int(positions[i]))
    elif chain.is_paper_setting:
        distances = np.abs(positions[away] - private)
        out[away] = binary_influence(chain.alpha, chain.beta, distances)
    else:
        for direction in (-1, 1):
            here = np.flatnonzero((positions - private) * direction > 0)
            out[here] = _influence_on_side(chain, private, direction, positions[here])
    return out[0] if np.ndim(records) == 0 else out


def _influence_on_side(
    chain: MarkovChain, private: int, direction: int, positions: Integers
) -> Floats:
    """(m, k) on records of one side, by one walk to the furthest."""
    if len(positions) == 0:
        return np.empty((0, chain.k))
    distances = np.abs(positions - private)
    furthest = int(distances.max())
    influence = Side(chain.alone, private, direction, furthest).influence(furthest)
    return np.asarray(influence[distances - 1])


def _influence_of_joint(chain: MarkovChain, private: int, record: int) -> Floats:
    joint = chain.joint(min(private, record), max(private, record))
    joint = joint if private < record else joint.T
    marginal = joint.sum(axis=1)
    given = joint[marginal > 0] / marginal[marginal > 0, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        influence = np.log(given.max(axis=0)) - np.log(given.min(axis=0))
    return np.where(given.max(axis=0) > 0, influence, -np.inf)


def max_influence(chain: MarkovChain, private: int, records: int | ArrayLike) -> float | Floats:
    """I(X_p ⇝ X_t), the largest pointwise influence (Definition 3).

    A float for one record, (m,) for m of them, each on its own.
    """
    influence = pointwise_influence(chain, private, records)
    return float(influence.max()) if influence.ndim == 1 else influence.max(axis=1)


def set_influence(chain: MarkovChain, private: int, realization: Mapping[int, Label]) -> float:
    """i(X_p ⇝ X_S = x_S) of several records together: the nearest on each side count (Markov).

    realization: record → label. InputError if those values cannot occur together.
    """
    values = {
        whole_number("record", t): chain.value_index(label) for t, label in realization.items()
    }
    _check(chain, private)
    for record in values:
        _check(chain, record)
    if private in values:
        return np.inf
    if chain.has_states:
        return _set_influence_of_states(chain, private, values)
    if not _occur_together(chain, private, values):
        raise InputError(_NEVER_TOGETHER)
    logs = np.zeros(chain.k)
    for neighbour in (
        max((t for t in values if t < private), default=0),
        min((t for t in values if t > private), default=0),
    ):
        if neighbour:  # up to a factor that is the same for every value of the private record
            distance = abs(neighbour - private)
            side = Side(chain.alone, private, 1 if neighbour > private else -1, distance)
            logs += side.likelihoods(distance)[-1][:, values[neighbour]]
    return _spread(logs[chain.support(private)])


def _occur_together(chain: MarkovChain, private: int, values: Mapping[int, int]) -> bool:
    """Whether the values on either side of the private record can; across it, likelihoods tell."""
    ordered = sorted([*values, private])
    if ordered[0] != private and not chain.support(ordered[0])[values[ordered[0]]]:
        return False
    return all(
        chain.can_follow(t, following)[values[t], values[following]]
        for t, following in pairwise(ordered)
        if private not in (t, following)
    )


def _spread(logs: Floats) -> float:
    """The log-ratio of the likeliest to the least likely; InputError if none can occur."""
    if np.all(np.isneginf(logs)):
        raise InputError(_NEVER_TOGETHER)
    return float(logs.max() - logs.min())


def max_set_influence(chain: MarkovChain, private: int, records: Iterable[int]) -> float:
    """I(X_p ⇝ X_S): 0 for no records, ∞ if p is one, else of the nearest on each side together.

    It is what a mechanism leaks that always releases X_S and nothing nearer (Corollary 3): of the
    two records beside a window, what the window leaks (Corollary 2).
    """
    wanted = {whole_number("record", t) for t in records}
    _check(chain, private)
    for record in wanted:
        _check(chain, record)
    if private in wanted:
        return np.inf
    if chain.has_states:
        return _max_set_influence_of_states(chain, private, sorted(wanted))
    total = np.zeros((chain.k, chain.k))
    for direction in (-1, 1):
        distances = [abs(t - private) for t in wanted if (t - private) * direction > 0]
        if distances:
            nearest = min(distances)
            total = total + Side(chain.alone, private, direction, nearest).pairs(nearest)[-1]
    support = chain.support(private)
    return float(total[np.ix_(support, support)].max())


def _max_set_influence_of_states(chain: MarkovChain, private: int, records: list[int]) -> float:
    if chain.k ** len(records) > _MOST_REALIZATIONS:
        raise InputError(
            f"sets of at most {_MOST_REALIZATIONS} realizations for order above 1 or hidden states,"
            f" got {chain.k}^{len(records)}"
        )
    found = [0.0]
    for values in product(range(chain.k), repeat=len(records)):
        with suppress(InputError):  # values that cannot occur together
            realization = dict(zip(records, values, strict=True))
            found.append(_set_influence_of_states(chain, private, realization))
    return max(found)


def _set_influence_of_states(chain: MarkovChain, private: int, values: Mapping[int, int]) -> float:
    """Every record counts, by one pass over the lifted chain for each X_p = x."""
    supported = np.flatnonzero(chain.support(private)).tolist()
    logs = np.array(
        [
            _log_probability(chain, {**values, private: x}) - _log_probability(chain, {private: x})
            for x in supported
        ]
    )
    return _spread(logs)


def _log_probability(chain: MarkovChain, values: Mapping[int, int]) -> float:
    """log Pr(X_t = values[t] for every t in it), the largest weight kept at 1: none underflows."""
    order, lifted = chain.order, chain.lifted
    begin = max(min(values), order)
    weights, log = np.array(lifted.marginal(begin - order + 1)), 0.0
    for place in range(order):
        if begin - order + 1 + place in values:
            weights[chain.coordinate(place) != values[begin - order + 1 + place]] = 0.0
    for record in range(begin + 1, max(values) + 1):
        largest = float(weights.max())
        if largest == 0.0:
            return -np.inf
        weights, log = (
            weights / largest @ lifted.kernel(record - order),
            log + float(np.log(largest)),
        )
        if record in values:
            weights[chain.coordinate(order - 1) != values[record]] = 0.0
    total = float(weights.sum())
    return log + float(np.log(total)) if total > 0.0 else -np.inf


def delta_star(chain: MarkovChain, epsilon: float, limit: int) -> int | None:
    """Δ*(ε), the smallest distance with max-influence at most ε; None beyond limit.

    Of a stationary chain, to the right (Theorem 2).
    """
    if not chain.is_stationary or chain.has_states:
        raise InputError("delta_star needs a stationary chain of order 1")
    if whole_number("limit", limit) < 1:
        raise InputError(f"limit must be at least 1, got {limit}")
    return Side(chain.alone, 1, 1, limit).delta_star(budget(epsilon))


def is_forced(influence: Floats, epsilon: float) -> NDArray[np.bool_]:
    """Where Lemma 1 forces every ε-private local mechanism to redact: influence above ε (F4).

    What is above it by rounding alone is not claimed: a bound on every mechanism must not be wrong.
    """
    return np.asarray(influence > epsilon * (1 + _FORCED_RELATIVE) + _FORCED_ABSOLUTE)


def regions(
    chain: MarkovChain, private: int, records: ArrayLike, epsilon: float
) -> NDArray[np.str_]:
    """(m,) "L", "M" or "S" for each record at ε′ = epsilon (Sec. II).

    None, some or all of the values it can take have influence ≤ ε′.
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
