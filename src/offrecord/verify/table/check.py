"""A released table against its certificate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from offrecord.errors import InputError
from offrecord.release.certificate import Certificate, LocalDesigns, Output, OwnerDesigns
from offrecord.verify.table.cells import EMPTY
from offrecord.verify.table.coins import Coins, check_digest, coins_of
from offrecord.verify.table.files import check_bytes, read_files
from offrecord.verify.table.found import Found
from offrecord.verify.table.growing import Waiting, waiting_rows
from offrecord.verify.table.listed import Private, by_list, by_positions
from offrecord.verify.table.local import check_local
from offrecord.verify.table.openings import opened
from offrecord.verify.table.original import check_missing, with_original
from offrecord.verify.table.owner import check_owner
from offrecord.verify.table.rows import Table, check_counts, is_empty, table_of
from offrecord.verify.table.secrets import Joins, joins_of


def check_table(
    certificate: Certificate,
    released: Path,
    private_list: Path | None = None,
    key_file: Path | None = None,
    original: Path | None = None,
) -> Found:
    """Compare a released table with its certificate.

    private_list: which records are private, where the certificate does not publish it. key_file:
    the publisher's key, to compute the coins anew. original: the table before it was redacted, to
    compare with what these coins make of it. InputError for what cannot be read.
    """
    released = Path(released)
    if certificate.output is None:
        raise InputError("the certificate names no output: it is of a dry run")
    try:
        others = private_list, key_file, original
        return _checked(certificate, certificate.output, released, others)
    except (pl.exceptions.PolarsError, OverflowError):
        raise InputError(f"{released} holds cells that cannot be compared") from None
    except MemoryError:
        raise InputError(f"{released} is too large for this machine's memory") from None


def _checked(
    certificate: Certificate,
    output: Output,
    released: Path,
    others: tuple[Path | None, Path | None, Path | None],
) -> Found:
    found, (private_list, key_file, original) = Found(), others
    files = check_bytes(output, released, found)
    if not files:
        return found
    found.not_checked.append("What the files hold beside cells: their making, metadata, spelling.")
    table = table_of(read_files(files, output.format), certificate, found)
    if table is None:
        found.not_checked.append("Cells: the rows do not make chains of records.")
        return found
    check_counts(table, certificate, found)
    if original is not None:
        table = with_original(table, Path(original), certificate, found)
    private = _private(table, certificate, private_list, found)
    if private is None:
        _without_places(table, certificate, found)
        return found
    _check_private(table, private, certificate, found)
    if table.original is not None:
        check_missing(table, private, certificate, found)
    coins = None
    if key_file is not None:
        coins = coins_of(Path(key_file), certificate, table, found)
        if coins is not None:
            coins = check_digest(coins, private, found)
    waiting = waiting_rows(table, private, certificate, found)
    table, private, certificate, coins = opened(table, private, certificate, coins, found)
    if waiting is None:
        _check_cells(table, private, certificate, coins, found)
    elif isinstance(certificate.designs, OwnerDesigns):
        _check_settled(waiting, table, private, certificate, coins, found)
    else:
        table = replace(table, waits=waiting.rows)
        _check_cells(table, private, certificate, coins, found)
    return found


def _check_settled(
    waiting: Waiting,
    table: Table,
    private: Private,
    certificate: Certificate,
    coins: Coins | None,
    found: Found,
) -> None:
    """Of a growing table by owner's designs: no walk leads from what waits to what does not, so
    that this is a table by itself.
    """
    joins, also = joins_of(table, private, certificate, found)
    here = waiting.are_settled(private)
    settled = waiting.settled(table, private)
    if settled is None:
        return
    cut, part = settled
    mine = None if coins is None else replace(coins, table=cut)
    joined = Joins(joins.sure[here], joins.perhaps[here]), None if also is None else also[here]
    check_owner(cut, part, certificate, mine, found, joined)


def _private(
    table: Table, certificate: Certificate, private_list: Path | None, found: Found
) -> Private | None:
    """The private records, None where nobody says which they are."""
    positions = certificate.private.positions
    published = None if positions is None else by_positions(table, positions, found)
    if private_list is None:
        return published
    listed = by_list(table, Path(private_list), found)
    if published is not None:
        same = np.array_equal(published.chain, listed.chain)
        if not (same and np.array_equal(published.place, listed.place)):
            found.wrong("the private list names other records than private.positions")
    return listed


def _without_places(table: Table, certificate: Certificate, found: Found) -> None:
    """What can be said where private records are not known."""
    empty, counts = int(is_empty(table).sum()), certificate.counts
    if counts.missing > empty:
        found.wrong(f"counts.missing says {counts.missing:,}, but {empty:,} rows have no value")
    found.not_checked.append(
        "Cells against designs: the certificate does not say which records are private, and no"
        " private list was given."
    )


def _check_private(table: Table, private: Private, certificate: Certificate, found: Found) -> None:
    """Count private records, and see that all of them are redacted."""
    found.unequal("counts.private", certificate.counts.private, private.count)
    found.unequal("private.count", certificate.private.count, private.count)
    rows = private.row[private.there]
    shown = rows[table.codes[rows] != EMPTY]
    found.wrong_at(table.named(shown), len(shown), "a private value is released")
    if table.kept is not None and not table.columns.keep_all:
        told = rows[table.kept[rows]]
        found.wrong_at(table.named(told), len(told), "a kept cell beside a private value")
    empty, missing = int(is_empty(table).sum()) - len(rows) + len(shown), certificate.counts.missing
    if missing > empty:
        found.wrong(
            f"counts.missing says {missing:,}, but {empty:,} rows that are not private have no"
            " value"
        )
    found.checked.append(f"That each of {private.count:,} private records is redacted.")


def _check_cells(
    table: Table,
    private: Private,
    certificate: Certificate,
    coins: Coins | None,
    found: Found,
) -> None:
    designs = certificate.designs
    if isinstance(designs, LocalDesigns):
        check_local(table, private, certificate, coins, found)
    elif isinstance(designs, OwnerDesigns):
        check_owner(table, private, certificate, coins, found)
    else:
        found.not_checked.append(f"Cells against designs of the kind {designs.kind!r}.")
