"""What a released table shows of each record: its value, that it was redacted, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.blocks import Mask
from offrecord.models.base import Floats, Integers
from offrecord.models.records import Chains

NOTHING = 0  #: the symbol of a record that shows nothing: it is private, or missing


@dataclass(frozen=True, eq=False)
class Shown:
    """symbols: (n,) which row of `likes` each row of the table has: NOTHING, then the k released
    values, then redacted records. likes: (s, k) how likely what is shown is, by the record's value,
    up to a factor that is the same for all values.
    """

    chains: Chains
    symbols: NDArray[np.int32]
    likes: Floats

    @classmethod
    def of(cls, chains: Chains, codes: NDArray[np.int8], holes: Integers, rule: Floats) -> Shown:
        """codes: (n,) released values, below 0 where there are none. holes: rows that were
        redacted, and rule: (h, k) how likely that was by value.
        """
        k = rule.shape[1]
        symbols = np.maximum(codes, -1).astype(np.int32) + 1
        symbols[holes] = k + 1 + np.arange(len(holes), dtype=np.int32)
        likes = np.concatenate((np.ones((1, k)), np.eye(k), rule))
        return cls(chains, symbols, likes)

    @property
    def k(self) -> int:
        """How many values there are."""
        return int(self.likes.shape[1])

    @cached_property
    def released(self) -> Mask:
        """(n,) which rows show their value."""
        return np.asarray((self.symbols > NOTHING) & (self.symbols <= self.k))

    @cached_property
    def sizes(self) -> Integers:
        """(m,) how many places each chain has."""
        starts = self.chains.starts
        if self.chains.steps is None:
            return np.asarray(np.diff(starts))
        return np.asarray(self.chains.steps[starts[1:] - 1] + 1)

    def rows(self, chain: Integers, place: Integers) -> Integers:
        """(r,) the rows of some places; −1 where there is none."""
        chains = self.chains
        if chains.steps is None:
            row = chains.starts[chain] + place
            return np.where((place >= 0) & (row < chains.starts[chain + 1]), row, -1)
        key = chain * chains.width + place
        row = np.searchsorted(chains.keys, key)
        row = np.minimum(row, len(chains.codes) - 1)
        there = (place >= 0) & (place < chains.width) & (chains.keys[row] == key)
        return np.where(there, row, -1)

    def at(self, chain: Integers, place: Integers) -> Floats:
        """(r, k) how likely what some places show is, by value."""
        row = self.rows(chain, place)
        return self.likes[np.where(row < 0, NOTHING, self.symbols[row])]

    def stretches(self, length: int) -> Integers:
        """The rows, sorted, with which so many released records in a row end."""
        fits = self.released.copy()
        fits[: length - 1] = False
        for back in range(1, length):
            fits[back:] &= self.released[:-back] & self.follows(back)
        return np.flatnonzero(fits)

    def follows(self, back: int) -> Mask:
        """(n − back,) whether each row stands so many places after the row so far before it."""
        chains = self.chains
        if chains.steps is not None:
            return np.asarray(chains.keys[back:] - chains.keys[:-back] == back)
        same = np.ones(len(chains.codes), dtype=bool)
        for ahead in range(back):
            begins = chains.starts[:-1] + ahead
            same[begins[begins < chains.starts[1:]]] = False
        return same[back:]
