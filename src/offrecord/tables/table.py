"""A table that has been read: whole chains, what is private in them, and their coins.

Each chain is decided by itself, so a table may come at once, part by part from a file, or spread
over machines: each part is a `Table`. Values in it have no codes as long as their labels are not
known (`Reader.alphabet` None): then a fit gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.mechanisms.deciding.layout import PlaceOf
from offrecord.models.base import Integers, Mask
from offrecord.models.members import Places
from offrecord.models.records import MISSING, Chains, Runs
from offrecord.release import coins as keyed
from offrecord.release.coins import RECORDS, ChainTags, Coins, Counter, Draws
from offrecord.tables.alphabet import Alphabet
from offrecord.tables.chains import Arranged, Columns, arrange
from offrecord.tables.optouts import OptOuts
from offrecord.tables.private import Private, private_records, runs_of
from offrecord.tables.steps import Step

UNKEYED = Coins(b"", "", "")  #: of a table that is only read


@dataclass(frozen=True, eq=False)
class Reader:
    """How rows become a table."""

    columns: Columns
    private: str | None  # the column that marks records
    step: Step | None
    keep_rows: bool = False  # those of chains that are private as a whole stay, with empty values
    alphabet: Alphabet | None = None  # what values may be, as far as anybody knows

    def read(self, frame: pl.DataFrame, optouts: OptOuts | None, *, touched: bool = False) -> Table:
        """Rows of whole chains as a table; InputError for what would make reading them a guess.

        touched: chains with any private record count as private as a whole.
        """
        whole = self._read(frame, optouts)
        if self.keep_rows or whole.private.count == 0:
            return whole
        # By positions alone, so which chains are left out depends on no value.
        gone = whole.touched if touched else whole.private.whole_chains(whole.chains)
        if not gone.any():
            return whole
        if gone.all():
            return replace(whole, whole=whole, gone=gone, is_empty=True)
        # What is left is read anew, as if nothing else had been there: a chain's name decides
        # whether names are numbers, its times how regular times are.
        arranged = whole.arranged
        stays = ~np.repeat(gone, np.diff(whole.chains.starts))
        rows = np.sort(np.flatnonzero(stays) if arranged.rows is None else arranged.rows[stays])
        kept = self._read(frame[rows], optouts)
        own = rows if kept.arranged.rows is None else rows[kept.arranged.rows]
        return replace(
            kept,
            arranged=replace(kept.arranged, rows=own),
            private=replace(kept.private, found=whole.private.found, known=whole.private.known),
            whole=whole,
            gone=gone,
        )

    def _read(self, frame: pl.DataFrame, optouts: OptOuts | None) -> Table:
        arranged = arrange(
            frame, self.columns, alphabet=self.alphabet, private=self.private, step=self.step
        )
        return Table(arranged, private_records(arranged, optouts, self.step))


@dataclass(frozen=True, eq=False, repr=False)
class Dropped:
    """Chains that are left out of a release."""

    chains: int = 0
    rows: int = 0
    records: int = 0  # rows with a value
    private: int = 0  # private records
    digest: tuple[int, int] = (0, 0)  # of the private records, for the ledger alone

    def __add__(self, other: Dropped) -> Dropped:
        (low, high), (other_low, other_high) = self.digest, other.digest
        return Dropped(
            self.chains + other.chains,
            self.rows + other.rows,
            self.records + other.records,
            self.private + other.private,
            (low ^ other_low, high ^ other_high),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Whole chains of a table, sorted, and which of their records are private."""

    arranged: Arranged
    private: Private
    coins: Coins = UNKEYED  # without a key until `keyed`
    whole: Table | None = None  # what was read, where something was left out of it
    gone: Mask | None = None  # (m,) which of its chains were left out
    is_empty: bool = False  # all of them were

    def keyed(self, coins: Coins) -> Table:
        """The same with its coins."""
        return replace(self, coins=coins)

    @property
    def all_read(self) -> Table:
        """All that was read, with what was left out."""
        return self.whole or self

    @property
    def dropped(self) -> Dropped:
        """What was left out."""
        if self.whole is None or self.gone is None:
            return Dropped()
        whole = self.whole.keyed(self.coins)
        private = whole.private.of(self.gone[whole.private.chain])
        low, high = whole.set_digest(private.chain, private.order).tolist()
        rows = whole.chains.spread(self.gone)
        records = int(np.count_nonzero(whole.valued & rows))
        return Dropped(int(self.gone.sum()), int(rows.sum()), records, private.count, (low, high))

    @property
    def names(self) -> pl.DataFrame:
        """The names of its chains, a row each."""
        return self.arranged.names[self.chains.starts[:-1]]

    @property
    def chains(self) -> Chains:
        """The records."""
        return self.arranged.chains

    @property
    def rows(self) -> int:
        """How many records it has."""
        return len(self.chains.codes)

    @cached_property
    def is_private(self) -> Mask:
        """(n,) which rows are private."""
        private = np.zeros(self.rows, dtype=bool)
        private[self.private.rows(self.chains)] = True
        return private

    @cached_property
    def touched(self) -> Mask:
        """(m,) which chains have a private record."""
        touched = np.zeros(self.chains.count, dtype=bool)
        touched[self.private.chain] = True
        return touched

    @property
    def partly_private(self) -> Mask:
        """(m,) which chains have a private record and another one."""
        return self.touched & ~self.private.whole_chains(self.chains)

    @cached_property
    def valued(self) -> Mask:
        """(n,) which records have a value, as far as anyone learns: of private ones, all."""
        return np.asarray((self.chains.codes != MISSING) | self.is_private)

    def runs(self, protect: str) -> Runs:
        """Its private runs, or each private record by itself."""
        return runs_of(self.chains, self.private, protect)

    def labelled(self, alphabet: Alphabet) -> Table:
        """With codes for its values."""
        return replace(self, arranged=self.arranged.labelled(alphabet))

    # ---- places

    def place_of(self, places: Places | None) -> PlaceOf:
        """What gives the places of records, of missing ones too."""
        if places is None:
            return lambda chain, steps: np.zeros(len(steps), dtype=np.int64)
        if not places.cyclic:
            last = places.count - 1
            return lambda chain, steps: np.minimum(steps, last)
        first = self.arranged.phases(places.kind, places.zone)[self.chains.starts[:-1]]
        return lambda chain, steps: (first[chain] + steps) % places.count

    def record_places(self, places: Places | None) -> Integers:
        """(n,) the place of each record."""
        return self.place_of(places)(self.chains.chain_of, self.chains.places)

    # ---- coins

    @cached_property
    def tags(self) -> ChainTags:
        """(m, 2) what the coins of each chain with a private record come from; of others, zeros."""
        return self._of_touched(self.coins.chain_tags)

    def _of_touched(self, tags_of: Callable[[list[bytes]], ChainTags]) -> ChainTags:
        """(m, 2) tags from the encoded names of chains with a private record."""
        chains = np.flatnonzero(self.touched)
        names = keyed.joined(self.arranged.chain_values(chains), len(chains))
        tags = np.zeros((self.chains.count, 2), dtype=np.uint64)
        tags[chains] = tags_of(list(names))
        return tags

    @property
    def order_kind(self) -> int:
        """Of what kind order values are, for coins."""
        return keyed.TIME if self.chains.timed else keyed.INTEGER

    def draw(
        self,
        chain: Integers,
        order: NDArray[np.integer[Any]],
        purpose: bytes = RECORDS,
        counter: Counter = 0,
    ) -> Draws:
        """(r,) a draw for each of some records of chains with a private record."""
        tags = self.tags.take(chain, axis=0)  # far faster than an index
        return self.coins.draw(tags, order, self.order_kind, purpose, counter)

    def set_digest(self, chain: Integers, order: Integers) -> Draws:
        """(2,) a digest of some records of chains with a private record, for the key's owner."""
        return self.coins.set_digest(self.tags[chain], order, self.order_kind)

    def digest_anywhere(self) -> Draws:
        """(2,) a digest of its private records, whatever the name of the data set."""
        if self.private.count == 0:
            return np.zeros(2, dtype=np.uint64)
        tags, private = self._of_touched(self.coins.tags_anywhere), self.private
        return self.coins.set_digest(tags[private.chain], private.order, self.order_kind)


def nothing_left() -> InputError:
    """What is said where every chain is left out."""
    return InputError(
        "nothing is left to release: every chain goes as a whole; --keep-rows keeps their rows,"
        " with empty values"
    )
