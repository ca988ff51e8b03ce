"""Side rules: what is redacted on one side of a core, by distance.

A *core* is what goes whole: a private run, or, where it is shorter than the order m, the m records
that end at its last one (the first m of the chain, where fewer come before). The right side starts
from the context of the core's last m records, the left side from that of its first m. Distances
count from the core outwards, missing records included.

A local rule decides each record by its own value and coin. Every other rule decides how many of the
nearest records its side redacts: a stopping rule does so by a walk. A mechanism may bring a kind of
its own, which is a subclass of `SideRule` in the mechanism's file.
"""

from __future__ import annotations

import base64
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np

from offrecord.errors import InputError
from offrecord.models.base import Floats, Integers
from offrecord.models.members import Members
from offrecord.theory.sides import local_outcomes, local_redactions, margin_beyond

if TYPE_CHECKING:
    from offrecord.mechanisms.deciding.stopping import Walks
    from offrecord.release.certificate import Rule

Direction = Literal["left", "right"]
SettingKind = Literal["record", "run", "first", "last"]
SETTINGS: tuple[SettingKind, ...] = ("record", "run", "first", "last")


class Setting(NamedTuple):
    """Where rules act.

    kind: "record", a lone private record, both sides judged as one (F2); "run", a private run of
    two or more records or a cluster of near runs (left.max + right.max, O7); "first" and "last", a
    core at the first or last record of its chain, whose only side has all of ε. place: that of the
    last record of the start context; 0 where places make no difference. A run has a left rule for
    the place of its left start context and a right rule for that of its right one.
    """

    kind: SettingKind
    place: int = 0


class SideRule(ABC):
    """What one side does. Rules are immutable, made for one direction and one place.

    kind: how files call rules of the class. k: number of values. observed: distances of the
    contexts it depends on, besides 0 and `reach` + m. least: the fewest records that it may redact.
    is_window: whether it redacts `reach` records in any case.

    A rule may depend on its own coins, the start context and the `reach` + m records beyond the
    core, and on nothing else: sides with missing records (S5), near runs and walks that meet
    (docs/proofs/several-runs.md) rest on it.
    """

    kind: ClassVar[str]
    k: int
    observed: Integers = np.empty(0, dtype=np.int64)
    least: int = 0
    is_window: bool = False

    @property
    @abstractmethod
    def reach(self) -> int:
        """How many records beyond the core it may redact at most."""

    @abstractmethod
    def outcomes(self, members: Members, place: int, direction: Direction) -> Floats:
        """(M, O, S) likelihood of what an observer of this side may see, given the start context,
        up to factors that the start context does not change.
        """

    @abstractmethod
    def stop_law(self, members: Members, place: int, direction: Direction) -> Floats:
        """(M, reach + 1) probability that exactly so many records are redacted beyond the core."""

    @abstractmethod
    def redacted(self, walks: Walks) -> Integers:
        """(w,) how many records beyond the core are redacted."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Content of files with the rule's kind; exact."""

    @classmethod
    @abstractmethod
    def from_form(cls, form: Any) -> Self:
        """The rule of a file's form; InputError if it cannot be one. Of a kind of one's own the
        form has what `to_dict` wrote as attributes.
        """

    def fits(self, k: int, order: int) -> bool:
        """Whether it is for chains of so many values and this order."""
        return self.k == k

    def expected_redactions(self, members: Members, place: int, direction: Direction) -> Floats:
        """(M,) expected number of records redacted beyond the core, in a chain with all the records
        that its places allow.
        """
        margin, counts = margin_beyond(members, place, direction), np.arange(self.reach + 1)
        within = counts if margin is None else np.minimum(counts, margin)
        return np.asarray(self.stop_law(members, place, direction) @ within)


def rule_of(form: Rule) -> SideRule:
    """The rule of a file, of any kind that a registered mechanism has."""
    kind = kind_named(SideRule, form.kind)  # type: ignore[type-abstract] # a subclass
    return kind.from_form(form)


T = TypeVar("T")


def kind_named(base: type[T], name: Any) -> type[T]:
    """The subclass of a kind; InputError where no registered mechanism has it."""
    found = _named(base, name)
    if found is None:
        from offrecord.mechanisms import import_all

        import_all()
        found = _named(base, name)
    if found is None:
        raise InputError(f"the kind {name!r:.40} is not known: no registered mechanism has it")
    return found


def _named(base: type[T], name: Any) -> type[T] | None:
    for one in base.__subclasses__():
        found = one if one.__dict__.get("kind") == name else _named(one, name)
        if found is not None:
            return found
    return None


class Pair(NamedTuple):
    """The rules of one setting; None on a side that has no records there."""

    left: SideRule | None
    right: SideRule | None


def expected_cost(pair: Pair, mean: Members, place: int) -> float:
    """Expected redactions beyond a core at a place, under one chain."""
    directions: tuple[Direction, ...] = ("left", "right")
    return sum(
        float(rule.expected_redactions(mean, place, direction)[0])
        for rule, direction in zip(pair, directions, strict=True)
        if rule is not None
    )


def of_setting(setting: Setting, left: SideRule | None, right: SideRule | None) -> Pair:
    """The rules of those sides that a setting has."""
    return Pair(
        None if setting.kind == "first" else left, None if setting.kind == "last" else right
    )


@dataclass(frozen=True, eq=False)
class LocalRule(SideRule):
    """A probability of redaction by distance and value.

    redaction: (reach, k) multiples of 2**-64, rounded up; redaction[d - 1, v] is the probability
    that the record at distance d is redacted if its value is v. Beyond `reach` all is released.
    """

    kind: ClassVar[str] = "local"
    redaction: Floats

    @classmethod
    def window(cls, size: int, k: int) -> LocalRule:
        """Redact `size` records whatever their values."""
        return cls(np.ones((size, k)))

    @property
    def k(self) -> int:  # type: ignore[override] # read-only here
        """Number of values."""
        return int(self.redaction.shape[1])

    @property
    def reach(self) -> int:
        """Number of distances."""
        return len(self.redaction)

    least = reach  # among walks it is a window

    @property
    def is_window(self) -> bool:  # type: ignore[override] # read-only here
        """Whether no probability is strictly between 0 and 1 and none depends on the value."""
        return bool(np.all(self.redaction == 1))

    def redacted(self, walks: Walks) -> Integers:
        """All of a window; other local rules decide record by record."""
        return np.full(walks.count, self.reach)

    def stop_law(self, members: Members, place: int, direction: Direction) -> Floats:
        """See `redacted`."""
        return np.tile(np.arange(self.reach + 1) == self.reach, (members.count, 1)).astype(float)

    def outcomes(self, members: Members, place: int, direction: Direction) -> Floats:
        """For order 1 the first record released and its value (F1); for windows of any order the
        nearest released context (R6). Other rules of order 2 and more are not served.
        """
        return local_outcomes(self.redaction, members, place, direction)

    def expected_redactions(self, members: Members, place: int, direction: Direction) -> Floats:
        """By each record's own law."""
        return local_redactions(self.redaction, members, place, direction)

    def to_dict(self) -> dict[str, Any]:
        """Windows by their size, other rules row by row."""
        if self.is_window:
            return {"kind": "local", "window": self.reach, "values": self.redaction.shape[1]}
        return {"kind": "local", "redaction": self.redaction.tolist()}

    @classmethod
    def from_form(cls, form: Any) -> LocalRule:
        """See `to_dict`."""
        return cls(form.chances())


@dataclass(frozen=True, eq=False)
class StoppingRule(SideRule):
    """A walk outwards that stops at a random level and releases everything from there on.

    order, k: m and the number of values. levels: (n,) distances t of increasing size, the first at
    least m, the last one the deadline L. Contexts are named by the distance of their last record
    from the last record of the start context: on the right the context at distance t ends t records
    after it, on the left t records before it. Stopping at level t redacts t - m records beyond the
    core. far: (S,) the class of each context at the deadline, 0 … C - 1. stop: (n - 1, C, S, S)
    probability of stopping at a level, if the walk got there, given the far class, the start
    context and the level's context; multiples of 2**-64, rounded down. At the deadline it stops.
    """

    kind: ClassVar[str] = "stopping"
    order: int
    k: int
    levels: Integers
    far: Integers
    stop: Floats

    @property
    def deadline(self) -> int:
        """The last level, L."""
        return int(self.levels[-1])

    @property
    def reach(self) -> int:
        """L - m."""
        return self.deadline - self.order

    @property
    def is_window(self) -> bool:  # type: ignore[override] # read-only here
        """Whether the deadline is its only level."""
        return len(self.stop) == 0

    @property
    def observed(self) -> Integers:  # type: ignore[override] # read-only here
        """All levels."""
        return self.levels

    @property
    def least(self) -> int:  # type: ignore[override] # read-only here
        """Up to the first level at which anything stops."""
        stops = np.append(self.stop.any(axis=(1, 2, 3)), True)
        return int(self.levels[np.argmax(stops)]) - self.order

    def fits(self, k: int, order: int) -> bool:
        """Its levels count contexts of one order."""
        return (self.k, self.order) == (k, order)

    def redacted(self, walks: Walks) -> Integers:
        """By a walk from level to level."""
        from offrecord.release.coins import thresholds

        active, limits = np.arange(walks.count), thresholds(self.stop)
        start = walks.contexts(active, 0)
        far = self.far[walks.contexts(active, self.deadline)]
        found = np.full(walks.count, self.reach)
        for number, level in enumerate(self.levels[:-1].tolist()):
            here = limits[number, far[active], start[active], walks.contexts(active, level)]
            stopped = walks.coin(active, here, number)
            found[active[stopped]] = level - self.order
            active = active[~stopped]
        return found

    def outcomes(self, members: Members, place: int, direction: Direction) -> Floats:
        """Level, far context and level's context; at the deadline the far context alone."""
        from offrecord.mechanisms.owner import law

        return law.outcomes(self, members, place, direction)

    def stop_law(self, members: Members, place: int, direction: Direction) -> Floats:
        """A stop at level t redacts t - m records."""
        from offrecord.mechanisms.owner import law

        found = np.zeros((members.count, self.reach + 1))
        found[:, self.levels - self.order] = law.stop_law(self, members, place, direction)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Probabilities packed: little-endian float64, zlib, base64."""
        packed = zlib.compress(np.ascontiguousarray(self.stop, dtype="<f8").tobytes(), 9)
        return {
            "kind": "stopping",
            "order": self.order,
            "values": self.k,
            "levels": self.levels.tolist(),
            "far": self.far.tolist(),
            "stop": base64.b64encode(packed).decode(),
        }

    @classmethod
    def from_form(cls, form: Any) -> StoppingRule:
        """See `to_dict`."""
        levels, far = (np.array(one, dtype=np.int64) for one in (form.levels, form.far))
        return cls(form.order, form.values, levels, far, form.chances())
