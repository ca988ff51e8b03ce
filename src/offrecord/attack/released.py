"""A released table and its certificate, read as whoever receives them can: the secrets, and how
likely each record was redacted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from offrecord.attack.shown import Shown
from offrecord.designs.clusters import with_clusters
from offrecord.designs.library import Designs
from offrecord.designs.sharing import designs_for
from offrecord.errors import InputError
from offrecord.mechanisms.blocks import ALWAYS, NEVER, Mask
from offrecord.models.base import Integers
from offrecord.models.records import MISSING, UNKNOWN, Chains, Codes
from offrecord.release import certificate as form
from offrecord.tables.acting import Acting
from offrecord.tables.alphabet import Alphabet
from offrecord.tables.batch import ChainBatch, TableSpec
from offrecord.tables.certified import Certified
from offrecord.tables.chains import Arranged, arrange
from offrecord.tables.formats import read_frame
from offrecord.tables.openings import Openings
from offrecord.tables.rule import Rule
from offrecord.tables.secrets import Private, private_records
from offrecord.tables.several.growing import Holding
from offrecord.text import many

if TYPE_CHECKING:
    pass

LOCAL = ("local", form.CLUSTERED)
_LOOKS = 3  # at which records are missing for certain


class Evidence(NamedTuple):
    """What a table shows. never: (n,) which rows no design redacts. wrong: how many values are
    released that the certificate always redacts.
    """

    shown: Shown
    never: Mask
    wrong: int


@dataclass(frozen=True, eq=False)
class Table:
    """A released table: its secrets, and by which rule it was redacted.

    codes: (n,) the values that are released, MISSING where there is none. missing: (n,) rows of
    which it is known that they have no value. needs, which: as for designs. waits: (n,) rows of a
    growing table that are empty whatever their values are, None where there are none. aside: what
    of the table is not attacked, if anything, as it grows.
    """

    said: Certified
    arranged: Arranged
    batch: ChainBatch
    codes: Codes
    missing: Mask
    rule: Rule
    designs: Designs
    acting: Acting
    notes: tuple[str, ...]
    exposed: Integers
    waits: Mask | None = None
    aside: tuple[str, ...] = ()

    @property
    def chains(self) -> Chains:
        """Its records."""
        return self.batch.arranged.chains

    @classmethod
    def read(cls, path: Path, said: Certified, listed: Any = None) -> Table:
        """Read a table. listed: the private list, where the certificate has none."""
        columns = said.columns
        frame = read_frame(path, columns.released)
        alphabet = Alphabet(said.model.labels)
        arranged = arrange(frame, columns, alphabet=alphabet, step=said.step)
        _check_table(arranged, said)
        return cls.of(arranged, said, listed)

    @classmethod
    def of(
        cls, arranged: Arranged, said: Certified, listed: Any = None, *, with_openings: bool = False
    ) -> Table:
        """From a table that is arranged. Of one whose model's set holds from a later record on,
        what stands from there on, unless all of it is asked for: what stands before tells an
        attacker nothing beyond that.
        """
        private = _private(arranged, said, listed)
        if said.since > 1 and not with_openings:
            arranged, private = _opened(arranged, private, said.since)
        waits: Mask | None = None
        note: tuple[str, ...] = ()
        if said.certificate.growing is not None:
            holding = Holding(**said.certificate.growing.to_dict())
            waits = holding.waits(arranged, private)
            if said.designs.kind not in LOCAL:  # no walk leads from what waits to what does not
                count = private.count
                begins = holding.begins(arranged, private)
                arranged, private = _settled(arranged, private, begins)
                waits, note = None, _waiting(count - private.count)
        reading = said.spec if with_openings else replace(said.spec, since=1)
        found = replace(cls._of(arranged, private, said, reading, None, waits), aside=note)
        return found._noted()

    def knowing(self, missing: Mask) -> Table:
        """The same table, where it is known which of its rows have no value."""
        reading = replace(self.said.spec, since=1)  # what is attacked stands where the set holds
        found = self._of(self.arranged, self.batch.private, self.said, reading, missing, self.waits)
        return replace(found, aside=self.aside)._noted()

    @classmethod
    def _of(
        cls,
        arranged: Arranged,
        private: Private,
        said: Certified,
        reading: TableSpec,
        missing: Mask | None,
        waits: Mask | None,
    ) -> Table:
        """From records that stand as they are read."""
        codes = arranged.chains.codes
        rows = private.rows(arranged.chains)
        open_ = rows[codes[rows] >= 0]
        if len(open_):
            codes = codes.copy()
            codes[open_] = MISSING
        empty = codes == MISSING
        is_known = missing is not None or said.certificate.counts.missing == 0
        gone = np.zeros(len(codes), dtype=bool) if missing is None else missing
        for _ in range(1 if is_known else _LOOKS):
            found = _ruled(arranged, private, said, reading, codes, gone)
            if is_known:
                break
            # what is never redacted and yet empty has no value
            certain = empty & (found.certainty() == NEVER)
            certain[rows] = False
            if waits is not None:
                certain &= ~waits
            if np.array_equal(certain, gone):
                break
            gone = certain
        return replace(found, exposed=open_, waits=waits)

    @cached_property
    def _plain(self) -> Shown:
        none = np.empty(0, dtype=np.int64)
        return Shown.of(self.chains, self.codes, none, np.zeros((0, self.said.model.k)))

    def rows(self, chain: Integers, place: Integers) -> Integers:
        """(r,) the rows of some places; −1 where there is none."""
        return self._plain.rows(chain, place)

    def certainty(self) -> Any:
        """(n,) whether each record is redacted never, at times or always."""
        masses = self.batch.masses(self.said.model)
        parts = []
        for block in self.rule.blocks(self.batch, self.acting):
            parts.append(self.rule.foretold(self.batch, block, masses).certainty)
        return np.concatenate(parts)

    def _noted(self) -> Table:
        """With what a person should know of how it was read."""
        if self.aside:
            return replace(self, notes=self.aside)
        notes = []
        counts = self.said.certificate.counts
        said: dict[tuple[int, ...], int] = {}
        for one in self.said.designs.designs:
            key = one.left, one.right, one.length
            said[key] = said.get(key, 0) + one.uses
        if self.batch.secrets.count != counts.secrets:
            notes.append(
                f"{self.batch.secrets.count:,} secrets are told apart where the certificate counts"
                f" {counts.secrets:,}: which records between private ones are missing is not known"
            )
        uses = self.acting.uses
        if uses is None:
            uses = np.bincount(self.acting.which, minlength=len(self.designs.designs))
        found: dict[tuple[int, ...], int] = {}
        for design, count in zip(self.designs.designs, uses.tolist(), strict=True):
            key = design.surrounding[:3]
            found[key] = found.get(key, 0) + count
        if {key: one for key, one in found.items() if one} != {k: v for k, v in said.items() if v}:
            notes.append(
                "which designs acted is not what the certificate counts: taken is what redact would"
                " do with what is known"
            )
        return replace(self, notes=tuple(notes))

    def shown(self) -> Evidence:
        """What a table by local designs shows."""
        k, rules, rows, wrong = self.said.model.k, [], [], 0
        never = np.ones(len(self.codes), dtype=bool)
        for block in self.rule.blocks(self.batch, self.acting):
            if not block.secrets.count:
                continue
            told = self.rule.decider.explain(block, self.said.model.labels)
            start, codes = block.rows.start, self.codes[block.rows]
            touched = np.flatnonzero(told.certainty != NEVER)
            never[touched + start] = False
            rule = np.stack([one[touched] for one in told.rule.values()], axis=1)
            own = codes[touched]
            wrong += int((rule[np.arange(len(own)), own][own >= 0] == 1.0).sum())
            holes = (own == MISSING) & (told.certainty[touched] != ALWAYS)
            rules.append(rule[holes])
            rows.append(touched[holes] + start)
        likely = np.concatenate([*rules, np.zeros((0, k))])
        holes = np.concatenate([*rows, np.empty(0, dtype=np.int64)]).astype(np.int64)
        there = ~self.missing[holes]
        if self.waits is not None:
            there &= ~self.waits[holes]
        shown = Shown.of(self.chains, self.codes, holes[there], likely[there])
        return Evidence(shown, never, wrong)


def _check_table(arranged: Arranged, said: Certified) -> None:
    """InputError for a table that is not the certificate's."""
    counts, chains = said.certificate.counts, arranged.chains
    for what, found, told in (
        ("row", len(chains.codes), counts.rows),
        ("chain", chains.count, counts.chains),
    ):
        if found != told:
            raise InputError(
                f"the table has {many(found, what)}, its certificate is about {told:,}: these are"
                " not of the same release"
            )
    unknown = int((chains.codes == UNKNOWN).sum())
    if unknown:
        raise InputError(
            f"value column {arranged.columns.value!r} holds values that the certificate's model"
            f" does not know, in {many(unknown, 'row')}"
        )


def _private(arranged: Arranged, said: Certified, listed: Any) -> Private:
    """The private records; InputError unless they are as many as the certificate says."""
    optouts = said.optouts(arranged, listed)
    private = private_records(arranged, optouts, said.step)
    count = said.certificate.private.count
    if private.count != count:
        optouts.check_found(private.found, private.known, stepped=said.step is not None)
        raise InputError(
            f"the list names {many(private.count, 'private record')}, the certificate {count:,}"
        )
    return private


def _settled(arranged: Arranged, private: Private, begins: Integers) -> tuple[Arranged, Private]:
    """The rows of a growing table that do not wait, and the private records among them; InputError
    if there is none. begins: (m,) the first place of each chain that waits.
    """
    chains = arranged.chains
    stays = chains.places < begins[chains.chain_of]
    counts = np.add.reduceat(stays, chains.starts[:-1], dtype=np.int64)
    if not counts.any():
        raise InputError("all records of this growing table wait: nothing has left")
    here = private.of(private.place < begins[private.chain])
    number = np.cumsum(counts > 0) - 1
    part = Private(number[here.chain], here.place, here.order)
    return _cut(arranged, chains, stays, counts[counts > 0]), part


def _opened(arranged: Arranged, private: Private, since: int) -> tuple[Arranged, Private]:
    """A table from where on its model's set holds, and what is private there."""
    starts = arranged.chains.starts
    openings = Openings.before(arranged.chains, since)
    stays = np.arange(starts[-1]) >= np.repeat(openings.edge, np.diff(starts))
    moved = openings.private(arranged.chains, private)
    moved = replace(moved, chain=openings.of[moved.chain])
    return _cut(arranged, openings.chains, stays, starts[1:] - openings.edge), moved


def _cut(arranged: Arranged, chains: Chains, stays: Mask, sizes: Integers) -> Arranged:
    """The rows of a table that stay, with the places that they have in some chains. sizes: how many
    of them each chain that is left has.
    """
    import polars as pl

    cut = Chains(
        np.append(0, np.cumsum(sizes)),
        chains.codes[stays],
        chains.order[stays],
        chains.timed,
        None if chains.steps is None else chains.steps[stays],
    )
    kept = pl.Series(stays)
    names = arranged.names.filter(kept) if arranged.names.width else arranged.names
    frame = arranged.frame.filter(kept) if arranged.frame.width else arranged.frame
    return replace(arranged, chains=cut, names=names, frame=frame, rows=None)


def _waiting(count: int) -> tuple[str, ...]:
    """What is said of private records of which nothing was attacked."""
    return (f"of {many(count, 'private record')} nothing around has left yet: the table grows",)


def _ruled(
    arranged: Arranged,
    private: Private,
    said: Certified,
    reading: TableSpec,
    codes: Codes,
    missing: Mask,
) -> Table:
    """A table, if these rows are missing and all others have a value, whether it is shown or not:
    which value that is decides nothing here.
    """
    held = np.where(missing, np.int8(MISSING), np.maximum(codes, 0)).astype(np.int8)
    held[private.rows(arranged.chains)] = 0
    standing = replace(arranged, chains=replace(arranged.chains, codes=held))
    batch = reading.batch(standing, private)
    needs = batch.needs
    known, windows = said.known(needs)
    designs, which = designs_for(said.setting, needs, known=known)
    if said.designs.kind == "local" and said.setting.mechanism.name != said.designs.mechanism:
        _check_listed(designs, known)
    instead, others = None, np.empty(0, dtype=np.int64)
    if said.designs.kind == form.CLUSTERED:
        designs = with_clusters(designs, batch.clusters.secrets, known=known)
        instead, others = designs_for(windows.setting, needs, known=windows)
    designs = designs.for_gaps(needs.gaps)
    rule = Rule.of(designs, instead, needs, (which, others))
    every = designs
    if instead is not None:
        every = replace(designs, designs=(*designs.designs, *instead.designs))
    acting = rule.acting(batch)
    none = np.empty(0, dtype=np.int64)
    return Table(said, arranged, batch, codes, missing, rule, every, acting, (), none)


def _check_listed(designs: Designs, known: Designs) -> None:
    """InputError for a design that the certificate does not list, of a mechanism not known here."""
    listed = {one.identity for one in known.designs}
    if any(one.identity not in listed for one in designs.designs):
        raise InputError("the certificate has no design for some of the secrets of this table")


def original_codes(path: Path, table: Table) -> tuple[Integers, Mask]:
    """The values of the table that was redacted, row by row as in the released one, without those
    of private records; and which rows have none. InputError if it is another table.
    """
    said, columns = table.said, table.said.columns
    learned = said.certificate.learned
    bins = None if learned is None or learned.bins is None else tuple(learned.bins)
    alphabet = Alphabet(said.model.labels, bins, None if learned is None else learned.others)
    frame = read_frame(path, columns.released)
    arranged = arrange(frame, columns, alphabet=alphabet, step=said.step)
    if said.since > 1:
        none = np.empty(0, dtype=np.int64)
        arranged, _ = _opened(arranged, Private(none, none, none), said.since)
    _check_original(arranged, table)
    codes = np.maximum(arranged.chains.codes, np.int8(MISSING))
    missing = np.asarray(arranged.chains.codes == MISSING)
    codes[table.batch.private.rows(table.chains)] = MISSING
    missing[table.batch.private.rows(table.chains)] = False
    return codes, missing


def _check_original(arranged: Arranged, table: Table) -> None:
    here, there = table.chains, arranged.chains
    same = np.array_equal(here.starts, there.starts) and np.array_equal(here.order, there.order)
    shown = table.codes >= 0
    if not same or not np.array_equal(table.codes[shown], there.codes[shown]):
        raise InputError("--original must be the table that was redacted: its rows are others")
