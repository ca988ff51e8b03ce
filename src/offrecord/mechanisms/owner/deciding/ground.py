"""Ground: which row of a block stands where in its chain, and which of them have a value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from offrecord.mechanisms.blocks import Block, Mask
from offrecord.models.base import Integers


class Stretch(NamedTuple):
    """Around places without a value: the nearest rows that have one, (n,) before and after them;
    where there is none, the row before the chain's first one, or after its last.
    """

    before: Integers
    after: Integers
    has_before: Mask
    has_after: Mask


@dataclass(frozen=True, eq=False)
class Ground:
    """A block's rows by chain and place, where places may lie beyond a chain's ends."""

    block: Block

    @cached_property
    def is_whole(self) -> bool:
        """Every place between a chain's ends has a row with a value."""
        return self.block.chains.steps is None and bool(self.block.codes.min(initial=0) >= 0)

    def row_before(self, chain: Integers, place: Integers) -> Integers:
        """The last row at or before a place; before a chain's first one, the row before that."""
        chains = self.block.chains
        if chains.steps is None:
            first = chains.starts[chain]
            return first + np.clip(place, -1, chains.starts[chain + 1] - first - 1)
        key = chain * chains.width + np.clip(place, -1, chains.width - 1)
        return np.searchsorted(chains.keys, key, side="right") - 1

    def place_of(self, chain: Integers, row: Integers) -> Integers:
        """The place of a row in its chain."""
        chains = self.block.chains
        return row - chains.starts[chain] if chains.steps is None else chains.steps[row]

    def last_place(self, chain: Integers) -> Integers:
        """The place of a chain's last record."""
        return self.place_of(chain, self.block.chains.starts[chain + 1] - 1)

    def value_at(self, chain: Integers, place: Integers) -> Integers:
        """(n,) the code of the record at a place, negative where it has none."""
        chains = self.block.chains
        row = self.row_before(chain, place)
        inside = row >= chains.starts[chain]
        row = np.maximum(row, chains.starts[chain])
        there = inside & (self.place_of(chain, row) == place)
        return np.where(there, chains.codes[row].astype(np.int64), -1)

    def stretch(self, chain: Integers, place: Integers) -> Stretch:
        """Where the missing stretch begins and ends that a place without a value stands in."""
        chains = self.block.chains
        row, begin = self.row_before(chain, place), self.block.rows.start
        first, end = chains.starts[chain], chains.starts[chain + 1]
        before, after = row, row + 1
        if self.block.codes.min(initial=0) < 0:
            before = self._valued_before[np.maximum(row, first) - begin]
            after = self._valued_after[np.minimum(after, end - 1) - begin]
        # values of other chains are none
        before = np.where((row >= first) & (before >= first), before, first - 1)
        after = np.where((row + 1 < end) & (after < end), after, end)
        return Stretch(before, after, before >= first, after < end)

    def holds_secret(self, chain: Integers, stretch: Stretch) -> Mask:
        """(n,) whether a private record, which then has no value, lies in a missing stretch."""
        secrets = self.block.secrets
        before = np.where(stretch.has_before, stretch.before, 0)
        after = np.where(stretch.has_after, stretch.after, 0)
        low = np.where(stretch.has_before, self.place_of(chain, before), -1)
        high = np.where(stretch.has_after, self.place_of(chain, after), self.longest)
        width = self.longest + 2
        # the first secret that ends after the stretch begins
        keys = secrets.chain * width + secrets.last
        found = np.searchsorted(keys, chain * width + low, side="right")
        there = found < secrets.count
        found = np.minimum(found, secrets.count - 1)
        mine = there & (secrets.chain[found] == chain)
        return np.asarray(mine & (secrets.first[found] < high))

    @cached_property
    def longest(self) -> int:
        """More than any place of a record in the block."""
        chains, rows = self.block.chains, self.block.rows
        if chains.steps is not None:
            return int(chains.steps[rows].max(initial=0)) + 1
        begin, end = np.searchsorted(chains.starts, (rows.start, rows.stop))
        return int(np.diff(chains.starts[begin : end + 1]).max(initial=0)) + 1

    @cached_property
    def valued(self) -> Integers:
        """(n + 1,) how many of the block's first rows have a value."""
        return np.concatenate(([0], np.cumsum(self.block.codes >= 0)))

    @cached_property
    def _valued_before(self) -> Integers:
        """(n,) the last row with a value at or before each."""
        rows = np.arange(self.block.rows.start, self.block.rows.stop)
        return np.maximum.accumulate(np.where(self.block.codes >= 0, rows, -1))

    @cached_property
    def _valued_after(self) -> Integers:
        """(n,) the first row with a value at or after each."""
        rows = np.arange(self.block.rows.start, self.block.rows.stop)
        kept = np.where(self.block.codes >= 0, rows, self.block.rows.stop)
        return np.minimum.accumulate(kept[::-1])[::-1]
