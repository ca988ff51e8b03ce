"""The records that an audit looks at, and which of them are held back from which model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.models.base import Integers
from offrecord.models.records import MISSING, Chains, Codes
from offrecord.text import many

FOLDS = 4  #: parts of the reference, each held back once
LEAST = 200  #: records with values that an audit needs
LARGEST = 2_000_000  #: records with values that it looks at, at most
_GAP = 200  # steps around what is held back that the model does not see either, at most
_CHAINS = 2 * FOLDS  # chains from which on whole ones are held back
_FAR = 1 << 24  # steps: longer gaps, and the distance of chains, count as so many


@dataclass(frozen=True, eq=False, repr=False)
class HeldBack:
    """Where the reference is cut: bounds, (FOLDS + 1,) rows; whole: at the ends of chains."""

    bounds: Integers
    whole: bool

    def __str__(self) -> str:
        what = "chains" if self.whole else "stretches"
        return f"{what}, a quarter of the records at a time"


def held_back(chains: Chains) -> HeldBack:
    """Cut the reference: between chains where there are enough of them, else into stretches.

    InputError where it is too short to hold anything back.
    """
    before = np.concatenate(([0], np.cumsum(chains.codes >= 0)))  # each row, and in all
    total = int(before[-1])
    if total < LEAST:
        raise InputError(
            f"the reference is too short to hold anything back: {many(total, 'record')} with"
            f" values, and the audit needs at least {LEAST}; --no-audit goes without"
        )
    wanted = np.arange(FOLDS + 1) * total // FOLDS
    ends = before[chains.starts]
    after = np.minimum(np.searchsorted(ends, wanted), chains.count)
    earlier = np.maximum(after - 1, 0)
    nearer = np.where(wanted - ends[earlier] < ends[after] - wanted, earlier, after)
    nearer[[0, -1]] = 0, chains.count  # chains without values at the ends belong somewhere too
    whole = chains.count >= _CHAINS and np.diff(ends[nearer]).min() * 2 * FOLDS >= total
    if whole:
        return HeldBack(np.asarray(chains.starts[nearer]), True)
    rows = np.searchsorted(before, wanted, side="right") - 1
    rows[[0, -1]] = 0, len(chains.codes)
    return HeldBack(rows, False)


def without_each(chains: Chains, cut: HeldBack) -> Iterator[Chains]:
    """The reference without each of its parts, and without what stands near to that."""
    at = positions(chains)
    gap = min(_GAP, len(at) // (10 * FOLDS))
    for first, end in zip(cut.bounds[:-1], cut.bounds[1:], strict=True):
        near = (at >= at[first] - gap) & (at <= at[end - 1] + gap)
        yield replace(chains, codes=np.where(near, chains.codes.dtype.type(MISSING), chains.codes))


def positions(chains: Chains) -> Integers:
    """(n,) a number that grows from row to row by the distance in steps; chains are far apart."""
    apart = np.diff(chains.places, prepend=0)
    apart[chains.starts[:-1]] = _FAR
    return np.asarray(np.cumsum(np.minimum(apart, _FAR)))


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """The records with values, each of them a pretended secret.

    rows: (n,) which rows of the reference they are. codes: (n,) their values. at: (n,) as
    `positions`. chain: (n,) their chains. first, end: (n,) where the records of a record's chain
    begin and end. part: (n,) the part of the reference that each is held back with.
    """

    rows: Integers
    codes: Codes
    at: Integers
    chain: Integers
    first: Integers
    end: Integers
    part: Integers

    @classmethod
    def of(cls, chains: Chains, cut: HeldBack, largest: int = LARGEST) -> Records:
        """Those of a reference; of more than `largest`, the first of each part."""
        kept = chains.codes >= 0
        part = np.repeat(np.arange(FOLDS), np.diff(cut.bounds))
        if np.count_nonzero(kept) > largest:
            counted = np.cumsum(kept)
            before = np.concatenate(([0], counted))[cut.bounds[:-1]]
            kept = kept & (counted - before[part] <= largest // FOLDS)
        rows = np.flatnonzero(kept)
        chain = chains.chain_of[rows]
        new = np.flatnonzero(np.diff(chain, prepend=-1))
        lengths = np.diff(new, append=len(rows))
        first = np.repeat(new, lengths)
        return cls(
            rows,
            chains.codes[rows],
            positions(chains)[rows],
            chain,
            first,
            first + np.repeat(lengths, lengths),
            part[rows],
        )

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def apart(self) -> Integers:
        """(n,) steps since the record before, 0 where a chain begins."""
        apart = np.diff(self.at, prepend=0)
        apart[self.first[self.first == np.arange(len(self))]] = 0
        return apart

    def nearest(
        self, left: Integers, right: Integers, depth: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(n, depth) twice: the records released nearest on the left and right of each, −1 for
        none, if `left` and `right` records beside it are redacted.

        A record that is missing is skipped: what is nearest then stands further away.
        """
        nearest_left = np.searchsorted(self.at, self.at - left) - 1
        nearest_right = np.searchsorted(self.at, self.at + right, side="right")
        steps = np.arange(depth)
        lefts, rights = nearest_left[:, np.newaxis] - steps, nearest_right[:, np.newaxis] + steps
        return (
            np.where(lefts >= self.first[:, np.newaxis], lefts, -1).astype(np.int32),
            np.where(rights < self.end[:, np.newaxis], rights, -1).astype(np.int32),
        )
