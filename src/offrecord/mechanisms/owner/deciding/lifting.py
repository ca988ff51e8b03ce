"""Lifting: records of a chain of order m as tuples of m records, a chain of order 1 (O13).

The tuple at a place holds the record there and the m − 1 after it. Whoever sees a tuple sees its
records, and records that no released tuple covers are redacted: what is proven for tuples holds for
records.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.mechanisms.blocks import Block, Draw, Mask, Secrets
from offrecord.mechanisms.owner.deciding.clusters import Clusters
from offrecord.models.base import Floats, Integers
from offrecord.models.records import MISSING, Chains, Codes
from offrecord.release.coins import RECORDS, Draws


class Lifted(NamedTuple):
    """A block of tuples, and the block of records it stands for.

    order: records of a tuple. first_chain: the number of its first chain in the table. hidden: (n,)
    records of chains with a secret that are too short for a tuple.
    """

    block: Block
    records: Block
    order: int
    first_chain: int
    hidden: Mask

    def sizes(self, sizes: Integers, clusters: Clusters) -> tuple[Integers, Mask]:
        """Of tuples redacted beside clusters (c, 2), how many records that are; and whether it is
        all of them to the chain's end. A tuple that is released shows the m records from its own
        place on.
        """
        further = self.order - 1
        rests = (sizes >= clusters.gaps) & ~clusters.faces
        left, right = np.maximum(sizes[:, 0] - further, 0), np.maximum(sizes[:, 1], further)
        return np.stack((left, right), axis=1), rests

    def ends(self, clusters: Clusters) -> Secrets:
        """Clusters of tuples as records of the table, at the same places."""
        ends, chains = clusters.ends, self.records.chains
        chain = ends.chain + self.first_chain
        low = chains.starts[chain] + ends.first
        return Secrets(
            chain, ends.first, ends.last, low, low + ends.last - ends.first + 1, ends.order
        )

    def released(self, tuples: Floats) -> Floats:
        """(n,) how likely each record leaves, given how likely tuples do: with the likeliest of
        those that show it.
        """
        chains, rows = self.block.chains, self.records.rows
        whole = self.records.chains
        chain = whole.chain_of[rows] - self.first_chain
        place = whole.places[rows]
        found = np.zeros(len(place))
        if not len(tuples):
            return np.where(self.hidden, 0.0, 1.0)
        for shown in (place, place - (self.order - 1)):
            key = chain * chains.width + np.clip(shown, 0, chains.width - 2)
            at = np.clip(np.searchsorted(chains.keys, key, side="right") - 1, 0, len(tuples) - 1)
            at = np.maximum(at, np.minimum(chains.starts[chain], len(tuples) - 1))
            found = np.maximum(found, tuples[at])
        return np.where(self.hidden, 0.0, found)

    def draw(self, draw: Draw) -> Draw:
        """Coins by the chains of the table."""

        def drawn(
            chain: Integers,
            order: NDArray[np.integer],
            purpose: bytes = RECORDS,
            counter: Integers | int = 0,
        ) -> Draws:
            return draw(chain + self.first_chain, order, purpose, counter)

        return drawn


def lifted(block: Block, order: int, k: int) -> Lifted:
    """The tuples of a block's chains. A tuple with a record missing is missing itself."""
    chains, rows = block.chains, block.rows
    first = int(np.searchsorted(chains.starts, rows.start))
    last = int(np.searchsorted(chains.starts, rows.stop))
    starts = chains.starts[first : last + 1] - rows.start
    places = chains.places[rows]
    ends = places[starts[1:] - 1]  # of each chain
    chain_of = np.repeat(np.arange(last - first), np.diff(starts))
    kept = places <= ends[chain_of] - (order - 1)
    codes = _tuples(block.codes, places, chain_of, order, k)[kept]
    counts = np.bincount(chain_of[kept], minlength=last - first)
    tuples = Chains(
        np.concatenate(([0], np.cumsum(counts))),
        codes,
        chains.order[rows][kept],
        chains.timed,
        None if chains.steps is None else places[kept],
    )
    chain = block.secrets.chain - first
    long = counts[chain] > 0
    secrets = _secrets(block.secrets, tuples, ends, order, chain, long)
    hidden = np.isin(chain_of, chain[~long])
    made = Block(tuples, slice(0, len(codes)), secrets, block.which[long])
    return Lifted(made, block, order, first, hidden)


def _tuples(codes: Codes, places: Integers, chain_of: Integers, order: int, k: int) -> Codes:
    """(n,) the tuple that begins with each record, the oldest value counting most."""
    whole = codes >= 0
    found = codes.astype(np.int64)
    for further in range(1, order):
        following = np.full(len(codes), MISSING, dtype=np.int64)
        linked = np.zeros(len(codes), dtype=bool)
        size = len(codes) - further
        if size > 0:
            following[:size] = codes[further:]
            linked[:size] = (chain_of[further:] == chain_of[:size]) & (
                places[further:] == places[:size] + further
            )
        whole &= linked & (following >= 0)
        found = found * k + following
    return np.where(whole, found, MISSING).astype(np.int8)


def _secrets(
    secrets: Secrets, tuples: Chains, ends: Integers, order: int, chain: Integers, long: Mask
) -> Secrets:
    """The tuples that secrets hide: from the one that begins with a secret's first record to the
    one that ends with its last; of one shorter than a tuple, the one that ends with it, as far as
    there is one (F8).
    """
    chain, first, last = chain[long], secrets.first[long], secrets.last[long]
    begin = np.clip(last - (order - 1), 0, ends[chain] - (order - 1))
    low_place, high_place = np.minimum(first, begin), begin
    key = chain * tuples.width
    low = np.searchsorted(tuples.keys, key + low_place, side="left")
    high = np.searchsorted(tuples.keys, key + high_place, side="right")
    at = np.minimum(low, len(tuples.codes) - 1)
    return Secrets(chain, low_place, high_place, low, high, tuples.order[at].astype(np.int64))
