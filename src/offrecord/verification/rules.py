"""The rules of a certificate, unpacked and checked."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers
from offrecord.release.certificate import Policy, Rule, SettingRules, Stopping, Unknown
from offrecord.verification.members import CannotJudgeError, Kind, Promised


@dataclass(frozen=True, eq=False)
class Local:
    """Probability of redaction (reach, k) by distance from the core, from 1, and value."""

    redaction: Floats

    @property
    def reach(self) -> int:
        """How far beyond the core it redacts."""
        return len(self.redaction)

    @property
    def certain(self) -> int:
        """How many of the nearest distances it redacts whatever the value."""
        return int(np.argmin(np.append((self.redaction == 1).all(axis=1), False)))

    @property
    def is_window(self) -> bool:
        """Whether it looks at no value."""
        return self.certain == self.reach


@dataclass(frozen=True, eq=False)
class Stops:
    """A walk with levels, the last one being its deadline."""

    order: int
    levels: Integers
    far: Integers  # (S,) class of the context at the deadline
    stop: Floats  # (n - 1, C, S, S) by level, far class, start context, the level's context

    @property
    def deadline(self) -> int:
        """The distance at which it surely stops."""
        return int(self.levels[-1])

    @property
    def reach(self) -> int:
        """How far beyond the core it redacts at most."""
        return self.deadline - self.order


Side = Local | Stops


@dataclass(frozen=True, eq=False)
class Rules:
    """By setting, place and side; a side that releases everything has none."""

    promised: Promised
    sides: dict[tuple[str, int, str], Side] = field(default_factory=dict)

    @classmethod
    def of(cls, policy: Policy, promised: Promised) -> Rules:
        """Those of a certificate; InputError where they fit neither the model nor each other."""
        rules, kind = cls(promised), promised.kind
        known: dict[str, Side] = {}  # rules that are equal are one object
        for entry in policy.rules:
            if entry.place >= kind.places:
                raise InputError(f"policy.rules: the model has no place {entry.place}")
            for name, rule in _acting(entry).items():
                key = entry.setting, entry.place, name
                if key in rules.sides:
                    raise InputError(f"policy.rules: setting {entry.setting!r} comes twice")
                content = rule.model_dump_json()
                if content not in known:
                    known[content] = _side(rule, kind)
                rules.sides[key] = known[content]
        return rules

    @property
    def kind(self) -> Kind:
        """What all chains have in common."""
        return self.promised.kind

    @property
    def walks(self) -> bool:
        """Whether any rule is a stopping rule, so that near runs are merged."""
        return any(isinstance(one, Stops) for one in self.sides.values())


def _acting(entry: SettingRules) -> dict[str, Rule]:
    """The rules of a setting by side, each of which must be there, and no other."""
    needed = {"first": ["right"], "last": ["left"]}.get(entry.setting, ["left", "right"])
    both = {"left": entry.left, "right": entry.right}
    found = {name: rule for name, rule in both.items() if rule is not None}
    if [*found] != needed:
        raise InputError(f"policy.rules: setting {entry.setting!r} needs {needed}")
    return found


def _side(rule: Rule, kind: Kind) -> Side:
    if isinstance(rule, Unknown):
        raise CannotJudgeError(f"rules of the kind {rule.kind!r:.40}")
    if isinstance(rule, Stopping):
        if (rule.order, rule.values) != (kind.order, kind.k):
            raise InputError("policy.rules: a stopping rule must have the model's order and values")
        # the form has seen to levels, classes and shapes
        levels, far = (np.array(one, dtype=np.int64) for one in (rule.levels, rule.far))
        return Stops(rule.order, levels, far, rule.chances())
    found = Local(rule.chances())
    if found.redaction.shape[1] != kind.k:
        raise InputError(f"policy.rules: a local rule must be for {kind.k} values")
    if kind.order > 1 and not found.is_window:
        # what shows is no first release there: later records depend on those before it too (F1)
        raise CannotJudgeError(f"local rules of order {kind.order} that are no windows")
    return found
