"""Openings: the first records of chains, before the one since which a set of models holds.

What leads back to them is not known well enough, so a chain with a secret is decided from the first
row on that stands no earlier: its edge. The records before leave if the edge is released, and stay
with it if it is not; given its value they tell nothing about what comes later. What is private
among them makes the edge private (docs/proofs/R4-left-forwards.md, "Openings").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.blocks import ALWAYS, REDACTED, Block, Certainty, Mask
from offrecord.models.base import Floats, Integers
from offrecord.models.records import MISSING, Chains
from offrecord.tables.secrets import Private


@dataclass(frozen=True, eq=False, repr=False)
class Openings:
    """The openings of whole chains.

    chains: the same rows, each opening a chain of its own, and what follows it another. edge: (m,)
    the first row that follows, of each chain as it was; one without such a row has its last. of:
    the chain as it was that each of `chains` is a part of. own: (m,) the number that the part from
    the edge on has.
    """

    chains: Chains
    edge: Integers
    of: Integers
    own: Integers

    @classmethod
    def before(cls, chains: Chains, since: int) -> Openings:
        """Of the records before number `since` of each chain."""
        starts, last = chains.starts[:-1], chains.starts[1:] - 1
        if chains.steps is None:
            edge = np.minimum(starts + since - 1, last)
        else:
            keys = np.arange(chains.count) * chains.width + min(since - 1, chains.width - 1)
            edge = np.minimum(np.searchsorted(chains.keys, keys), last)
        opens = edge > starts
        begins = np.sort(np.concatenate((starts, edge[opens])))
        of = np.repeat(np.arange(chains.count), 1 + opens)
        own = np.arange(chains.count) + np.cumsum(opens)
        steps = chains.steps
        if steps is not None:
            parts = np.append(begins, chains.starts[-1])
            steps = steps - np.repeat(steps[begins], np.diff(parts))
        parted = replace(chains, starts=np.append(begins, chains.starts[-1]), steps=steps)
        return cls(parted, edge, of, own)

    def private(self, chains: Chains, private: Private) -> Private:
        """Private records of chains as they were, those of openings by the edges that they make
        private.
        """
        edge = self.edge[private.chain]
        base = edge - chains.starts[private.chain] if chains.steps is None else chains.steps[edge]
        place = private.place - base
        moved = place < 0
        place[moved] = 0
        order = np.where(moved, chains.order[edge], private.order).astype(np.int64)
        # several may come to one edge, and all of a chain are sorted by their places
        first = np.ones(private.count, dtype=bool)
        first[1:] = (private.chain[1:] != private.chain[:-1]) | (place[1:] != place[:-1])
        found = replace(private, chain=self.own[private.chain], place=place, order=order)
        return found.of(first)

    @cached_property
    def cuts(self) -> Integers:
        """(m + 1,) the numbers of parts with which a chain as it was begins, and the end."""
        return np.append(self.own - (self.edge > self._starts), self.chains.count)

    @cached_property
    def _starts(self) -> Integers:
        begins = np.flatnonzero(np.diff(self.of, prepend=-1))
        return self.chains.starts[begins]

    # ---- what becomes of them

    def _led(self, block: Block) -> tuple[NDArray[np.intp], Integers, Mask]:
        """In a block, the rows of openings of chains that hold a secret, the edge of each, and
        whether that has no value.
        """
        start = block.rows.start
        chain = np.unique(self.of[block.secrets.chain])
        begin, edge = self._starts[chain], self.edge[chain]
        sizes = edge - begin
        rows, edges = _ranges(begin, sizes), np.repeat(edge, sizes)
        is_missing = np.asarray(self.chains.codes[edges] == MISSING)
        return rows - start, edges - start, is_missing

    def redacted(self, block: Block, redacted: Mask, certainty: Certainty) -> None:
        """Fill in what becomes of openings in a block that is decided from their edges on."""
        rows, edges, is_missing = self._led(block)
        redacted[rows] = redacted[edges] | is_missing
        certainty[rows] = np.where(is_missing, np.int8(ALWAYS), certainty[edges])

    def expected(self, block: Block, released: Floats, certainty: Certainty) -> None:
        """The same of what is foretold."""
        rows, edges, is_missing = self._led(block)
        released[rows] = np.where(is_missing, 0.0, released[edges])
        certainty[rows] = np.where(is_missing, np.int8(ALWAYS), certainty[edges])

    def explained(self, block: Block, certainty: Certainty, rule: dict[str, Floats]) -> None:
        """The same of the rule: that of the edge, where it has a value."""
        rows, edges, is_missing = self._led(block)
        certainty[rows] = np.where(is_missing, np.int8(ALWAYS), certainty[edges])
        for name, column in rule.items():
            column[rows] = np.where(is_missing, name.startswith(REDACTED), column[edges])

    def behind(self, valued: Mask | None) -> Integers:
        """(n,) how many records with a value leave or stay with each row beside itself: those of
        the opening, if it is an edge with a value. valued: which records have one, None for all.
        """
        found = np.zeros(len(self.chains.codes), dtype=np.int64)
        shown = self.chains.codes[self.edge] != MISSING
        found[self.edge[shown]] = self._sizes(valued)[shown]
        return found

    def behind_missing(self, chain: Integers, valued: Mask | None) -> int:
        """How many records with a value stand in openings of chains that hold a secret, and whose
        edges have none. chain: of `chains`, those that hold one.
        """
        held = np.unique(self.of[chain])
        held = held[self.chains.codes[self.edge[held]] == MISSING]
        return int(self._sizes(valued)[held].sum())

    def _sizes(self, valued: Mask | None) -> Integers:
        """(m,) how many records with a value the opening of each chain has."""
        if valued is None:
            return self.edge - self._starts
        return summed(valued, self._starts, self.edge)


def _ranges(begin: Integers, sizes: Integers) -> Integers:
    """So many numbers from each of some on."""
    return np.repeat(begin - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))


def summed(counts: Mask | Integers, begin: Integers, end: Integers) -> Integers:
    """The sum over each of some stretches of rows."""
    before = np.concatenate(([0], np.cumsum(counts)))
    return np.asarray(before[end] - before[begin])
