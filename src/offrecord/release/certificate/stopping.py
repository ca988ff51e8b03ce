"""What owner's designs share: where walks away from secrets stop, and how likely.

A side has levels, distances from its secret; at each but the last a walk stops with a probability
that depends on the far value (at the last level), the value at the secret's end and the value at
the level, and on the one at the next level where the side looks ahead. Between two secrets too near
for two walks, all of a gap is held out, and released, or loses a record from one end, by the values
at its ends and at those of the secrets. All of these probabilities are thresholds of 64-bit draws,
written as base64.
"""

from __future__ import annotations

import base64
import binascii
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from offrecord.release.certificate.form import (
    MAX_COUNT,
    Number,
    Section,
    Truth,
    listed,
    matching,
    number,
    optional,
    refused,
    whole,
    word,
)

#: How many labels a pair may have.
MAX_LABELS = 1024
#: How many records a gap may have.
MAX_GAP = 64
_BYTES = 8  # of a threshold


def _is_base64(text: str) -> bool:
    """Whether it is how base64 writes some bytes; the same bytes are never written twice."""
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode() == text
    except (binascii.Error, ValueError):
        return False


SideName = Annotated[str, word("left", "right")]
Levels = Annotated[Sequence[int], listed(whole(1, MAX_COUNT))]
Thresholds = Annotated[str, matching(_is_base64, "base64")]
Numbers = Annotated[Sequence[int], listed(whole(0, MAX_COUNT))]


def spelled_thresholds(stop: str) -> array[int]:
    """The thresholds of a side, a pair or a gap, one by one."""
    found = array("Q", base64.b64decode(stop))
    if sys.byteorder == "big":
        found.byteswap()
    return found


@dataclass(frozen=True, kw_only=True)
class StoppingSide(Section):
    """One side of a secret.

    budget: no outcome is more than e^budget times as likely under one value of the secret's end as
    under another. levels: where a walk may stop; none of them: everything is redacted to the
    chain's end. ahead: it sees the value at the next level. stop: thresholds by far value, level
    but the last, value of the secret's end, value there, and value at the next level if it sees
    that.
    """

    side: SideName
    budget: Number
    levels: Levels
    ahead: Truth
    stop: Thresholds

    def count(self, k: int) -> int:
        """How many thresholds it has."""
        return max(len(self.levels) - 1, 0) * k ** (4 if self.ahead else 3)

    def reaches_beyond(self, other: StoppingSide) -> bool:
        """Whether it may stop further out than another one's last level."""
        return bool(self.levels and other.levels) and self.levels[-1] > other.levels[-1]

    def check(self, place: str, k: int) -> None:
        """InputError unless levels increase, and there are as many thresholds as they ask for."""
        _check_levels(place, self.levels)
        _check_count(place, self.stop, self.count(k))


@dataclass(frozen=True, kw_only=True)
class StoppingPair(Section):
    """Both sides of a single record in turn.

    first: the one that goes first. epsilon: what both together tell at most. stop: its thresholds,
    as those of a side, and last by label. seconds: which of the sides goes second, for each label,
    and then for each far value of a walk that reached its last level.
    """

    first: SideName
    epsilon: Number
    levels: Levels
    ahead: Truth
    labels: Annotated[int, whole(1, MAX_LABELS)]
    stop: Thresholds
    seconds: Numbers

    def check(self, place: str, k: int, sides: Sequence[StoppingSide]) -> None:
        """InputError unless thresholds never decrease from label to label, and the second side is
        the other one, for each label and far value.
        """
        if not self.levels:
            raise refused(f"{place}.levels", "must hold at least one level")
        _check_levels(place, self.levels)
        count = (len(self.levels) - 1) * k ** (4 if self.ahead else 3) * self.labels
        _check_count(place, self.stop, count)
        thresholds, labels = spelled_thresholds(self.stop), self.labels
        by_label = [thresholds[label::labels] for label in range(labels)]
        if any(a > b for less, more in pairwise(by_label) for a, b in zip(less, more, strict=True)):
            raise refused(f"{place}.stop", "must not decrease from label to label")
        if len(self.seconds) != labels + k:
            says = f"must be {labels + k} sides, for each label and value"
            raise refused(f"{place}.seconds", says)
        for at, second in enumerate(self.seconds):
            if second >= len(sides) or sides[second].side == self.first:
                raise refused(f"{place}.seconds[{at}]", "must be one of the sides, the other one")


@dataclass(frozen=True, kw_only=True)
class GapStopping(Section):
    """What is released of a gap too short for two walks.

    length: how many records it has. budgets: what is told about the end of the secret to its left,
    and of that to its right. stop: two thresholds, of being released and of that or losing the
    first record, by what is held out (the most records first, then the leftmost), the values at
    the ends of the left and the right secret, and those of the first and the last record held out.
    """

    length: Annotated[int, whole(1, MAX_GAP)]
    budgets: Annotated[Sequence[float], listed(number, 2)]
    stop: Thresholds

    def count(self, k: int) -> int:
        """How many thresholds it has."""
        return self.length * (self.length + 1) * k**4


@dataclass(frozen=True, kw_only=True)
class Stopping(Section):
    """All that the secrets of a design need, whatever room they have.

    options: pairs of a left and a right side, by their numbers. The first serves every cluster of
    secrets, and decides which of them join. pair: for a single record far from all others. gaps:
    for two secrets too near for two walks, by how many records lie between them.
    """

    epsilon: Number
    options: Annotated[Sequence[Sequence[int]], listed(listed(whole(0, MAX_COUNT), 2))]
    pair: Annotated[StoppingPair | None, optional(StoppingPair.read)] = None
    gaps: Annotated[Sequence[GapStopping], listed(GapStopping.read)] = ()
    sides: Annotated[Sequence[StoppingSide], listed(StoppingSide.read)]

    def check(self, place: str, k: int, epsilon: float) -> None:
        """InputError unless its parts go together, and with the ε that designs are made for.

        It does not say that sides and gaps keep their budgets: that takes the model.
        """
        if self.epsilon > epsilon:
            raise refused(f"{place}.epsilon", "must be at most that of the designs")
        for at, side in enumerate(self.sides):
            side.check(f"{place}.sides[{at}]", k)
            if side.budget > epsilon:
                raise refused(f"{place}.sides[{at}].budget", "must be at most epsilon")
        if self.pair is not None:
            self.pair.check(f"{place}.pair", k, self.sides)
            if self.pair.epsilon > epsilon:
                raise refused(f"{place}.pair.epsilon", "must be at most that of the designs")
        self._check_options(place)
        self._check_gaps(place, k)

    def _check_options(self, place: str) -> None:
        if not self.options:
            raise refused(f"{place}.options", "must hold at least one option")
        for at, option in enumerate(self.options):
            named = [self.sides[number].side for number in option if number < len(self.sides)]
            if named != ["left", "right"]:
                raise refused(f"{place}.options[{at}]", "must be a left and a right side")
        first, *others = ([self.sides[number] for number in one] for one in self.options)
        if first[0].budget + first[1].budget > self.epsilon:
            raise refused(f"{place}.options[0]", "must have budgets that sum to at most epsilon")
        for at, other in enumerate(others, start=1):
            if any(side.reaches_beyond(base) for side, base in zip(other, first, strict=True)):
                says = "must not have a later last level than the first one"
                raise refused(f"{place}.options[{at}]", says)

    def _check_gaps(self, place: str, k: int) -> None:
        if len({gap.length for gap in self.gaps}) < len(self.gaps):
            raise refused(f"{place}.gaps", "must have one gap of the same length")
        left, right = (self.sides[number] for number in self.options[0])
        for at, gap in enumerate(self.gaps):
            # What leaves the left secret goes to the right, and the other way round.
            if tuple(gap.budgets) != (right.budget, left.budget):
                says = "must be the right and the left budget of the first option"
                raise refused(f"{place}.gaps[{at}].budgets", says)
            _check_count(f"{place}.gaps[{at}]", gap.stop, gap.count(k))


def _check_levels(place: str, levels: Sequence[int]) -> None:
    if any(near >= far for near, far in pairwise(levels)):
        raise refused(f"{place}.levels", "must increase")


def _check_count(place: str, stop: str, count: int) -> None:
    if len(base64.b64decode(stop)) != _BYTES * count:
        raise refused(f"{place}.stop", f"must be base64 of {count} thresholds of {_BYTES} bytes")
