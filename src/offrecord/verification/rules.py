"""The rules of a certificate, unpacked and checked."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from offrecord.errors import InputError
from offrecord.release.certificate import Policy, Rule, Stopping, Unknown
from offrecord.verification.members import CannotJudgeError, Floats, Integers, Kind


@dataclass(frozen=True, eq=False)
class Local:
    """Probability of redaction (reach, k) by distance from the core, from 1, and value."""

    redaction: Floats

    @property
    def reach(self) -> int:
        """How far beyond the core it redacts."""
        return len(self.redaction)

    @property
    def is_window(self) -> bool:
        """Whether it looks at no value."""
        return bool((self.redaction == 1).all())


@dataclass(frozen=True, eq=False)
class Stops:
    """A walk with levels, the last one being its deadline. far: (S,) class of the context there.
    stop: (n - 1, C, S, S) by level, far class, start context, the level's context.
    """

    order: int
    levels: Integers
    far: Integers
    stop: Floats

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

    kind: Kind
    sides: dict[tuple[str, int, str], Side] = field(default_factory=dict)

    @classmethod
    def of(cls, policy: Policy, kind: Kind) -> Rules:
        """Those of a certificate.

        Raises InputError for rules that do not fit the model or each other, CannotJudgeError for
        a kind that is not known.
        """
        rules = cls(kind)
        known: dict[str, Side] = {}  # rules that are equal are one object
        for entry in policy.rules:
            if entry.place >= kind.places:
                raise InputError(f"policy.rules: the model has no place {entry.place}")
            both = {"left": entry.left, "right": entry.right}
            needed = {"first": {"right"}, "last": {"left"}}.get(entry.setting, {"left", "right"})
            if {name for name, one in both.items() if one is not None} != needed:
                raise InputError(f"policy.rules: setting {entry.setting!r} needs {sorted(needed)}")
            for name in needed:
                key = entry.setting, entry.place, name
                if key in rules.sides:
                    raise InputError(f"policy.rules: setting {entry.setting!r} comes twice")
                rule = both[name]
                assert rule is not None
                content = rule.model_dump_json()
                if content not in known:
                    known[content] = _side(rule, kind)
                rules.sides[key] = known[content]
        return rules

    def side(self, setting: str, place: int, direction: str) -> Side | None:
        """The rule that acts, if there is one."""
        return self.sides.get((setting, place, direction))

    @property
    def walks(self) -> bool:
        """Whether any rule is a stopping rule, so that near runs are merged."""
        return any(isinstance(one, Stops) for one in self.sides.values())


def _side(rule: Rule, kind: Kind) -> Side:
    if isinstance(rule, Unknown):
        raise CannotJudgeError(f"rules of the kind {rule.kind!r:.40}")
    if isinstance(rule, Stopping):
        if (rule.order, rule.values) != (kind.order, kind.k):
            raise InputError("policy.rules: a stopping rule must have the model's order and values")
        levels, far = (np.array(one, dtype=np.int64) for one in (rule.levels, rule.far))
        return Stops(rule.order, levels, far, rule.chances())
    found = Local(rule.chances())
    if found.redaction.shape[1] != kind.k:
        raise InputError(f"policy.rules: a local rule must be for {kind.k} values")
    if kind.order > 1 and not found.is_window:
        raise CannotJudgeError(f"local rules of order {kind.order} that are no windows")
    return found
