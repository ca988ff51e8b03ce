"""Stopping: where releasing begins on each side of a private run, and how likely.

A walk leads away from the run's end, whose value is x. Before it begins, one far value is looked
up: l, at the deadline. At each level, a distance, it stops with a probability that depends on l, x
and i, the value there (and on j, the value at the next level, where it looks ahead); at the
deadline it stops surely. Everything before the stop is redacted, everything from it on released.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    Where steps differ from place to place, what nobody can tell from the side alone: law: (m, k)
    Pr(T = level, X at the deadline = l); stops: (m, k) Pr(stop at a level | got there, i there);
    beyond: (k, k) the law of l given the chain's last record, for a deadline beyond it.
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


@dataclass(frozen=True, eq=False)
class Stopping:
    """All that the secrets of one model and budget ε need, whatever room they have.

    options: pairs of a left and a right side. The first serves every cluster, and so does every
    other whose budgets sum to at most ε; the rest serve clusters in which both sides are far enough
    from every secret (O11). A side may be closed: such an option is for clusters with nothing but
    the chain's end on that side. No open side of an option has a longer deadline than the first
    one's. pair: for a single record far from all others, or None.
    """

    epsilon: float
    options: tuple[tuple[StoppingSide, StoppingSide], ...]
    pair: StoppingPair | None = None
