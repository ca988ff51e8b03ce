"""The main job, in memory: a table in, and out one in which no private record can be inferred
beyond e^ε, certified.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import polars as pl

from offrecord.errors import InputError
from offrecord.tables.alphabet import Alphabet
from offrecord.tables.engines.engine import Engine, Made, Passage, Reading
from offrecord.tables.frames import Native, from_native, marked, to_native
from offrecord.tables.given import Given
from offrecord.tables.io.formats import write_frame
from offrecord.tables.options import MemoryOptions, takes
from offrecord.tables.reference import fit_table
from offrecord.tables.table import Table, nothing_left
from offrecord.tables.writing import Output, ready, spreadsheet_warnings

if TYPE_CHECKING:
    from offrecord.fitting.fit import Fit

_R = TypeVar("_R")


@dataclass(eq=False, repr=False)
class Release(Made):
    """A released table.

    frame: of the kind that came in; None after a dry run, or as long as the ledger does not know
    the release. fit: None unless the model was learned from the table. table: as it was read.
    """

    frame: Any
    fit: Fit | None
    table: Table
    _rows: pl.DataFrame | None
    _digest: str | None = None

    @property
    def certificate(self) -> dict[str, Any]:
        """What it says about the release as the ledger knows it by now; `write` adds what it says
        about the output.
        """
        return self._certificate().to_dict()

    def write(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        certificate: str | Path | None = None,
        force: bool = False,
    ) -> tuple[Path, list[str]]:
        """Write the table and, beside it, its certificate: the certificate's path, and warnings.
        Complete or absent.
        """
        given = self.outcome.plan.given
        out = Output.checked(path, format, certificate, given.key.file, force=force)
        if self._rows is None:
            raise InputError("a dry run has nothing to write")
        table, changed = ready(self._rows, given.columns.keep, out.kind)
        warnings = spreadsheet_warnings(changed)

        def entered(digest: str) -> bytes:
            warnings.extend(self._enter(warnings, digest))
            return self._certified(out.kind, table.columns, digest)

        out.write(partial(write_frame, table.lazy()), entered)
        return out.proof, warnings

    def _enter(self, warnings: list[str], digest: str) -> list[str]:
        """Enter it as it is written, with warnings besides its own: what is new among its own."""
        before, self._digest = self._entered, digest
        self._entered = self.outcome.enter(warnings, before)
        return [] if self._entered is None else self._entered.since(before)


@takes(MemoryOptions)
def redact(frame: Native, options: MemoryOptions) -> Release:
    """Redact a table so that no private record can be inferred beyond a likelihood ratio of
    e^epsilon.

    frame: any frame narwhals knows; the released one is of the same kind.

    Raises InputError for wrong input, for a kept column that leaks the value, and for a second,
    different release under one name unless accept holds "another-release".
    """
    started, given = time.monotonic(), Given.of(options)
    engine, model, fitted = _Memory.read_from(frame, given), given.model, None
    if model is None and options.fit and engine.table.partly_private.any():
        table, fitted = fit_table(engine.table, given)
        engine, model = replace(engine, table=table), given.promised(fitted.model)
    passage = Passage.planned(engine, model, started)
    (part,) = passage.parts()
    outcome, rows = passage.outcome, part.decision.frame
    native, entered = None, None
    if options.remember or options.dry_run:
        # Before the entry: rows that cannot be given back have not left.
        native = None if rows is None else to_native(rows, frame, options.value)
        entered = outcome.enter()
    summary, table = outcome.summary(entered), passage.engine.table
    return Release(summary, outcome, entered, native, fitted, table, rows)


@dataclass(eq=False, repr=False)
class _Memory(Engine):
    """A table that is held as a whole. rows: as they came. table: as they were read."""

    rows: pl.DataFrame
    table: Table
    is_whole: ClassVar[bool] = True

    @classmethod
    def read_from(cls, frame: Native, given: Given) -> _Memory:
        """A frame; InputError for rows that say nothing of which records are private."""
        rows = from_native(frame, given.read_columns, given.options.value)
        rows, marking = marked(rows, frame, given.options.private)
        optouts = given.optouts
        table = given.reader(marking).read(rows, optouts)
        # A fit may take minutes, and coins make a key where there is none: what the survey would
        # refuse after them is refused before.
        if optouts is not None:
            optouts.check_found(table.private.found, stepped=given.step is not None)
        if table.is_empty:
            raise nothing_left()
        given.check_private(table.all_read.private.count)
        reading = Reading.of(given, marking)
        return cls(given, reading, rows, table.keyed(reading.coins))

    def each(self, what: str, work: Callable[[Table], _R]) -> Iterator[_R]:
        yield work(self.table)

    def without_touched(self) -> _Memory:
        reading = replace(self.reading, touched=True)
        return replace(self, reading=reading, table=reading.table(self.rows))

    def labelled(self, alphabet: Alphabet) -> _Memory:
        return replace(self, table=self.table.labelled(alphabet))
