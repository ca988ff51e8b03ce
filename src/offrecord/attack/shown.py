"""What a released table shows of each record: its value, that it was redacted, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.records import Chains, Codes

NOTHING = 0  #: the symbol of a record that shows nothing: private, missing, or redacted for certain


@dataclass(frozen=True, eq=False, repr=False)
class Shown:
    """A released table as an attacker sees it.

    chains: its records. symbols: (n,) which row of `likes` each has: NOTHING, then the k released
    values, then redacted records. likes: (s, k) likelihood of what is shown given the record's
    value, up to a factor.
    """

    chains: Chains
    symbols: NDArray[np.int32]
    likes: Floats

    @classmethod
    def of(cls, chains: Chains, codes: Codes, k: int, redacted: Integers, chances: Floats) -> Shown:
        """What local rules leave; stopping rules redact no record by its own coin.

        Args:
            chains: the records.
            codes: (n,) released values, below 0 where there are none.
            k: number of values.
            redacted: rows that were redacted at times, by a coin of their own.
            chances: (h, k) how likely each of them was redacted, by its value.
        """
        symbols = np.maximum(codes, -1).astype(np.int32) + 1
        rules, which = np.unique(chances.reshape(-1, k), axis=0, return_inverse=True)
        symbols[redacted] = k + 1 + which.reshape(-1)
        return cls(chains, symbols, np.concatenate((np.ones((1, k)), np.eye(k), rules)))

    @property
    def k(self) -> int:
        """Number of values."""
        return int(self.likes.shape[1])

    @cached_property
    def released(self) -> Mask:
        """(n,) which records show their value."""
        return np.asarray((self.symbols > NOTHING) & (self.symbols <= self.k))

    @cached_property
    def informative(self) -> Integers:
        """The rows that show anything, sorted."""
        return np.flatnonzero(self.symbols != NOTHING)

    def anchors(self, order: int) -> Integers:
        """The rows, sorted, that end `order` released records one step apart.

        Given such a context, what lies before it is independent of what lies behind it.
        """
        fits = self.released.copy()
        fits[: order - 1] = False
        same = np.diff(self.chains.chain_of, prepend=-1) == 0
        follows = same & (np.diff(self.chains.places, prepend=-1) == 1)
        for back in range(1, order):
            fits[back:] &= self.released[:-back]
            fits[back - 1 :] &= follows[: len(follows) - back + 1]
        return np.flatnonzero(fits)

    def row(self, chain: Integers, place: Integers) -> Integers:
        """(r,) the first row of each chain at a place or behind it; the chain's end, if none is."""
        chains = self.chains
        if chains.steps is None:
            return np.asarray(np.minimum(chains.starts[chain] + place, chains.starts[chain + 1]))
        key = np.minimum(place, chains.width - 1) + chain * chains.width
        return np.asarray(np.searchsorted(chains.keys, key))
