"""Sights: what is shown beside clusters, as far as it matters, for many of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.attack.released import Table
from offrecord.attack.stretches import ABSENT, HIDDEN
from offrecord.mechanisms.blocks import Mask
from offrecord.models.base import Integers

PAST = -3  #: the symbol of what lies beyond what was looked at
_WIDEST = 1 << 62


class Seen(NamedTuple):
    """(n, w) symbols by distance from 1, PAST beyond `length` (n,). anchored: (n,) whether the last
    of them are as many released ones as an attacker remembers: nothing beyond matters.
    """

    symbols: NDArray[np.int8]
    length: Integers
    anchored: Mask


@dataclass(frozen=True, eq=False)
class Sights:
    """Records as whoever attacks them sees them.

    rows: (chain, place) of some records to the rows they stand in, −1 where there is none. codes:
    (n,) released values, below 0 where there are none. missing: (n,) rows without any. k: how many
    values there are.
    """

    rows: Callable[[Integers, Integers], Integers]
    codes: NDArray[np.int8]
    missing: Mask
    k: int

    @classmethod
    def of(cls, table: Table) -> Sights:
        """Those of a released table."""
        return cls(table.rows, table.codes, table.missing, table.said.model.k)

    def symbols(self, chain: Integers, place: Integers) -> NDArray[np.int8]:
        """(n,) the values shown at some places, else HIDDEN or ABSENT."""
        row = self.rows(chain, place)
        found = np.where(row < 0, np.int8(ABSENT), self.codes[row])
        return np.where(self.missing[row] & (found < 0), np.int8(ABSENT), found)

    def tuples(self, chain: Integers, place: Integers, size: int) -> Integers:
        """(n,) the numbers of the tuples that begin at some places; −1 where not all is shown."""
        number, whole = np.zeros(len(chain), dtype=np.int64), np.ones(len(chain), dtype=bool)
        for further in range(size):
            value = self.symbols(chain, place + further)
            number = number * self.k + value
            whole &= value >= 0
        return np.where(whole, number, -1)

    def beside(
        self,
        chain: Integers,
        place: Integers,
        count: Integers,
        sign: int,
        memory: int,
        need: Integers,
        after: Integers,
    ) -> Seen:
        """What lies beside some places, at most so many records, up to `memory` released ones in a
        row, and at least as far as needed.

        after: (d,) how far that is if releasing begins at distance d, the last for all further.
        """
        size = len(chain)
        columns: list[NDArray[np.int8]] = []
        length, run = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        anchored, begun = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
        need = need.copy()
        active, distance = np.flatnonzero(count > 0), 0
        while len(active):
            distance += 1
            column = np.full(size, PAST, dtype=np.int8)
            symbol = self.symbols(chain[active], place[active] + sign * distance)
            column[active] = symbol
            columns.append(column)
            length[active] = distance
            run[active] = np.where(symbol >= 0, run[active] + 1, 0)
            first = active[(symbol >= 0) & ~begun[active]]
            begun[first] = True
            need[first] = np.maximum(need[first], after[min(distance, len(after) - 1)])
            anchored[active] = run[active] >= memory
            done = (anchored[active] & (distance >= need[active])) | (count[active] <= distance)
            active = active[~done]
        symbols = np.stack(columns, axis=1) if columns else np.empty((size, 0), dtype=np.int8)
        return Seen(symbols, length, anchored & (length >= need))


def numbered(columns: Sequence[NDArray[np.integer]]) -> tuple[Integers, Integers]:
    """Rows (n,) that are different in some column, one of each, and which of them each row is."""
    which = np.zeros(len(columns[0]), dtype=np.int64)
    width = 1
    for column in columns:
        low = int(column.min(initial=0))
        span = int(column.max(initial=0)) - low + 1
        if width * span >= _WIDEST:
            which = np.unique(which, return_inverse=True)[1]
            width = len(which) + 1
        which = which * span + (column.astype(np.int64) - low)
        width *= span
    _, first, which = np.unique(which, return_index=True, return_inverse=True)
    return first, which


def bounds(symbols: Integers) -> tuple[int | None, int]:
    """The distance of the first value shown, None if there is none, and of the last record before
    it that has a value, 0 if there is none.
    """
    shown = np.flatnonzero(symbols >= 0)
    first = int(shown[0]) + 1 if len(shown) else None
    hidden = np.flatnonzero(symbols[: len(symbols) if first is None else first - 1] == HIDDEN)
    return first, int(hidden[-1]) + 1 if len(hidden) else 0
