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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from offrecord.errors import InputError, advise
from offrecord.files import check_outputs, check_path, check_writable
from offrecord.mechanisms.blocks import Mask
from offrecord.models.base import Integers
from offrecord.tables.batch import Chosen
from offrecord.tables.certifying import certified
from offrecord.tables.chains import Arranged, Columns
from offrecord.tables.entering import Entered
from offrecord.tables.formats import Said, Source, table_file, written_format
from offrecord.tables.job import Job, ModelledJob
from offrecord.tables.options import FileOptions, takes
from offrecord.tables.packing import packing_of
from offrecord.tables.plan import Outcome, Plan
from offrecord.tables.problems import Found, LocatedError
from offrecord.tables.reporting import reporting
from offrecord.tables.sorting import increasing
from offrecord.tables.summary import Summary
from offrecord.tables.survey import Dropped, Survey
from offrecord.tables.tally import Tally
from offrecord.tables.threads import in_threads, table_threads
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

_R = TypeVar("_R")

_PART = 1 << 20  # rows of a batch, about


@dataclass(frozen=True, repr=False)
class Streamed:
    """What became of a table that went through. certificate: where it is, None after a dry run."""

    summary: Summary
    certificate: Path | None
    _outcome: Outcome
    _entered: Entered | None
    _digest: str | None

    def __repr__(self) -> str:
        return f"<Streamed {self.summary.short}>"

    def __str__(self) -> str:
        return self.summary.figures()

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()


@takes(FileOptions)
def redact_file(table: str | Path, output: str | Path | None, options: FileOptions) -> Streamed:
    """Redact a table file of any size into another; memory holds a million rows for each of a few
    threads at a time, or the longest chains.

    table: its chains stand together. output: None for a dry run. Takes no fit and no single_chain.

    The same rows and key give the same bytes as `offrecord.redact` does in memory.
    """
    if not isinstance(table, (str, Path)):
        raise InputError(
            f"redact_file takes the path of a table, got {type(table).__name__}: a frame is for"
            " redact"
        )
    check_path("output", output)
    with reporting(options.problems, force=options.force):
        return _redacted(table, output, options)


def _redacted(table: str | Path, output: str | Path | None, options: FileOptions) -> Streamed:
    job = Job.of(options)
    job.check_named()
    if job.model is None:
        raise InputError(
            "a table that is streamed needs a model: make one with offrecord fit, and give --model"
            " instead of --fit"
        )
    if options.single_chain:
        raise InputError("a single chain is decided as a whole: leave --stream away")
    if options.after is not None:
        raise InputError("--after takes the tables at once: leave --stream away")
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
    surveyed = looks.survey()
    survey, order = surveyed.survey, surveyed.order
    if out is not None and out.kind == "xlsx":
        check_rows(survey.rows, len(job.columns.released))
    asked = 0 if job.optouts is None else job.optouts.count
    plan = Plan.of(modelled, survey, asked, surveyed.dropped)
    rows = survey.rows + surveyed.dropped.rows
    passage = _Passage(replace(looks, worker=plan.worker, rows=rows), plan, order)
    outcome, entered = (passage.expected(), None) if out is None else passage.written(out)
    warnings = spreadsheet_warnings(passage.changed)
    if explain is not None:
        kind = written_format(explain, options.explain_format)
        rules = passage.in_order(passage.explained(), explain)
        told = write_table(rules, explain, kind, force=options.force)
        advise(told)
        warnings += told
    summary = outcome.summary(entered)
    summary = replace(summary, warnings=(*summary.warnings, *warnings))
    proof = None if out is None else out.proof
    return Streamed(summary, proof, outcome, entered, passage.digest)


@contextmanager
def _located(done: int, rows: int) -> Iterator[None]:
    """An error about a batch that does not say where says which rows it holds."""
    try:
        yield
    except LocatedError:
        raise
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

    rows: how many there are, None as long as that is not known. state: of the file when it was
    first looked at.
    """

    source: Source
    job: Job
    worker: Worker
    options: FileOptions
    rows: int | None
    state: tuple[object, ...]

    @classmethod
    def at(cls, source: Source, modelled: ModelledJob, options: FileOptions) -> _Looks:
        """At a file that nobody may change from now on."""
        worker = modelled.worker
        return cls(source, modelled.job, worker, options, source.rows(), _state(source))

    def through(self, what: str, found: Found, work: Callable[[_Part], _R]) -> Iterator[_R]:
        """What is made of each part of the table, in their order; several are worked on at once.

        what: is done to them, for whoever watches. found: takes what is wrong with rows, which is
        an InputError at the end.
        """
        columns, options = self.worker.spec.columns, self.options
        marks = [] if options.private is None else [options.private]
        text = [columns.value, *(() if columns.keep_all else columns.keep)]
        frames = self.source.batches(
            [*columns.released, *marks],
            max(_PART // 4, 1),
            text=text,
            max_rows=options.max_rows,
        )

        def worked(placed: tuple[int, pl.DataFrame]) -> tuple[int, int, _R | LocatedError]:
            before, frame = placed
            try:
                with _located(before, frame.height):
                    chosen = self.worker.read(frame, self.job.optouts)
                keyed = None if chosen.kept is None else self.worker.keyed(*chosen.kept)
                return before, frame.height, work(_Part(before, frame.height, chosen, keyed))
            except LocatedError as error:
                return before, frame.height, error

        every = _placed(whole_chains(frames, columns.by))
        with options.watch(what, self.rows) as tell:
            for before, height, one in in_threads(worked, every, table_threads()):
                if isinstance(one, LocatedError):
                    found.add(one, before)
                else:
                    yield one
                tell(height)
        if _state(self.source) != self.state:
            raise InputError(f"{self.source.name} was changed while it was read; start again")
        found.check()

    def survey(self) -> _Surveyed:
        """What is found out about the table; InputError unless its chains stand together, and for
        opt-outs that are not in it.
        """
        seen = self._seen(_Chains())
        if not seen.ascending:
            # so a chain may come twice: once more, with all their names
            seen = self._seen(_Chains(kept=True))
            _check_together(seen.names, self.source)
        optouts = self.job.optouts
        if optouts is not None:
            optouts.check_found(seen.found, seen.known, stepped=self.job.step is not None)
        if not seen.surveys:
            raise self.job.nothing_left()
        order = None
        if not seen.ascending:
            order = _Order(np.concatenate(seen.lengths), _ranks(seen.kept_names))
        return _Surveyed(seen.surveys[0], seen.dropped, order)

    def _seen(self, seen: _Chains) -> _Chains:
        """All parts, as they come by."""
        for part in self.through("reading", Found(), self._looked_at):
            seen.add(part, self.worker.spec.columns)
        if seen.last is None:
            raise InputError("the table has no rows")
        return seen

    def _looked_at(self, part: _Part) -> _LookedAt:
        survey = None if part.keyed is None else self.worker.survey(part.keyed)
        return _LookedAt(part, self.worker.dropped(part.chosen), survey)


def _placed(frames: Iterator[pl.DataFrame]) -> Iterator[tuple[int, pl.DataFrame]]:
    """With how many rows come before each."""
    before = 0
    for frame in frames:
        yield before, frame
        before += frame.height


def _state(source: Source) -> tuple[object, ...]:
    """What changes with the files of a table."""
    return source.state


class _Part(NamedTuple):
    """Some whole chains. before, height: how many rows come before them, and how many they have.
    keyed: what is left of them, None if all are dropped.
    """

    before: int
    height: int
    chosen: Chosen
    keyed: KeyedBatch | None


class _LookedAt(NamedTuple):
    """A part, what is left out of it, and what is found out about the rest, if there is any."""

    part: _Part
    dropped: Dropped
    survey: Survey | None


class _Surveyed(NamedTuple):
    """What is found out about a table before anything is decided. order: of its chains, if they do
    not stand in that in which they leave.
    """

    survey: Survey
    dropped: Dropped
    order: _Order | None


@dataclass(eq=False, repr=False)
class _Chains:
    """The chains of a file as they come by: what they are found to be, and whether their names
    ascend; and, if they are kept, the names of all, and the names and lengths of those that are not
    dropped. found, known: which rows of a private list name something in them, or their chain.
    """

    kept: bool = False
    ascending: bool = True
    last: pl.DataFrame | None = None
    last_kept: pl.DataFrame | None = None
    names: list[pl.DataFrame] = field(default_factory=list)
    kept_names: list[pl.DataFrame] = field(default_factory=list)
    lengths: list[Integers] = field(default_factory=list)
    surveys: list[Survey] = field(default_factory=list)
    dropped: Dropped = field(default_factory=Dropped)
    found: Mask = field(default_factory=lambda: np.zeros(1, dtype=bool))
    known: Mask = field(default_factory=lambda: np.zeros(1, dtype=bool))

    def add(self, looked_at: _LookedAt, columns: Columns) -> None:
        """Those of another part."""
        part, chosen = looked_at.part, looked_at.part.chosen
        self.found = self.found | chosen.private.found
        self.known = self.known | chosen.private.known
        self.dropped += looked_at.dropped
        names = _names(chosen.arranged)
        self.ascending &= _ascends(self.last, names)
        self.last = names[-1:]
        if self.kept:
            self.names.append(names)
        if part.keyed is None or looked_at.survey is None:
            return
        self.surveys = [Survey.of_all([*self.surveys, looked_at.survey], columns)]
        arranged = part.keyed.batch.arranged
        names = _names(arranged)
        self.ascending &= _ascends(self.last_kept, names)
        self.last_kept = names[-1:]
        if self.kept:
            self.kept_names.append(names)
            self.lengths.append(np.diff(arranged.chains.starts))


def _names(arranged: Arranged) -> pl.DataFrame:
    """The names of chains, a row each."""
    return arranged.names[arranged.chains.starts[:-1]]


def _ascends(last: pl.DataFrame | None, names: pl.DataFrame) -> bool:
    """The next names come after the last one."""
    import polars as pl

    if last is None:
        return True
    # a column of text may seem to be one of numbers in one part and not in another
    return last.schema == names.schema and increasing(pl.concat([last, names[:1]]).get_columns())


class _Decided(NamedTuple):
    """The released rows of a part, with what was found out about it, counted and changed."""

    survey: Survey
    frame: pl.DataFrame
    tally: Tally
    changed: Counter[str]


@dataclass(eq=False)
class _Passage:
    """A plan that goes through a file. tally, changed: what was decided and changed by now. digest:
    the SHA-256 of what was written.
    """

    looks: _Looks
    plan: Plan
    order: _Order | None
    tally: Tally = field(default_factory=Tally)
    changed: Counter[str] = field(default_factory=Counter)
    digest: str | None = None

    def expected(self) -> Outcome:
        """What a dry run finds."""

        def expected(part: _Part) -> Tally:
            if part.keyed is None:
                return Tally()
            with _located(part.before, part.height):
                return self.looks.worker.expect(part.keyed)

        for tally in self.looks.through("expecting", Found(), expected):
            self.tally += tally
        outcome = self.plan.judged(self.tally)
        outcome.advise()
        return outcome

    def written(self, out: _Output) -> tuple[Outcome, Entered | None]:
        """Write the release and its certificate; how it stands in the ledger."""
        done: list[tuple[Outcome, Entered | None]] = []

        def enter() -> None:
            outcome = self.plan.judged(self.tally)
            outcome.advise(spreadsheet_warnings(self.changed))
            entered = outcome.enter()
            advise(() if entered is None else entered.warnings)
            done.append((outcome, entered))

        def certificate(digest: str) -> bytes:
            outcome, entered = done[-1]
            self.digest = digest
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
        columns, worker = self.plan.job.columns, self.looks.worker

        def decided(part: _Part) -> _Decided | None:
            if part.keyed is None:
                return None
            survey = worker.survey(part.keyed)
            with _located(part.before, part.height):
                frame, tally = worker.decide(part.keyed)
                frame, changed = ready(frame, columns.keep, kind)
            return _Decided(survey, frame, tally, changed)

        again: list[Survey] = []
        found = Found()
        for one in self.looks.through("redacting", found, decided):
            if one is None:
                continue
            again = [Survey.of_all([*again, one.survey], columns)]
            self.tally += one.tally
            self.changed.update(one.changed)
            if not found.wrong:  # else nothing is released: the rest is only looked at
                yield one.frame
        if again[0].fingerprint != self.plan.survey.fingerprint:
            name = self.looks.source.name
            raise InputError(f"{name} was changed while it was read; start again")

    def explained(self) -> Iterator[pl.DataFrame]:
        """The rule of each row."""

        def explained(part: _Part) -> pl.DataFrame | None:
            return None if part.keyed is None else self.plan.rule.explain(part.keyed.batch)

        for rules in self.looks.through("explaining", Found(), explained):
            if rules is not None:
                yield rules

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


def _check_together(names: list[pl.DataFrame], source: Source) -> None:
    """InputError if a chain of a table comes twice. names: of its chains, part by part."""
    chains = _together(names)
    twice = chains.height - chains.n_unique()
    if twice:
        raise InputError(
            f"{source.name} cannot be streamed: the rows of {twice} chains do not stand together."
            f' Sort it first: python -c "import polars; {source.sorting(chains.columns)}"'
        )


def _ranks(names: list[pl.DataFrame]) -> Integers:
    """The place that each chain of a table has among all, sorted as they are in memory."""
    import polars as pl

    chains = _together(names)
    ranks = np.empty(chains.height, dtype=np.int64)
    order = chains.select(pl.arg_sort_by(chains.columns)).to_series().to_numpy()
    ranks[order] = np.arange(chains.height)
    return ranks


def _together(names: list[pl.DataFrame]) -> pl.DataFrame:
    """The names of chains, part by part, as those of one table."""
    import polars as pl

    by = names[0].columns
    mixed = [
        name for name in by if len({frame.schema[name] for frame in names}) > 1
    ]  # then it is text, whatever it seemed
    return pl.concat([frame.with_columns(pl.col(mixed).cast(pl.String)) for frame in names])
