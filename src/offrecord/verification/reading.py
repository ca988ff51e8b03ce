"""A released table as records: which label each shows, where it stands, and which are private."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from offrecord.errors import InputError
from offrecord.models import clock
from offrecord.release.certificate import Certificate, Output, Positions
from offrecord.tables.alphabet import Alphabet
from offrecord.tables.chains import ROW, Arranged, Columns, arrange
from offrecord.tables.frames import Native, listed_keys
from offrecord.tables.io.format import ReadOptions
from offrecord.tables.io.formats import read_frame, table_format
from offrecord.tables.optouts import OptOuts
from offrecord.tables.private import Private, private_records
from offrecord.tables.steps import Step
from offrecord.verification.agreement import Found
from offrecord.verification.members import Integers, Kind, Mask

Codes = np.ndarray[Any, np.dtype[np.int8]]


@dataclass(frozen=True, eq=False)
class Records:
    """The rows of a release, by chain and order.

    arranged: as read. codes: (n,) which label each shows, -1 for none. original: (n,) those of the
    table before it was redacted, None if it is not known. open_ended: chains go on, as in a growing
    table.
    """

    arranged: Arranged
    codes: Codes
    original: Codes | None = None
    open_ended: bool = False

    @property
    def starts(self) -> Integers:
        """(m + 1,) where each chain begins, and the end."""
        return self.arranged.chains.starts

    @property
    def places(self) -> Integers:
        """(n,) steps from the first record of the chain."""
        return self.arranged.chains.places

    @property
    def order(self) -> Integers:
        """(n,) order values."""
        return np.asarray(self.arranged.chains.order, dtype=np.int64)

    @cached_property
    def chain_of(self) -> Integers:
        """(n,) the chain of each row."""
        return self.arranged.chains.chain_of

    @cached_property
    def ends(self) -> Integers:
        """(m,) the place of each chain's last record; in a growing table of one still to come."""
        return np.asarray(self.places[self.starts[1:] - 1] + self.open_ended)

    def row_from(self, chain: Integers, place: Integers) -> Integers:
        """The first row of a chain at a place or after it."""
        chains = self.arranged.chains
        wanted = chain * chains.width + np.clip(place, 0, chains.width - 1)
        return np.searchsorted(chains.keys, wanted)

    def row_at(self, chain: Integers, place: Integers) -> Integers:
        """The row of a chain at a place, -1 if there is none."""
        row = self.row_from(chain, place)
        safe = np.minimum(row, len(self.codes) - 1)
        there = (
            (self.chain_of[safe] == chain) & (self.places[safe] == place) & (row < len(self.codes))
        )
        return np.where(there, row, -1)

    def released(self, rows: Integers) -> Mask:
        """Which rows show a value."""
        return np.asarray(self.codes[rows] >= 0)

    @cached_property
    def kept(self) -> Mask | None:
        """(n,) which rows have a cell in a kept column; None without such columns."""
        keep = self.arranged.columns.keep
        if not keep:
            return None
        there = pl.any_horizontal(pl.col(list(keep)).is_not_null())
        return self.arranged.frame.select(there).to_series().to_numpy()

    def placed(self, kind: Kind, chain: Integers, steps: Integers) -> Integers:
        """The place of a model at records, some of which may have no row."""
        if kind.places == 1:
            return np.zeros(len(steps), dtype=np.int64)
        if kind.clock is None:
            return np.minimum(steps, kind.places - 1)
        first = clock.phases_of(self.order[self.starts[chain]], kind.clock, kind.zone)
        return np.asarray((first + steps) % kind.places)

    def check_places(self, kind: Kind, found: Found) -> None:
        """A problem where the model's places are not those of these records."""
        if kind.clock is not None:
            step, own = self.arranged.step, Step.parsed(clock.STEPS[kind.clock])
            if not self.arranged.chains.timed or step is None or not step.same(own, kind.zone):
                found.wrong(
                    f"the model has a kernel for each {kind.clock}, which is not this table's step"
                )
        elif kind.places > 1 and not kind.goes_on:
            longer = int(np.count_nonzero(self.ends >= kind.places))
            if longer:
                found.wrong(f"{longer:,} chains are longer than the model's {kind.places:,} steps")

    def named(self, rows: Integers) -> Iterator[str]:
        """How some rows are named."""
        columns, frame = self.arranged.columns, self.arranged.frame
        names = [*columns.by, *columns.ordering]
        for row in rows.tolist():
            cells = [f"{name} {str(frame[name][row])[:60]}" for name in names]
            if columns.order is None:
                cells.append(f"row {row - self.starts[self.chain_of[row]] + 1}")
            yield ", ".join(cells)


def check_bytes(output: Output, released: Path, found: Found) -> None:
    """Compare the bytes of a release with what the certificate says."""
    if not released.exists():
        raise InputError(f"{released} does not exist")
    if not (released.is_file() or released.is_dir()):
        raise InputError(f"{released} is not a file")
    if released.is_dir() != (output.files is not None):
        kinds = ("one file", "a folder")
        said, there = kinds[output.files is not None], kinds[released.is_dir()]
        raise InputError(f"{released} is {there}, but the certificate is about {said}")
    before = len(found.problems)
    if output.files is None:
        found.unequal(f"{released.name}, SHA-256", output.sha256, _digest(released))
        with suppress(InputError):  # a name without a known ending
            found.unequal("output.format", output.format, table_format(released))
    else:
        names = {one.name for one in released.iterdir() if not one.name.startswith((".", "_"))}
        found.unequal("output.files", sorted(output.files), sorted(names))
        for name in sorted(names & {*output.files}):
            digest = _digest(released / name)
            found.unequal(f"{name}, SHA-256", output.files[name], digest)
    if len(found.problems) == before:
        found.checked.append("The output is the one that the certificate names, byte for byte.")


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
    output = certificate.output
    assert output is not None
    frame = read_frame(released, options=ReadOptions(limits=limits))
    columns = columns_of(certificate)
    found.unequal("output.columns", list(output.columns), frame.columns)
    if frame.columns != columns.released:
        found.wrong(f"columns must be {columns.released}, are {frame.columns}")
        return None
    step = None if certificate.columns.step is None else Step.parsed(certificate.columns.step)
    origin = certificate.origin
    if origin is not None:  # a kernel leads from one such step to the next
        there = None if origin.step is None else Step.parsed(origin.step)
        if there is not step and not (there and step and there.same(step, origin.zone)):
            found.unequal("columns.step", certificate.columns.step, origin.step)
    alphabet = None if labels is None else Alphabet(labels)
    try:
        arranged = arrange(frame, columns, alphabet=alphabet, step=step)
    except InputError as error:
        found.wrong(f"the released table is not as the certificate says: {error}")
        return None
    kind = "time" if arranged.chains.timed else "integer"
    found.unequal("columns.order_kind", certificate.columns.order_kind, kind)
    if arranged.rows is not None and output.files is None:
        found.wrong("rows do not stand sorted by chain and order: their order may leak something")
    codes = np.asarray(arranged.chains.codes)
    if arranged.unlabelled is not None:
        codes = np.where(arranged.unlabelled.is_not_null().to_numpy(), 0, -1).astype(np.int8)
    else:
        _check_spelling(frame[columns.value], arranged, found)
    return Records(arranged, codes, open_ended=certificate.growing is not None)


def columns_of(certificate: Certificate) -> Columns:
    """How the table is read."""
    named = certificate.columns
    return Columns.named(
        named.value, named.order, named.by or None, not named.by, named.keep, named.keep_all,
    )  # fmt: skip


def _check_spelling(cells: pl.Series, arranged: Arranged, found: Found) -> None:
    """A problem where a label is written in several spellings, which might leak something."""
    there = cells if arranged.rows is None else cells.gather(arranged.rows)
    codes = arranged.chains.codes
    every = pl.DataFrame({"code": codes, "cell": there.cast(pl.String)}).filter(codes >= 0)
    if every.unique()["code"].is_duplicated().any():
        found.wrong(f"column {cells.name!r} writes a label in several spellings")


# ---- what else is given


def with_original(
    records: Records,
    path: Path,
    certificate: Certificate,
    found: Found,
    limits: Mapping[str, int] | None = None,
) -> Records:
    """The same with the values before; a problem where another one is released.

    InputError unless the table before has these rows, and others of dropped chains alone.
    """
    columns, named = replace(records.arranged.columns, keep=(), keep_all=False), certificate.origin
    frame = read_frame(path, columns.released, options=ReadOptions(limits=limits))
    labels = records.arranged.labels
    bins = None if named is None or named.bins is None else tuple(named.bins)
    others = None if named is None else named.others
    alphabet = Alphabet.of(labels, bins, others) if labels else None
    arranged = arrange(frame, columns, alphabet=alphabet, step=records.arranged.step)
    if arranged.chains.codes.shape != records.codes.shape:
        arranged = _same_chains(frame, arranged, records, alphabet)
    here, there = (one.chains for one in (records.arranged, arranged))
    if not np.array_equal(here.starts, there.starts) or not np.array_equal(here.order, there.order):
        raise InputError("the original table must have the rows of the released one")
    if alphabet is None:
        assert arranged.unlabelled is not None
        present = arranged.unlabelled.is_not_null().to_numpy()
        return replace(records, original=np.where(present, 0, -1).astype(np.int8))
    original = np.asarray(arranged.chains.codes)
    other = np.flatnonzero((records.codes >= 0) & (records.codes != original))
    found.wrong_at(records.named(other), len(other), "another value than in the original table")
    found.checked.append("Every value that is released is that of the original table.")
    return replace(records, original=original)


def _same_chains(
    frame: pl.DataFrame, arranged: Arranged, records: Records, alphabet: Alphabet | None
) -> Arranged:
    """The chains of an original that the released table has."""
    by = list(arranged.columns.by)
    keys = [pl.col(name).cast(pl.String) for name in by]
    kept = records.arranged.frame.select(keys).unique()
    numbered = frame.with_row_index("row of the table").with_columns(keys)
    rows = numbered.join(kept, on=by, how="semi")["row of the table"].sort()
    return arrange(frame[rows], arranged.columns, alphabet=alphabet, step=arranged.step)


def private_of(
    records: Records, certificate: Certificate, listed: Native | Path | None, found: Found
) -> Private | None:
    """The private records, by the list or as published; None where nobody says which they are."""
    positions = certificate.private.positions
    published = None
    if positions is not None:
        published, _ = _named(records, _positions_frame(records, positions), found)
    keys = listed_keys(listed)
    if keys is None:
        found.not_checked.append(
            "Chains that left as a whole: no list was given (counts.dropped_chains)."
        )
        return published
    private, dropped = _named(records, keys, found)
    found.unequal("counts.dropped_chains", certificate.counts.dropped_chains, dropped)
    found.not_checked.append("That the list is complete: it is the one given (private.positions).")
    if published is not None and not (
        np.array_equal(private.chain, published.chain)
        and np.array_equal(private.place, published.place)
    ):
        found.wrong("the private list names other records than private.positions")
    return private


def _named(records: Records, frame: pl.DataFrame, found: Found) -> tuple[Private, int]:
    """The private records of a list, and how many of its chains the table does not have."""
    optouts = OptOuts.of(frame, records.arranged.columns)
    private = private_records(records.arranged, optouts, records.arranged.step)
    lost = int(np.count_nonzero(private.known & ~private.found))
    if lost:
        found.wrong(f"{lost:,} private entries name records that their chains do not have")
    by = list(records.arranged.columns.by)
    others = frame.filter(pl.Series(~private.known)).select(by).n_unique() if by else 0
    return private, others


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
    if kind == pl.Date:
        order = order.cast(pl.Datetime("ns")).cast(pl.Date)
    elif isinstance(kind, pl.Datetime):
        order = order.cast(pl.Datetime("ns", kind.time_zone))
    return pl.DataFrame([*keys[:-1], order])


def check_private(
    records: Records, private: Private, certificate: Certificate, found: Found
) -> None:
    """Count private records, and see that none is released."""
    counts = certificate.counts
    found.unequal("counts.private", counts.private, private.count)
    found.unequal("private.count", certificate.private.count, private.count)
    rows = private.rows(records.arranged.chains)
    shown = rows[records.released(rows)]
    found.wrong_at(records.named(shown), len(shown), "a private value is released")
    _check_kept(records, rows, "a kept cell beside a private value", found)
    missing = np.zeros(len(records.codes), dtype=bool)
    if records.original is not None:
        missing = records.original == -1
        missing[rows] = False
        found.unequal("counts.missing", counts.missing, int(missing.sum()))
    else:
        found.not_checked.append(
            "How many rows had no value before: no original was given (counts.missing)."
        )
    empty = int(np.count_nonzero(records.codes < 0)) - len(rows) + len(shown)
    if counts.missing > empty:
        found.wrong(f"counts.missing says {counts.missing:,}, but {empty:,} other rows are empty")
    found.checked.append(f"That none of {private.count:,} private records is released.")


def _check_kept(records: Records, rows: Integers, says: str, found: Found) -> None:
    if records.kept is not None and not records.arranged.columns.keep_all:
        named = rows[records.kept[rows]]
        found.wrong_at(records.named(named), len(named), says)


def check_kept_beside(records: Records, redacted: Mask, found: Found) -> None:
    """No kept cell stands beside a redacted value, unless all are kept."""
    _check_kept(records, np.flatnonzero(redacted), "a kept cell beside a redacted value", found)
