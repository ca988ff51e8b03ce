"""Side rules: what is redacted on one side of a core, by distance.

A *core* is what goes whole: a private run, or, where it is shorter than the order m, the m records
that end at its last one (the first m of the chain, where fewer come before). The right side starts
from the context of the core's last m records, the left side from that of its first m. Distances
count from the core outwards, missing records included. There are two kinds of rules and no third:
a local rule looks at one record at a time, a stopping rule walks outwards until it stops.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from offrecord.models.base import Floats, Integers
from offrecord.models.members import Members

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
    """What one side does. Rules are immutable, made for one direction and one place."""

    kind: ClassVar[str]  #: "local" or "stopping"

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
    def expected_redactions(self, members: Members, place: int, direction: Direction) -> Floats:
        """(M,) expected number of records redacted beyond the core, given enough room."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Content of files; exact."""

    @classmethod
    @abstractmethod
    def from_dict(cls, content: Any) -> Self:
        """The rule of a file's content; InputError if it cannot be one."""


class Pair(NamedTuple):
    """The rules of one setting; None on a side that has no records there."""

    left: SideRule | None
    right: SideRule | None


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
    def is_window(self) -> bool:
        """Whether no probability is strictly between 0 and 1 and none depends on the value."""
        return bool(np.all(self.redaction == 1))

    @property
    def reach(self) -> int:
        """Number of distances."""
        return len(self.redaction)

    def outcomes(self, members: Members, place: int, direction: Direction) -> Floats:
        """For order 1 the first record released and its value (F1); for windows of any order the
        nearest released context (R6). Other rules of order 2 and more are not served.
        """
        from offrecord.theory.sides import local_outcomes

        return local_outcomes(self.redaction, members, place, direction)

    def expected_redactions(self, members: Members, place: int, direction: Direction) -> Floats:
        """By each record's own law."""
        from offrecord.theory.sides import local_redactions

        return local_redactions(self.redaction, members, place, direction)

    def to_dict(self) -> dict[str, Any]:
        """Windows by their size, other rules row by row."""
        if self.is_window:
            return {"kind": "local", "window": self.reach, "values": self.redaction.shape[1]}
        return {"kind": "local", "redaction": self.redaction.tolist()}

    @classmethod
    def from_dict(cls, content: Any) -> LocalRule:
        """See `to_dict`."""
        from offrecord.mechanisms.rule_files import local_rule

        return local_rule(content)


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

    def outcomes(self, members: Members, place: int, direction: Direction) -> Floats:
        """Level, far context and level's context; at the deadline the far context alone."""
        from offrecord.mechanisms.owner.law import outcomes

        return outcomes(self, members, place, direction)

    def expected_redactions(self, members: Members, place: int, direction: Direction) -> Floats:
        """By the law of the stop."""
        from offrecord.mechanisms.owner.law import expected_redactions

        return expected_redactions(self, members, place, direction)

    def to_dict(self) -> dict[str, Any]:
        """Probabilities packed: little-endian float64, zlib, base64."""
        from offrecord.mechanisms.rule_files import stopping_content

        return stopping_content(self)

    @classmethod
    def from_dict(cls, content: Any) -> StoppingRule:
        """See `to_dict`."""
        from offrecord.mechanisms.rule_files import stopping_rule

        return stopping_rule(content)
