"""The table as it was before it was redacted, for the publisher's own check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from offrecord.errors import InputError
from offrecord.release.certificate import Certificate
from offrecord.verify.table.cells import EMPTY, OTHER, Codes, Integers, codes_of
from offrecord.verify.table.files import read_file, read_files
from offrecord.verify.table.found import Found
from offrecord.verify.table.listed import Private, chains_of, order_values
from offrecord.verify.table.rows import ROW, Table

_WHAT = "the original table"


def with_original(table: Table, path: Path, certificate: Certificate, found: Found) -> Table:
    """The same table with the values that it had; a problem where what is released is another.

    InputError if the two do not have the same rows, but for chains that were dropped.
    """
    frame = _read(path)
    columns = table.columns
    ordering = [] if columns.order == ROW else [columns.order]
    lost = [name for name in (*columns.by, *ordering, columns.value) if name not in frame.columns]
    if lost:
        raise InputError(f"{_WHAT} must have the columns {', '.join(lost)}")
    rows = _rows_of(table, frame, ordering)
    value = frame[columns.value]
    codes = _codes(value if rows is None else value.gather(rows), certificate)
    other = np.flatnonzero((table.codes >= 0) & (table.codes != codes))
    found.wrong_at(table.named(other), len(other), "another value than in the original table")
    if table.rows < frame.height:
        found.not_checked.append(
            f"{frame.height - table.rows:,} rows of the original are of chains that the released"
            " table does not have: those that are private as a whole may have been dropped."
        )
    found.checked.append("Every value that is released is that of the original table.")
    return replace(table, original=codes)


def _rows_of(table: Table, frame: pl.DataFrame, ordering: list[str]) -> Integers | None:
    """(n,) where each row of the table stands in the original; None where all stand alike."""
    columns = table.columns
    naming = [*columns.by, *ordering]
    if frame.height == table.rows and all(
        frame[name].equals(table.frame[name], check_dtypes=True) for name in naming
    ):
        return None
    chain = chains_of(table, frame, frame.height, _WHAT)
    rows = np.flatnonzero(chain >= 0)
    chain = chain[rows]
    keys = [chain]
    if ordering:
        order = order_values(table, frame[columns.order], _WHAT)[rows]
        keys = [order, chain]
    sort = np.lexsort(keys)
    counts = np.bincount(chain, minlength=table.chains)
    same = np.array_equal(counts, np.diff(table.starts))
    if not same or (ordering and not np.array_equal(order[sort], table.order)):
        raise InputError(f"{_WHAT} must have the rows of the released one: these are others")
    return np.asarray(rows[sort])


def check_missing(table: Table, private: Private, certificate: Certificate, found: Found) -> None:
    """Count the rows that had no value."""
    assert table.original is not None
    empty = table.original == EMPTY
    empty[private.row[private.there]] = False
    found.unequal("counts.missing", certificate.counts.missing, int(empty.sum()))


def _read(path: Path) -> pl.DataFrame:
    if not path.is_dir():
        return read_file(path)
    files = sorted(one for one in path.iterdir() if not one.name.startswith((".", "_")))
    if not files:
        raise InputError(f"{path} holds no file")
    return read_files(files)


def _codes(series: pl.Series, certificate: Certificate) -> Codes:
    """(n,) which label each value is; EMPTY for none, and for what the model does not know."""
    learned, labels = certificate.learned, certificate.model.labels
    if series.dtype.is_float():
        series = series.fill_nan(None)
    if learned is not None and learned.bins is not None:
        numbers = series.cast(pl.Float64, strict=False)
        cut = np.searchsorted(np.array(learned.bins), numbers.fill_null(0.0).to_numpy(), "right")
        there = (numbers.is_not_null() & numbers.is_finite()).to_numpy()
        return np.where(there, cut, EMPTY).astype(np.int8)
    if learned is not None and learned.others is not None and series.dtype != pl.String:
        series = series.cast(pl.String)
    codes = codes_of(series, labels)
    if learned is not None and learned.others is not None:
        return np.where(codes == OTHER, np.int8(labels.index(learned.others)), codes)
    return np.where(codes == OTHER, np.int8(EMPTY), codes)
