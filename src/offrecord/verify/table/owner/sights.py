"""What is seen around secrets: the chain's beginning, the gaps between them, and the chain's end.

Of an order m above 1 all of this is about tuples of m records; the tuple at a place holds the
record there and the m − 1 after it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from offrecord.verify.table.cells import EMPTY, Integers, Mask
from offrecord.verify.table.rows import Table
from offrecord.verify.table.secrets import Secrets


@dataclass(frozen=True, eq=False)
class View:
    """Which rows have a value. valued: those that are released. had: (n + 1,) how many of the first
    rows had one before, None where that is not known: then every row may have had one.
    """

    table: Table
    valued: Integers
    had: Integers | None

    @classmethod
    def of(cls, table: Table) -> View:
        """Of a table."""
        had = None
        if table.original is not None:
            had = np.concatenate(([0], np.cumsum(table.original != EMPTY)))
        return cls(table, np.flatnonzero(table.codes != EMPTY), had)

    def between(self, low: Integers, high: Integers) -> Integers:
        """How many rows that may have had a value stand from one row to before another."""
        return high - low if self.had is None else self.had[high] - self.had[low]

    def released(self, chain: Integers) -> Mask:
        """Whether anything of some chains is."""
        starts = self.table.starts
        low, high = (np.searchsorted(self.valued, starts[chain + at]) for at in (0, 1))
        return np.asarray(high > low)


@dataclass(frozen=True, eq=False)
class Gaps:
    """What lies between two clusters, or a cluster and the chain's end; (g,) each.

    size: how many tuples. first, last: how far the first and the last tuple that is released is
    from the left, 0 if none is; before a chain's first secret, from the right. released: how many
    records are. chain, place, sign: the tuple that distances are from, and in which direction.
    """

    view: View
    extra: int
    chain: Integers
    place: Integers
    sign: Integers
    size: Integers
    first: Integers
    last: Integers
    released: Integers

    @classmethod
    def of(
        cls, view: View, extra: int, chain: Integers, before: Integers, after: Integers, sign: int
    ) -> Gaps:
        """Between tuples at two places. sign: −1 if distances are from the right."""
        size = np.maximum(after - before - 1, 0)
        some = size > 0
        low = view.table.row_from(chain, before + 1)
        high = view.table.row_from(chain, after + extra)
        begin, end = np.searchsorted(view.valued, low), np.searchsorted(view.valued, high)
        released = np.where(some, end - begin, 0)
        there = released > 0
        padded = view.valued if len(view.valued) else np.zeros(1, dtype=np.int64)
        ends = [view.table.place_of(padded[np.where(there, at, 0)]) for at in (begin, end - 1)]
        if sign > 0:
            first, last = ends[0] - before, ends[1] - before - extra
        else:
            first, last = after + extra - ends[1], after - ends[0]
        first, last = np.where(there, first, 0), np.where(there, last, 0)
        place = before if sign > 0 else after
        signs = np.full(len(size), sign)
        return cls(view, extra, chain, place, signs, size, first, last, released)

    def part(self, chosen: Integers) -> Gaps:
        """Some of them."""
        names = ("chain", "place", "sign", "size", "first", "last", "released")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def rows(self, first: Integers, last: Integers) -> Integers:
        """How many rows the tuples from one distance to another hold, (g, …) each."""
        shape = (-1,) + (1,) * (first.ndim - 1)
        chain, place, sign = (one.reshape(shape) for one in (self.chain, self.place, self.sign))
        if self.view.table.steps is None and self.view.had is None:
            return np.where(last < first, 0, last + self.extra - first + 1)
        forward = sign > 0
        low = np.where(forward, place + first, place - last)
        high = np.where(forward, place + last, place - first) + self.extra + 1
        low, high = self.view.table.row_from(chain, low), self.view.table.row_from(chain, high)
        return np.where(last < first, 0, self.view.between(low, np.maximum(low, high)))


@dataclass(frozen=True, eq=False)
class Places:
    """Secrets in tuples, chain by chain; (s,) each, or (c,) for each chain.

    line: the chain of each, counted from 0 here. begin, end: their tuples. which: their stoppings.
    is_single: they have one tuple. length: of its chain. heads: (c,) the first secret of each
    chain. number: (c,) in the table. before: the gap before each; after: (c,) the chain's end.
    """

    line: Integers
    begin: Integers
    end: Integers
    which: Integers
    is_single: Mask
    length: Integers
    heads: Integers
    number: Integers
    before: Gaps
    after: Gaps

    @property
    def count(self) -> int:
        """How many secrets there are."""
        return len(self.line)

    @property
    def chains(self) -> int:
        """How many chains there are."""
        return len(self.heads)

    @cached_property
    def is_head(self) -> Mask:
        """(s,) whether each is the first of its chain."""
        found = np.zeros(self.count, dtype=bool)
        found[self.heads] = True
        return found

    @classmethod
    def of(cls, view: View, extra: int, secrets: Secrets, stoppings: Integers) -> Places:
        """Of all secrets of some chains that are long enough for a tuple."""
        length = view.table.lengths[secrets.chain] - extra
        end = np.clip(secrets.last - extra, 0, length - 1)
        begin = np.minimum(secrets.first, end)
        change = np.diff(secrets.chain, prepend=-1) != 0
        heads = np.flatnonzero(change)
        tails = np.append(heads[1:], secrets.count)[: len(heads)] - 1
        number = secrets.chain[heads]
        between = Gaps.of(view, extra, secrets.chain, np.roll(end, 1), begin, 1)
        none = np.full(len(heads), -1)
        beginnings = Gaps.of(view, extra, number, none, begin[heads], -1)
        names = ("place", "sign", "size", "first", "last", "released")
        for name in names:
            getattr(between, name)[heads] = getattr(beginnings, name)
        after = Gaps.of(view, extra, number, end[tails], length[tails], 1)
        line = np.cumsum(change) - 1
        single = begin == end
        return cls(line, begin, end, stoppings, single, length, heads, number, between, after)

    def part(self, chains: Integers) -> Places:
        """Of some chains."""
        sizes = np.diff(np.append(self.heads, self.count))[chains]
        heads = np.cumsum(sizes) - sizes
        chosen = np.repeat(self.heads[chains] - heads, sizes) + np.arange(int(sizes.sum()))
        return Places(
            np.repeat(np.arange(len(chains)), sizes),
            self.begin[chosen],
            self.end[chosen],
            self.which[chosen],
            self.is_single[chosen],
            self.length[chosen],
            heads,
            self.number[chains],
            self.before.part(chosen),
            self.after.part(chains),
        )
