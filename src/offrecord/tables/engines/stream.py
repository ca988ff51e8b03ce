"""Tables larger than memory: a file that is sorted by chain is read part by part, and is never held
whole.

The first pass surveys each part, the second decides and writes it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import polars as pl

from offrecord.errors import InputError, advise
from offrecord.files import check_outputs, check_path
from offrecord.models.base import Mask
from offrecord.tables.certifying import certified
from offrecord.tables.chains import Columns
from offrecord.tables.checks.ledger import Entered
from offrecord.tables.choosing import WHOLE, choose
from offrecord.tables.decision import Decision
from offrecord.tables.given import Given
from offrecord.tables.io.format import ReadOptions, Source
from offrecord.tables.io.formats import table_file, written_format
from offrecord.tables.io.text import packing_of
from offrecord.tables.options import FileOptions, takes
from offrecord.tables.outcome import Outcome
from offrecord.tables.plan import Plan, surveyor
from offrecord.tables.problems import LocatedError, WrongRows, check_parts
from offrecord.tables.sorting import increasing
from offrecord.tables.summary import Summary
from offrecord.tables.survey import Survey, Surveyor
from offrecord.tables.table import Dropped, Reader, Table, nothing_left
from offrecord.tables.threads import in_threads, table_threads
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

    table: sorted by chain. output: None for a dry run. Takes no fit and no single_chain.

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
        raise InputError("a single chain is decided as a whole: leave --stream out")
    if (output is None) != options.dry_run:
        raise InputError("give either an output or a dry run")
    out = None if output is None else _Output.checked(Path(output), given, options)
    said = ReadOptions(options.format, options.separator, options.encoding, options.limits)
    passage = _planned(_Looks.at(table_file(table, said), given, options), started)
    outcome, entered = (passage.expected(), None) if out is None else passage.written(out)
    warnings = spreadsheet_warnings(passage.changed)
    summary = outcome.summary(entered)
    summary = replace(summary, warnings=(*summary.warnings, *warnings))
    proof = None if out is None else out.proof
    return Streamed(summary, proof, outcome, entered, passage.digest)


def _planned(looks: _Looks, started: float) -> _Passage:
    """What is done to a table, after a survey of all positions."""
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
    return _Passage(replace(looks, rows=rows), plan)


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
        with options.progress(what, self.rows) as advance:
            for before, height, one in in_threads(worked, every, table_threads()):
                if isinstance(one, LocatedError):
                    wrong.append(one.wrong.shifted(before))
                else:
                    yield one
                advance(height)
        if self.source.state != self.state:
            raise InputError(f"{self.source.name} was changed while it was read; start again")
        check_parts(wrong)

    def survey(self, surveyor: Surveyor) -> _Surveyed:
        """What is known about the table; InputError unless it is sorted by chain, and for opt-outs
        that are not in it.
        """
        seen = self._seen(surveyor)
        optouts = self.given.optouts
        if optouts is not None:
            optouts.check_found(seen.found, stepped=self.given.step is not None)
        if not seen.surveys:
            raise nothing_left()
        return _Surveyed(seen.surveys[0], seen.dropped, seen.values)

    def _seen(self, surveyor: Surveyor) -> _Chains:
        """All parts, as they come by."""
        seen = _Chains(self.source)

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
    """What is known about a table before anything is decided. values: different cells of released
    rows, where no model says what values are.
    """

    survey: Survey
    dropped: Dropped
    values: pl.Series


@dataclass(eq=False, repr=False)
class _Chains:
    """The chains of a file as they come by, and their survey. last, last_kept: the name of the last
    chain, and of the last that is not left out. found: which rows of a private list name
    something in them.
    """

    source: Source
    last: pl.DataFrame | None = None
    last_kept: pl.DataFrame | None = None
    surveys: list[Survey] = field(default_factory=list)
    dropped: Dropped = field(default_factory=Dropped)
    found: Mask = field(default_factory=lambda: np.zeros(1, dtype=bool))
    _cells: list[pl.Series] = field(default_factory=list)

    def add(self, table: Table, survey: Survey | None, columns: Columns) -> None:
        """Those of another part. survey: None if nothing is left of it."""
        self.found = self.found | table.private.found
        self.dropped += table.dropped
        self.last = self._checked(self.last, table.all_names)
        if survey is None:
            return
        self.surveys = [Survey.of_all([*self.surveys, survey], columns)]
        # Without the chains that are left out, the others may be whole numbers, and sort as such.
        self.last_kept = self._checked(self.last_kept, table.names)
        if table.arranged.unlabelled is not None:
            self._add_cells(table)

    def _checked(self, last: pl.DataFrame | None, names: pl.DataFrame) -> pl.DataFrame:
        """The last of the names of chains; InputError unless they come after the last before."""
        if last is not None and last.schema != names.schema:
            mixed = next(name for name in names.columns if last.schema[name] != names.schema[name])
            raise InputError(
                f"{self.source.name} cannot be streamed: column {mixed!r} names some chains by"
                " whole numbers and some by other text; leave --stream out, or begin all names"
                " with a letter and sort by them"
            )
        if last is not None and not increasing(pl.concat([last, names[:1]]).get_columns()):
            raise InputError(
                f"{self.source.name} cannot be streamed: it is not sorted by"
                f' {", ".join(names.columns)}. Sort it first: python -c "import polars;'
                f' {self.source.sorting(names.schema)}"'
            )
        return names[-1:]

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
                self._decided(out.kind), file, out.kind, packing_of(out.path)
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


def whole_chains(batches: Iterator[pl.DataFrame], by: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Rows in parts of whole chains, if chains stand together: what may go on in the next batch
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
