"""Which surroundings the secrets of a table have, and how many secrets have each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.surroundings import Surrounding
from offrecord.models.base import Integers

#: Odd numbers that mix others.
_ODD = np.array([0x9E3779B97F4A7C15, 0xD1B54A32D192ED03], dtype=np.uint64)
LONGEST_GAP = 64  #: between neighbouring secrets, of which it matters how long it is


@dataclass(frozen=True, eq=False)
class SurroundingCounts:
    """The distinct surroundings of the secrets of a table.

    left, right, length: (m,) as in Surrounding. context: (m,) a number for the phases along the
    secret's chain, which are given in `phases`, else 0. counts: (m,) how many secrets have each.
    gaps: which numbers of records lie between neighbouring secrets of a chain, up to `LONGEST_GAP`.
    """

    left: Integers
    right: Integers
    length: Integers
    context: Integers
    counts: Integers
    phases: dict[int, bytes] = field(default_factory=dict)
    gaps: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        rows: Integers,
        counts: Integers,
        phases: dict[int, bytes],
        gaps: tuple[int, ...] = (),
    ) -> SurroundingCounts:
        """From rows (m, 4) of left, right, length and context."""
        left, right, length, context = rows.T
        return cls(left, right, length, context, counts, phases, gaps)

    @property
    def columns(self) -> tuple[Integers, Integers, Integers, Integers]:
        """What tells one surrounding from another."""
        return self.left, self.right, self.length, self.context

    @property
    def rows(self) -> list[tuple[int, ...]]:
        """What tells one surrounding from another, each in a tuple."""
        return list(zip(*(column.tolist() for column in self.columns), strict=True))

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[Surrounding]:
        for left, right, length, context in self.rows:
            yield Surrounding(left, right, length, self.phases.get(context, b""))


def mixed(*columns: NDArray[np.integer]) -> NDArray[np.uint64]:
    """(n,) a number for each row of some columns: the same for rows that are the same, and for
    others another, but for rare chance; and so are sums of such numbers.
    """
    numbers = np.full(len(columns[0]), _ODD[0])
    for column in columns:
        numbers += column.astype(np.uint64)
        for odd in _ODD:
            numbers *= odd
            numbers ^= numbers >> np.uint64(32)
    return numbers


def distinct(*columns: Integers) -> tuple[Integers, Integers, Integers]:
    """The distinct rows of some columns of small whole numbers: the rows, which one each is, and
    how often each comes.

    Rows become one number each; counting those is far faster than sorting rows where few are
    distinct.
    """
    if len(columns[0]) == 0:
        none = np.empty(0, dtype=np.int64)
        return np.empty((0, len(columns)), dtype=np.int64), none, none
    codes, size = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        numbers, count = column, int(column.max()) + 1
        if size * count >= 2**62:  # one number would not do
            (codes, size), (numbers, count) = _numbered(codes), _numbered(column)
        codes, size = codes * count + numbers, size * count
    if size < max(4 * len(codes), 1 << 20):
        counts = np.bincount(codes)
        found = np.flatnonzero(counts)
        number = np.zeros(len(counts), dtype=np.int64)
        number[found] = np.arange(len(found))
        used, counts = number[codes], counts[found]
    else:
        found, used, counts = np.unique(codes, return_inverse=True, return_counts=True)
    one = np.empty(len(found), dtype=np.int64)
    one[used] = np.arange(len(used))
    return np.stack([column[one] for column in columns], axis=1), used, counts


def _numbered(column: Integers) -> tuple[Integers, int]:
    """Numbers from 0 in the place of others, in the same order, and how many there are."""
    found, numbers = np.unique(column, return_inverse=True)
    return numbers, len(found)
