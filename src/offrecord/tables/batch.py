"""Batches of whole chains, and how a table is read into them.

A chain is decided by itself, so a table may come in batches: all of it at once, stretch by stretch
from a file, or spread over machines. Nothing here needs the key: what is known of a batch is its
geometry, which a rule, an attacker or a report can use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from offrecord.designs.clusters import Clusters
from offrecord.designs.needs import LONGEST_GAP, SurroundingCounts, distinct
from offrecord.errors import InputError
from offrecord.mechanisms.blocks import Mask, Secrets
from offrecord.mechanisms.surroundings import Nearness, context_of
from offrecord.models.base import Floats, Integers, Model, Phases
from offrecord.models.records import MISSING, Chains
from offrecord.tables.alphabet import Alphabet
from offrecord.tables.chains import Arranged, Columns, arrange
from offrecord.tables.openings import Openings
from offrecord.tables.optouts import OptOuts
from offrecord.tables.secrets import Private, private_records, secrets_of
from offrecord.tables.steps import Step

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class ChainBatch:
    """Whole chains, what is private in them, and the secrets that makes.

    surroundings: (s, 4) of each secret the columns of SurroundingCounts. contexts: the phases that
    their numbers stand for. phases: of each record, if the model has them. clusters: secrets that
    one design is made for, if they are worth it. openings: of chains, where the model's set holds
    from a later record on; secrets are then counted among the parts that these make of chains.
    waits: (n,) which records leave later, in a table that grows; None where none does.
    """

    arranged: Arranged
    private: Private
    secrets: Secrets
    surroundings: Integers
    contexts: dict[int, bytes]
    phases: Phases | None
    clusters: Clusters
    openings: Openings | None = None
    waits: Mask | None = None

    @property
    def chains(self) -> Chains:
        """The chains that secrets are counted among, which are decided."""
        return self.arranged.chains if self.openings is None else self.openings.chains

    @cached_property
    def secret_chains(self) -> Integers:
        """(s,) the chain of the table that each secret is in."""
        return self.whole_chains(self.secrets.chain)

    def whole_chains(self, chain: Integers) -> Integers:
        """The chains of the table that some of those are parts of that are decided."""
        return chain if self.openings is None else self.openings.of[chain]

    @property
    def rows(self) -> int:
        """How many records it holds."""
        return len(self.arranged.chains.codes)

    @cached_property
    def valued(self) -> Mask | None:
        """(n,) which records have a value, as far as anyone is told: of private ones, all; of those
        that wait, none. None if every record has one.
        """
        chains = self.arranged.chains
        if chains.whole and self.waits is None:
            return None
        valued: Mask = chains.codes != MISSING
        valued[self.private.rows(chains)] = True
        return valued if self.waits is None else valued & ~self.waits

    @cached_property
    def behind(self) -> Integers | None:
        """(n,) how many records with a value leave or stay with each beside itself: the opening of
        an edge. None where there are no openings.
        """
        return None if self.openings is None else self.openings.behind(self.valued)

    @property
    def waiting(self) -> tuple[int, int]:
        """How many records wait that have a value, as far as anyone is told, and how many of these
        are private.
        """
        if self.waits is None:
            return 0, 0
        valued = replace(self, waits=None).valued
        private = self.waits[self.private.rows(self.arranged.chains)]
        waits = self.waits if valued is None else self.waits & valued
        return int(waits.sum()), int(private.sum())

    @cached_property
    def distinct(self) -> tuple[Integers, Integers, Integers]:
        """The distinct surroundings, which one each secret has, and how many secrets have each."""
        return distinct(*self.surroundings.T)

    def looked_up(self, numbers: Mapping[tuple[int, ...], int]) -> Integers:
        """(s,) the number that the surrounding of each secret has; InputError for one without."""
        rows, used, _ = self.distinct
        try:
            found = [numbers[tuple(row)] for row in rows.tolist()]
        except KeyError:
            raise InputError("the table was changed while it was read; start again") from None
        return np.array(found, dtype=np.int64)[used]

    @property
    def needs(self) -> SurroundingCounts:
        """The surroundings of its secrets."""
        rows, _, counts = self.distinct
        return SurroundingCounts.of(rows, counts, self.contexts, self._gaps)

    @property
    def _gaps(self) -> tuple[int, ...]:
        """Which gaps there are between neighbouring secrets, of those that matter."""
        secrets = self.secrets
        between = secrets.first[1:] - secrets.last[:-1] - 1
        near = (secrets.chain[1:] == secrets.chain[:-1]) & (between > 0)
        return tuple(np.unique(between[near & (between <= LONGEST_GAP)]).tolist())

    @cached_property
    def chains_with_secret(self) -> Integers:
        """The chains that hold a secret, sorted."""
        return self.secret_chains[np.diff(self.secret_chains, prepend=-1) > 0]

    def masses(self, model: Model) -> Floats:
        """How likely each value of its records is: (k,) if the same for all, else (n, k)."""
        places = np.empty(0, dtype=np.int64)
        if not model.is_stationary:
            places = self.arranged.chains.places
        return model.masses(places, self.phases)


@dataclass(frozen=True, eq=False, repr=False)
class Chosen:
    """Rows of whole chains as they were read, and what is private in them.

    dropped: (m,) which chains are left out of all that follows. kept: the others, None if there is
    none; all of them where none is dropped.
    """

    arranged: Arranged
    private: Private
    dropped: Mask
    kept: tuple[Arranged, Private] | None


@dataclass(frozen=True, eq=False)
class Reading:
    """How the rows of a table are read.

    private: the column that marks records. drop: leave out the chains of which every row is
    private.
    """

    columns: Columns
    private: str | None
    step: Step | None
    drop: bool = False

    def chosen(
        self, frame: pl.DataFrame, optouts: OptOuts | None, alphabet: Alphabet | None
    ) -> Chosen:
        """Rows of whole chains. optouts: the private list, if there is one. alphabet: what values
        may be, None as long as nobody knows.
        """
        arranged, private = self._read(frame, optouts, alphabet)
        dropped = np.zeros(arranged.chains.count, dtype=bool)
        if self.drop:
            dropped = private.whole_chains(arranged.chains)
        if not dropped.any():
            return Chosen(arranged, private, dropped, (arranged, private))
        if dropped.all():
            return Chosen(arranged, private, dropped, None)
        # What is left is read anew, as if nothing else had been there: a chain's name decides
        # whether names are numbers, its times how regular times are.
        stays = ~np.repeat(dropped, np.diff(arranged.chains.starts))
        rows = np.sort(np.flatnonzero(stays) if arranged.rows is None else arranged.rows[stays])
        kept, private_kept = self._read(frame[rows], optouts, alphabet)
        kept = replace(kept, rows=rows if kept.rows is None else rows[kept.rows])
        return Chosen(arranged, private, dropped, (kept, private_kept))

    def _read(
        self, frame: pl.DataFrame, optouts: OptOuts | None, alphabet: Alphabet | None
    ) -> tuple[Arranged, Private]:
        arranged = arrange(
            frame, self.columns, alphabet=alphabet, private=self.private, step=self.step
        )
        return arranged, private_records(arranged, optouts, self.step)


@dataclass(frozen=True, eq=False)
class TableSpec:
    """How a table is read. limits: rooms beyond which a larger one makes no difference. nearness:
    which secrets are designed together, None where each is by itself. since: the record of chains
    from which on the model's set holds.
    """

    reading: Reading
    protect: str
    model: Model
    limits: tuple[int | None, int | None]
    nearness: Nearness | None = None
    since: int = 1

    @property
    def columns(self) -> Columns:
        """Which column says what."""
        return self.reading.columns

    def read(self, frame: pl.DataFrame, optouts: OptOuts | None) -> Chosen:
        """Rows of whole chains. optouts: the private list, if there is one."""
        return self.reading.chosen(frame, optouts, Alphabet.of(self.model))

    def batch(self, arranged: Arranged, private: Private) -> ChainBatch:
        """Arranged chains as a batch."""
        chains, clock = arranged.chains, self.model.clock
        phases = None if clock is None else arranged.phases(clock.phase, clock.zone)
        openings = None
        if self.since == 1:
            secrets = secrets_of(chains, private, self.protect)
        else:
            openings = Openings.before(chains, self.since)
            moved = openings.private(chains, private)
            chains = openings.chains
            secrets = secrets_of(chains, moved, self.protect)
        left, right = (
            room if limit is None else np.minimum(room, limit)
            for room, limit in zip(secrets.rooms(chains), self.limits, strict=True)
        )
        length, context = secrets.last - secrets.first + 1, np.zeros_like(secrets.first)
        contexts: dict[int, bytes] = {}
        if phases is not None:
            begins, counts = secrets.first - left, left + length + np.maximum(right, 1)
            for secret, (chain, begin, count) in enumerate(
                zip(secrets.chain.tolist(), begins.tolist(), counts.tolist(), strict=True)
            ):
                places = begin, begin + count
                along = self._along(arranged, private, phases, chain, places)
                context[secret] = context_of(along)
                contexts[int(context[secret])] = along.astype(np.int8).tobytes()
        around = np.stack((left, right, length, context), axis=1)
        clusters = Clusters.of(chains, secrets, self.nearness)
        return ChainBatch(arranged, private, secrets, around, contexts, phases, clusters, openings)

    def _along(
        self,
        arranged: Arranged,
        private: Private,
        phases: Phases,
        chain: int,
        places: tuple[int, int],
    ) -> Integers:
        """The phases of some records of a chain, from one place to before another: by their own
        clocks, as in a fit.

        Of missing ones by the time that a private list gives them, else by the chain's grid.
        """
        chains, clock = arranged.chains, self.model.clock
        assert clock is not None
        rows = slice(int(chains.starts[chain]), int(chains.starts[chain + 1]))
        first, stop = places
        if chains.steps is None:
            return phases[rows][first:stop].astype(np.int64)
        steps = chains.steps[rows]
        known = slice(*np.searchsorted(steps, places))
        along = np.full(stop - first, -1, dtype=np.int64)
        along[steps[known] - first] = phases[rows][known]
        gaps = np.flatnonzero(along < 0)
        if len(gaps):
            along[gaps] = clock.phases(arranged.gap_times(chain, gaps + first))
            listed = slice(*np.searchsorted(private.chain, (chain, chain + 1)))
            asked, times = private.place[listed] - first, private.order[listed]
            missing = np.isin(asked, gaps)
            along[asked[missing]] = clock.phases(times[missing])
        return along
