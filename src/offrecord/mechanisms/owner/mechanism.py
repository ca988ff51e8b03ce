"""OwnerStopping: walks that look at the values, and stop where little can be inferred."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from offrecord.mechanisms.base import Mechanism, Unserved
from offrecord.mechanisms.owner.policy import OwnerPolicy, designed_policy
from offrecord.mechanisms.owner.search import Plausible, Search
from offrecord.mechanisms.rules import Pair, Setting
from offrecord.models.members import Members
from offrecord.models.promise import Promise
from offrecord.text import Progress, unwatched
from offrecord.theory.problem import Problem

#: Beyond, the window acts at once: 32 contexts take half a minute.
_MOST_CONTEXTS = 64
#: Seconds of CPU for the rules of a table, validation not included.
_BUDGET = 60.0
#: By the number of contexts up to which they serve, how many makers and judges are drawn: with
#: 1,000 judges rules redact a quarter more at 32 contexts, with more makers they redact no less.
_DRAWN = ((8, 400, 8000), (_MOST_CONTEXTS, 200, 4000))
#: Share of what a publisher may let exceed that judges do, so that validation mostly passes.
_MARGIN = 0.8


@dataclass(frozen=True)
class OwnerStopping(Mechanism):
    """Walk away from each end of a private run, with a look at one far value and at those on the
    way, and stop at a random distance: everything from there on is released.

    Not local: who redacts must see all values, the private ones too. In slow chains it redacts a
    third to a half of what the best window does.
    """

    name: ClassVar[str] = "owner"

    def design(self, problem: Problem) -> OwnerPolicy:
        """See `Mechanism.design`."""
        return designed_policy(problem, self)

    def rules(self, mean: Members, setting: Setting, epsilon: float) -> Pair:
        """See `Mechanism.rules`."""
        _check(mean, epsilon)
        return Search(Plausible(mean, mean, mean), setting, epsilon).best()

    def table_rules(
        self,
        promise: Promise,
        settings: Collection[Setting],
        epsilon: float,
        watch: Progress = unwatched,
    ) -> dict[Setting, Pair]:
        """See `Mechanism.table_rules`."""
        _check(promise.mean, epsilon)
        chains = plausible(promise, epsilon)
        latest = time.process_time() + _BUDGET
        found = {}
        with watch(self.name, len(settings)) as done:
            for setting in settings:
                found[setting] = Search(chains, setting, epsilon, latest).best()
                done(1)
        return found


def plausible(promise: Promise, epsilon: float) -> Plausible:
    """The chains that rules are made and judged on.

    Args:
        promise: what ε is promised for.
        epsilon: the budget, which seeds the draws.

    Returns:
        All of a list; of a posterior, draws that depend on nothing else.
    """
    rule = promise.acceptance
    if rule is None:
        known = promise.members(0, 0)
        return Plausible(promise.mean, known, known)
    makers, judges = next(counts for most, *counts in _DRAWN if promise.mean.contexts <= most)
    exceed = rule.publisher / rule.drawn
    return Plausible(
        promise.mean,
        promise.members(makers, promise.seed(epsilon, "design")),
        promise.members(judges, promise.seed(epsilon, "judge")),
        (exceed, _MARGIN * exceed),
    )


def _check(mean: Members, epsilon: float) -> None:
    if epsilon <= 0:
        raise Unserved("at ε = 0 stopping rules serve single problems only")
    if mean.contexts > _MOST_CONTEXTS:
        raise Unserved(f"stopping rules serve up to {_MOST_CONTEXTS} contexts")
