"""Leakage of side rules, judged in pairs, for all members at once.

A side rule is judged by its *outcomes*: what an observer of one side can see, each with its
likelihood given the start context (the context of the core's records the side starts from), up to
factors that the start context does not change. Given the start context the two sides are
independent, so these arrays are all that is needed (F2; mathematics of stopping rules, "Judge").
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np

from offrecord.models.base import Floats, Integers, Mask

#: Upper bound on the absolute rounding error of a leakage within the limits of size
#: (docs/proofs/rounding.md).
ROUNDING = 1e-9
NOTHING = 1e-12  #: a log-ratio up to this is what rounding leaves of equal likelihoods

#: Outcomes of each side that are paired first, those that differ most between start contexts: they
#: settle most members.
_WIDEST = 24


def side_leakages(outcomes: Floats, possible: Floats) -> Floats:
    """(M,) the largest log-ratio of an outcome's likelihood between two start contexts, ∞ included.

    outcomes: (M, O, S) likelihood of each outcome given each start context. possible: (M, S) law of
    the start context; those of probability 0 are left out.
    """
    return _largest_log_ratio(*_extremes(outcomes, possible))


def _extremes(outcomes: Floats, possible: Floats) -> tuple[Floats, Floats]:
    """(M, O) the largest and the least likelihood of an outcome over start contexts that occur."""
    likely = np.zeros(outcomes.shape[:2])
    unlikely = np.full(outcomes.shape[:2], np.inf)
    # context by context: numpy takes twice to seven times as long over a last axis so short
    for context in range(outcomes.shape[2]):
        found, occurs = outcomes[:, :, context], possible[:, context, np.newaxis] > 0
        if occurs.all():
            np.maximum(likely, found, out=likely)
            np.minimum(unlikely, found, out=unlikely)
        else:
            np.maximum(likely, np.where(occurs, found, 0.0), out=likely)
            np.minimum(unlikely, np.where(occurs, found, np.inf), out=unlikely)
    return likely, unlikely


def record_leakages(left: Floats, right: Floats, law: Floats, last_value: Integers) -> Floats:
    """(M,) exact leakage about a single record, the last of the start context.

    For outcomes a on the left and b on the right the likelihood given the record's value v is Σ_z
    Pr(z | v) left_a(z) right_b(z), over contexts z that end in v.

    left, right: (M, O, S) outcomes of the two sides, from the same start context. law: (M, S)
    probability of the start context. last_value: (S,) the record's value in each context.
    """
    if _is_whole(last_value):  # order 1: two sides add by pairs (F2)
        both = (log_ratios(left, law) + log_ratios(right, law)).max(axis=(1, 2))
        return np.where(both > NOTHING, both, 0.0)
    if max(left.shape[1], right.shape[1]) <= _WIDEST:
        return _joint_log_ratios(left, right, _given_values(law, last_value))
    sides = _BothSides.of(left, right, law, last_value)
    found = sides.widest()
    return sides.with_others(found, np.arange(len(found)), found)


def record_exceeds(
    left: Floats, right: Floats, law: Floats, last_value: Integers, epsilon: float
) -> Mask:
    """(M,) whether `record_leakages`, whose arguments these are, exceeds ε."""
    if _is_whole(last_value):
        return np.asarray(record_leakages(left, right, law, last_value) > epsilon)
    sides = _BothSides.of(left, right, law, last_value)
    exceeds = sides.bounds() > epsilon
    # the bound settles most members that keep ε, the widest outcomes most of those that do not
    asked = np.flatnonzero(exceeds)
    if len(asked):
        exceeds[asked] = sides.part(asked).exceed(epsilon)
    return exceeds


def record_bounds(left: Floats, right: Floats, law: Floats, last_value: Integers) -> Floats:
    """(M,) no less than `record_leakages`, and much faster."""
    return _BothSides.of(left, right, law, last_value).bounds()


def _is_whole(last_value: Integers) -> bool:
    """Whether the record's value is all of the start context."""
    return len(np.unique(last_value)) == len(last_value)


class _BothSides(NamedTuple):
    """Outcomes of both sides of a record (see `record_leakages`) and how much they differ.

    given: by `_given_values`.
    """

    left: Floats
    right: Floats
    given: Floats
    spreads: tuple[_Spreads, _Spreads]

    @classmethod
    def of(cls, left: Floats, right: Floats, law: Floats, last_value: Integers) -> _BothSides:
        given = _given_values(law, last_value)
        spreads = _Spreads.of(left, law, given), _Spreads.of(right, law, given)
        return cls(left, right, given, spreads)

    def part(self, members: Integers) -> _BothSides:
        """The same of some members."""
        left, right = (spread.part(members) for spread in self.spreads)
        some = self.left[members], self.right[members], self.given[members]
        return _BothSides(*some, (left, right))

    def bounds(self) -> Floats:
        """(M,) no less than what any pair of outcomes leaks."""
        left, right = self.spreads
        return np.asarray(left.beside(right).max(axis=1, initial=0.0))

    def widest(self) -> Floats:
        """(M,) what the outcomes that differ most between start contexts leak in pairs."""
        left, right = map(_most_spread, (self.left, self.right), self.spreads)
        return _joint_log_ratios(left, right, self.given)

    def exceed(self, epsilon: float) -> Mask:
        """(M,) whether any pair of outcomes leaks more than ε."""
        found = self.widest()
        below, limits = np.flatnonzero(found <= epsilon), np.full(len(found), epsilon)
        return np.asarray(self.with_others(found, below, limits) > epsilon)

    def with_others(self, found: Floats, asked: Integers, limits: Floats) -> Floats:
        """(M,) for the members asked, what all pairs of outcomes leak that may leak more than a
        limit; for the others, what was found.
        """
        found, (left, right) = found.copy(), self.spreads
        open_left = np.greater(left.beside(right), limits[:, np.newaxis])
        open_right = np.greater(right.beside(left), limits[:, np.newaxis])
        # the widest outcomes settle most members; bounds (O8) say which are still open
        is_open = np.logical_and(open_left.any(axis=1), open_right.any(axis=1))
        for member in asked[is_open[asked]]:
            more = self._leakage(member, open_left[member], open_right[member])
            found[member] = max(found[member], more)
        return found

    def _leakage(self, member: int, left: Mask, right: Mask) -> float:
        """What pairs of these outcomes leak under one member."""
        one = slice(member, member + 1)
        found = _joint_log_ratios(self.left[one, left], self.right[one, right], self.given[one])
        return float(found[0])


class _Spreads(NamedTuple):
    """How much outcomes of a side differ, (M, O) log-ratios.

    contexts: between any two start contexts. values: between mixtures of start contexts, given two
    values.
    """

    contexts: Floats
    values: Floats

    @classmethod
    def of(cls, outcomes: Floats, possible: Floats, given: Floats) -> _Spreads:
        of_value = outcomes @ np.nan_to_num(given).swapaxes(1, 2)
        never = np.all(np.isnan(given), axis=2)[:, np.newaxis]
        most = np.where(never, 0.0, of_value).max(axis=2)
        least = np.where(never, np.inf, of_value).min(axis=2)
        likely, unlikely = _extremes(outcomes, possible)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = np.log(likely / unlikely), np.log(most / least)
        return cls(*(np.where(likely > 0, one, -np.inf) for one in found))

    def part(self, members: Integers) -> _Spreads:
        """The same of some members."""
        return _Spreads(self.contexts[members], self.values[members])

    def beside(self, other: _Spreads) -> Floats:
        """(M, O) the most that an outcome leaks together with any outcome of the other side."""
        # Σ_z Pr(z | v) a(z) b(z) is at most the mixture of a times the largest b(z), and at least
        # that of another value times the smallest; the same with a and b exchanged (O8)
        with np.errstate(invalid="ignore"):
            one = self.values + other.contexts.max(axis=1, keepdims=True)
            two = self.contexts + other.values.max(axis=1, keepdims=True)
        # an outcome that cannot occur leaks nothing beside an unlimited one either
        return np.where(self.contexts == -np.inf, -np.inf, np.fmin(one, two))


def _most_spread(outcomes: Floats, spreads: _Spreads) -> Floats:
    """(M, at most _WIDEST, S) those that differ most between start contexts."""
    order = np.argsort(-spreads.contexts - spreads.values, axis=1, kind="stable")
    return np.take_along_axis(outcomes, order[:, :_WIDEST, np.newaxis], axis=1)


def _given_values(law: Floats, last_value: Integers) -> Floats:
    """(M, V, S) probability of each context given its last value; nan for impossible values."""
    same = np.unique(last_value)[:, np.newaxis] == last_value
    mass = law[:, np.newaxis] * same
    with np.errstate(invalid="ignore"):
        return np.asarray(mass / mass.sum(axis=2, keepdims=True))


def _joint_log_ratios(left: Floats, right: Floats, given: Floats) -> Floats:
    """(M,) the largest log-ratio over pairs of outcomes of both sides between two values."""
    likely = np.zeros((len(left), left.shape[1], right.shape[1]))
    unlikely = np.full(likely.shape, np.inf)
    for share in np.moveaxis(given, 1, 0):
        joint = _joint_likelihoods(left, right, share)
        np.fmax(likely, joint, out=likely)  # passes over nan: values that cannot occur
        np.fmin(unlikely, joint, out=unlikely)
    members = len(left)
    return _largest_log_ratio(likely.reshape(members, -1), unlikely.reshape(members, -1))


def _joint_likelihoods(left: Floats, right: Floats, share: Floats) -> Floats:
    """(M, O, O) likelihood of pairs of outcomes given a value, by the shares of its contexts."""
    counts = (share != 0).any(axis=0)  # contexts that end in this value; nan is not 0
    mine = left[:, :, counts] * share[:, np.newaxis, counts]
    return np.asarray(mine @ right[:, :, counts].swapaxes(1, 2))


def log_ratios(outcomes: Floats, possible: Floats) -> Floats:
    """(M, S, S) the largest log-ratio of an outcome's likelihood for each pair of start contexts.

    Of the first over the second, at least 0; pairs with one that does not occur count as 0. The
    arguments are those of `side_leakages`.
    """
    contexts = outcomes.shape[2]
    found, occurs = np.ones((len(outcomes), contexts, contexts)), possible > 0
    for x, y in permutations(range(contexts), 2):
        largest = ratios(outcomes[:, :, x], outcomes[:, :, y]).max(axis=1, initial=1.0)
        found[:, x, y] = np.where(occurs[:, x] & occurs[:, y], largest, 1.0)
    return np.asarray(np.log(found))


def ratios(likely: Floats, unlikely: Floats) -> Floats:
    """Likely over unlikely; 1 where nothing is likely, ∞ where only the unlikely is impossible."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(likely > 0, likely / unlikely, 1.0)


def _largest_log_ratio(likely: Floats, unlikely: Floats) -> Floats:
    """(M,) the largest log(likely / unlikely) over outcomes that can occur; at least 0."""
    # logarithms of rounding errors would forbid ε = 0 to chains that leak nothing
    with np.errstate(divide="ignore"):
        found = np.log(ratios(likely, unlikely)).max(axis=1, initial=0.0)
    return np.where(found > NOTHING, found, 0.0)
