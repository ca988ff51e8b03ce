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


@dataclass(frozen=True, eq=False, repr=False)
class Private:
    """Private records, sorted: the chain of each, and its place there in steps from the first.

    A place may be a gap between rows. order: their order values, of a gap the one that was listed,
    or that of its step. found: (l,) which rows of a private list name something here; known: those
    whose chain is here.
    """

    chain: Integers
    place: Integers
    order: Integers
    found: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    known: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))

    @property
    def count(self) -> int:
        """How many private records there are."""
        return len(self.place)

    @property
    def keys(self) -> int:
        """How many rows of a private list were found."""
        return int(self.found.sum())

    def rows(self, chains: Chains) -> Integers:
        """The rows that are private."""
        before, after = rows_of(chains, self.chain, self.place)
        return before[after > before]

    def whole_chains(self, chains: Chains) -> Mask:
        """(m,) the chains of which every row is private."""
        of = np.searchsorted(chains.starts, self.rows(chains), side="right") - 1
        return np.asarray(np.bincount(of, minlength=chains.count) == np.diff(chains.starts))

    def of(self, here: Mask) -> Private:
        """Some of them."""
        return Private(self.chain[here], self.place[here], self.order[here], self.found, self.known)


def private_records(arranged: Arranged, optouts: OptOuts | None, step: Step | None) -> Private:
    """The private records of a table, from its private column and a list.

    What the list names and is not there is for others to find: see `OptOuts.check_found`.
    """
    chains = arranged.chains
    rows = np.zeros(0, dtype=np.int64)
    if arranged.private is not None:
        rows = np.flatnonzero(arranged.private)
    if optouts is None or optouts.count == 0:
        chain = np.searchsorted(chains.starts, rows, side="right") - 1
        place = rows - chains.starts[chain] if chains.steps is None else chains.steps[rows]
        return Private(chain, place, np.asarray(chains.order[rows].astype(np.int64)))
    named = optouts.named_in(arranged, step)
    line = np.unique(np.concatenate((_at_rows(chains, rows), _listed(chains, named))))
    chain, place = _off_line(chains, line)
    private = Private(chain, place, np.zeros(len(line), dtype=np.int64), named.found, named.known)
    _fill_order(arranged, private, line, named if optouts.form == "records" else None)
    return private


# ---- chain and place as one number, which grows from record to record


def _on_line(chains: Chains, chain: Integers, place: Integers) -> Integers:
    """(r,) a number for each record."""
    if chains.steps is None:
        return np.asarray(chains.starts[chain] + place)
    return np.asarray(chain * chains.width + place)


def _off_line(chains: Chains, line: Integers) -> tuple[Integers, Integers]:
    """(r,) the chain and the place of each record."""
    if chains.steps is None:
        chain = np.searchsorted(chains.starts, line, side="right") - 1
        return chain, line - chains.starts[chain]
    chain, place = np.divmod(line, chains.width)
    return chain, place


def _at_rows(chains: Chains, rows: Integers) -> Integers:
    """(r,) the number of each row's record."""
    return rows if chains.steps is None else chains.keys[rows]


def _listed(chains: Chains, named: Named) -> Integers:
    """The numbers of the records that a list names; some may come twice."""
    whole = np.unique(named.chain[named.whole])
    rows = _all_between(chains.starts[whole], chains.starts[whole + 1] - 1)
    some = ~named.whole
    first = _on_line(chains, named.chain[some], named.first[some])
    last = _on_line(chains, named.chain[some], named.last[some])
    first, last = _apart(first, last)
    if chains.steps is not None:
        held = np.searchsorted(chains.keys, last, "right") - np.searchsorted(chains.keys, first)
        gaps = int((last - first + 1 - held).sum())
        if gaps > _MOST_GAPS:
            raise InputError(
                f"the ranges of the private list hold {many(gaps, 'step')} without a row, more than"
                f" {_MOST_GAPS:,}; leave long gaps out of them: private records on both sides of a"
                " gap are one secret anyway"
            )
    return np.concatenate((_at_rows(chains, rows), _all_between(first, last)))


def _apart(first: Integers, last: Integers) -> tuple[Integers, Integers]:
    """The same numbers as some ranges hold, in ranges that share none."""
    order = np.argsort(first, kind="stable")
    first, last = first[order], last[order]
    reached = np.maximum.accumulate(last)
    begins = np.ones(len(first), dtype=bool)
    begins[1:] = first[1:] > reached[:-1]
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(first))[: len(starts)] - 1
    return first[starts], reached[ends]


def _all_between(first: Integers, last: Integers) -> Integers:
    """All numbers of some ranges, both ends included."""
    sizes = last - first + 1
    before = np.cumsum(sizes) - sizes
    return np.repeat(first - before, sizes) + np.arange(int(sizes.sum()))


def _fill_order(arranged: Arranged, private: Private, line: Integers, listed: Named | None) -> None:
    """Fill in the order values of private records. listed: what has listed its own."""
    chains = arranged.chains
    before, after = rows_of(chains, private.chain, private.place)
    there = after > before  # a row has its own order value, beside the grid as it may be
    private.order[there] = chains.order[before[there]]
    gaps = ~there
    if not gaps.any():
        return
    if listed is not None:
        at = np.searchsorted(line, _on_line(chains, listed.chain, listed.first))[::-1]
        first = gaps[at]  # of several that name a gap, the first one counts
        private.order[at[first]] = listed.order[::-1][first]
        return
    ends = np.flatnonzero(np.diff(private.chain[gaps], append=-1)) + 1
    begin = 0
    rows = np.flatnonzero(gaps)
    for end in ends.tolist():
        mine = rows[begin:end]
        chain = int(private.chain[mine[0]])
        private.order[mine] = arranged.gap_times(chain, private.place[mine])
        begin = end


def runs_of(chains: Chains, private: Private, protect: str) -> Runs:
    """Private records as runs, whatever is missing in between ("run"), or each by itself ("each").

    Args:
        chains: the records of a table.
        private: which of them are private.
        protect: "run" or "each".

    Returns:
        Runs sorted by chain and place.
    """
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
