"""Counting transitions: of records that have values and stand one step apart in one chain.

`Cells` says how far groups of records (units, places, blocks of time) differ from what they share:
rows of a group are Dirichlet(κ·row) around common rows; the likelihood of κ is Pólya's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers, Mask
from offrecord.models.records import MISSING, Chains, Codes

Keys: TypeAlias = NDArray[np.integer[Any]]

#: Concentrations that are tried; at the largest, groups are as good as alike.
KAPPAS = tuple(2.0**power for power in range(-1, 15))


@dataclass(frozen=True, eq=False, repr=False)
class Reference:
    """Records that may be learned from.

    chains: the records; those that may not be looked at have the code MISSING. k: number of values.
    """

    chains: Chains
    k: int

    @classmethod
    def of(cls, chains: Chains, k: int, allowed: Mask | None) -> Reference:
        """The records of a mask (n,), or all."""
        if allowed is None:
            return cls(chains, k)
        codes = np.where(allowed, chains.codes, np.int8(MISSING))
        return cls(Chains(chains.starts, codes, chains.order, chains.timed, chains.steps), k)

    def only(self, allowed: Mask) -> Reference:
        """Those of a mask (n,) alone."""
        return self.of(self.chains, self.k, allowed)

    @property
    def codes(self) -> Codes:
        """(n,) values from 0; negative where there is none to learn from."""
        return self.chains.codes

    @cached_property
    def linked(self) -> Mask:
        """(n,) whether a record and the one before it have values and stand one step apart."""
        linked = np.zeros(len(self.codes), dtype=bool)
        present = self.codes >= 0
        np.logical_and(present[1:], present[:-1], out=linked[1:])
        if self.chains.steps is not None:
            linked[1:] &= np.diff(self.chains.steps) == 1
        linked[self.chains.starts[:-1][np.diff(self.chains.starts) > 0]] = False
        return linked

    @cached_property
    def transitions(self) -> int:
        """How many records follow another one."""
        return int(np.count_nonzero(self.linked))

    @cached_property
    def units(self) -> int:
        """How many chains have a value."""
        return len(np.unique(self.chains.chain_of[self.codes >= 0]))

    @cached_property
    def longest(self) -> int:
        """Number of steps that the longest chain spans."""
        return int(self.chains.places.max(initial=0)) + 1

    def reaching(self, order: int) -> Mask:
        """(n,) whether a record has `order` predecessors, each linked to the next."""
        if order == 0:
            return self.codes >= 0
        reached = self.linked.copy()
        for shift in range(1, order):
            reached[shift:] &= self.linked[:-shift]
            reached[:shift] = False
        return reached

    def tuples(self, at: Mask, order: int) -> Integers:
        """The marked records, each with its `order` predecessors as one number in base k.

        The oldest record's value leads; all marked records must reach so far back.
        """
        small = np.int32 if self.k ** (order + 1) < 2**31 else np.int64
        found: Integers = np.zeros(len(self.codes), dtype=small)
        for back in range(min(order, len(found) - 1), -1, -1):
            found *= self.k
            found[back:] += self.codes[: len(found) - back]
        return found[at].astype(np.int64)

    def counts(self, order: int, place: Keys | None = None, places: int = 1) -> Integers:
        """(places, k**order, k) how often each value follows each context, by the place of the
        context's last record; place: (n,).
        """
        at = self.reaching(order)
        keys = self.tuples(at, order)
        if place is not None:
            keys += self.k ** (order + 1) * place[np.flatnonzero(at) - 1].astype(np.int64)
        counts = np.bincount(keys, minlength=places * self.k ** (order + 1))
        return counts.reshape(places, -1, self.k).astype(np.int64, copy=False)

    def first_counts(self, order: int) -> Integers:
        """(k**order,) how often each context is the first of a chain."""
        at = self.reaching(order - 1) & (self.chains.places == order - 1)
        return np.bincount(self.tuples(at, order - 1), minlength=self.k**order).astype(np.int64)

    def lone_cells(self, order: int) -> int:
        """How many transitions are counted, but in one chain alone."""
        at = self.reaching(order)
        keys, size = self.tuples(at, order), self.k ** (order + 1)
        both, _ = merged(keys + size * self.chains.chain_of[at])
        return int(np.count_nonzero(np.bincount(both % size) == 1))


def merged(keys: Keys, counts: Integers | None = None) -> tuple[Integers, Integers]:
    """The different keys, and the sum of the counts (or of ones) of each."""
    found, where = numbered(keys.astype(np.int64, copy=False))
    return found, np.bincount(where, counts).astype(np.int64)


def numbered(keys: Integers) -> tuple[Integers, Integers]:
    """The different keys, from 0 on, and the number of each key among them."""
    size = int(keys.max(initial=0)) + 1
    if size > max(8 * len(keys), 1 << 16):
        found, where = np.unique(keys, return_inverse=True)
        return found.astype(np.int64), where.astype(np.int64)
    # a place for each possible key: fits of 1,000,000 rows take half the time of sorting
    there = np.zeros(size, dtype=bool)
    there[keys] = True
    number = np.cumsum(there) - 1
    return np.flatnonzero(there), number[keys]


# ---- groups that differ


class Cells(NamedTuple):
    """Counts of all groups, as far as the likelihood depends on them: equal ones are merged.

    cell, times, weight: how often (weight) a group has a count in a cell (context * k + value).
    total: how often it has so many visits of a context (of any), total_weight how often that is.
    """

    cell: Integers
    times: Integers
    weight: Integers
    total: Integers
    total_weight: Integers

    @classmethod
    def of(cls, keys: Keys, groups: Keys, k: int, size: int, seen: Integers | None = None) -> Cells:
        """From (n,) keys context * k + value below `size`, seen so often each, in (n,) groups."""
        both, counts = merged(groups.astype(np.int64) * size + keys, seen)
        visits = merged(both // k, counts)[1]
        most = int(counts.max(initial=0)) + 1
        # groups with the same count of a cell add the same to the likelihood
        alike, weight = merged(both % size * most + counts)
        return cls(alike // most, alike % most, weight, *np.unique(visits, return_counts=True))

    def likelihood(self, kappa: float, rows: Floats) -> float:
        """Logarithm of the probability of all counts around common rows (S, k)."""
        from scipy.special import gammaln

        share = kappa * rows.ravel()[self.cell]
        own = gammaln(share + self.times) - gammaln(share)
        visits = gammaln(kappa) - gammaln(kappa + self.total)
        return float(self.weight @ own + self.total_weight @ visits)

    def best(self, rows: Floats) -> tuple[float, float]:
        """The likeliest concentration, and the logarithm of the likelihood there."""
        found = [(self.likelihood(kappa, rows), kappa) for kappa in KAPPAS]
        likelihood, kappa = max(found)
        return kappa, likelihood


def shares(counts: Integers) -> Floats:
    """(S, k) shares of counts along the last axis; alike in rows without any."""
    totals = counts.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(totals > 0, counts / np.maximum(totals, 1), 1 / counts.shape[-1]))
