"""Tests of what a model assumes: one kernel throughout, first records like any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offrecord.fitting.counting import Counts, binned
from offrecord.fitting.orders import log_powers
from offrecord.models.base import Floats
from offrecord.models.chain import MarkovChain
from offrecord.models.lifted import onward
from offrecord.models.phased import PhasedChain

MIN_STARTS = 20  #: fewer first records are not tested
FEW = 5  #: a transition seen less often is called rare
_ENOUGH = 30  # visits from which on a change of a probability is more than noise
_UNLIKELY = 0.01  # p-values below are worth a word


@dataclass(frozen=True)
class Check:
    """A test of an assumption.

    change: the largest difference of a probability it is about, None where data are too few.
    """

    statistic: float
    degrees: int
    p_value: float
    change: float | None
    records: int

    @property
    def passed(self) -> bool:
        """Nothing unlikely was seen."""
        return self.p_value >= _UNLIKELY

    def summary(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "statistic": self.statistic,
            "degrees_of_freedom": self.degrees,
            "p_value": self.p_value,
            "largest_change": self.change,
            "records": self.records,
        }


@dataclass(frozen=True)
class Stationarity:
    """Tests of what a stationary chain assumes; None where the data cannot tell.

    halves: one kernel throughout, against one for the first and one for the second half of each
    chain.
    starts: first records are distributed as the model says: stationary (or, with phases, as any
    record in their phase).
    phases: one kernel throughout, against one for each phase; only of a model with phases.
    """

    halves: Check | None
    starts: Check | None
    phases: Check | None

    def summary(self) -> dict[str, Any]:
        """For JSON."""
        return {
            name: None if check is None else check.summary() for name, check in vars(self).items()
        }


# ---- one kernel throughout


def kernel_check(groups: Counts) -> Check | None:
    """Likelihood-ratio test of one kernel against one for each group (first axis).

    None if no context is seen in two groups. Degrees of freedom count the values seen after each
    context, less one, for each further group that visits it.
    """
    pooled = groups.sum(axis=0)
    visits, pooled_visits = groups.sum(axis=-1), pooled.sum(axis=-1)
    further = np.maximum(np.count_nonzero(visits, axis=0) - 1, 0)
    if not further.any():
        return None
    degrees = int((further * np.maximum(np.count_nonzero(pooled, axis=-1) - 1, 0)).sum())
    apart = log_powers(groups) - log_powers(visits)
    together = log_powers(pooled) - log_powers(pooled_visits)
    statistic = max(2 * (apart - together), 0.0)
    change = _largest_change(groups, visits)
    return Check(statistic, degrees, _tail(degrees, statistic), change, int(pooled.sum()))


def _largest_change(groups: Counts, visits: Counts) -> float | None:
    """Of a probability between two groups, where both visit the context often enough."""
    enough = (visits >= _ENOUGH)[..., np.newaxis]
    if not np.any(np.count_nonzero(enough, axis=0) >= 2):
        return None
    shares = groups / np.maximum(visits, 1)[..., np.newaxis]
    largest = np.where(enough, shares, 0.0).max(axis=0)
    smallest = np.where(enough, shares, 1.0).min(axis=0)
    return float((largest - smallest).max())


def _tail(degrees: int, statistic: float) -> float:
    """Pr(chi-square ≥ statistic)."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees, statistic)) if degrees else 1.0


# ---- first records


def starts_check(model: MarkovChain, counts: Counts, firsts: NDArray[np.int8]) -> Check | None:
    """First records against the stationary distribution, which is itself learned from `counts`.

    Both errors count: with few or short chains the second is as large as the first.
    """
    if len(firsts) < MIN_STARTS:
        return None
    expected, count = model.marginal(1), len(firsts)
    drawn = np.diag(expected) - np.outer(expected, expected)
    covariance = count * drawn + count**2 * _learning_error(model, counts)
    return _first_records(binned(firsts, model.k), count * expected, covariance)


def _learning_error(model: MarkovChain, counts: Counts) -> Floats:
    """(k, k) the covariance of the learned stationary distribution of one record.

    By the delta method: π moves by π·dP·Z with Z = (1 − P + 1π)⁻¹, the rows of P vary as shares
    do, and start and kernel of a chain are estimated independently.
    """
    lifted, k = model.lifted, model.k
    states = len(lifted.start)
    values = np.zeros((states, k))
    values[np.arange(states), model.coordinate(0)] = 1.0
    moves = np.linalg.solve(np.eye(states) - lifted.transition + lifted.start, values)
    rows, after = model.transition.reshape(states, k), moves[onward(k, states)]
    weight = lifted.start**2 / (counts.reshape(states, k).sum(axis=1) + k / 2)
    mean = np.einsum("sj,sjv->sv", rows, after)
    squares = np.einsum("s,sj,sju,sjv->uv", weight, rows, after, after, optimize=True)
    return np.asarray(squares - (mean * weight[:, np.newaxis]).T @ mean)


def phased_starts_check(
    model: PhasedChain, phases: NDArray[np.integer[Any]], firsts: NDArray[np.int8]
) -> Check | None:
    """First records against all records of their phases."""
    if len(firsts) < MIN_STARTS:
        return None
    visits = binned(phases, len(model.start)).astype(np.float64)
    expected = visits @ model.start
    drawn = np.diag(expected) - (model.start * visits[:, np.newaxis]).T @ model.start
    return _first_records(binned(firsts, model.k), expected, drawn)


def _first_records(seen: Counts, expected: Floats, covariance: Floats) -> Check | None:
    """Chi-square test of counts; the rarest values count together until FEW are expected."""
    count = int(seen.sum())
    rising = np.argsort(expected, kind="stable")
    together = max(
        int(np.searchsorted(np.cumsum(expected[rising]), FEW)),
        int(np.count_nonzero(expected < FEW)) - 1,
    )
    group = np.zeros(len(seen), dtype=np.int64)
    group[rising] = np.maximum(np.arange(len(seen)) - together, 0)
    groups = int(group.max()) + 1
    if groups < 2:
        return None
    belongs = np.eye(groups)[group][:, 1:]  # counts sum to a constant: one group says nothing new
    off = (seen - expected) @ belongs
    statistic = float(off @ np.linalg.solve(belongs.T @ covariance @ belongs, off))
    change = float(np.abs(seen - expected).max()) / count
    return Check(statistic, groups - 1, _tail(groups - 1, statistic), change, count)
