"""The rules of a certificate, unpacked and checked."""

from __future__ import annotations

import base64
import binascii
import zlib
from dataclasses import dataclass, field

import numpy as np

from offrecord.errors import InputError
from offrecord.release.certificate import Matrix, Policy, Rule, Stopping, Unknown, Window
from offrecord.verify.members import Floats, Integers, Kind

_MOST_PROBABILITIES = 2**24  # of one rule: 128 MB
_MOST_CONTEXTS = 64  # of a stopping rule


class UnknownRuleError(Exception):
    """The certificate holds a rule of a kind that this verifier does not know."""


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

        Raises InputError for rules that do not fit the model or each other, UnknownRuleError for
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
    def settings(self) -> set[tuple[str, int]]:
        """Each setting and place with rules."""
        return {(setting, place) for setting, place, _ in self.sides}

    @property
    def walks(self) -> bool:
        """Whether any rule is a stopping rule, so that near runs are merged."""
        return any(isinstance(one, Stops) for one in self.sides.values())


def _side(rule: Rule, kind: Kind) -> Side:
    if isinstance(rule, Unknown):
        raise UnknownRuleError(f"rules of the kind {rule.kind!r:.40}")
    if isinstance(rule, Window):
        if rule.values != kind.k:
            raise InputError(f"policy.rules: a window of {rule.values} values, not {kind.k}")
        return Local(np.ones((rule.window, kind.k)))
    return _matrix(rule, kind) if isinstance(rule, Matrix) else _stops(rule, kind)


def _matrix(rule: Matrix, kind: Kind) -> Local:
    if any(len(row) != kind.k for row in rule.redaction):
        raise InputError(f"policy.rules: redaction must have {kind.k} probabilities a row")
    found = Local(_exact(np.array(rule.redaction, dtype=np.float64).reshape(-1, kind.k)))
    if kind.order > 1 and not found.is_window:
        raise UnknownRuleError(f"local rules of order {kind.order} that are no windows")
    return found


def _stops(rule: Stopping, kind: Kind) -> Stops:
    contexts = kind.contexts
    if rule.order != kind.order or rule.values != kind.k or contexts > _MOST_CONTEXTS:
        raise InputError("policy.rules: a stopping rule must have the model's order and values")
    levels = np.array(rule.levels, dtype=np.int64)
    rising = len(levels) and levels[0] >= kind.order and np.all(np.diff(levels) > 0)
    if not rising or levels[-1] > 10**7:
        raise InputError(f"policy.rules: levels must rise, from {kind.order} on")
    far = np.array(rule.far, dtype=np.int64)
    if len(far) != contexts or far.min() < 0 or far.max() >= contexts:
        raise InputError("policy.rules: far must have a class for each context")
    shape = len(levels) - 1, int(far.max()) + 1, contexts, contexts
    size = int(np.prod(shape))
    if size > _MOST_PROBABILITIES:
        raise InputError("policy.rules: stop holds too many probabilities")
    try:
        packed = zlib.decompressobj()
        content = packed.decompress(base64.b64decode(rule.stop, validate=True), 8 * size + 8)
    except (binascii.Error, ValueError, zlib.error):
        raise InputError("policy.rules: stop must be packed probabilities") from None
    if len(content) != 8 * size:
        raise InputError(f"policy.rules: stop must hold {size:,} probabilities")
    stop = np.frombuffer(content, dtype="<f8").astype(np.float64).reshape(shape)
    return Stops(rule.order, levels, far, _exact(stop))


def _exact(chances: Floats) -> Floats:
    """Probabilities that coins of 64 bits draw exactly."""
    inside = bool(np.all((chances >= 0) & (chances <= 1)))  # false for what is no number
    if not inside or np.any(chances * 2.0**64 % 1 != 0):
        raise InputError("policy.rules: probabilities must be multiples of 2**-64 from 0 to 1")
    return chances
