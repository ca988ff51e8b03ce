"""Which records of a table are private: by a column, by a list, or by both; none may be lost."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from offrecord.errors import InputError
from offrecord.models.base import Integers, Mask
from offrecord.models.records import MISSING, Chains, Runs
from offrecord.tables.chains import Arranged
from offrecord.tables.optouts import Named, OptOuts
from offrecord.tables.steps import Step
from offrecord.text import many

_MOST_GAPS = 10**7  # steps without a row that ranges may name one by one


def _no_list() -> Mask:
    return np.zeros(0, dtype=bool)


@dataclass(frozen=True, eq=False, repr=False)
class Private:
    """Private records, sorted: the chain of each, and its place there, which may be a gap."""

    chain: Integers
    place: Integers  # in steps from the first record of the chain
    order: Integers  # of a gap the one that was listed, or that of its step
    found: Mask = field(default_factory=_no_list)  # (l,) which rows of a list name something here
    known: Mask = field(default_factory=_no_list)  # (l,) which name a chain that is here

    @property
    def count(self) -> int:
        """How many private records there are."""
        return len(self.place)

    def rows(self, chains: Chains) -> Integers:
        """The rows that are private."""
        before, after = rows_of(chains, self.chain, self.place)
        return before[after > before]

    def whole_chains(self, chains: Chains) -> Mask:
        """(m,) the chains of which every row is private."""
        of, _ = _of_rows(chains, self.rows(chains))
        return np.asarray(np.bincount(of, minlength=chains.count) == np.diff(chains.starts))

    def of(self, here: Mask) -> Private:
        """Some of them."""
        return Private(self.chain[here], self.place[here], self.order[here], self.found, self.known)


def private_records(arranged: Arranged, optouts: OptOuts | None, step: Step | None) -> Private:
    """The private records of a table, from its private column and a list."""
    # what the list names and is not there is for others to find: see `OptOuts.check_found`
    chains = arranged.chains
    rows = np.zeros(0, dtype=np.int64)
    if arranged.private is not None:
        rows = np.flatnonzero(arranged.private)
    if optouts is None or optouts.count == 0:
        return Private(*_of_rows(chains, rows), np.asarray(chains.order[rows].astype(np.int64)))
    named = optouts.named_in(arranged, step)
    keys = np.unique(
        np.concatenate((_keys(chains, *_of_rows(chains, rows)), _listed(chains, named)))
    )
    chain, place = np.divmod(keys, chains.width)
    order = _order_values(arranged, chain, place)
    if optouts.form == "records":
        # a gap has the order value that was listed; of several that name it, the first one counts
        at = np.searchsorted(keys, _keys(chains, named.chain, named.first))[::-1]
        before, after = rows_of(chains, chain, place)
        gaps = (before == after)[at]
        order[at[gaps]] = named.order[::-1][gaps]
    return Private(chain, place, order, named.found, named.known)


def _of_rows(chains: Chains, rows: Integers) -> tuple[Integers, Integers]:
    chain = np.searchsorted(chains.starts, rows, side="right") - 1
    return chain, rows - chains.starts[chain] if chains.steps is None else chains.steps[rows]


def _keys(chains: Chains, chain: Integers, place: Integers) -> Integers:
    """Chain and place as one number, which grows from record to record."""
    return np.asarray(chain * chains.width + place)


def _listed(chains: Chains, named: Named) -> Integers:
    """The keys of the records that a list names; some may come twice."""
    whole = np.unique(named.chain[named.whole])
    rows = _all_between(chains.starts[whole], chains.starts[whole + 1] - 1)
    chain, first, last = (one[~named.whole] for one in (named.chain, named.first, named.last))
    chain, first, last = _apart(chains, chain, first, last)
    held = rows_of(chains, chain, last)[1] - rows_of(chains, chain, first)[0]
    gaps = int((last - first + 1 - held).sum())
    if gaps > _MOST_GAPS:
        raise InputError(
            f"the ranges of the private list hold {many(gaps, 'step')} without a row, more than"
            f" {_MOST_GAPS:,}; leave long gaps out of them: private records on both sides of a"
            " gap are one secret anyway"
        )
    places = _all_between(_keys(chains, chain, first), _keys(chains, chain, last))
    return np.concatenate((_keys(chains, *_of_rows(chains, rows)), places))


def _apart(
    chains: Chains, chain: Integers, first: Integers, last: Integers
) -> tuple[Integers, Integers, Integers]:
    """The same places as some ranges hold, in ranges that share none."""
    first, last = _keys(chains, chain, first), _keys(chains, chain, last)
    order = np.argsort(first, kind="stable")
    first, last = first[order], last[order]
    reached = np.maximum.accumulate(last)
    starts = np.flatnonzero(np.append(True, first[1:] > reached[:-1])[: len(first)])
    ends = np.append(starts[1:], len(first))[: len(starts)] - 1
    chain, first = np.divmod(first[starts], chains.width)
    return chain, first, reached[ends] - chain * chains.width


def _all_between(first: Integers, last: Integers) -> Integers:
    sizes = last - first + 1
    before = np.cumsum(sizes) - sizes
    return np.repeat(first - before, sizes) + np.arange(int(sizes.sum()))


def _order_values(arranged: Arranged, chain: Integers, place: Integers) -> Integers:
    """(r,) the order values of records, of those in gaps by the steps of their chains."""
    before, after = rows_of(arranged.chains, chain, place)
    order = np.zeros(len(chain), dtype=np.int64)
    there = after > before  # a row has its own order value, beside the grid as it may be
    order[there] = arranged.chains.order[before[there]]
    gaps = np.flatnonzero(~there)
    for mine in np.split(gaps, np.flatnonzero(np.diff(chain[gaps])) + 1):
        if len(mine):
            order[mine] = arranged.gap_times(int(chain[mine[0]]), place[mine])
    return order


def runs_of(chains: Chains, private: Private, protect: str) -> Runs:
    """Private records as runs, whatever is missing in between ("run"), or each by itself."""
    begins = np.ones(private.count, dtype=bool)
    if protect == "run":
        begins = _begins_run(chains, private)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], private.count)[: len(first)] - 1
    return Runs(
        private.chain[first], private.place[first], private.place[last], private.order[first]
    )


def _begins_run(chains: Chains, private: Private) -> Mask:
    """(p,) which private records do not go on with the one before."""
    before, after = rows_of(chains, private.chain, private.place)
    begins = np.ones(private.count, dtype=bool)
    begins[1:] = private.chain[1:] != private.chain[:-1]
    if chains.whole:
        begins[1:] |= before[1:] != after[:-1]
    else:  # a record without a value says nothing: it does not part two private ones
        valued = np.concatenate(([0], np.cumsum(chains.codes != MISSING)))
        begins[1:] |= valued[before[1:]] != valued[after[:-1]]
    return begins


def rows_of(chains: Chains, chain: Integers, place: Integers) -> tuple[Integers, Integers]:
    """The row of each place, and the one after; for a gap, twice the row after it."""
    if chains.steps is None:
        rows = chains.starts[chain] + place
        return rows, rows + 1
    keys = chain * chains.width + place
    before = np.searchsorted(chains.keys, keys, side="left")
    return before, np.searchsorted(chains.keys, keys, side="right")
