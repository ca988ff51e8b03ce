"""The main job, in memory: a table in, and out one in which no private record can be inferred
beyond e^ε, certified.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from offrecord.errors import InputError, advise
from offrecord.files import check_apart, check_outputs, check_writable
from offrecord.models.base import Model
from offrecord.release.certificate import Certificate
from offrecord.tables.alphabet import Alphabet
from offrecord.tables.batch import ChainBatch, Chosen
from offrecord.tables.certifying import certified
from offrecord.tables.chains import Arranged
from offrecord.tables.encoding import write_frame
from offrecord.tables.entering import Entered
from offrecord.tables.formats import stream_format, written_format
from offrecord.tables.frames import Native, from_native, marked, to_native
from offrecord.tables.job import Job, ModelledJob
from offrecord.tables.options import MemoryOptions, takes
from offrecord.tables.packing import packing_of
from offrecord.tables.plan import Outcome, Plan
from offrecord.tables.reference import fit_arranged
from offrecord.tables.reporting import reporting
from offrecord.tables.secrets import Private
from offrecord.tables.summary import Summary
from offrecord.tables.worker import KeyedBatch
from offrecord.tables.writing import ready, spreadsheet_warnings, write_release, write_to_stream

if TYPE_CHECKING:
    import polars as pl

    from offrecord.fitting.fit import Fit


@dataclass(eq=False, repr=False)
class Release:
    """A released table.

    frame: of the kind that came in; None after a dry run, or as long as the ledger does not know
    the release.
    """

    frame: Any
    summary: Summary
    fit: Fit | None
    _table: pl.DataFrame | None
    _outcome: Outcome
    _batch: ChainBatch
    _entered: Entered | None
    _digest: str | None = None

    def __repr__(self) -> str:
        return f"<Release {self.summary.short}>"

    def __str__(self) -> str:
        return self.summary.figures()

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()

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
        kind = written_format(path, format)
        named = None if certificate is None else Path(certificate)
        proof = check_outputs(path, named, self._outcome.plan.job.key.file, force=force)
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
            lambda digest: self._certified(kind, table.columns, digest),
            lambda: self._enter(warnings),
            force=force,
        )
        return warnings

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
            self._outcome.advise(warnings)
        else:
            said = self._entered.warnings
            advise(warnings)
        self._entered = self._outcome.enter()
        now = () if self._entered is None else self._entered.warnings
        new = [warning for warning in now if warning not in said]
        warnings += new
        advise(new)

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
    with reporting(options.problems):
        return _redacted(frame, options)


def _redacted(frame: Native, options: MemoryOptions) -> Release:
    job = Job.of(options)
    read = TableRead.of(frame, job)
    plan, keyed = read.planned(job.modelled(read.model))
    out = None
    if options.dry_run:
        tally = plan.worker.expect(keyed)
    else:
        out, tally = plan.worker.decide(keyed)
    outcome = plan.judged(tally).after(keyed.batch)
    native = None
    entered = None
    if options.remember or options.dry_run:
        native = None if out is None else to_native(out, frame, options.value)
        outcome.advise()
        entered = outcome.enter()
        advise(() if entered is None else entered.warnings)
    summary = outcome.summary(entered)
    return Release(native, summary, read.fit, out, outcome, keyed.batch, entered)


@dataclass(frozen=True, eq=False, repr=False)
class TableRead:
    """A table that has been read, with the model that is given or learned from it: what does not
    depend on mechanism and ε.

    listed: how long the private list is. fit: None if the model is given.
    """

    chosen: Chosen
    arranged: Arranged
    private: Private
    listed: int
    model: Model
    fit: Fit | None

    @classmethod
    def of(cls, frame: Native, job: Job) -> TableRead:
        """Read a table; InputError for what is wrong in it."""
        options = job.options
        marks = [options.private] if isinstance(options.private, str) else []
        table = from_native(frame, [*job.columns.released, *marks], options.value)
        table, mark = marked(table, frame, options.private)
        optouts, model, fitted = job.optouts, job.model, None
        alphabet = None if model is None else Alphabet.of(model)
        chosen = replace(job.reading, private=mark).chosen(table, optouts, alphabet)
        del table
        if optouts is not None:
            found = chosen.private
            optouts.check_found(found.found, found.known, stepped=job.step is not None)
        if chosen.kept is None:
            raise job.nothing_left()
        arranged, private = chosen.kept
        job.check_private(private.count, int(chosen.dropped.sum()))
        if model is None:
            arranged, fitted = fit_arranged(
                arranged, private, job.fitting, job.alphabet, options.say
            )
            model = job.promised(fitted.model)
        asked = 0 if optouts is None else optouts.count
        return cls(chosen, arranged, private, asked, model, fitted)

    def planned(self, modelled: ModelledJob) -> tuple[Plan, KeyedBatch]:
        """The plan for it, and its rows with their coins."""
        worker = modelled.worker
        keyed = worker.keyed(self.arranged, self.private)
        dropped = worker.dropped(self.chosen)
        return Plan.of(modelled, worker.survey(keyed), self.listed, dropped), keyed
