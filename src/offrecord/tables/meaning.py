"""What ε means here: how likely a value of a private record is before a release, and after it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from offrecord.mechanisms.deciding.expect import Geometry
from offrecord.mechanisms.deciding.layout import RIGHT
from offrecord.mechanisms.rules import LocalRule, Pair
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Floats, Integers
from offrecord.models.posterior import Posterior
from offrecord.models.promise import Promise


@dataclass(frozen=True)
class Meaning:
    """The value of a private record that a release can make likelier by most.

    before: how likely it is before anything leaves. erased, after: how likely it is at most for an
    attacker who knows the model, if private records alone were erased, and after the release.
    """

    value: Any
    before: float
    erased: float
    after: float

    @classmethod
    def of(
        cls, policy: TablePolicy, promise: Promise, places: Mapping[int, float] | None = None
    ) -> Meaning:
        """Of rules and chains. places: how many private records are at each place, where that is
        known; else each place that the rules serve counts alike.
        """
        before = _before(policy, promise, places)
        after = posterior(before, leakage_of(policy, policy.epsilon))
        alone = posterior(before, erased(policy, promise))
        worst = int(np.argmax(after - before))
        label = promise.labels[worst]
        return cls(label, float(before[worst]), float(alone[worst]), float(after[worst]))

    def __str__(self) -> str:
        low, high = math.floor(100 * self.before + 0.5), math.ceil(100 * self.after)
        before = f"{low} %" if low >= 1 else f"{100 * self.before:.2g} %"
        after = f"{high} %" if self.after > 0.01 else f"{100 * self.after:.2g} %"
        return (
            f"before the release a private record was {before} likely to be"
            f" {repr(self.value)[:60]}; after it at most {after}"
        )


def places_of(geometry: Geometry) -> dict[int, float]:
    """How many private runs of a table end at each place; the first records of a chain, up to the
    order, count as the last of them.
    """
    counts = np.bincount(geometry.layout.places[:, RIGHT])
    return {int(place): float(counts[place]) for place in np.flatnonzero(counts)}


def _before(policy: TablePolicy, promise: Promise, places: Mapping[int, float] | None) -> Floats:
    """(k,) how likely each value of a private record is before anything leaves."""
    if places is None:
        places = dict.fromkeys((setting.place for setting in policy.rules), 1.0)
    # its share of the reference records at the same places, or the law of known chains
    total = sum(weight * _shares(promise, place) for place, weight in places.items())
    return np.asarray(total / np.sum(total))


def _shares(promise: Promise, place: int) -> Floats:
    mean = promise.mean
    if isinstance(promise, Posterior):
        found = _counted(promise, mean.place_after(place, -1), place)
        return np.asarray(found / found.sum())
    law = np.bincount(mean.last_value, mean.law(place)[0], mean.k)
    return np.asarray(law, dtype=np.float64)


def _counted(posterior: Posterior, before: int, place: int) -> Floats:
    """(k,) how many reference records at a place have each value. before: the place before it."""
    shape = (posterior.k,) * (posterior.order + 1)
    found: Floats = np.zeros(posterior.k)
    if posterior.first_counts is not None and place < posterior.order:
        # the first records of a chain, which no transition leads to
        found = _along(posterior.first_counts.reshape(shape[1:]), place)
    elif posterior.place_counts is not None:
        found = _along(posterior.place_counts[before].reshape(shape), -1)
    if found.any():
        return found
    # The stationary law of the mean chain would be wrong where values drift: in a panel with 26 %
    # of a value it gave 38 %. The oldest and the newest records of what was counted are, together,
    # all records alike: the first of a chain are never the newest, the last never the oldest.
    counted = posterior.counts.reshape(shape)
    return np.asarray(_along(counted, 0) + _along(counted, -1))


def _along(counts: Integers, axis: int) -> Floats:
    """(k,) how many there are of each value at an axis of counts."""
    others = tuple(one for one in range(counts.ndim) if one != axis % counts.ndim)
    return np.asarray(counts.sum(axis=others), dtype=np.float64)


def posterior(prior: Floats, leakage: float) -> Floats:
    """(k,) at most: of prior p it is p·e^λ / (p·e^λ + 1 − p), as odds change by e^λ at most."""
    factor = math.exp(min(leakage, 700.0))  # beyond it floats overflow
    return np.asarray(prior * factor / (prior * factor + 1 - prior))


def leakage_of(policy: TablePolicy | None, epsilon: float) -> float:
    """What the rules leak: of a list at most, of a posterior in the share that is promised."""
    if policy is None:
        return 0.0
    if policy.validation is None or policy.coverage is not None:
        return epsilon
    return min(policy.validation.largest, epsilon)


def erased(policy: TablePolicy, promise: Promise) -> float:
    """What erasing private records alone would leak under the mean chain."""
    nothing = LocalRule.window(0, promise.k)
    rules = {
        setting: Pair(*(None if rule is None else nothing for rule in pair))
        for setting, pair in policy.rules.items()
    }
    return float(replace(policy, rules=rules).leakages(promise.mean)[0])
