"""The main job, in memory: a table in, and out one in which no private record can be inferred
beyond e^ε, certified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from offrecord.designs.library import Model
from offrecord.designs.sharing import MAX_MINUTES
from offrecord.errors import InputError
from offrecord.files import check_apart, check_outputs, check_writable
from offrecord.mechanisms import Mechanism
from offrecord.release.certificate import certified
from offrecord.tables.chains import arrange
from offrecord.tables.deciding import Tally
from offrecord.tables.encoding import write_frame
from offrecord.tables.formats import format_of, stream_format
from offrecord.tables.frames import Native, from_native, to_native
from offrecord.tables.job import Job, Plan
from offrecord.tables.parts import Part
from offrecord.tables.reference import fit_arranged
from offrecord.tables.secrets import check_all_found, private_records
from offrecord.tables.summary import Summary
from offrecord.tables.writing import ready, spreadsheet_warnings, write_release, write_to_stream

if TYPE_CHECKING:
    import polars as pl

    from offrecord.fitting.fit import Fit


@dataclass(frozen=True, eq=False)
class Release:
    """A released table.

    frame: of the kind that came in; None after a dry run, or as long as the ledger does not know
    the release.
    """

    frame: Any
    summary: Summary
    fit: Fit | None
    _table: pl.DataFrame | None = field(repr=False)
    _plan: Plan = field(repr=False)
    _part: Part = field(repr=False)
    _tally: Tally = field(repr=False)

    @property
    def certificate(self) -> dict[str, Any]:
        """What it says about the release as the ledger knows it by now; `write` adds what it says
        about the output.
        """
        return self._plan.certificate()

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
        proof = check_outputs(path, named, self._plan.job.key.file, force=force)
        table, warnings = self._ready(kind)
        write_release(
            lambda file: write_frame(table.lazy(), file, kind),
            path,
            proof,
            lambda digest: certified(self.certificate, kind, table.columns, digest),
            lambda: warnings.extend(self._plan.enter(self._tally)),
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
        check_apart(self._plan.job.key.file, proof)
        table, warnings = self._ready(kind)
        write_to_stream(
            table,
            out,
            kind,
            proof,
            lambda digest: certified(self.certificate, kind, table.columns, digest),
            lambda: warnings.extend(self._plan.enter(self._tally)),
            force=force,
        )
        return warnings

    def _ready(self, kind: str) -> tuple[pl.DataFrame, list[str]]:
        if self._table is None:
            raise InputError("a dry run has nothing to write")
        table, changed = ready(self._table, self._plan.job.columns.keep, kind)
        return table, spreadsheet_warnings(changed)

    def explain(self) -> pl.DataFrame:
        """For each row its region and the redaction probability of every value: the rule, never
        what was drawn.
        """
        return self._plan.deciding.explain(self._part)


def redact(
    frame: Native,
    *,
    value: str,
    order: str,
    epsilon: float,
    dataset: str,
    by: str | Sequence[str] | None = None,
    single_chain: bool = False,
    private: str | None = None,
    private_list: Native | None = None,
    model: Model | str | Path | None = None,
    fit: bool = False,
    chain_order: int = 1,
    phase: str | None = None,
    step: str | int | None = None,
    keep: str | Sequence[str] | None = None,
    keep_all: bool = False,
    mechanism: Mechanism | str = "best-local",
    protect: str = "run",
    key_file: str | Path | None = None,
    designs: str | Path | None = None,
    design_minutes: float = MAX_MINUTES,
    accept_model: bool = False,
    allow_none: bool = False,
    another_release: bool = False,
    publish_positions: bool = False,
    dry_run: bool = False,
    remember: bool = True,
    progress: Callable[[list[Any]], Iterable[Any]] = list,
    say: Callable[[str], None] | None = None,
) -> Release:
    """Redact a table so that no private record can be inferred beyond a likelihood ratio of
    e^epsilon.

    frame: any frame narwhals knows; the released one is of the same kind. value, order ("row": as
    rows stand), by: columns; a table without by needs single_chain=True. private: a boolean column;
    private_list: a frame of (by, order) keys. model: a chain, or a model file; fit=True learns one
    from the chains without a private record. step: "1h" or 1, so that missing steps count as
    records already redacted. keep: columns to release too, which the guarantee does not cover;
    their cells leave empty where the value is redacted, unless keep_all is set. dataset: names the
    data; the same for a re-release, another for other data. key_file: the secret behind the coins,
    made on first use. designs: a file to take designs from and keep them in.
    accept_model: go on although the table speaks against its model. dry_run: design and report what
    to expect, without a look at the values. remember: enter the release into the ledger at once; if
    not, that happens when it is written, and until then there is no frame. say: is told which
    values fit=True learns from, before it does.

    Raises InputError for wrong input, for a kept column that tells the value, and for a second,
    different release under one name unless another_release is set.
    """
    job = Job(
        value=value,
        order=order,
        epsilon=epsilon,
        dataset=dataset,
        by=by,
        single_chain=single_chain,
        private=private,
        private_list=private_list,
        model=model,
        fit=fit,
        chain_order=chain_order,
        phase=phase,
        step=step,
        keep=keep,
        keep_all=keep_all,
        mechanism=mechanism,
        protect=protect,
        key_file=key_file,
        designs=designs,
        design_minutes=design_minutes,
        accept_model=accept_model,
        allow_none=allow_none,
        another_release=another_release,
        publish_positions=publish_positions,
        dry_run=dry_run,
        progress=progress,
        say=say,
    )
    table = from_native(
        frame, [*job.columns.released, *([] if private is None else [private])], value
    )
    listed = None if private_list is None else from_native(private_list)
    labels = None if job.given is None else job.given.labels
    arranged = arrange(table, job.columns, labels=labels, private=private, step=job.steps)
    del table
    hidden = private_records(arranged, listed, job.steps)
    asked = 0 if listed is None else listed.height
    check_all_found(hidden.keys, asked)
    job.check_private(hidden.count)
    fitted, chain = None, job.given
    if chain is None:
        arranged, fitted = fit_arranged(arranged, hidden.chain, chain_order, phase, say)
        chain = fitted.model
    reading = job.reading(chain)
    part = reading.part_of(arranged, hidden)
    plan = job.plan(reading, reading.survey(part), asked)
    out, tally = (None, plan.deciding.expect(part)) if dry_run else plan.deciding.decide(part)
    plan.judge(tally)
    native = to_native(out, frame, value) if out is not None and remember else None
    if remember:
        plan.enter(tally)
    return Release(native, plan.summary(tally), fitted, out, plan, part, tally)
