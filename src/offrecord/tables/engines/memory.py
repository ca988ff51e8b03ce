"""The main job, in memory: a table in, and out one in which no private record can be inferred
beyond e^ε, certified.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from offrecord.errors import InputError
from offrecord.files import check_apart, check_outputs, check_writable
from offrecord.release.certificate import Certificate
from offrecord.tables.batch import ChainBatch
from offrecord.tables.certifying import certified
from offrecord.tables.chains import arrange
from offrecord.tables.encoding import write_frame
from offrecord.tables.formats import format_of, stream_format
from offrecord.tables.frames import Native, from_native, to_native
from offrecord.tables.job import Job
from offrecord.tables.options import MemoryOptions, takes
from offrecord.tables.plan import Entered, Outcome, Plan
from offrecord.tables.reference import fit_arranged
from offrecord.tables.secrets import check_all_found, private_records
from offrecord.tables.summary import Summary
from offrecord.tables.writing import ready, spreadsheet_warnings, write_release, write_to_stream

if TYPE_CHECKING:
    import polars as pl

    from offrecord.fitting.fit import Fit


@dataclass(eq=False)
class Release:
    """A released table.

    frame: of the kind that came in; None after a dry run, or as long as the ledger does not know
    the release.
    """

    frame: Any
    summary: Summary
    fit: Fit | None
    _table: pl.DataFrame | None = field(repr=False)
    _outcome: Outcome = field(repr=False)
    _batch: ChainBatch = field(repr=False)
    _entered: Entered | None = field(repr=False)

    @property
    def certificate(self) -> dict[str, Any]:
        """What it says about the release as the ledger knows it by now; `write` adds what it says
        about the output.
        """
        return self._certificate.to_dict()

    @property
    def _certificate(self) -> Certificate:
        return self._outcome.certificate(self._entered)

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
        kind = format_of(path, format)
        named = None if certificate is None else Path(certificate)
        proof = check_outputs(path, named, self._outcome.plan.job.key.file, force=force)
        table, warnings = self._ready(kind)
        write_release(
            lambda file: write_frame(table.lazy(), file, kind),
            path,
            proof,
            lambda digest: certified(self._certificate, kind, table.columns, digest),
            lambda: warnings.extend(self._enter()),
            force=force,
        )
        return proof, warnings

    def write_stream(
        self, out: BinaryIO, *, format: str, certificate: str | Path, force: bool = False
    ) -> list[str]:
        """Write the table to a stream, and its certificate to a file once all of it has been taken;
        warnings.
        """
        kind = stream_format(format)
        proof = check_writable(Path(certificate), force=force)
        check_apart(self._outcome.plan.job.key.file, proof)
        table, warnings = self._ready(kind)
        write_to_stream(
            table,
            out,
            kind,
            proof,
            lambda digest: certified(self._certificate, kind, table.columns, digest),
            lambda: warnings.extend(self._enter()),
            force=force,
        )
        return warnings

    def _enter(self) -> list[str]:
        """Enter the release into the ledger: what there is to say of that and was not said yet."""
        said = () if self._entered is None else self._entered.warnings
        self._entered = self._outcome.enter()
        now = () if self._entered is None else self._entered.warnings
        return [warning for warning in now if warning not in said]

    def _ready(self, kind: str) -> tuple[pl.DataFrame, list[str]]:
        if self._table is None:
            raise InputError("a dry run has nothing to write")
        table, changed = ready(self._table, self._outcome.plan.job.columns.keep, kind)
        return table, spreadsheet_warnings(changed)

    def explain(self) -> pl.DataFrame:
        """For each row its region and the redaction probability of every value: the rule, never
        what was drawn.
        """
        return self._outcome.plan.rule.explain(self._batch)


@takes(MemoryOptions)
def redact(frame: Native, options: MemoryOptions) -> Release:
    """Redact a table so that no private record can be inferred beyond a likelihood ratio of
    e^epsilon.

    frame: any frame narwhals knows; the released one is of the same kind.

    Raises InputError for wrong input, for a kept column that tells the value, and for a second,
    different release under one name unless another_release is set.
    """
    job = Job.of(options)
    marks = [] if options.private is None else [options.private]
    table = from_native(frame, [*job.columns.released, *marks], options.value)
    listed = None if options.private_list is None else from_native(options.private_list)
    model = job.model
    labels = None if model is None else model.labels
    arranged = arrange(table, job.columns, labels=labels, private=options.private, step=job.step)
    del table
    private = private_records(arranged, listed, job.step)
    asked = 0 if listed is None else listed.height
    check_all_found(private.keys, asked)
    job.check_private(private.count)
    fitted = None
    if model is None:
        arranged, fitted = fit_arranged(arranged, private, job.fitting, options.say)
        model = job.promised(fitted.model)
    modelled = job.modelled(model)
    keyed = modelled.worker.keyed(modelled.worker.spec.batch(arranged, private))
    plan = Plan.of(modelled, modelled.worker.survey(keyed), asked)
    out = None
    if options.dry_run:
        tally = plan.rule.expect(keyed.batch)
    else:
        out, tally = plan.worker.decide(keyed)
    outcome = plan.judged(tally)
    native = None
    entered = None
    if options.remember:
        native = None if out is None else to_native(out, frame, options.value)
        entered = outcome.enter()
    summary = outcome.summary(entered)
    return Release(native, summary, fitted, out, outcome, keyed.batch, entered)
