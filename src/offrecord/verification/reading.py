"""A released table as records: which label each shows, where it stands, and which are private."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from offrecord.errors import InputError
from offrecord.models import clock
from offrecord.models.base import Integers, Mask
from offrecord.models.records import Chains, Codes
from offrecord.release.certificate import Certificate, Counts, Output, Positions
from offrecord.tables.alphabet import Alphabet
from offrecord.tables.chains import ROW, Arranged, Columns, arrange
from offrecord.tables.frames import Native, listed_keys
from offrecord.tables.io.format import ReadOptions
from offrecord.tables.io.formats import table_file, table_format
from offrecord.tables.optouts import OptOuts
from offrecord.tables.private import Private, private_records
from offrecord.tables.steps import Step
from offrecord.text import many
from offrecord.verification.agreement import Found
from offrecord.verification.members import Kind

_NAMED = 10  # rows that are named for one reason


@dataclass(frozen=True, eq=False)
class Records:
    """The rows of a release, by chain and order."""

    said: Certificate
    found: Found
    arranged: Arranged
    codes: Codes  # which label each shows, -1 for none
    original: Codes | None = None  # those before it was redacted, where they are known

    @property
    def known(self) -> Codes:
        """(n,) labels as far as they are known."""
        return self.codes if self.original is None else self.original

    @property
    def shown(self) -> Mask:
        """(n,) the rows with a value."""
        return np.asarray(self.codes >= 0)

    @property
    def counts(self) -> Counts:
        """What the certificate says of how much there is."""
        return self.said.counts

    @property
    def chains(self) -> Chains:
        """Where chains begin, and each row's chain and place."""
        return self.arranged.chains

    @property
    def order(self) -> Integers:
        """(n,) order values."""
        return np.asarray(self.chains.order, dtype=np.int64)

    @cached_property
    def ends(self) -> Integers:
        """(m,) the place of each chain's last record; in a growing table of one still to come."""
        return self.chains.places[self.chains.starts[1:] - 1] + (self.said.growing is not None)

    def row_from(self, chain: Integers, place: Integers) -> Integers:
        """The first row of a chain at a place or after it."""
        chains = self.chains
        # places beyond the last would be those of the next chain
        wanted = chain * chains.width + np.clip(place, 0, chains.width - 1)
        return np.searchsorted(chains.keys, wanted)

    def row_at(self, chain: Integers, place: Integers) -> Integers:
        """The row of a chain at a place, -1 if there is none."""
        row = self.row_from(chain, place)
        safe = np.minimum(row, len(self.codes) - 1)
        there = (
            (self.chains.chain_of[safe] == chain)
            & (self.chains.places[safe] == place)
            & (row == safe)
        )
        return np.where(there, row, -1)

    def placed(self, kind: Kind, chain: Integers, steps: Integers) -> Integers:
        """The place of a model at records, some of which may have no row."""
        where = kind.where
        if where is None or where.kind == "step":
            return np.minimum(steps, kind.places - 1)
        # the phase of a chain's first record, and the next one with each step: as kernels go round
        first = clock.phases_of(self.order[self.chains.starts[chain]], where.kind, where.zone)
        return np.asarray((first + steps) % kind.places)

    def check_places(self, kind: Kind) -> None:
        """A problem where the model's places are not those of these records."""
        where, step = kind.where, self.arranged.step
        if where is None or where.goes_on:
            return
        if where.kind == "step":
            longer = int(np.count_nonzero(self.ends >= kind.places))
            if longer and kind.places > 1:
                self.found.wrong(
                    f"{longer:,} chains are longer than the model's {kind.places:,} steps"
                )
            return
        own = Step.parsed(clock.STEPS[where.kind])
        if not self.chains.timed or step is None or not step.same(own, where.zone):
            self.found.wrong(
                f"the model has a kernel for each {where.kind}, which is not this table's step"
            )

    def hidden(self, rows: Mask, says: str) -> None:
        """A problem with each of some rows that has a value."""
        self.wrong(np.flatnonzero(rows & self.shown), says)

    def wrong(self, rows: Integers, says: str) -> None:
        """The same problem with several rows, of which the first are named."""
        for row in rows[:_NAMED].tolist():
            self.found.wrong(f"{self._name(row)}: {says}")
        if len(rows) > _NAMED:
            self.found.wrong(f"{len(rows) - _NAMED:,} more: {says}")

    def _name(self, row: int) -> str:
        columns, frame = self.arranged.columns, self.arranged.frame
        names = [*columns.by, *columns.ordering]
        cells = [f"{name} {str(frame[name][row])[:60]}" for name in names]
        if columns.order is None:
            cells.append(f"row {row - self.chains.starts[self.chains.chain_of[row]] + 1}")
        return ", ".join(cells)


def check_bytes(output: Output, released: Path, found: Found) -> None:
    """Compare the bytes of a release with what the certificate says."""
    _check_kind(output, released)
    before = len(found.problems)
    if output.files is None:
        found.unequal(f"{released.name}, SHA-256", output.sha256, _digest(released))
        with suppress(InputError):  # a name without a known ending
            found.unequal("output.format", output.format, table_format(released))
    else:
        _check_folder(output.files, released, found)
    if len(found.problems) == before:
        found.checked.append("The output is the one that the certificate names, byte for byte.")


def _check_kind(output: Output, released: Path) -> None:
    if not released.exists():
        raise InputError(f"{released} does not exist")
    if not (released.is_file() or released.is_dir()):
        raise InputError(f"{released} is not a file")
    kinds = ("one file", "a folder")
    said, there = kinds[output.files is not None], kinds[released.is_dir()]
    if said != there:
        raise InputError(f"{released} is {there}, but the certificate is about {said}")


def _check_folder(files: dict[str, str], released: Path, found: Found) -> None:
    # engines leave files of their own beside, such as _SUCCESS
    names = {one.name for one in released.iterdir() if not one.name.startswith((".", "_"))}
    found.unequal("output.files", sorted(files), sorted(names))
    for name in sorted(names & {*files}):
        found.unequal(f"{name}, SHA-256", files[name], _digest(released / name))


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def read_records(
    certificate: Certificate,
    released: Path,
    labels: tuple[Any, ...] | None,
    found: Found,
    limits: Mapping[str, int] | None = None,
) -> Records | None:
    """The rows of a release; None, and a problem, where they are not as the certificate says.

    labels: of the model; None without one: each value is one of its own then, and not looked at.
    limits: of what the file may hold.
    """
    output, named = certificate.output, certificate.columns
    assert output is not None
    frame = table_file(released, ReadOptions(limits=limits)).read()
    columns = columns_of(certificate)
    found.unequal("output.columns", list(output.columns), frame.columns)
    if frame.columns != columns.released:
        found.wrong(f"columns must be {columns.released}, are {frame.columns}")
        return None
    step = None if named.step is None else Step.parsed(named.step)
    _check_step(certificate, step, found)
    alphabet = None if labels is None else Alphabet(labels)
    try:
        arranged = arrange(frame, columns, alphabet=alphabet, step=step)
    except InputError as error:
        found.wrong(f"the released table is not as the certificate says: {error}")
        return None
    kind = "time" if arranged.chains.timed else "integer"
    found.unequal("columns.order_kind", named.order_kind, kind)
    if arranged.rows is not None and output.files is None:
        found.wrong("rows do not stand sorted by chain and order: their order may leak something")
    if arranged.unlabelled is None:
        _check_spelling(frame[columns.value], arranged, found)
    return Records(certificate, found, arranged, _codes(arranged))


def columns_of(certificate: Certificate, *, keep: bool = True) -> Columns:
    """How the table is read. keep: with the columns kept beside the value."""
    named = certificate.columns
    kept = (named.keep, named.keep_all) if keep else ((), False)
    return Columns.named(named.value, named.order, named.by or None, not named.by, *kept)


def _check_step(certificate: Certificate, step: Step | None, found: Found) -> None:
    origin = certificate.origin
    if origin is None:
        return
    there = None if origin.step is None else Step.parsed(origin.step)
    # a kernel leads from one such step to the next
    if there is not step and not (there and step and there.same(step, origin.zone)):
        found.unequal("columns.step", certificate.columns.step, origin.step)


def _codes(arranged: Arranged) -> Codes:
    """(n,) labels; without a model, 0 for any value."""
    if arranged.unlabelled is None:
        return np.asarray(arranged.chains.codes)
    return np.where(arranged.unlabelled.is_not_null().to_numpy(), 0, -1).astype(np.int8)


def _check_spelling(cells: pl.Series, arranged: Arranged, found: Found) -> None:
    """A problem where a label is written in several spellings."""
    # which one a record has might depend on what was redacted
    there = cells if arranged.rows is None else cells.gather(arranged.rows)
    codes = arranged.chains.codes
    every = pl.DataFrame({"code": codes, "cell": there.cast(pl.String)}).filter(codes >= 0)
    if every.unique()["code"].is_duplicated().any():
        found.wrong(f"column {cells.name!r} writes a label in several spellings")


# ---- what else is given


def with_original(records: Records, path: Path, limits: Mapping[str, int] | None = None) -> Records:
    """The same with the values before; a problem where another one is released.

    InputError unless the table before has these rows, and others of dropped chains alone.
    """
    columns = columns_of(records.said, keep=False)
    frame = table_file(path, ReadOptions(limits=limits)).read(columns.released)
    arranged = _alike(frame, columns, records)
    here, there = (one.chains for one in (records.arranged, arranged))
    if not np.array_equal(here.starts, there.starts) or not np.array_equal(here.order, there.order):
        raise InputError("the original table must have the rows of the released one")
    original = _codes(arranged)
    if arranged.unlabelled is None:
        records.hidden(records.codes != original, "another value than in the original table")
        said = "Every value that is released is that of the original table."
        records.found.checked.append(said)
    return replace(records, original=original)


def _alike(frame: pl.DataFrame, columns: Columns, records: Records) -> Arranged:
    """An original, arranged as the released table is; of chains that were dropped nothing."""
    labels, step, origin = records.arranged.labels, records.arranged.step, records.said.origin
    bins = None if origin is None or origin.bins is None else tuple(origin.bins)
    others = None if origin is None else origin.others
    alphabet = Alphabet.of(labels, bins, others) if labels else None
    arranged = arrange(frame, columns, alphabet=alphabet, step=step)
    if len(arranged.chains.codes) == len(records.codes):
        return arranged
    # chains that were dropped are in the original alone; names may be text in one of the two
    by = list(columns.by)
    keys = [pl.col(name).cast(pl.String) for name in by]
    kept = records.arranged.frame.select(keys).unique()
    numbered = frame.with_row_index("row of the table").with_columns(keys)
    rows = numbered.join(kept, on=by, how="semi")["row of the table"].sort()
    return arrange(frame[rows], columns, alphabet=alphabet, step=step)


def listed_records(
    said: Certificate, listed: Native | Path | None, column: str | None, original: Path | None
) -> pl.DataFrame | None:
    """The list that is given. column: what is given is the redacted table, else that is `original`,
    and the list is the rows in which this column is true.
    """
    if column is None:
        return listed_keys(listed)
    table = listed_keys(original if listed is None else listed)
    if table is None:
        raise InputError("--private names a column of the table: give that as --private-list")
    arranged = arrange(table, columns_of(said, keep=False), alphabet=None, private=column)
    order = pl.Series(ROW, arranged.chains.order)
    keys = arranged.frame if said.columns.order != ROW else arranged.frame.with_columns(order)
    assert arranged.private is not None
    names = [*said.columns.by, said.columns.order]
    return keys.filter(pl.Series(arranged.private)).select(names)


def private_of(records: Records, listed: pl.DataFrame | None) -> Private | None:
    """The private records, by the list or as published; None where nobody says which they are."""
    published = records.said.private.positions
    if listed is None and published is not None:
        listed = _positions_frame(records, published)
    return None if listed is None else _named(records, listed)


def _named(records: Records, listed: pl.DataFrame) -> Private:
    optouts = OptOuts.of(listed, records.arranged.columns)
    return private_records(records.arranged, optouts, records.arranged.step)


def another_list(said: Certificate, private: Private) -> str | None:
    """A line if the certificate is about another number of private records."""
    if private.count == said.counts.private:
        return None
    return (
        f"the list names {many(private.count, 'private record')} of this table, the certificate"
        f" counts {said.counts.private:,}: give the list that the release was made with"
    )


def check_list(records: Records, private: Private, listed: pl.DataFrame | None) -> None:
    """Compare the list with the table, and with the positions that are published."""
    found, positions = records.found, records.said.private.positions
    lost = int(np.count_nonzero(private.known & ~private.found))
    if lost:
        found.wrong(f"{lost:,} private entries name records that their chains do not have")
    if listed is None:
        found.not_checked.append(
            "Chains that left as a whole: no list was given (counts.dropped_chains)."
        )
        return
    by = list(records.arranged.columns.by)
    dropped = listed.filter(pl.Series(~private.known)).select(by).n_unique() if by else 0
    found.unequal("counts.dropped_chains", records.counts.dropped_chains, dropped)
    found.not_checked.append("That the list is complete: it is the one given (private.positions).")
    if positions is None:
        return
    published = _named(records, _positions_frame(records, positions))
    pairs = (private.chain, published.chain), (private.place, published.place)
    if not all(np.array_equal(*pair) for pair in pairs):
        found.wrong("the private list names other records than private.positions")


def _positions_frame(records: Records, positions: Positions) -> pl.DataFrame:
    """Published positions as a private list, order values as the table has them."""
    columns, kind = records.arranged.columns, records.arranged.order_type
    should = (*columns.by, columns.order or ROW)
    if positions.columns != should:
        raise InputError(f"private.positions.columns must be {', '.join(should)}")
    cells = list(zip(*positions.keys, strict=True)) or [()] * len(should)
    try:
        keys = [pl.Series(name, list(one)) for name, one in zip(should, cells, strict=True)]
        order = keys[-1].cast(pl.Int64)
    except (pl.exceptions.PolarsError, TypeError, OverflowError):
        raise InputError("private.positions.keys must hold cells of one type a column") from None
    # they are published as whole numbers, of times nanoseconds
    if kind == pl.Date:
        order = order.cast(pl.Datetime("ns")).cast(pl.Date)
    elif isinstance(kind, pl.Datetime):
        order = order.cast(pl.Datetime("ns", kind.time_zone))
    return pl.DataFrame([*keys[:-1], order])


def check_private(records: Records, private: Private) -> None:
    """See that no private record is released, and count others without a value."""
    is_private = np.zeros(len(records.codes), dtype=bool)
    is_private[private.rows(records.chains)] = True
    records.hidden(is_private, "a private value is released")
    check_kept(records, is_private, "a kept cell beside a private value")
    _check_missing(records, is_private)
    records.found.checked.append(f"That none of {private.count:,} private records is released.")


def _check_missing(records: Records, is_private: Mask) -> None:
    missing, found = records.counts.missing, records.found
    if records.original is None:
        found.not_checked.append(
            "How many rows had no value before: no original was given (counts.missing)."
        )
    else:
        there = int(np.count_nonzero((records.original == -1) & ~is_private))
        found.unequal("counts.missing", missing, there)
    empty = int(np.count_nonzero(~records.shown & ~is_private))
    if missing > empty:
        found.wrong(f"counts.missing says {missing:,}, but {empty:,} other rows are empty")


def check_kept(
    records: Records, gone: Mask, says: str = "a kept cell beside a redacted value"
) -> None:
    """No kept cell stands beside a value that must go, unless all are kept."""
    columns = records.arranged.columns
    if columns.keep and not columns.keep_all:
        kept = pl.any_horizontal(pl.col(list(columns.keep)).is_not_null())
        shows = records.arranged.frame.select(kept).to_series().to_numpy()
        records.wrong(np.flatnonzero(gone & shows), says)
