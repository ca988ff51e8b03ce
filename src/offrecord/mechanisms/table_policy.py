"""TablePolicy: the side rules of a table, for every setting that occurs in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from offrecord.errors import InputError
from offrecord.files import write_text
from offrecord.mechanisms.rules import LocalRule, Pair, Setting, SideRule, rule_of
from offrecord.models.base import Floats
from offrecord.models.members import Members
from offrecord.theory.pairs import record_leakages, side_leakages

if TYPE_CHECKING:
    from offrecord.release.certificate import Policy as PolicyForm

_HEAD = {"format": "offrecord-policy", "kind": "table"}  # of policy files
_CHUNK = 2**24  # numbers of outcomes judged at once: 128 MB
_OUTCOMES = 128  # of a stopping rule for each context: 15 levels by 8 far classes, and the deadline


@dataclass(frozen=True)
class Validation:
    """What members that had no part in the design say about a policy.

    drawn: how many. above: how many exceed ε. quantiles: leakage that 50, 95 and 99 % of them do
    not exceed. largest: of all of them.
    """

    drawn: int
    above: int
    quantiles: tuple[float, float, float]
    largest: float

    @classmethod
    def of(cls, leakages: Floats, epsilon: float) -> Validation:
        """From the leakage of each member."""
        quantiles = np.quantile(leakages, (0.5, 0.95, 0.99), method="higher").tolist()
        above = int((~(leakages <= epsilon)).sum())  # nan exceeds it too
        return cls(len(leakages), above, tuple(quantiles), float(leakages.max()))


@dataclass(frozen=True, eq=False)
class TablePolicy:
    """Rules for every setting of a table, under one promise.

    mechanism: the name of what made them. protect: "run" or "each" (local rules alone can protect
    each private record by itself). validation: on plausible chains that had no part in the design.
    """

    mechanism: str
    epsilon: float
    protect: str
    coverage: float | None
    rules: Mapping[Setting, Pair]
    validation: Validation | None = None

    def leakages(self, members: Members) -> Floats:
        """(M,) the largest leakage of a member over everything that may act in the table."""
        size = max(_CHUNK // (_OUTCOMES * members.contexts**2), 1)
        if members.count > size:
            for place in {setting.place for setting in self.rules}:
                members.law(place)  # of all at once, which is faster than part by part
            return np.concatenate([self.leakages(part) for part in members.parts(size)])
        found = [np.zeros(members.count)]
        left, right = np.zeros(members.count), np.zeros(members.count)
        for setting, pair in self.rules.items():
            if setting.kind == "record":  # a lone record: both sides judged as one (S3)
                found.append(record_leakage(pair, members, setting.place))
                continue
            sides = [
                _side(rule, members, setting.place, direction)
                for rule, direction in zip(pair, ("left", "right"), strict=True)
            ]
            if setting.kind != "run":  # a core at its chain's end: its only side may use all of ε
                found += sides
                continue
            # a run: its left and right ends may stand at different places, so the largest of each
            # side counts (S4)
            left, right = np.maximum(left, sides[0]), np.maximum(right, sides[1])
        found.append(left + right)
        return np.asarray(np.max(found, axis=0))

    @property
    def sides(self) -> list[SideRule]:
        """All its rules."""
        return [rule for pair in self.rules.values() for rule in pair if rule is not None]

    @property
    def kinds(self) -> set[str]:
        """The kinds of rules it holds."""
        return {rule.kind for rule in self.sides}

    @property
    def is_local(self) -> bool:
        """Whether each record is decided by its own value and coin; else near runs join."""
        return all(isinstance(rule, LocalRule) for rule in self.sides)

    @property
    def reach(self) -> int:
        """How many records beyond a core any rule may redact."""
        return max((rule.reach for rule in self.sides), default=0)

    def to_dict(self) -> dict[str, Any]:
        """Content of policy files and certificates, apart from the model."""
        found = self.validation
        return {
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "protect": self.protect,
            "coverage": self.coverage,
            "rules": [_said(*one) for one in self.rules.items()],
            "validation": None
            if found is None
            else {**asdict(found), "quantiles": list(found.quantiles)},
        }

    @classmethod
    def from_dict(cls, content: Any) -> TablePolicy:
        """See `to_dict`; InputError if it cannot be one."""
        from offrecord.release.certificate import Policy

        if isinstance(content, dict):  # files name their format beside it
            for name, ours in _HEAD.items():
                if content.get(name, ours) != ours:
                    raise InputError(
                        f'this is not a table policy: "{name}" must be "{ours}", got'
                        f" {content[name]!r:.40}"
                    )
            content = {name: one for name, one in content.items() if name not in _HEAD}
        return cls.from_form(Policy.of(content))

    @classmethod
    def from_form(cls, form: PolicyForm) -> TablePolicy:
        """That of a certificate; InputError if it cannot be one."""
        rules = {
            Setting(one.setting, one.place): Pair(
                *(None if side is None else rule_of(side) for side in (one.left, one.right))
            )
            for one in form.rules
        }
        if len(rules) != len(form.rules):
            raise InputError("a setting has rules twice")
        known = form.validation
        validation = None if known is None else Validation(**known.model_dump())
        return cls(form.mechanism, form.epsilon, form.protect, form.coverage, rules, validation)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a policy file; complete or absent, and never over an existing one without force."""
        write_text(path, json.dumps(_HEAD | self.to_dict(), allow_nan=False) + "\n", force=force)


# What files say about one setting.
def _said(setting: Setting, pair: Pair) -> dict[str, Any]:
    left, right = (None if rule is None else rule.to_dict() for rule in pair)
    return {"setting": setting.kind, "place": setting.place, "left": left, "right": right}


def record_leakage(pair: Pair, members: Members, place: int) -> Floats:
    """(M,) exact leakage about a lone record at a place, both sides judged as one."""
    assert pair.left is not None
    assert pair.right is not None
    left = pair.left.outcomes(members, place, "left")
    right = pair.right.outcomes(members, place, "right")
    return record_leakages(left, right, members.law(place), members.last_value)


# (M,) leakage of one side about the core's context there.
def _side(rule: SideRule | None, members: Members, place: int, direction: Any) -> Floats:
    if rule is None:
        return np.zeros(members.count)
    return side_leakages(rule.outcomes(members, place, direction), members.law(place))
