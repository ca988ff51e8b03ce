"""The first records of chains, where the model's set holds from a later record on.

In a chain with a private record, those before the first row that stands no earlier than that record
(its edge; the last row of a chain without one) are shown if the edge is, and empty if it is not. A
private one among them makes the edge private. What is left from the edges on is a table by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from offrecord.release.certificate import Certificate
from offrecord.verify.table.cells import EMPTY, Integers, Mask
from offrecord.verify.table.coins import Coins
from offrecord.verify.table.found import Found
from offrecord.verify.table.listed import Private
from offrecord.verify.table.rows import Table


@dataclass(frozen=True, eq=False)
class Openings:
    """edges: (m,) the edge of each chain. before: (n,) which rows stand before theirs."""

    edges: Integers
    before: Mask

    @classmethod
    def of(cls, table: Table, since: int) -> Openings:
        """Of a set that holds from record `since` on, counted from 1."""
        chains = np.arange(table.chains)
        last = table.starts[1:] - 1
        edges = np.minimum(table.row_from(chains, np.full(table.chains, since - 1)), last)
        before = np.arange(table.rows) < np.repeat(edges, np.diff(table.starts))
        return cls(edges, before)

    def check(self, table: Table, private: Private, allowed: int, found: Found) -> int:
        """That they are shown or empty with their edges. allowed: how many rows may be without a
        value by themselves. How many of these are.
        """
        own = np.repeat(self.edges, np.diff(table.starts))
        held = np.zeros(table.chains, dtype=bool)
        held[private.chain] = True
        tied = self.before & np.repeat(held, np.diff(table.starts))
        stays = tied & (table.codes[own] == EMPTY)
        empty = table.codes == EMPTY
        shown = np.flatnonzero(stays & ~empty)
        found.wrong_at(table.named(shown), len(shown), "it is released without its chain's edge")
        if table.kept is not None and not table.columns.keep_all:
            told = np.flatnonzero(stays & table.kept)
            found.wrong_at(table.named(told), len(told), "a kept cell before an edge that is empty")
        idle = self.before & ~stays & empty
        if table.original is not None:
            wrong = np.flatnonzero(idle & (table.original != EMPTY))
            found.wrong_at(table.named(wrong), len(wrong), "it is empty though its edge is not")
        elif int(idle.sum()) > allowed:
            rows = np.flatnonzero(idle)
            says = f"empty though its edge is not, and counts.missing says {allowed:,}"
            found.wrong_at(table.named(rows), len(rows), says)
        found.checked.append(
            f"That {int(tied.sum()):,} first records of chains are shown or empty with their edges."
        )
        return int(idle.sum())

    def cut(self, table: Table, private: Private) -> tuple[Table, Private]:
        """The table from the edges on, and what is private in it."""
        sizes = np.diff(table.starts)
        rows = np.flatnonzero(~self.before)
        base = table.place_of(self.edges)
        part = table.taken(rows, table.starts[1:] - self.edges)
        if table.steps is not None:
            part = replace(part, steps=(table.steps - np.repeat(base, sizes))[rows])
        edge = self.edges[private.chain]
        early = private.place < base[private.chain]
        place = np.where(early, 0, private.place - base[private.chain])
        row = np.where(early, edge, private.row)
        order = np.where(early, table.order[edge], private.order)
        there = private.there | early
        is_other = np.ones(private.count, dtype=bool)
        is_other[1:] = (np.diff(private.chain) != 0) | (np.diff(place) != 0)
        at = np.cumsum(np.append(0, ~self.before))
        moved = Private(private.chain, place, order, at[row], there)
        return part, Private(*(one[is_other] for one in vars(moved).values()))


def opened(
    table: Table, private: Private, certificate: Certificate, coins: Coins | None, found: Found
) -> tuple[Table, Private, Certificate, Coins | None]:
    """All of it from where on the model's set holds; what stands before is looked at here."""
    models = certificate.model.set
    if models is None or models.since == 1:
        return table, private, certificate, coins
    openings, counts = Openings.of(table, models.since), certificate.counts
    idle = openings.check(table, private, counts.missing, found)
    table, private = openings.cut(table, private)
    shown = private.row[private.there]
    shown = shown[table.codes[shown] != EMPTY]
    found.wrong_at(table.named(shown), len(shown), "an edge after a private record is released")
    counts = replace(counts, missing=max(counts.missing - idle, 0))
    certificate = replace(certificate, counts=counts)
    return table, private, certificate, None if coins is None else replace(coins, table=table)
