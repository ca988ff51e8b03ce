"""The main job, in memory: a table in, and out one in which no private record can be inferred
beyond e^ε, certified.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from offrecord.errors import InputError, advise
from offrecord.files import check_outputs
from offrecord.release.certificate import Certificate
from offrecord.tables.certifying import certified
from offrecord.tables.checks.ledger import Entered
from offrecord.tables.choosing import WHOLE, choose
from offrecord.tables.frames import Native, from_native, marked, to_native
from offrecord.tables.given import Given
from offrecord.tables.io.formats import write_frame, written_format
from offrecord.tables.io.text import packing_of
from offrecord.tables.options import MemoryOptions, takes
from offrecord.tables.outcome import Outcome
from offrecord.tables.plan import Plan, surveyor
from offrecord.tables.reference import fit_table
from offrecord.tables.summary import Summary
from offrecord.tables.table import Table, nothing_left
from offrecord.tables.writing import ready, spreadsheet_warnings, write_release

if TYPE_CHECKING:
    from offrecord.fitting.fit import Fit


@dataclass(eq=False, repr=False)
class Release:
    """A released table.

    frame: of the kind that came in; None after a dry run, or as long as the ledger does not know
    the release. fit: None unless the model was learned from the table. table, outcome: what it was
    made of.
    """

    frame: Any
    summary: Summary
    fit: Fit | None
    table: Table
    outcome: Outcome
    _entered: Entered | None
    _digest: str | None = None

    def __repr__(self) -> str:
        return f"<Release {self.summary.short}>"

    def __str__(self) -> str:
        return self.summary.figures()

    @property
    def certificate(self) -> dict[str, Any]:
        """What it says about the release as the ledger knows it by now; `write` adds what it says
        about the output.
        """
        return self._certificate.to_dict()

    @property
    def _certificate(self) -> Certificate:
        return self.outcome.certificate(self._entered)

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
        path = Path(path)
        kind = written_format(path, format)
        named = None if certificate is None else Path(certificate)
        proof = check_outputs(path, named, self.outcome.plan.given.key.file, force=force)
        table, warnings = self._ready(kind)
        write_release(
            lambda file: write_frame(table.lazy(), file, kind, packing_of(path)),
            path,
            proof,
            lambda digest: self._certified(kind, table.columns, digest),
            lambda: self._enter(warnings),
            force=force,
        )
        return proof, warnings

    def _certified(self, kind: str, columns: list[str], digest: str) -> bytes:
        """The certificate of what was written, whose SHA-256 is kept."""
        self._digest = digest
        return certified(self._certificate, kind, columns, digest)

    def _enter(self, warnings: list[str]) -> None:
        """Enter the release into the ledger; warnings: what else there is to say, to which is added
        what the ledger says and did not say yet.
        """
        said: tuple[str, ...] = ()
        if self._entered is None:
            self.outcome.advise(warnings)
        else:
            said = self._entered.warnings
            advise(warnings)
        self._entered = self.outcome.enter()
        now = () if self._entered is None else self._entered.warnings
        new = [warning for warning in now if warning not in said]
        warnings += new
        advise(new)

    def _ready(self, kind: str) -> tuple[pl.DataFrame, list[str]]:
        frame = self.outcome.decision.frame
        if frame is None:
            raise InputError("a dry run has nothing to write")
        table, changed = ready(frame, self.outcome.plan.given.columns.keep, kind)
        return table, spreadsheet_warnings(changed)


@takes(MemoryOptions)
def redact(frame: Native, options: MemoryOptions) -> Release:
    """Redact a table so that no private record can be inferred beyond a likelihood ratio of
    e^epsilon.

    frame: any frame narwhals knows; the released one is of the same kind.

    Raises InputError for wrong input, for a kept column that leaks the value, and for a second,
    different release under one name unless accept holds "another-release".
    """
    started, given = time.monotonic(), Given.of(options)
    table, plan, fitted = _planned(frame, given, started)
    decision = plan.rule.expect(table) if options.dry_run else plan.rule.decide(table)
    outcome = Outcome.of(plan, decision)
    native, entered = None, None
    if options.remember or options.dry_run:
        if decision.frame is not None:
            native = to_native(decision.frame, frame, options.value)
        outcome.advise()
        entered = outcome.enter()
        advise(() if entered is None else entered.warnings)
    return Release(native, outcome.summary(entered), fitted, table, outcome, entered)


def _planned(frame: Native, given: Given, started: float) -> tuple[Table, Plan, Fit | None]:
    """A table as it is decided, the plan for it, and the fit if its model was learned from it."""
    options, optouts, model, fitted = given.options, given.optouts, given.model, None
    marks = [options.private] if isinstance(options.private, str) else []
    rows = from_native(frame, [*given.columns.released, *marks], options.value)
    rows, mark = marked(rows, frame, options.private)
    reader = given.reader(mark)
    table = reader.read(rows, optouts)
    if optouts is not None:
        optouts.check_found(table.private.found, stepped=given.step is not None)
    if table.is_empty:
        raise nothing_left()
    given.check_private(table.read_private)
    table = table.keyed(given.coins)
    if model is None and options.fit and table.partly_private.any():
        table, fitted = fit_table(table, given)
        model = given.promised(fitted.model)
    survey = surveyor(given, model).survey(table)
    survey.check_lengths(model)
    chosen = choose(given, model, survey)
    if chosen.kind == WHOLE and not options.keep_rows:
        table = reader.read(rows, optouts, touched=True).keyed(given.coins)
        if table.is_empty:
            raise nothing_left()
        survey = surveyor(given, None).survey(table)
    if table.arranged.unlabelled is not None:
        table = _labelled(table, given)
    labels = table.arranged.labels
    plan = Plan.of(given, model, chosen, survey, table.dropped, labels, started)
    return table, plan, fitted


def _labelled(table: Table, given: Given) -> Table:
    """A table of which whole chains go, with codes for its values: from rows that are released."""
    values = table.arranged.unlabelled
    assert values is not None
    stays = ~table.chains.spread(table.touched)
    alphabet = given.wanted.alphabet(values.filter(np.asarray(stays)))[0]
    return table.labelled(alphabet)
