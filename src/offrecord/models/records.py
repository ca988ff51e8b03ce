"""Records as arrays: which value each has, and where in its chain it stands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Integers

#: Which of the model's labels each record has, or one of the two below.
Codes: TypeAlias = NDArray[np.int8]
MISSING = -1  #: the code of a record without a value
UNKNOWN = -2  #: the code of a record whose value the model does not know


@dataclass(frozen=True, eq=False, repr=False)
class Chains:
    """Records sorted by chain and order.

    starts: (m + 1,) where each chain begins, and the end. codes: (n,) which of the model's labels,
    MISSING or UNKNOWN. order: (n,) order values, whole numbers or (timed) nanoseconds, UTC. steps:
    (n,) each record's distance from the first of its chain, None where records stand one step
    apart.
    """

    starts: Integers
    codes: Codes
    order: NDArray[np.integer]
    timed: bool
    steps: Integers | None

    @property
    def count(self) -> int:
        """Number of chains."""
        return len(self.starts) - 1

    @cached_property
    def places(self) -> Integers:
        """(n,) the distance of each record from the first of its chain, in steps."""
        if self.steps is not None:
            return self.steps
        return np.arange(len(self.codes)) - np.repeat(self.starts[:-1], np.diff(self.starts))

    @cached_property
    def width(self) -> int:
        """More than any place in a chain, for keys."""
        if self.steps is None:  # places would be a number for every row
            return int(np.diff(self.starts).max(initial=1)) + 1
        return int(self.steps.max(initial=0)) + 2

    @cached_property
    def keys(self) -> Integers:
        """(n,) chain and place of each record as one number, which grows from row to row."""
        return self.chain_of * self.width + self.places

    @cached_property
    def whole(self) -> bool:
        """No record is missing its value."""
        return bool(self.codes.min() >= 0)

    @property
    def chain_of(self) -> Integers:
        """(n,) the chain of each record."""
        return self.spread(np.arange(self.count))

    def spread(self, of_chains: NDArray[Any]) -> NDArray[Any]:
        """(n,) for each record what (chains,) holds for its chain."""
        return np.repeat(of_chains, np.diff(self.starts))


@dataclass(frozen=True, eq=False, repr=False)
class Runs:
    """Private runs, sorted by chain and place; (r,) each.

    chain: number of the chain. first, last: the first and the last record, in steps from the
    chain's first record. order: order value of the first record, which coins are drawn for.
    """

    chain: Integers
    first: Integers
    last: Integers
    order: NDArray[np.integer]

    @classmethod
    def of(cls, chains: Chains, private: NDArray[np.bool_], *, each: bool = False) -> Runs:
        """The maximal runs of consecutive private records."""
        rows = np.flatnonzero(private)
        chain = np.searchsorted(chains.starts, rows, side="right") - 1
        places = rows - chains.starts[chain] if chains.steps is None else chains.steps[rows]
        follows = np.zeros(len(rows) + 1, dtype=bool)
        if not each:
            follows[1:-1] = (np.diff(places) == 1) & (chain[1:] == chain[:-1])
        begin, end = np.flatnonzero(~follows[:-1]), np.flatnonzero(~follows[1:])
        return cls(chain[begin], places[begin], places[end], chains.order[rows[begin]])

    @property
    def count(self) -> int:
        """Number of runs."""
        return len(self.chain)

    def part(self, which: slice | Integers | NDArray[np.bool_]) -> Runs:
        """Some of the runs."""
        return Runs(self.chain[which], self.first[which], self.last[which], self.order[which])
