"""RuleBook: the rules of a table policy, numbered, so that runs find theirs by arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms.deciding.layout import FIRST, LAST, LEFT, RIGHT, WHOLE
from offrecord.mechanisms.rules import SETTINGS, LocalRule, SideRule, StoppingRule
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Integers

R = TypeVar("R", bound=SideRule)
#: No rule, because there is no side; a rule that the policy lacks.
NO_SIDE, LACKING = -1, -2


@dataclass(frozen=True, eq=False)
class RuleBook(Generic[R]):
    """rules: all different ones. numbers: (kinds, places, 2) which of them acts to the left and to
    the right of a core.
    """

    rules: Sequence[R]
    numbers: Integers

    @cached_property
    def reaches(self) -> Integers:
        """How far each rule reaches beyond a core; the last entry, 0, is that of no side."""
        return np.array([rule.reach for rule in self.rules] + [0], dtype=np.int64)

    def of(self, kinds: Integers, places: Integers) -> Integers:
        """(c, 2) the numbers of the rules of cores, NO_SIDE where a side has no records.

        Raises InputError where the policy has no rule for a core.
        """
        known = self.numbers.shape[1]
        within = np.minimum(places, known - 1)
        sides = np.array([LEFT, RIGHT])
        found = self.numbers[kinds[:, np.newaxis], within, sides]
        found = np.where(places < known, found, np.where(found == NO_SIDE, NO_SIDE, LACKING))
        if np.any(found == LACKING):
            core, side = (int(one[0]) for one in np.nonzero(found == LACKING))
            setting, place = SETTINGS[int(kinds[core])], int(places[core, side])
            raise InputError(f"the policy has no rule for the setting {setting} at place {place}")
        return np.asarray(found)


def local_book(policy: TablePolicy) -> RuleBook[LocalRule]:
    """The rules of a policy that has local rules alone."""
    book = _book(policy, {id(rule): rule for pair in policy.rules.values() for rule in pair})
    assert all(isinstance(rule, LocalRule) for rule in book.rules)
    return book  # type: ignore[return-value] # asserted of every rule


def stopping_book(policy: TablePolicy, order: int) -> RuleBook[StoppingRule]:
    """The rules of a policy that has stopping rules; its windows as walks to a deadline.

    Raises InputError for other local rules beside stopping rules, and for protect="each".
    """
    if policy.protect != "run":
        raise InputError("stopping rules protect whole runs: protect must be 'run'")
    rules = {id(rule): rule for pair in policy.rules.values() for rule in pair}
    acting = {name: None if r is None else _stopping(r, order) for name, r in rules.items()}
    return _book(policy, acting)  # type: ignore[return-value] # stopping rules alone


def _stopping(rule: SideRule, order: int) -> StoppingRule:
    """A rule as a stopping rule: a window is a walk that stops at its deadline alone."""
    if isinstance(rule, StoppingRule):
        if rule.order != order:
            raise InputError(f"the rules are for order {rule.order}, the model has order {order}")
        return rule
    if not isinstance(rule, LocalRule) or not rule.is_window:
        raise InputError("a policy with stopping rules has no local rules but windows")
    k = rule.redaction.shape[1]
    far = np.zeros(k**order, dtype=np.int64)
    stop = np.zeros((0, 1, k**order, k**order))
    return StoppingRule(order, k, np.array([rule.reach + order]), far, stop)


def _book(policy: TablePolicy, acting: Mapping[int, SideRule | None]) -> RuleBook[SideRule]:
    """acting: what acts for each rule of the policy, by its identity."""
    rules = [rule for rule in acting.values() if rule is not None]
    number = {id(rule): i for i, rule in enumerate(rules)}
    places = 1 + max((setting.place for setting in policy.rules), default=0)
    numbers = np.full((len(SETTINGS) + 1, places, 2), LACKING, dtype=np.int64)
    for setting, pair in policy.rules.items():
        for side, rule in zip((LEFT, RIGHT), pair, strict=True):
            one = acting[id(rule)]
            if one is not None:
                numbers[SETTINGS.index(setting.kind), setting.place, side] = number[id(one)]
    numbers[WHOLE] = numbers[FIRST, :, LEFT] = numbers[LAST, :, RIGHT] = NO_SIDE
    return RuleBook(rules, numbers)
