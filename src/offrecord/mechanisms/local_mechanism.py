"""What local mechanisms share: sides of each secret, laid over each other, within the budget.

A mechanism designs at the edge of its budget, where rounding may land on the wrong side. So nothing
leaves before its exact leakage is within ε; what exceeds it is designed again for a little less.
For several chains the budget is lowered until the promise keeps ε (plausible chains, section 2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms.base import Mechanism, Unserved
from offrecord.mechanisms.local_policy import LocalPolicy
from offrecord.mechanisms.rules import LocalRule, Pair, Setting, of_setting
from offrecord.models.base import Floats
from offrecord.models.chain import MarkovChain
from offrecord.models.members import Members
from offrecord.theory.one_side import OneSide
from offrecord.theory.problem import Problem, Secret

#: The redaction of the left and of the right side, (reach, k) each, from the secret outwards.
Sides = tuple[Floats, Floats]
_Made = Callable[[float], LocalPolicy]  # a design for a budget

_TRIES = 6  # designs for a budget that is lowered by rounding; one is enough but for long windows
_MARGIN = 2.0**-46  # by which it is lower at first
_STEPS = 12  # designs in the search for a budget that several chains keep: it is within 1 %
_CLOSE = 0.01
_UNIT = 2.0**64
_FAR = 100_000  # records on each side of a long chain, where it does not forget sooner


class LocalMechanism(Mechanism, ABC):
    """Designs the two sides of each secret under one chain of order 1."""

    @abstractmethod
    def sides(self, problem: Problem, secret: Secret) -> Sides:
        """The redaction beside a secret under the problem's chain, within the problem's ε."""

    def check(self, problem: Problem) -> None:
        """InputError for problems that the mechanism does not take."""
        if problem.chain.order > 1:
            raise InputError(
                f"{self.name} takes chains of order 1, this one has order"
                f" {problem.chain.order}; window takes every chain"
            )

    def design(self, problem: Problem) -> LocalPolicy:
        """The policy for a problem; its leakage is at most ε."""
        self.check(problem)
        return within_budget(problem, self._design_for_chain)

    # A policy for the problem's chain.
    def _design_for_chain(self, problem: Problem) -> LocalPolicy:
        sides = [self.sides(problem, secret) for secret in problem.secrets]
        return LocalPolicy(problem, composed(problem, sides), self.name)


def within_budget(problem: Problem, design: Callable[[Problem], LocalPolicy]) -> LocalPolicy:
    """The policy of the largest budget found that keeps a problem's ε, from designs for one chain;
    everything is redacted where none does.
    """

    def made(budget: float) -> LocalPolicy:
        return replace(design(problem.with_epsilon(budget)), problem=problem)

    search = _lowered if problem.is_for_one_chain else _searched
    nothing = np.ones((problem.n, problem.chain.k))
    good, tried = search(problem.epsilon, made)
    return good or LocalPolicy(problem, nothing, tried.mechanism)


# For one chain rounding alone can exceed ε: a policy at a budget lowered until the exact leakage,
# not the budget it was designed for, is within ε; and the last one tried.
def _lowered(epsilon: float, made: _Made) -> tuple[LocalPolicy | None, LocalPolicy]:
    margin, budget = _MARGIN, max(epsilon - _MARGIN * epsilon, 0.0)
    for _ in range(_TRIES):
        policy = made(budget)
        if policy.leakage <= epsilon:
            return policy, policy
        margin = max(4 * margin, 2 * (policy.leakage - epsilon))
        budget = max(epsilon - margin, 0.0)
    return None, policy


# For several chains: the largest budget at which they keep ε, about; and the last one tried.
def _searched(epsilon: float, made: _Made) -> tuple[LocalPolicy | None, LocalPolicy]:
    budget = max(epsilon - _MARGIN * epsilon, 0.0)
    good, low, high = None, 0.0, budget
    for step in range(_STEPS):
        policy = made(budget)
        if policy.leakage <= epsilon:  # never where it is no number
            good, low = policy, budget
            if step == 0:
                break
        else:
            high = budget
        if high - low <= _CLOSE * high:
            break
        if good is None and np.isfinite(policy.leakage):
            budget = min(0.98 * budget * epsilon / policy.leakage, 0.9 * budget)
        else:
            budget = (low + high) / 2
    return good, policy


def composed(problem: Problem, sides: list[Sides]) -> Floats:
    """(n, k) the matrix that redacts all secrets and their sides."""
    matrix = np.zeros((problem.n, problem.chain.k))
    for (first, last), (left, right) in zip(problem.secrets, sides, strict=True):
        matrix[first - 1 : last] = 1.0
        here = matrix[first - 1 - len(left) : first - 1]
        # the larger probability is private for each secret (F3)
        np.maximum(here, left[::-1], out=here)
        here = matrix[last : last + len(right)]
        np.maximum(here, right, out=here)
    return matrix


def always(count: int, k: int) -> Floats:
    """(count, k) rows that always redact."""
    return np.broadcast_to(1.0, (count, k))


# ---- rules of a setting from policies, and the other way round


def rules_of_policy(mechanism: Mechanism, mean: Members, setting: Setting, epsilon: float) -> Pair:
    """The rules that a mechanism's policy for a long chain comes to, if it is local and ends."""
    if mean.order > 1:
        raise Unserved(f"{mechanism.name} has no rules of order {mean.order}")
    problem = _long_problem(mean, setting, epsilon)
    policy = mechanism.design(problem)
    if not isinstance(policy, LocalPolicy):
        raise Unserved(f"{mechanism.name} has no local rules")
    sides = (
        policy.redaction[: problem.private[0] - 1][::-1],
        policy.redaction[problem.private[-1] :],
    )
    found = []
    for rows, margin in zip(sides, mean.margin(setting.place), strict=True):
        used = np.flatnonzero(rows.any(axis=1))
        reach = int(used[-1]) + 1 if len(used) else 0
        if reach == len(rows) > 0 and margin is None and mean.places is None:
            raise Unserved(f"{mechanism.name} redacts to the chain's end")
        # coins draw multiples of 2**-64; rounding up is safe (F3)
        found.append(LocalRule(np.ceil(rows[:reach] * _UNIT) / _UNIT))
    return of_setting(setting, *found)


# A problem whose one secret has the setting's surroundings, and enough records to end in.
def _long_problem(mean: Members, setting: Setting, epsilon: float) -> Problem:
    chain, before, after = _chain_around(mean, setting.place, epsilon)
    before = 0 if setting.kind == "first" else before
    after = 0 if setting.kind == "last" else after
    private = [before + 1]
    if setting.kind == "run":
        private.append(before + 2)
        after = after if chain.length is None else after - 1
    n = chain.length or before + len(private) + after
    if private[-1] > n:
        private = [n - 1, n]
    return Problem(chain, n, private, epsilon)


def _chain_around(mean: Members, place: int, epsilon: float) -> tuple[MarkovChain, int, int]:
    """A chain in which a record stands as at a place, and how many lie before and after it."""
    if mean.places is None:
        chain = MarkovChain(mean.rows[0, 0])
        margin = _margin(chain, epsilon)
        return chain, margin, margin
    places = mean.places
    if places.goes_on:
        assert mean.first is not None
        chain = MarkovChain(mean.rows[0, 0], start=mean.first[0])
        margin = _margin(MarkovChain(mean.rows[0, 0]), epsilon)
        return chain, (place + margin if place == places.count - 1 else place), margin
    if places.cyclic:
        margin = _margin(MarkovChain(mean.rows[0].mean(axis=0)), epsilon)
        steps = [mean.kernel((place + step) % places.count)[0] for step in range(-margin, margin)]
        start = mean.law((place - margin) % places.count)[0]
        return MarkovChain(steps, start=start), margin, margin
    steps = [mean.kernel(step)[0] for step in range(places.count - 1)]
    return MarkovChain(steps, start=mean.law(0)[0]), place, places.count - 1 - place


# Margin beyond which nothing changes: about twice what both sides need with half of ε each.
def _margin(chain: MarkovChain, epsilon: float) -> int:
    share = epsilon / 200 if epsilon > 0 else 1e-9  # the least share of ε that a side may have
    reaches = [OneSide(chain, _FAR, sign, _FAR - 1).delta_star(share) for sign in (-1, 1)]
    known = [reach for reach in reaches if reach is not None]
    return 2 * max(known) + 6 if len(known) == 2 else _FAR
