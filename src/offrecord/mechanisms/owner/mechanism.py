"""OwnerStopping: walks that look at the values, and stop where little can be inferred."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from offrecord.mechanisms.base import TIGHTENED, Mechanism, Policy, Unserved
from offrecord.mechanisms.design_table import design_table
from offrecord.mechanisms.owner.greedy import GreedyPolicy
from offrecord.mechanisms.owner.search import Plausible, Search
from offrecord.mechanisms.rules import SETTINGS, Pair, Setting, of_setting
from offrecord.mechanisms.rules_policy import Records, mean_of, policy_of_rules, policy_of_table
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.members import Members
from offrecord.models.promise import KnownChains, Promise
from offrecord.text import Progress
from offrecord.theory.problem import Problem

#: Beyond, the window acts at once: 32 contexts take half a minute.
_MOST_CONTEXTS = 64
#: Contexts beyond which a core at its chain's end takes a side of a run, to save time.
_OWN_ENDS = 8
#: Seconds of CPU for the rules of a table, all attempts together.
_BUDGET = 60.0
#: By the number of contexts up to which they serve: how many makers are drawn, and how many times
#: as many judges as validation draws. More makers do not help. Rules are the best of those tried on
#: the judges, so more exceed in the next draw: with as many judges as draws, a share of .6 fails
#: validation in 3 of 14 tables.
_DRAWN = ((5, 400, 2), (8, 400, 1), (36, 200, 1), (_MOST_CONTEXTS, 100, 1))
#: Of what a publisher may let exceed, the share that designs let exceed among the judges; of this,
#: the share that the first settings may take from the last.
_MARGIN, _SHARE = 0.6, 0.75


@dataclass(frozen=True)
class OwnerStopping(Mechanism):
    """Walk away from each end of a private run, which depends on one far value and at those on the
    way, and stop at a random distance: everything from there on is released.

    Not local: who redacts must see all values, the private ones too. In slow chains it redacts a
    third to a half of what the best window does.
    """

    name: ClassVar[str] = "owner"
    joins: ClassVar[bool] = True
    is_compared: ClassVar[bool] = True

    def design(self, problem: Problem) -> Policy:
        """See `Mechanism.design`; at ε = 0 for one known chain, what nothing can exceed (O2)."""
        known, settings = isinstance(problem.promise, KnownChains), Records(problem).settings()
        if problem.epsilon == 0 and problem.is_for_one_chain:
            nothing = TablePolicy(self.name, 0.0, "run", None, {})
            return GreedyPolicy(problem, nothing, self.name)
        if not known or problem.epsilon == 0 or problem.members.contexts > _MOST_CONTEXTS:
            table = design_table(self, problem.promise, problem.epsilon, "run", settings)
            return policy_of_table(problem, table)
        chains = Plausible(mean_of(problem), problem.members, problem.members)
        return policy_of_rules(
            self, problem, lambda one, budget: Search(chains, one, budget).best().pair
        )

    def rules(self, mean: Members, setting: Setting, epsilon: float) -> Pair:
        """See `Mechanism.rules`."""
        _check(mean, epsilon)
        return Search(Plausible(mean, mean, mean), setting, epsilon).best().pair

    def attempts(
        self, promise: Promise, settings: Collection[Setting], epsilon: float, watch: Progress
    ) -> Iterator[dict[Setting, Pair]]:
        """See `Mechanism.attempts`; Unserved where another one would exceed the time."""
        latest = time.process_time() + _BUDGET
        for share in TIGHTENED:
            _check(promise.mean, epsilon * share)
            begun = time.process_time()
            chains = plausible(promise, epsilon * share)
            rules = _designed(chains, settings, epsilon * share, watch, latest)
            took = time.process_time() - begun
            yield rules
            if time.process_time() + took > latest:
                raise Unserved("designing stopping rules takes too long")


def _designed(
    chains: Plausible, settings: Collection[Setting], epsilon: float, watch: Progress, latest: float
) -> dict[Setting, Pair]:
    """The rules of each setting."""
    found: dict[Setting, Pair] = {}
    # most private records are alone: theirs are designed first
    ordered = sorted(settings, key=lambda one: (SETTINGS.index(one.kind), one.place))
    own = [one for one in ordered if not _takes_run(one, settings, chains.mean.contexts)]
    with watch(OwnerStopping.name, len(own)) as done:
        for left, setting in zip(range(len(own), 0, -1), own, strict=True):
            share = _SHARE if left > 1 else 1.0
            some = replace(chains, allowed=int(np.ceil(share * chains.allowed)))
            now = time.process_time()
            best = Search(some, setting, epsilon, now + (latest - now) / left).best()
            found[setting] = best.pair
            chains = chains.without(best.over)
            done(1)
    for setting in ordered:  # the side of a run serves where a core is at its chain's end
        if setting not in found:
            found[setting] = of_setting(setting, *found[Setting("run", setting.place)])
    return found


# Whether a setting with one side takes that of a run, which is stricter than it must be.
def _takes_run(setting: Setting, settings: Collection[Setting], contexts: int) -> bool:
    ends = setting.kind in ("first", "last")
    return ends and contexts > _OWN_ENDS and Setting("run", setting.place) in settings


def plausible(promise: Promise, epsilon: float) -> Plausible:
    """The chains that rules are made and judged on.

    Returns all of a list; of a posterior, draws that depend on nothing else.
    """
    rule = promise.acceptance
    if rule is None:
        known = promise.members(0, 0)
        return Plausible(promise.mean, known, known)
    makers, times = next(counts for most, *counts in _DRAWN if promise.mean.contexts <= most)
    return Plausible(
        promise.mean,
        promise.members(makers, promise.seed(epsilon, "design")),
        promise.members(times * rule.drawn, promise.seed(epsilon, "judge")),
        rule.publisher / rule.drawn,
        int(_MARGIN * times * rule.publisher),
    )


def _check(mean: Members, epsilon: float) -> None:
    if epsilon <= 0:
        raise Unserved("at ε = 0 stopping rules serve single problems only")
    if mean.contexts > _MOST_CONTEXTS:
        raise Unserved(f"stopping rules serve up to {_MOST_CONTEXTS} contexts")
