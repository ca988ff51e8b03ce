"""A set of models from counts: intervals that hold every one-step probability of the true chain at
once, with a confidence.

The error is shared among all intervals, forward and backward, of every phase and every history.

Stationary chains of two values are their own reverse up to order 2, so that their intervals serve
both directions: Pr(001) = Pr(00) − Pr(000) = Pr(100), likewise for 011 and 110, and all other words
of two or three read the same backwards. Of order 1 the lower ends carry the cost (R2): the upper
ones, which only have to show that α + β ≤ 1, get little of the error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from offrecord.errors import InputError
from offrecord.fitting.counting import Counts
from offrecord.fitting.intervals import clopper_pearson, mixture, rounded_outward
from offrecord.models.base import Floats
from offrecord.models.box import INTERVALS, Box, checked_confidence, checked_interval
from offrecord.models.chain import MarkovChain
from offrecord.models.phased import PhasedChain

Model: TypeAlias = MarkovChain | PhasedChain
_Ends: TypeAlias = tuple[Floats, Floats]  # the lower and upper ends of intervals

_UPPER_ERROR = 1e-4  # of both upper ends of two values, where it is less than half of all
_ROUNDING = 1e-13  # by which sums of a row's ends may be off


@dataclass(frozen=True)
class Sureness:
    """How sure a set of models is to be: confidence that the true chain lies inside, over data like
    those it is learned from, and by which intervals.

    interval: "clopper-pearson", whose coverage of Markov chains is checked, or "mixture", for which
    it is proven. InputError for anything else.
    """

    confidence: float = 0.95
    interval: str = "clopper-pearson"

    def __post_init__(self) -> None:
        if checked_confidence(self.confidence) is None:
            raise InputError("confidence must be between 0 and 1, got None")
        if checked_interval(self.interval) is None:
            raise InputError(f"interval must be one of {', '.join(INTERVALS)}, got None")


def learned_box(counts: Counts, model: Model, sure: Sureness) -> Box:
    """The set of models that transitions leave likely, and that holds the model learned from them.

    counts: shaped as the model's transition.
    """
    errors = _shared_error(model, 1 - sure.confidence)
    forward = _intervals(counts, errors, sure.interval, model.transition)
    if _is_its_own_reverse(model):
        backward = _read_backwards(forward)
    else:
        told = _told_backwards(model, counts)
        backward = _intervals(told, errors, sure.interval, reverse_of(model))
    return Box(forward, backward, model.order, "stationary", sure.confidence, sure.interval)


class _Errors(NamedTuple):
    """With which probability the true share may lie below an interval, and above it."""

    low: Floats
    high: Floats


def _shared_error(model: Model, error: float) -> _Errors:
    """(k, k) errors of intervals of a stationary chain of two values and order 1, or one for every
    interval.
    """
    if _is_its_own_reverse(model) and model.order == 1:
        upper = min(_UPPER_ERROR, error / 2)
        lower = error - upper
        moves = ~np.eye(2, dtype=bool)  # what is above for a move is below for the stay
        return _Errors(np.where(moves, lower / 2, upper / 2), np.where(moves, upper / 2, lower / 2))
    # the interval of one of two values is that of the other
    cells = model.transition.size // (2 if model.k == 2 else 1)
    each = error / (cells if _is_its_own_reverse(model) else 2 * cells)
    return _Errors(np.array(each / 2), np.array(each / 2))


def _is_its_own_reverse(model: Model) -> bool:
    return model.k == 2 and model.order <= 2 and model.clock is None


def _intervals(counts: Counts, errors: _Errors, interval: str, nominal: Floats) -> _Ends:
    """The ends of intervals of shares over the last axis, widened to what rounding and the nominal
    probabilities ask for.
    """
    totals = counts.sum(axis=-1, keepdims=True)
    if interval == "mixture":
        ends = mixture(counts, totals, errors.low + errors.high)
    else:
        ends = clopper_pearson(counts, totals, *errors)
    low, high = _tightened(ends[..., 0], ends[..., 1])
    return rounded_outward(np.minimum(low, nominal), np.maximum(high, nominal))


def _tightened(low: Floats, high: Floats) -> _Ends:
    """What rows that sum to 1 leave of intervals: a probability is what the others leave of 1."""
    others_low = low.sum(axis=-1, keepdims=True) - low
    others_high = high.sum(axis=-1, keepdims=True) - high
    return (
        np.maximum(low, 1.0 - others_high - _ROUNDING),
        np.minimum(high, 1.0 - others_low + _ROUNDING),
    )


# ---- chains that begin unlike the rest


def begun_box(
    counts: Counts, firsts: Counts, model: MarkovChain, sure: Sureness, since: int = 1
) -> Box:
    """The set of models of order 1 that transitions and first records leave likely: steps back in
    time as they follow from both, from a record on (R4, "From first records").

    firsts: (k,) values of first records.
    """
    forward = _intervals(counts, _begun_errors(model, sure), sure.interval, model.transition)
    begin = first_ends(firsts, model, sure)
    made = sure.confidence, sure.interval
    back = told_back(forward, begin, since, model)
    return Box(forward, back, 1, "stationary", *made, since=since)


def first_ends(firsts: Counts, model: MarkovChain, sure: Sureness) -> _Ends:
    """(k,) the ends of intervals for how likely values are in first records."""
    return _intervals(firsts, _begun_errors(model, sure), sure.interval, firsts / firsts.sum())


def _begun_errors(model: MarkovChain, sure: Sureness) -> _Errors:
    """Of intervals of transitions and of first records, all of them together."""
    # the interval of one of two values is that of the other
    intervals = (model.transition.size + model.k) // (2 if model.k == 2 else 1)
    each = np.array((1 - sure.confidence) / intervals / 2)
    return _Errors(each, each)


def told_back(forward: _Ends, begin: _Ends, since: int, model: MarkovChain) -> _Ends:
    """The ends of steps back in time from a record on, those of a stationary model among them.

    begin: of how likely values are in first records.
    """
    for _ in range(since - 1):
        begin = _stepped(forward, begin)
    low, high = _backward(forward, _hull_of_marginals(forward, begin, model.start))
    reverse = reverse_of(model)
    return rounded_outward(np.minimum(low, reverse), np.maximum(high, reverse))


def _stepped(forward: _Ends, masses: _Ends) -> _Ends:
    """How likely values may be a record after one where masses are in intervals."""
    after = np.array([_extremes(forward, masses, value) for value in range(len(masses[0]))])
    return after[:, 0], after[:, 1]


def _hull_of_marginals(forward: _Ends, begin: _Ends, settled: Floats) -> _Ends:
    """Intervals that hold how likely values are at every record of every chain that begins and goes
    on within intervals: those of first records, widened until a step leads out of them no more.
    """
    low, high = rounded_outward(np.minimum(begin[0], settled), np.maximum(begin[1], settled))
    while True:
        after = _stepped(forward, (low, high))
        wider = rounded_outward(np.minimum(low, after[0]), np.maximum(high, after[1]))
        if np.array_equal(wider[0], low) and np.array_equal(wider[1], high):
            return low, high
        low, high = wider


def _extremes(forward: _Ends, masses: _Ends, value: int) -> tuple[float, float]:
    """The least and the largest probability of a value after a step from masses in intervals."""
    least = _spread(forward[0][:, value], *masses, 1.0) - _ROUNDING
    most = 1.0 - _spread(1.0 - forward[1][:, value], *masses, 1.0) + _ROUNDING
    return max(least, 0.0), min(most, 1.0)


def _spread(weights: Floats, low: Floats, high: Floats, total: float) -> float:
    """The least weighted sum of masses in intervals that sum to a total, or as near as they can: as
    much as can be where weights are least.
    """
    rising = np.argsort(weights, kind="stable")
    free = np.cumsum((high - low)[rising])
    rest = max(total - float(low.sum()), 0.0)
    extra = np.diff(np.minimum(free, rest), prepend=0.0)
    return float(weights @ low + weights[rising] @ extra)


def _backward(forward: _Ends, masses: _Ends) -> _Ends:
    """The ends of steps back in time, by Bayes: a value before another is likely in proportion to
    how likely it is, times its step to the other.
    """
    k = len(masses[0])
    low, high = np.zeros((k, k)), np.ones((k, k))
    for after in range(k):
        for before in range(k):
            rest = np.arange(k) != before
            others = masses[0][rest], masses[1][rest]
            steps = forward[0][rest, after], forward[1][rest, after]
            # the more likely a value is, the less is left for the others
            left = 1.0 - masses[0][before]
            most = left - _spread(1.0 - steps[1], *others, left) + _ROUNDING
            least = _spread(steps[0], *others, 1.0 - masses[1][before]) - _ROUNDING
            mine = masses[0][before] * forward[0][before, after]
            low[after, before] = mine / (mine + most) if mine > 0 else 0.0
            mine = masses[1][before] * forward[1][before, after]
            high[after, before] = mine / (mine + max(least, 0.0)) if mine > 0 else 0.0
    return low, high


# ---- steps back in time


def _read_backwards(ends: _Ends) -> _Ends:
    """The same ends, the records of a history the other way round."""
    low, high = (np.transpose(end, (*range(end.ndim - 1)[::-1], end.ndim - 1)) for end in ends)
    return low, high


def _told_backwards(model: Model, counts: Counts) -> Counts:
    """The same transitions, the earliest record's value last: those that led to a history."""
    return np.moveaxis(counts, 0 if model.clock is None else 1, -1)


def reverse_of(model: Model) -> Floats:
    """The probabilities of steps back in time under the model itself, by Bayes."""
    joint = model.start[..., np.newaxis] * model.transition
    told = np.moveaxis(joint, 0 if model.clock is None else 1, -1)
    return np.asarray(told / told.sum(axis=-1, keepdims=True))
