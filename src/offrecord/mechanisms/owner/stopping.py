"""Stopping: where releasing begins on each side of a private run, and how likely.

A walk leads away from the run's end, whose value is x. Before it begins, one far value is looked
up: l, at the deadline. At each level, a distance, it stops with a probability that depends on l, x
and i, the value there (and on j, the value at the next level, where it looks ahead); at the
deadline it stops surely. Everything before the stop is redacted, everything from it on released.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TypeAlias

from offrecord.models.base import Floats, Integers
from offrecord.release.coins import Draws

#: A deadline that is never reached: a side of which everything is redacted.
NEVER_REACHED = 2**62


@dataclass(frozen=True, eq=False)
class StoppingSide:
    """One side of a private run.

    direction: −1 for the left, 1 for the right. budget: no outcome is more than e^budget times as
    likely under one value of the run's end as under another. levels: (m,) distances that increase;
    the last one is the deadline. None of them: a closed side, redacted to the chain's end.
    limits: (k, m − 1, k, k, 1 or k) thresholds, multiples of 2⁻⁶⁴, of stopping at each level but
    the last: by far value l, level, value x of the run's end, value i there, value j at the next
    level. ALWAYS, as in release/coins.py, stands for probability 1.
    What the model says of it, where somebody asked: law: (m, k) Pr(T = level, X at the deadline =
    l); stops: (m, k) Pr(stop at a level | got there, i there); beyond: (k, k) the law of l given
    the chain's last record, for a deadline beyond it.
    """

    direction: int
    budget: float
    levels: Integers
    limits: Draws
    law: Floats | None = None
    stops: Floats | None = None
    beyond: Floats | None = None

    @property
    def deadline(self) -> int:
        """Where it stops at the latest."""
        return int(self.levels[-1]) if len(self.levels) else NEVER_REACHED

    @property
    def is_closed(self) -> bool:
        """Everything on this side is redacted."""
        return not len(self.levels)

    @property
    def identity(self) -> bytes:
        """Everything in it that decides where a walk stops, and what it may tell."""
        return repr((self.direction, self.budget)).encode() + _spelled(self.levels, self.limits)


#: A left and a right side.
Option: TypeAlias = tuple[StoppingSide, StoppingSide]


def is_shorter(option: Option, base: Option) -> bool:
    """No open side has a longer deadline than that of the base, which decides about clusters."""
    return all(
        side.is_closed or side.deadline <= first.deadline
        for side, first in zip(option, base, strict=True)
    )


@dataclass(frozen=True, eq=False)
class StoppingPair:
    """Both sides of a single private record in turn: what the second does depends on a label that
    the first one's stop draws with it.

    first: the direction of the first side. limits: (k, m − 1, k, k, 1 or k, c) thresholds, which
    increase with the label: the draw of a level stops the walk with label b if it lies below
    limits[…, b] and not below limits[…, b − 1]; ALWAYS in the last one for probability 1.
    seconds: (c + k) the other side, for each label, and then for each far value of a walk that
    reached its deadline.
    """

    first: int
    epsilon: float
    levels: Integers
    limits: Draws
    seconds: tuple[StoppingSide, ...]

    @property
    def deadlines(self) -> tuple[int, int]:
        """How far it may redact to the left and to the right."""
        mine, other = int(self.levels[-1]), max(side.deadline for side in self.seconds)
        return (mine, other) if self.first < 0 else (other, mine)


def gap_states(length: int) -> list[tuple[int, int]]:
    """First and last record, from 1, of all that may be held out in a gap; the longest first."""
    return [
        (first, first + size - 1)
        for size in range(length, 0, -1)
        for first in range(1, length - size + 2)
    ]


@dataclass(frozen=True, eq=False)
class GapStopping:
    """What is released of a gap too short for two walks, between two runs.

    length: of the gap. budgets: what is told about the end of the left run, and of the right one.
    limits: (states, k, k, k, k, 2) thresholds by what is held out (`gap_states`), the values at the
    ends of the left and right run, and those of the first and last record held out: a draw below
    the first one releases it, one below the second drops its first record, any other its last.
    law: (length,) how likely each record is released.
    """

    length: int
    budgets: tuple[float, float]
    limits: Draws
    law: Floats | None = None

    @property
    def states(self) -> list[tuple[int, int]]:
        """What may be held out."""
        return gap_states(self.length)

    @property
    def identity(self) -> bytes:
        """Everything in it that decides what is released."""
        return repr((self.length, self.budgets)).encode() + self.limits.astype("<u8").tobytes()


@dataclass(frozen=True, eq=False)
class Stopping:
    """All that the secrets of one model and budget ε need, whatever room they have.

    options: pairs of a left and a right side. The first serves every cluster, and so does every
    other whose budgets sum to at most ε; the rest serve clusters in which both sides are far enough
    from every secret (O11). A side may be closed: such an option is for clusters with nothing but
    the chain's end on that side. No open side of an option has a longer deadline than the first
    one's. pair: for a single record far from all others, or None. gaps: by length, what is released
    between two runs that are too near for two walks.
    """

    epsilon: float
    options: tuple[Option, ...]
    pair: StoppingPair | None = None
    gaps: tuple[GapStopping, ...] = ()

    @property
    def reach(self) -> int:
        """How far any walk leads that ends."""
        sides = [side for option in self.options for side in option if len(side.levels)]
        paired = () if self.pair is None else self.pair.deadlines
        return max((*(side.deadline for side in sides), *paired), default=0)

    @property
    def identity(self) -> bytes:
        """Everything in it that decides where a walk stops."""
        told = hashlib.sha256(repr(self.epsilon).encode())
        for left, right in self.options:
            told.update(left.identity + right.identity)
        if self.pair is not None:
            told.update(repr((self.pair.first, self.pair.epsilon)).encode())
            told.update(_spelled(self.pair.levels, self.pair.limits))
            for side in self.pair.seconds:
                told.update(side.identity)
        for gap in self.gaps:
            told.update(gap.identity)
        return told.digest()


def _spelled(levels: Integers, limits: Draws) -> bytes:
    shape = repr(limits.shape).encode()
    return shape + levels.astype("<i8").tobytes() + limits.astype("<u8").tobytes()
