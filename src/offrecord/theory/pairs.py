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
    values = np.unique(last_value)
    given = []
    for value in values:
        chosen = last_value == value
        mass = law[:, chosen]
        total = mass.sum(axis=1)
        share = mass / np.where(total > 0, total, 1.0)[:, np.newaxis]
        joint = (left[:, :, chosen] * share[:, np.newaxis]) @ right[:, :, chosen].swapaxes(1, 2)
        given.append((joint, total > 0))
    shape = given[0][0].shape
    likely, unlikely = np.zeros(shape), np.full(shape, np.inf)
    for joint, occurs in given:
        here = occurs[:, np.newaxis, np.newaxis]
        np.maximum(likely, np.where(here, joint, 0.0), out=likely)
        np.minimum(unlikely, np.where(here, joint, np.inf), out=unlikely)
    members = len(law)
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
    with np.errstate(divide="ignore", invalid="ignore"):
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
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(likely > 0, likely / unlikely, 1.0)
        found = np.log(ratios).max(axis=1, initial=0.0)
    return np.where(found > _NOTHING, found, 0.0)
