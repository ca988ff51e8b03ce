"""Secrets: private records, or runs of them with nothing but missing records in between.

In a released table a row without a value was redacted or has been missing. So it may be open
whether two private records with nothing but such rows between them are one secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from offrecord.release.certificate import Certificate
from offrecord.verify.table.cells import EMPTY, Integers, Mask
from offrecord.verify.table.found import Found
from offrecord.verify.table.listed import Private
from offrecord.verify.table.rows import Table, is_empty

_MOST_OPEN = 8  # private records of a chain of which every way to join is tried


@dataclass(frozen=True, eq=False)
class Secrets:
    """Sorted: chain, the places of the first and last record, and the rows low … high − 1."""

    chain: Integers
    first: Integers
    last: Integers
    low: Integers
    high: Integers

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.chain)

    def part(self, chosen: Integers | Mask) -> Secrets:
        """Some of them."""
        return Secrets(
            *(one[chosen] for one in (self.chain, self.first, self.last, self.low, self.high))
        )

    def joined(self, begin: Integers, end: Integers) -> Secrets:
        """Of secrets begin … end − 1 each one, from the first record to the last."""
        last = end - 1
        return Secrets(
            self.chain[begin],
            self.first[begin],
            self.last[last],
            self.low[begin],
            self.high[last],
        )

    def among(self, table: Table, chains: Integers) -> Secrets:
        """In the part of a table that holds some chains, those of all secrets among them."""
        at = np.searchsorted(chains, self.chain)
        sizes = table.starts[chains + 1] - table.starts[chains]
        earlier = (table.starts[chains] - (np.cumsum(sizes) - sizes))[at]
        return Secrets(at, self.first, self.last, self.low - earlier, self.high - earlier)

    def rooms(self, table: Table) -> tuple[Integers, Integers]:
        """How many places lie to the left and right of each."""
        return self.first, table.lengths[self.chain] - 1 - self.last


@dataclass(frozen=True, eq=False)
class Joins:
    """Which private records join the one before: surely, and perhaps."""

    sure: Mask
    perhaps: Mask

    def secrets(self, private: Private, also: Mask | None = None) -> Secrets:
        """Secrets, where some that may join do."""
        joins = self.sure if also is None else self.sure | also
        first = np.flatnonzero(~joins)
        last = np.append(first[1:], private.count)[: len(first)] - 1
        after = private.row + private.there
        return Secrets(
            private.chain[first],
            private.place[first],
            private.place[last],
            private.row[first],
            after[last],
        )

    def mixed(self, private: Private) -> Iterator[tuple[int, Private, list[Secrets]]]:
        """Of chains in which several may join: the chain, its private records, and the secrets that
        some joining, but not all, makes of them; none of these where there are too many ways.
        """
        chains, counts = np.unique(private.chain[self.perhaps], return_counts=True)
        for chain, count in zip(chains[counts > 1].tolist(), counts[counts > 1], strict=True):
            begin, end = np.searchsorted(private.chain, (chain, chain + 1)).tolist()
            mine = private.part(slice(begin, end))
            own = Joins(self.sure[begin:end], self.perhaps[begin:end])
            at = np.flatnonzero(own.perhaps)
            found = []
            for chosen in range(1, (1 << count) - 1) if count <= _MOST_OPEN else ():
                also = np.zeros(end - begin, dtype=bool)
                also[at[(chosen >> np.arange(count)) & 1 == 1]] = True
                found.append(own.secrets(mine, also))
            yield chain, mine, found


def joins_of(
    table: Table, private: Private, certificate: Certificate, found: Found
) -> tuple[Joins, Mask | None]:
    """How private records join, and which of those that may do so do; None where that is open."""
    sure = np.zeros(private.count, dtype=bool)
    perhaps = np.zeros(private.count, dtype=bool)
    counts = certificate.counts
    if certificate.designs.protect == "run" and private.count > 1:
        before, after = private.row[1:], (private.row + private.there)[:-1]
        same = private.chain[1:] == private.chain[:-1]
        sure[1:] = same & (before == after)
        if table.original is not None:
            valued = np.concatenate(([0], np.cumsum(table.original != EMPTY)))
            sure[1:] |= same & (valued[before] == valued[after])
        elif counts.missing:
            valued = np.concatenate(([0], np.cumsum(~is_empty(table))))
            between = before - after
            perhaps[1:] = same & (between > 0) & (between <= counts.missing)
            perhaps[1:] &= valued[before] == valued[after]
    most = private.count - int(sure.sum())
    may, need = int(perhaps.sum()), most - counts.secrets
    if not 0 <= need <= may:
        least = f"{most - may:,} to " if may else ""
        found.wrong(
            f"counts.secrets says {counts.secrets:,}, but the private records make {least}{most:,}"
        )
        need = 0
    joins = Joins(sure, perhaps)
    if need in (0, may):
        return joins, perhaps if need else np.zeros_like(perhaps)
    return joins, None
