"""Leakage of side rules, judged in pairs, for all members at once.

A side rule is judged by its *outcomes*: what an observer of one side can see, each with its
likelihood given the start context (the context of the core's records the side starts from), up to
factors that the start context does not change. Given the start context the two sides are
independent, so these arrays are all that is needed (F2; mathematics of stopping rules, "Judge").
"""

from __future__ import annotations

import numpy as np

from offrecord.models.base import Floats, Integers

#: Upper bound on the absolute rounding error of a leakage within the limits of size
#: (docs/proofs/rounding.md).
ROUNDING = 1e-9
_NOTHING = (
    1e-12  # a log-ratio up to this is what rounding leaves of equal likelihoods: it counts as 0
)

#: Outcomes of each side that are paired first, those that differ most between start contexts: they
#: settle most members.
_WIDEST = 24


def side_leakages(outcomes: Floats, possible: Floats) -> Floats:
    """(M,) the largest log-ratio of an outcome's likelihood between two start contexts.

    Args:
        outcomes: (M, O, S) likelihood of each outcome given each start context.
        possible: (M, S) law of the start context; those of probability 0 are left out.

    Returns:
        ∞ where an outcome is possible under one start context and not under another.
    """
    occurs = possible > 0
    likely = np.where(occurs[:, np.newaxis], outcomes, 0.0).max(axis=2)
    unlikely = np.where(occurs[:, np.newaxis], outcomes, np.inf).min(axis=2)
    return _largest_log_ratio(likely, unlikely)


def record_leakages(left: Floats, right: Floats, law: Floats, last_value: Integers) -> Floats:
    """(M,) exact leakage about a single record, the last of the start context.

    For outcomes a on the left and b on the right the likelihood given the record's value v is
    Σ_z Pr(z | v) left_a(z) right_b(z), over contexts z that end in v.

    Args:
        left, right: (M, O, S) outcomes of the two sides, from the same start context.
        law: (M, S) probability of the start context.
        last_value: (S,) the record's value in each context.
    """
    if len(np.unique(last_value)) == len(last_value):  # order 1: two sides add by pairs (F2)
        both = (log_ratios(left, law) + log_ratios(right, law)).max(axis=(1, 2))
        return np.where(both > _NOTHING, both, 0.0)
    given = _given_values(law, last_value)
    outer, order = zip(*(_widest_first(side, law) for side in (left, right)), strict=True)
    some = [
        np.take_along_axis(side, which[:, :_WIDEST, np.newaxis], axis=1)
        for side, which in zip((left, right), order, strict=True)
    ]
    found = _joint_log_ratios(some[0], some[1], given)
    # a pair of outcomes leaks no more than both log-ratios over all contexts add up to
    with np.errstate(invalid="ignore"):  # outcomes that cannot occur beside unlimited ones
        open_left = (outer[0] + outer[1][:, :1] > found[:, np.newaxis]).sum(axis=1)
        open_right = (outer[1] + outer[0][:, :1] > found[:, np.newaxis]).sum(axis=1)
    for member in np.flatnonzero((open_left > _WIDEST) | (open_right > _WIDEST)):
        mine = left[member, order[0][member, : open_left[member]]]
        other = right[member, order[1][member, : open_right[member]]]
        more = _joint_log_ratios(mine[np.newaxis], other[np.newaxis], given[member, np.newaxis])
        found[member] = max(found[member], more[0])
    return found


def _given_values(law: Floats, last_value: Integers) -> Floats:
    """(M, V, S) probability of each context given its last value; nan for impossible values."""
    same = np.unique(last_value)[:, np.newaxis] == last_value
    mass = law[:, np.newaxis] * same
    with np.errstate(invalid="ignore"):
        return np.asarray(mass / mass.sum(axis=2, keepdims=True))


def _widest_first(outcomes: Floats, possible: Floats) -> tuple[Floats, Integers]:
    """(M, O) log-ratios of outcomes over all start contexts in falling order, and their numbers."""
    occurs = (possible > 0)[:, np.newaxis]
    likely = np.where(occurs, outcomes, 0.0).max(axis=2)
    unlikely = np.where(occurs, outcomes, np.inf).min(axis=2)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(likely > 0, np.log(likely / unlikely), -np.inf)
    order = np.argsort(-ratios, axis=1, kind="stable")
    return np.take_along_axis(ratios, order, axis=1), order


def _joint_log_ratios(left: Floats, right: Floats, given: Floats) -> Floats:
    """(M,) the largest log-ratio over pairs of outcomes of both sides between two values."""
    likely = np.zeros((len(left), left.shape[1], right.shape[1]))
    unlikely = np.full(likely.shape, np.inf)
    for value in range(given.shape[1]):
        share = given[:, value]
        counts = (share != 0).any(axis=0)  # contexts that end in this value; nan is not 0
        joint = (left[:, :, counts] * share[:, np.newaxis, counts]) @ right[:, :, counts].swapaxes(
            1, 2
        )
        np.fmax(likely, joint, out=likely)  # passes over nan: values that cannot occur
        np.fmin(unlikely, joint, out=unlikely)
    members = len(left)
    return _largest_log_ratio(likely.reshape(members, -1), unlikely.reshape(members, -1))


def log_ratios(outcomes: Floats, possible: Floats) -> Floats:
    """The largest log-ratio of an outcome's likelihood for each pair of start contexts.

    Args:
        outcomes: (M, O, S) likelihood of each outcome given each start context.
        possible: (M, S) law of the start context; pairs with one of probability 0 count as 0.

    Returns:
        (M, S, S) of the first over the second; at least 0, ∞ included.
    """
    contexts = outcomes.shape[2]
    found = np.ones((len(outcomes), contexts, contexts))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for x in range(contexts):
            for y in range(contexts):
                if x != y:
                    mine, other = outcomes[:, :, x], outcomes[:, :, y]
                    ratios = np.where(mine > 0, mine / other, 1.0)
                    counts = (possible[:, x] > 0) & (possible[:, y] > 0)
                    largest = ratios.max(axis=1, initial=1.0)
                    found[:, x, y] = np.where(counts, largest, 1.0)
        return np.asarray(np.log(found))


def _largest_log_ratio(likely: Floats, unlikely: Floats) -> Floats:
    """(M,) the largest log(likely / unlikely) over outcomes that can occur; at least 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(likely > 0, likely / unlikely, 1.0)
        found = np.log(ratios).max(axis=1, initial=0.0)
    return np.where(found > _NOTHING, found, 0.0)
