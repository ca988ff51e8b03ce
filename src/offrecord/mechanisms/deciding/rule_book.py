"""RuleBook: the rules of a table policy, numbered, so that runs find theirs by arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from offrecord.errors import InputError
from offrecord.mechanisms.deciding.layout import FIRST, LAST, LEFT, RIGHT, WHOLE
from offrecord.mechanisms.rules import SETTINGS, LocalRule, SideRule
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.base import Integers

#: No rule, because there is no side; a rule that the policy lacks.
NO_SIDE, LACKING = -1, -2


@dataclass(frozen=True, eq=False)
class RuleBook:
    """rules: all different ones. numbers: (kinds, places, 2) which of them acts to the left and to
    the right of a core.
    """

    rules: Sequence[SideRule]
    numbers: Integers

    @classmethod
    def of_policy(cls, policy: TablePolicy, order: int) -> RuleBook:
        """The rules of a policy for chains of an order; InputError if they do not act together."""
        rules = list({id(rule): rule for rule in policy.sides}.values())
        _check(policy, rules, order)
        number = {id(rule): i for i, rule in enumerate(rules)}
        places = 1 + max((setting.place for setting in policy.rules), default=0)
        numbers = np.full((len(SETTINGS) + 1, places, 2), LACKING, dtype=np.int64)
        for setting, pair in policy.rules.items():
            for side, rule in zip((LEFT, RIGHT), pair, strict=True):
                if rule is not None:
                    numbers[SETTINGS.index(setting.kind), setting.place, side] = number[id(rule)]
        numbers[WHOLE] = numbers[FIRST, :, LEFT] = numbers[LAST, :, RIGHT] = NO_SIDE
        return cls(rules, numbers)

    @cached_property
    def reaches(self) -> Integers:
        """How far each rule reaches beyond a core; the last entry, 0, is that of no side."""
        return np.array([rule.reach for rule in self.rules] + [0], dtype=np.int64)

    @property
    def local(self) -> Sequence[LocalRule]:
        """Its rules, all of which are local."""
        assert all(isinstance(rule, LocalRule) for rule in self.rules)
        return self.rules  # type: ignore[return-value] # asserted

    def of(self, kinds: Integers, places: Integers) -> Integers:
        """(c, 2) the numbers of the rules of cores, NO_SIDE where a side has no records; InputError
        where the policy has no rule for a core.
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


def _check(policy: TablePolicy, rules: Sequence[SideRule], order: int) -> None:
    if not all(rule.fits(rule.k, order) for rule in rules):
        raise InputError(f"the policy is not for chains of order {order}")
    if policy.is_local:
        return
    if policy.protect != "run":
        raise InputError("these rules protect whole runs: protect must be 'run'")
    # a local rule decides records, not how many: beside walks it must be a window
    if any(isinstance(rule, LocalRule) and not rule.is_window for rule in rules):
        raise InputError("beside rules that are not local, local rules must be windows")
