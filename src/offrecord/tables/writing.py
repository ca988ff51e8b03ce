"""Safe writing: a release and its certificate are complete or absent, and nothing redacted is in their bytes."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from offrecord.chain import Label
from offrecord.errors import InputError
from offrecord.files import beside, check_outputs, check_writable, sync, sync_folder
from offrecord.tables.cells import Codes, label_family
from offrecord.tables.chains import Columns
from offrecord.tables.formats import check_holds, write_frame

if TYPE_CHECKING:
    import polars as pl

#: What a spreadsheet would run: a cell that begins like this and is no plain number.
_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def released_values(name: str, codes: Codes, gone: NDArray[np.bool_], labels: Sequence[Label], kind: pl.DataType) -> pl.Series:
    """The released column: made anew from codes and labels, with nothing under its nulls."""
    import polars as pl

    if label_family(labels) == "text":
        indices = pl.Series(np.where(gone, 0, codes).astype(np.uint32))
        indices = pl.select(pl.when(pl.Series(~gone)).then(indices)).to_series()
        return pl.Series(list(labels), dtype=pl.String).gather(indices).alias(name)
    truths = label_family(labels) == "truth"
    table = np.array([*labels, 0], dtype=np.bool_ if truths else pl.Series([], dtype=kind).to_numpy().dtype)
    shown = codes.copy()
    shown[gone] = len(labels)  # a constant where there will be a null
    return pl.select(pl.when(pl.Series(~gone)).then(pl.Series(table[shown]))).to_series().cast(kind).alias(name)


def without_hidden(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Kept columns by way of Parquet, which stores nothing under a null; Arrow keeps whatever was there."""
    import polars as pl

    if not columns:
        return frame
    buffer = io.BytesIO()
    frame.select(columns).write_parquet(buffer, compression="uncompressed")
    buffer.seek(0)
    return frame.with_columns(pl.read_parquet(buffer))


def write_release(
    frame: pl.DataFrame,
    columns: Columns,
    path: Path,
    kind: str,
    certificate: Callable[[str], bytes],
    enter: Callable[[], None],
    *,
    force: bool,
) -> tuple[Path, list[str]]:
    """Write a release and its certificate beside it; the certificate's path, and warnings.

    Both are written in full under other names and synced; then `enter` enters the release into the ledger, an old output
    goes, the certificate gets its name, and last the output does. So whenever the output is there it is whole, its
    certificate is there too, and the ledger knows it.
    """
    certificate_path = check_outputs(path, force=force)
    check_holds(frame, kind)
    frame, warnings = _for_spreadsheets(frame, columns.keep) if kind == "csv" else (frame, [])
    with beside(path, certificate_path) as (table, proof):
        write_frame(frame, table, kind)
        sync(table)
        with table.open("rb") as written:
            digest = hashlib.file_digest(written, "sha256").hexdigest()
        proof.write_bytes(certificate(digest))
        sync(proof)
        enter()
        if force:
            path.unlink(missing_ok=True)
        os.replace(proof, certificate_path)
        sync_folder(path.parent)
        os.replace(table, path)
        sync_folder(path.parent)
    return certificate_path, warnings


def write_table(frame: pl.DataFrame, path: Path, kind: str, *, force: bool) -> list[str]:
    """Write any other table, complete or absent; warnings."""
    check_writable(path, force=force)
    frame, warnings = _for_spreadsheets(frame, frame.columns) if kind == "csv" else (frame, [])
    with beside(path) as (temporary,):
        write_frame(frame, temporary, kind)
        sync(temporary)
        os.replace(temporary, path)
    return warnings


def _for_spreadsheets(frame: pl.DataFrame, kept: Sequence[str]) -> tuple[pl.DataFrame, list[str]]:
    """Cells that a spreadsheet would run: kept ones get an apostrophe in front, names of chains and values are refused."""
    import polars as pl

    warnings = []
    for name in frame.columns:
        series = frame[name]
        if series.dtype != pl.String:
            continue
        risky = series.str.contains(_FORMULA) & ~series.str.contains(_NUMBER)
        if not risky.any():
            continue
        if name not in kept:
            raise InputError(
                f"column {name!r} has {risky.sum()} cells that a spreadsheet would run (they begin with =, +, - or @);"
                " rename them, or write another format than CSV"
            )
        frame = frame.with_columns(pl.when(risky).then("'" + pl.col(name)).otherwise(pl.col(name)).alias(name))
        warnings.append(f"column {name!r}: {risky.sum()} cells that a spreadsheet would run now begin with an apostrophe")
    return frame, warnings


def printable(name: str, text: str) -> str:
    """A name a person gives, checked to be one line of printable text."""
    if not isinstance(text, str) or not re.fullmatch(r"\S(.{0,198}\S)?", text) or not text.isprintable():
        raise InputError(f"{name} must be 1 to 200 printable characters, got {text!r}")
    return text
