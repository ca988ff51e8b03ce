"""Tables larger than memory: a file whose chains stand together goes through batch by batch, and is
never held whole.

Deciding takes two looks: the first surveys each batch, the second decides and writes it. What
leaves is sorted by chain and order, as always; where chains stand together but in another order,
redacted rows (and nothing else) wait in a file without a name, in the folder of the output, until
all are there.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

import numpy as np

from offrecord.errors import InputError
from offrecord.files import check_outputs, check_writable
from offrecord.models.base import Integers
from offrecord.tables.certifying import certified
from offrecord.tables.formats import Said, Source, table_file, written_format
from offrecord.tables.frames import keys_from_native
from offrecord.tables.job import Job, ModelledJob
from offrecord.tables.options import FileOptions, takes
from offrecord.tables.packing import packing_of
from offrecord.tables.plan import Entered, Outcome, Plan
from offrecord.tables.sorting import increasing
from offrecord.tables.summary import Summary
from offrecord.tables.survey import Survey
from offrecord.tables.tally import Tally
from offrecord.tables.workbooks import check_rows
from offrecord.tables.worker import KeyedBatch, Worker
from offrecord.tables.writing import (
    ready,
    spreadsheet_warnings,
    write_pieces,
    write_release,
    write_table,
)

if TYPE_CHECKING:
    import polars as pl

_PART = 1 << 20  # rows of a batch, about


@dataclass(frozen=True)
class Streamed:
    """What became of a table that went through. certificate: where it is, None after a dry run."""

    summary: Summary
    certificate: Path | None


@takes(FileOptions)
def redact_file(table: str | Path, output: str | Path | None, options: FileOptions) -> Streamed:
    """Redact a table file of any size into another; memory holds a million rows at a time, or the
    longest chain.

    table: its chains stand together. output: None for a dry run. Takes no fit and no single_chain.

    The same rows and key give the same bytes as `offrecord.redact` does in memory.
    """
    job = Job.of(options)
    if job.model is None:
        raise InputError(
            "a table that is streamed needs a model: make one with offrecord fit, and give --model"
            " instead of --fit"
        )
    if options.single_chain:
        raise InputError("a single chain is decided as a whole: leave --stream away")
    if (output is None) != options.dry_run:
        raise InputError("give either an output or a dry run")
    out = None if output is None else _Output.checked(Path(output), job, options)
    explain = None if options.explain is None else Path(options.explain)
    if explain is not None:
        check_writable(explain, force=options.force)
        written_format(explain, options.explain_format)
    modelled = job.modelled(job.model)
    said = Said(options.format, options.separator, options.encoding, options.sheet)
    looks = _Looks.at(table_file(table, said), modelled, options)
    survey, order = looks.survey()
    plan = Plan.of(modelled, survey, looks.listed_count)
    if out is not None and out.kind == "xlsx":
        check_rows(survey.rows, len(job.columns.released))
    passage = _Passage(replace(looks, worker=plan.worker, rows=survey.rows), plan, order)
    outcome, entered = (passage.expected(), None) if out is None else passage.written(out)
    warnings = spreadsheet_warnings(passage.changed)
    if explain is not None:
        kind = written_format(explain, options.explain_format)
        rules = passage.in_order(passage.explained(), explain)
        warnings += write_table(rules, explain, kind, force=options.force)
    summary = outcome.summary(entered)
    summary = replace(summary, warnings=(*summary.warnings, *warnings))
    return Streamed(summary, None if out is None else out.proof)


@contextmanager
def _located(done: int, rows: int) -> Iterator[None]:
    """An error about a batch says which rows it holds: they are counted by themselves."""
    try:
        yield
    except InputError as error:
        raise InputError(
            f"{error} (in rows {done + 1:,} to {done + rows:,}, read by themselves)"
        ) from None


@dataclass(frozen=True)
class _Output:
    """Where a release goes, and its certificate."""

    path: Path
    kind: str
    proof: Path
    force: bool

    @classmethod
    def checked(cls, path: Path, job: Job, options: FileOptions) -> _Output:
        """InputError for what must not be written."""
        kind = written_format(path, options.output_format)
        named = None if options.certificate is None else Path(options.certificate)
        proof = check_outputs(path, named, job.key_path, force=options.force)
        return cls(path, kind, proof, options.force)


@dataclass(frozen=True, eq=False, repr=False)
class _Looks:
    """Looks at a table file, batch by batch, each time the same batches.

    listed: keys of private records. rows: how many there are, None as long as that is not known.
    state: of the file when it was first looked at.
    """

    source: Source
    worker: Worker
    options: FileOptions
    listed: pl.DataFrame | None
    rows: int | None
    state: tuple[object, ...]

    @classmethod
    def at(cls, source: Source, modelled: ModelledJob, options: FileOptions) -> _Looks:
        """At a file that nobody may change from now on."""
        listed = keys_from_native(options.private_list, modelled.job.columns.keys)
        return cls(source, modelled.worker, options, listed, source.rows(), _state(source))

    @property
    def listed_count(self) -> int:
        """How long the private list is."""
        return 0 if self.listed is None else self.listed.height

    def batches(self, what: str) -> Iterator[KeyedBatch]:
        """The batches of the table; what: is done to them, for whoever watches."""
        columns, options = self.worker.spec.columns, self.options
        marks = [] if options.private is None else [options.private]
        text = [columns.value, *(() if columns.keep_all else columns.keep)]
        frames = self.source.batches(
            [*columns.released, *marks],
            max(_PART // 4, 1),
            text=text,
            max_rows=options.max_rows,
        )
        done = 0
        with options.watch(what, self.rows) as tell:
            for frame in whole_chains(frames, columns.by):
                with _located(done, frame.height):
                    keyed = self.worker.read(frame, self.listed)
                yield keyed
                done += frame.height
                tell(frame.height)
        if _state(self.source) != self.state:
            raise InputError(f"{self.source.name} was changed while it was read; start again")

    def survey(self) -> tuple[Survey, _Order | None]:
        """The survey of the table, and the order of its chains if they do not stand in that in
        which they leave; InputError unless they stand together.
        """
        seen = _Chains()
        columns = self.worker.spec.columns
        survey = Survey.of_all(self._surveys(seen), columns)
        if seen.ascending:
            return survey, None
        seen = _Chains(kept=True)  # so a chain may come twice: once more, with all their names
        survey = Survey.of_all(self._surveys(seen), columns)
        return survey, _Order(np.concatenate(seen.lengths), _ranks(seen.names, self.source))

    def _surveys(self, seen: _Chains) -> Iterator[Survey]:
        for keyed in self.batches("reading"):
            seen.add(keyed)
            yield self.worker.survey(keyed)


def _state(source: Source) -> tuple[object, ...]:
    """What changes with the files of a table."""
    return source.state


@dataclass(eq=False, repr=False)
class _Chains:
    """The chains of a file as they come by: whether their names ascend; and, if they are kept, the
    names and lengths of all.
    """

    kept: bool = False
    ascending: bool = True
    last: pl.DataFrame | None = None
    names: list[pl.DataFrame] = field(default_factory=list)
    lengths: list[Integers] = field(default_factory=list)

    def add(self, keyed: KeyedBatch) -> None:
        """Those of another batch."""
        import polars as pl

        starts = keyed.batch.arranged.chains.starts
        names = keyed.batch.arranged.names[starts[:-1]]
        if self.kept:
            self.names.append(names)
            self.lengths.append(np.diff(starts))
        if self.last is not None:
            # a column of text may seem to be one of numbers in one batch and not in another
            alike = self.last.schema == names.schema
            self.ascending &= alike and increasing(pl.concat([self.last, names[:1]]).get_columns())
        self.last = names[-1:]


@dataclass(eq=False)
class _Passage:
    """A plan that goes through a file. tally, changed: what was decided and changed by now."""

    looks: _Looks
    plan: Plan
    order: _Order | None
    tally: Tally = field(default_factory=Tally)
    changed: Counter[str] = field(default_factory=Counter)

    def expected(self) -> Outcome:
        """What a dry run finds."""
        for keyed in self.looks.batches("expecting"):
            with _located(self.tally.rows, keyed.batch.rows):
                self.tally += self.plan.rule.expect(keyed.batch)
        return self.plan.judged(self.tally)

    def written(self, out: _Output) -> tuple[Outcome, Entered | None]:
        """Write the release and its certificate; how it stands in the ledger."""
        done: list[tuple[Outcome, Entered | None]] = []

        def enter() -> None:
            outcome = self.plan.judged(self.tally)
            done.append((outcome, outcome.enter()))

        def certificate(digest: str) -> bytes:
            outcome, entered = done[-1]
            columns = self.plan.job.columns.released
            return certified(outcome.certificate(entered), out.kind, columns, digest)

        write_release(
            lambda file: write_pieces(
                self.in_order(self._decided(out.kind), file), file, out.kind, packing_of(out.path)
            ),
            out.path,
            out.proof,
            certificate,
            enter,
            force=out.force,
        )
        return done[-1]

    def _decided(self, kind: str) -> Iterator[pl.DataFrame]:
        """The released rows, in a format of this kind."""
        columns = self.plan.job.columns
        again: list[Survey] = []
        for keyed in self.looks.batches("redacting"):
            again = [Survey.of_all([*again, self.looks.worker.survey(keyed)], columns)]
            with _located(self.tally.rows, keyed.batch.rows):
                frame, tally = self.looks.worker.decide(keyed)
            frame, spreadsheet = ready(frame, columns.keep, kind)
            self.tally += tally
            self.changed.update(spreadsheet)
            yield frame
        if again[0].fingerprint != self.plan.survey.fingerprint:
            name = self.looks.source.name
            raise InputError(f"{name} was changed while it was read; start again")

    def explained(self) -> Iterator[pl.DataFrame]:
        """The rule of each row."""
        return (self.plan.rule.explain(keyed.batch) for keyed in self.looks.batches("explaining"))

    def in_order(self, pieces: Iterator[pl.DataFrame], near: Path) -> Iterator[pl.DataFrame]:
        """What became of the batches, sorted by chain. near: in the folder of this file it waits,
        if it has to.
        """
        return pieces if self.order is None else self.order.sorted(pieces, near)


@dataclass(frozen=True, eq=False)
class _Order:
    """Chains that stand in another order than the one they leave in: how many rows each has, and
    where it belongs.
    """

    lengths: Integers
    ranks: Integers

    def sorted(self, pieces: Iterator[pl.DataFrame], near: Path) -> Iterator[pl.DataFrame]:
        """Redacted pieces sorted by chain; they wait in the folder of a file, grouped by where they
        will be.

        Where they wait has no name, or loses it at once: nothing is left of it, however this ends
        and whoever still holds it.
        """
        import polars as pl

        before = np.empty_like(self.lengths)  # rows of the chains that come before each in the end
        before[np.argsort(self.ranks)] = np.cumsum(self.lengths[np.argsort(self.ranks)])
        groups = (before - self.lengths) // _PART
        chunks: list[list[tuple[int, int]]] = [[] for _ in range(int(groups.max()) + 1)]
        ends = np.cumsum(self.lengths)
        done = chain = 0
        with TemporaryFile(prefix=f".{near.name}.", suffix=".partial", dir=near.parent) as file:
            for piece in pieces:
                done += piece.height
                end = int(np.searchsorted(ends, done)) + 1
                # names that no column can have
                rank = " ".join([*piece.columns, "rank"])
                group = " ".join([*piece.columns, "group"])
                mine = slice(chain, end)
                added = [
                    pl.Series(rank, np.repeat(self.ranks[mine], self.lengths[mine])),
                    pl.Series(group, np.repeat(groups[mine], self.lengths[mine])),
                ]
                chain = end
                for (which,), chunk in (
                    piece.with_columns(added)
                    .partition_by(group, include_key=False, as_dict=True)
                    .items()
                ):
                    content = io.BytesIO()
                    chunk.write_ipc(content, compat_level=pl.CompatLevel.oldest())
                    chunks[which].append((file.tell(), file.write(content.getvalue())))
            for group_chunks in filter(None, chunks):
                frames = []
                for place, size in group_chunks:
                    file.seek(place)
                    frames.append(pl.read_ipc(io.BytesIO(file.read(size))))
                yield pl.concat(frames).sort(rank, maintain_order=True).drop(rank)


def whole_chains(batches: Iterator[pl.DataFrame], by: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Rows in stretches of whole chains, if chains stand together: what may go on in the next batch
    is held back.
    """
    import polars as pl

    held: list[pl.DataFrame] = []
    count = 0
    for batch in batches:
        if batch.height == 0:
            continue
        joined = pl.concat([held[-1].tail(1), batch]) if held else batch
        changes = np.zeros(joined.height - 1, dtype=bool)
        for name in by:
            changes |= joined[name][1:].ne_missing(joined[name][:-1]).to_numpy()
        count += batch.height
        # where the last chain of `joined` begins
        last = len(changes) - int(np.argmax(changes[::-1])) if changes.any() else 0
        if count >= _PART and last:
            cut = last - (1 if held else 0)
            yield pl.concat([*held, batch[:cut]])
            held, count = [batch[cut:]], batch.height - cut
        else:
            held.append(batch)
    if held:
        yield pl.concat(held)


def _ranks(names: list[pl.DataFrame], source: Source) -> Integers:
    """The place that each chain of a table has among all, sorted as they are in memory; InputError
    if one comes twice.
    """
    import polars as pl

    by = names[0].columns
    mixed = [
        name for name in by if len({frame.schema[name] for frame in names}) > 1
    ]  # then it is text, whatever it seemed
    chains = pl.concat([frame.with_columns(pl.col(mixed).cast(pl.String)) for frame in names])
    twice = chains.height - chains.n_unique()
    if twice:
        raise InputError(
            f"{source.name} cannot be streamed: the rows of {twice} chains do not stand together."
            f' Sort it first: python -c "import polars; {source.sorting(by)}"'
        )
    ranks = np.empty(chains.height, dtype=np.int64)
    ranks[chains.select(pl.arg_sort_by(by)).to_series().to_numpy()] = np.arange(chains.height)
    return ranks
