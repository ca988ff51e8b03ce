"""The rules of a table: designed on some plausible chains, validated on others.

A policy is validated as a whole: a chain exceeds ε if any pair of rules that may act in the table
does. Draws are seeded by the promise, ε and what they are for, so the same table gets the same
rules on the same machine; later releases take the rules of the certificate instead.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms.base import Mechanism, Unserved
from offrecord.mechanisms.rules import Pair, Setting, expected_cost
from offrecord.mechanisms.table_policy import TablePolicy, Validation
from offrecord.models.members import Members
from offrecord.models.promise import Promise
from offrecord.text import Progress, unwatched
from offrecord.theory.window import smallest_windows

_STEPS = 8  # designs at most in the search for the mean chain's budget; four are usual
_CLOSE = 0.02  # leakage this close to ε, relative, will do: one per cent of it is 0.02 records
_SPARE = 0.6  # 12 of 8,000 above ε in the design: 20 or more in the next in 2 % of cases
_MOST_DESIGNS = 12  # settings that are designed for the mean chain again and again


def draw_seed(promise: Promise, epsilon: float, purpose: str) -> bytes:
    """The seed of a publisher's draws."""
    said = [promise.to_dict(), float(epsilon), purpose]
    content = json.dumps(said, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(content.encode()).digest()


def drawn_for_design(promise: Promise, epsilon: float) -> tuple[Members, int]:
    """The chains that rules are made on, and how many of them may exceed ε.

    Returns all of a list, none of which may; of a posterior the draws of its acceptance rule.
    """
    rule = promise.acceptance
    if rule is None:
        return promise.members(0, 0), 0
    members = promise.members(rule.drawn, draw_seed(promise, epsilon, "design"))
    return members, int(rule.drawn * (1 - rule.quantile) + 1e-9)


def design_table(
    mechanism: Mechanism,
    promise: Promise,
    epsilon: float,
    protect: str,
    settings: Collection[Setting],
    watch: Progress = unwatched,
    *,
    or_window: bool = True,
) -> TablePolicy:
    """The policy of a table, validated.

    Returns a policy that enough of the plausible chains keep, of a list every one; policy.mechanism
    says whose it is: windows act where the mechanism serves no such table, unless `or_window` is
    false. Raises InputError for stopping rules where each record is protected by itself, Unserved
    where nothing keeps ε.
    """
    from offrecord.mechanisms.window import BestWindow

    asked = promise, epsilon, protect, sorted(settings), watch
    try:
        return _designed(mechanism, *asked)
    except Unserved:
        if isinstance(mechanism, BestWindow) or not or_window:
            raise
    return _designed(BestWindow(), *asked)


def _designed(
    mechanism: Mechanism,
    promise: Promise,
    epsilon: float,
    protect: str,
    settings: Collection[Setting],
    watch: Progress,
) -> TablePolicy:
    before = None
    for number, rules in enumerate(mechanism.attempts(promise, settings, epsilon, watch)):
        policy = TablePolicy(mechanism.name, epsilon, protect, promise.coverage, rules)
        if not policy.is_local and not mechanism.joins:
            raise InputError(f"{mechanism.name} has rules that are not local: it must set joins")
        if not policy.is_local and protect != "run":
            raise InputError(f"{mechanism.name} protects whole runs: protect must be 'run'")
        content = policy.to_dict()["rules"]
        if content == before:  # other draws would be tried until some pass
            continue
        before = content
        validated = validate(policy, promise, number)
        if validated is not None:
            return validated
        if epsilon == 0:
            break
    raise Unserved(f"{mechanism.name} finds no rules that keep ε in enough plausible chains")


def validate(policy: TablePolicy, promise: Promise, number: int = 0) -> TablePolicy | None:
    """Judge a policy on chains that had no part in its design.

    number: of the validation; every one draws other chains. Returns the policy with what was found,
    or None if too many chains exceed ε.
    """
    rule = promise.acceptance
    seed = draw_seed(promise, policy.epsilon, f"validate-{number}")
    members = promise.members(0 if rule is None else rule.drawn, seed)
    found = Validation.of(policy.leakages(members), policy.epsilon)
    limit = 0 if rule is None else rule.publisher
    return replace(policy, validation=found) if found.above <= limit else None


# ---- rules of the mean chain, for a list


def rules_of_mean(
    mechanism: Mechanism,
    promise: Promise,
    settings: Collection[Setting],
    epsilon: float,
    watch: Progress,
) -> dict[Setting, Pair]:
    """A mechanism's rules for the mean chain, at a budget at which the promise keeps ε.

    Each setting has the largest budget ε′ ≤ ε, found by a search; where a window redacts less by
    expectation, the window stands in. For one chain they are the mechanism's own.

    Raises Unserved for order above 1 and for more settings than can be designed again and again.
    """
    members, allowed = drawn_for_design(promise, epsilon)
    if members.count == 1:
        return {one: mechanism.rules(promise.mean, one, epsilon) for one in settings}
    if len(settings) > _MOST_DESIGNS:
        raise Unserved(f"{len(settings)} settings are too many to design {mechanism.name} for")
    few = allowed
    # the publisher's limit is below the verifier's, so what passes here passes there
    # (docs/proofs/plausible.md)
    if promise.acceptance is not None:  # rules that meet ε exactly need a margin for other draws
        few = int(promise.acceptance.publisher * _SPARE)
        mechanism = mechanism.quicker
    found = {}
    with watch(mechanism.name, len(settings)) as done:
        for setting in settings:
            search = _Search(mechanism, promise.mean, setting, epsilon, members, few)
            pair = search.rules(epsilon)  # Unserved, before what is slow
            sizes = smallest_windows(members, *setting, epsilon, allowed)
            found[setting] = search.best(pair, sizes)
            done(1)
    return found


@dataclass(frozen=True)
class _Search:
    """The largest budget for the mean chain at which enough members keep ε, in one setting."""

    mechanism: Mechanism
    mean: Members
    setting: Setting
    epsilon: float
    members: Members
    allowed: int

    def rules(self, budget: float) -> Pair:
        """The mechanism's."""
        return self.mechanism.rules(self.mean, self.setting, budget)

    def best(self, pair: Pair, window: tuple[int, int] | None) -> Pair:
        """The rules that redact least of those tried, the window among them.

        pair: those of the whole budget.
        """
        from offrecord.mechanisms.window import pair_of_window

        found = [] if window is None else [pair_of_window(self.setting, window, self.members.k)]
        budget, tried = self.epsilon, [(0.0, 0.0)]
        for step in range(_STEPS):
            pair = self.rules(budget) if step else pair
            leakage = self._leakage(pair)
            if leakage <= self.epsilon:
                found.append(pair)
                if budget == self.epsilon or leakage >= self.epsilon * (1 - _CLOSE):
                    break
            tried.append((budget, min(leakage, 100.0)))
            budget = self._next(tried)
        if not found:
            raise Unserved(f"{self.mechanism.name} and windows keep no budget up to ε")
        place = self.setting.place
        return min(found, key=lambda one: expected_cost(one, self.mean, place))

    # The budget at which a line through the two nearest tries comes to just below ε.
    def _next(self, tried: list[tuple[float, float]]) -> float:
        aim = self.epsilon * (1 - _CLOSE / 2)
        below = max(one for one in tried if one[1] <= self.epsilon)
        above = min((one for one in tried if one[1] > self.epsilon), default=(self.epsilon,) * 2)
        share = (aim - below[1]) / max(above[1] - below[1], 1e-12)
        return below[0] + min(max(share, 0.05), 0.95) * (above[0] - below[0])

    # What all but the allowed number of members keep.
    def _leakage(self, pair: Pair) -> float:
        alone = TablePolicy("", 0.0, "run", None, {self.setting: pair})
        return float(np.sort(alone.leakages(self.members))[-1 - self.allowed])
