"""Tables larger than memory: a file whose chains stand together goes through part by part, and is
never held whole.

One look surveys each part, another decides and writes it. What leaves is sorted by chain and order,
as always; where chains stand together but in another order, redacted rows (and nothing else) wait
in a file without a name, in the folder of the output, until all are there.
"""

from __future__ import annotations

import io
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple, TypeVar

import numpy as np
import polars as pl

from offrecord.errors import InputError, advise
from offrecord.files import check_outputs, check_path
from offrecord.models.base import Integers, Mask
from offrecord.tables.certifying import certified
from offrecord.tables.chains import Columns
from offrecord.tables.checks.ledger import Entered
from offrecord.tables.choosing import WHOLE, choose
from offrecord.tables.decision import Decision
from offrecord.tables.formats import Said, Source, table_file, written_format
from offrecord.tables.given import Given
from offrecord.tables.options import FileOptions, takes
from offrecord.tables.outcome import Outcome
from offrecord.tables.packing import packing_of
from offrecord.tables.plan import Plan, surveyor
from offrecord.tables.problems import LocatedError, WrongRows, check_parts
from offrecord.tables.sorting import increasing
from offrecord.tables.summary import Summary
from offrecord.tables.survey import Survey, Surveyor
from offrecord.tables.table import Dropped, Reader, Table, nothing_left
from offrecord.tables.threads import in_threads, table_threads
from offrecord.tables.workbooks import check_rows
from offrecord.tables.writing import (
    ready,
    spreadsheet_warnings,
    write_pieces,
    write_release,
)

_R = TypeVar("_R")

_PART = 1 << 20  # rows of a part, about: a few of them fit into the memory of any machine
_MOST_VALUES = 1000  # different cells that are collected where no model says what values are


@dataclass(frozen=True, repr=False)
class Streamed:
    """What became of a table that went through.

    certificate: where it is, None after a dry run. outcome: what it was made of.
    """

    summary: Summary
    certificate: Path | None
    outcome: Outcome
    _entered: Entered | None
    _digest: str | None

    def __repr__(self) -> str:
        return f"<Streamed {self.summary.short}>"

    def __str__(self) -> str:
        return self.summary.figures()


@takes(FileOptions)
def redact_file(table: str | Path, output: str | Path | None, options: FileOptions) -> Streamed:
    """Redact a table file of any size into another; memory holds a million rows for each of a few
    threads at a time, or the longest chains.

    table: its chains stand together. output: None for a dry run. Takes no fit and no single_chain.

    The same rows, rules and key give the same bytes as `offrecord.redact` does in memory.
    """
    return redacted_file(table, output, options)


def redacted_file(table: str | Path, output: str | Path | None, options: FileOptions) -> Streamed:
    """As `redact_file`, with options as one object."""
    if not isinstance(table, (str, Path)):
        raise InputError(
            f"redact_file takes the path of a table, got {type(table).__name__}: a frame is for"
            " redact"
        )
    check_path("output", output)
    started, given = time.monotonic(), Given.of(options)
    given.check_named()
    if options.fit:
        raise InputError(
            "a table that is streamed needs a model: make one with offrecord fit, and give --model"
            " instead of --fit"
        )
    if options.single_chain:
        raise InputError("a single chain is decided as a whole: leave --stream away")
    if (output is None) != options.dry_run:
        raise InputError("give either an output or a dry run")
    out = None if output is None else _Output.checked(Path(output), given, options)
    said = Said(options.format, options.separator, options.encoding, options.sheet)
    passage = _planned(_Looks.at(table_file(table, said), given, options), started)
    if out is not None and out.kind == "xlsx":
        check_rows(passage.plan.survey.rows, len(given.columns.released))
    outcome, entered = (passage.expected(), None) if out is None else passage.written(out)
    warnings = spreadsheet_warnings(passage.changed)
    summary = outcome.summary(entered)
    summary = replace(summary, warnings=(*summary.warnings, *warnings))
    proof = None if out is None else out.proof
    return Streamed(summary, proof, outcome, entered, passage.digest)


def _planned(looks: _Looks, started: float) -> _Passage:
    """What is done to a table, after a look at all of its positions."""
    given, model = looks.given, looks.given.model
    surveyed = looks.survey(surveyor(given, model))
    surveyed.survey.check_lengths(model)
    given.check_private(surveyed.survey.private + surveyed.dropped.private)
    chosen = choose(given, model, surveyed.survey)
    if chosen.kind == WHOLE and not given.options.keep_rows:
        looks = replace(looks, touched=True)
        surveyed = looks.survey(surveyor(given, None))
    if looks.reader.alphabet is None:
        alphabet = given.wanted.alphabet(surveyed.values)[0]
        looks = replace(looks, reader=replace(looks.reader, alphabet=alphabet))
    assert looks.reader.alphabet is not None
    labels, survey = looks.reader.alphabet.labels, surveyed.survey
    plan = Plan.of(given, model, chosen, survey, surveyed.dropped, labels, started)
    rows = survey.rows + surveyed.dropped.rows
    return _Passage(replace(looks, rows=rows), plan, surveyed.order)


@contextmanager
def _located(before: int, height: int) -> Iterator[None]:
    """An error about a part that does not say where says which rows it holds."""
    try:
        yield
    except LocatedError:
        raise
    except InputError as error:
        first, last = before + 1, before + height
        raise InputError(f"{error} (in rows {first:,} to {last:,}, read by themselves)") from None


@dataclass(frozen=True)
class _Output:
    """Where a release goes, and its certificate."""

    path: Path
    kind: str
    proof: Path
    force: bool

    @classmethod
    def checked(cls, path: Path, given: Given, options: FileOptions) -> _Output:
        """InputError for what must not be written."""
        kind = written_format(path, options.output_format)
        named = None if options.certificate is None else Path(options.certificate)
        proof = check_outputs(path, named, given.key_path, force=options.force)
        return cls(path, kind, proof, options.force)


@dataclass(frozen=True, eq=False, repr=False)
class _Looks:
    """Looks at a table file, part by part, each time the same parts.

    rows: how many there are, None as long as that is not known. state: of the file when it was
    first looked at. touched: every chain with a private record is left out.
    """

    source: Source
    given: Given
    reader: Reader
    options: FileOptions
    rows: int | None
    state: tuple[object, ...]
    touched: bool = False

    @classmethod
    def at(cls, source: Source, given: Given, options: FileOptions) -> _Looks:
        """At a file that nobody may change from now on."""
        private = options.private if isinstance(options.private, str) else None
        return cls(source, given, given.reader(private), options, source.rows(), source.state)

    def through(
        self, what: str, wrong: list[WrongRows], work: Callable[[Table], _R]
    ) -> Iterator[_R]:
        """What is made of each part of the table, in their order; several are worked on at once.

        what: is done to them, for a progress bar. wrong: collects wrong rows, which are an
        InputError at the end.
        """
        columns, options = self.given.columns, self.options
        marks = [] if self.reader.private is None else [self.reader.private]
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
                    table = self.reader.read(frame, self.given.optouts, touched=self.touched)
                    return before, frame.height, work(table.keyed(self.given.coins))
            except LocatedError as error:
                return before, frame.height, error

        every = _placed(whole_chains(frames, columns.by))
        with options.progress(what, self.rows) as tell:
            for before, height, one in in_threads(worked, every, table_threads()):
                if isinstance(one, LocatedError):
                    wrong.append(one.wrong.shifted(before))
                else:
                    yield one
                tell(height)
        if self.source.state != self.state:
            raise InputError(f"{self.source.name} was changed while it was read; start again")
        check_parts(wrong)

    def survey(self, surveyor: Surveyor) -> _Surveyed:
        """What is known about the table; InputError unless its chains stand together, and for
        opt-outs that are not in it.
        """
        seen = self._seen(surveyor, _Chains())
        if not seen.ascending:
            # so a chain may come twice: once more, with all their names
            seen = self._seen(surveyor, _Chains(kept=True))
            _check_together(seen.names, self.source)
        optouts = self.given.optouts
        if optouts is not None:
            optouts.check_found(seen.found, stepped=self.given.step is not None)
        if not seen.surveys:
            raise nothing_left()
        order = None
        if not seen.ascending:
            order = _Order(np.concatenate(seen.lengths), _ranks(seen.kept_names))
        return _Surveyed(seen.surveys[0], seen.dropped, order, seen.values)

    def _seen(self, surveyor: Surveyor, seen: _Chains) -> _Chains:
        """All parts, as they come by."""

        def looked_at(table: Table) -> tuple[Table, Survey | None]:
            return table, None if table.is_empty else surveyor.survey(table)

        for table, survey in self.through("reading", [], looked_at):
            seen.add(table, survey, self.given.columns)
        if seen.last is None:
            raise InputError("the table has no rows")
        return seen


def _placed(frames: Iterator[pl.DataFrame]) -> Iterator[tuple[int, pl.DataFrame]]:
    """With how many rows come before each."""
    before = 0
    for frame in frames:
        yield before, frame
        before += frame.height


class _Surveyed(NamedTuple):
    """What is known about a table before anything is decided. order: of its chains, if they do not
    stand in that in which they leave. values: different cells of released rows, where no model says
    what values are.
    """

    survey: Survey
    dropped: Dropped
    order: _Order | None
    values: pl.Series


@dataclass(eq=False, repr=False)
class _Chains:
    """The chains of a file as they come by: their survey, and whether their names ascend; and, if
    they are kept, the names of all, and the names and lengths of those that are not left out.
    found: which rows of a private list name something in them.
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
    _cells: list[pl.Series] = field(default_factory=list)

    def add(self, table: Table, survey: Survey | None, columns: Columns) -> None:
        """Those of another part. survey: None if nothing is left of it."""
        self.found = self.found | table.private.found
        self.dropped += table.dropped
        whole = table.all_names
        self.ascending &= _ascends(self.last, whole)
        self.last = whole[-1:]
        if self.kept:
            self.names.append(whole)
        if survey is None:
            return
        self.surveys = [Survey.of_all([*self.surveys, survey], columns)]
        names = table.names
        self.ascending &= _ascends(self.last_kept, names)
        self.last_kept = names[-1:]
        if self.kept:
            self.kept_names.append(names)
            self.lengths.append(np.diff(table.chains.starts))
        if table.arranged.unlabelled is not None:
            self._add_cells(table)

    def _add_cells(self, table: Table) -> None:
        values = table.arranged.unlabelled
        assert values is not None
        stays = ~table.chains.spread(table.touched)
        self._cells = [pl.concat([*self._cells, values.filter(stays)]).unique(maintain_order=True)]
        if len(self._cells[0]) > _MOST_VALUES:
            raise InputError(
                f"value column {values.name!r} has more than {_MOST_VALUES:,} different values; cut"
                " numbers with --bins"
            )

    @property
    def values(self) -> pl.Series:
        """The different cells of released rows."""
        return self._cells[0] if self._cells else pl.Series([])


def _ascends(last: pl.DataFrame | None, names: pl.DataFrame) -> bool:
    """The next names come after the last one."""
    if last is None:
        return True
    # a column of text may seem to be one of numbers in one part and not in another
    return last.schema == names.schema and increasing(pl.concat([last, names[:1]]).get_columns())


class _Decided(NamedTuple):
    """What was decided of a part, with its survey, and how many cells a format has changed."""

    survey: Survey
    decision: Decision
    changed: Counter[str]


@dataclass(eq=False)
class _Passage:
    """A plan that goes through a file. total, changed: what was decided and changed by now. digest:
    the SHA-256 of what was written.
    """

    looks: _Looks
    plan: Plan
    order: _Order | None
    total: Decision = field(default_factory=Decision)
    changed: Counter[str] = field(default_factory=Counter)
    digest: str | None = None

    def expected(self) -> Outcome:
        """What a dry run finds."""
        rule = self.plan.rule

        def expected(table: Table) -> Decision:
            return Decision() if table.is_empty else rule.expect(table)

        for decision in self.looks.through("expecting", [], expected):
            self.total += decision
        outcome = Outcome.of(self.plan, self.total)
        outcome.advise()
        return outcome

    def written(self, out: _Output) -> tuple[Outcome, Entered | None]:
        """Write the release and its certificate; how it stands in the ledger."""
        done: list[tuple[Outcome, Entered | None]] = []

        def enter() -> None:
            outcome = Outcome.of(self.plan, self.total)
            outcome.advise(spreadsheet_warnings(self.changed))
            entered = outcome.enter()
            advise(() if entered is None else entered.warnings)
            done.append((outcome, entered))

        def certificate(digest: str) -> bytes:
            outcome, entered = done[-1]
            self.digest = digest
            columns = self.plan.given.columns.released
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
        given, rule = self.plan.given, self.plan.rule
        columns = given.columns
        survey = surveyor(given, self.plan.model).survey

        def decided(table: Table) -> _Decided | None:
            if table.is_empty:
                return None
            decision = rule.decide(table)
            assert decision.frame is not None
            frame, changed = ready(decision.frame, columns.keep, kind)
            return _Decided(survey(table), replace(decision, frame=frame), changed)

        again: list[Survey] = []
        wrong: list[WrongRows] = []
        for one in self.looks.through("redacting", wrong, decided):
            if one is None:
                continue
            again = [Survey.of_all([*again, one.survey], columns)]
            self.total += one.decision
            self.changed.update(one.changed)
            if not wrong and one.decision.frame is not None:
                yield one.decision.frame  # else nothing is released: the rest is only looked at
        if again[0].fingerprint != self.plan.survey.fingerprint:
            name = self.looks.source.name
            raise InputError(f"{name} was changed while it was read; start again")

    def in_order(self, pieces: Iterator[pl.DataFrame], near: Path) -> Iterator[pl.DataFrame]:
        """What became of the parts, sorted by chain. near: in the folder of this file it waits, if
        it has to.
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
    chains = _together(names)
    ranks = np.empty(chains.height, dtype=np.int64)
    order = chains.select(pl.arg_sort_by(chains.columns)).to_series().to_numpy()
    ranks[order] = np.arange(chains.height)
    return ranks


def _together(names: list[pl.DataFrame]) -> pl.DataFrame:
    """The names of chains, part by part, as those of one table."""
    by = names[0].columns
    mixed = [
        name for name in by if len({frame.schema[name] for frame in names}) > 1
    ]  # then it is text, whatever it seemed
    return pl.concat([frame.with_columns(pl.col(mixed).cast(pl.String)) for frame in names])
