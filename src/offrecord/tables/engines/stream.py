"""Tables larger than memory: a file that is sorted by chain is read part by part, and is never held
whole.

The first pass surveys each part, the second decides and writes it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

import polars as pl

from offrecord.errors import InputError
from offrecord.files import check_path
from offrecord.tables.decision import Decision
from offrecord.tables.engines.engine import PART, Engine, Made, Passage, Reading, whole_chains
from offrecord.tables.given import Given
from offrecord.tables.io.format import ReadOptions, Source
from offrecord.tables.io.formats import table_file
from offrecord.tables.options import FileOptions, takes
from offrecord.tables.problems import LocatedError, WrongRows, check_parts
from offrecord.tables.sorting import increasing
from offrecord.tables.table import Table
from offrecord.tables.threads import in_threads, table_threads
from offrecord.tables.writing import Output, ready, spreadsheet_warnings, write_pieces

_R = TypeVar("_R")
#: The names of the chains of a part, a row each, and of those that are not left out, if any.
_Names: TypeAlias = tuple[pl.DataFrame, pl.DataFrame | None]

_PART = PART


@dataclass(eq=False, repr=False)
class Streamed(Made):
    """What became of a table that went through. certificate: where it is, None after a dry run."""

    certificate: Path | None
    _digest: str | None


@takes(FileOptions)
def redact_file(table: str | Path, output: str | Path | None, options: FileOptions) -> Streamed:
    """Redact a table file of any size into another; memory holds a million rows for each of a few
    threads at a time, or the longest chains.

    table: sorted by chain. output: None for a dry run. Takes no fit and no single_chain.

    The same rows, rules and key give the same bytes as `offrecord.redact` does in memory.
    """
    if not isinstance(table, (str, Path)):
        raise InputError(
            f"redact_file takes the path of a table, got {type(table).__name__}: a frame is for"
            " redact"
        )
    check_path("output", output)
    started, given = time.monotonic(), Given.of(options)
    _check(given, options, output)
    out = None
    if output is not None:
        kind, proof = options.output_format, options.certificate
        out = Output.checked(output, kind, proof, given.key_path, force=options.force)
    said = ReadOptions(options.format, options.separator, options.encoding, options.limits)
    stream = _Stream.of(table_file(table, said), given, options)
    passage = Passage.planned(stream, given.model, started)
    return _expected(passage) if out is None else _written(passage, out)


def _check(given: Given, options: FileOptions, output: object) -> None:
    """InputError for options that need the table at once, or contradict each other."""
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


def _expected(passage: Passage[_Stream]) -> Streamed:
    """What a dry run finds."""
    deque(passage.parts(), maxlen=0)
    outcome = passage.outcome
    return Streamed(outcome.summary(outcome.enter()), outcome, None, None, None)


def _written(passage: Passage[_Stream], out: Output) -> Streamed:
    """The release and its certificate, written."""
    columns = passage.plan.given.columns
    done: list[Streamed] = []

    def entered(digest: str) -> bytes:
        done.append(_entered(passage, out.proof, digest))
        return done[0]._certified(out.kind, columns.released, digest)

    parts = passage.parts(partial(_as_written, columns.keep, out.kind))
    pieces = (part.decision.frame for part in parts if part.decision.frame is not None)
    out.write(partial(write_pieces, pieces), entered)
    return done[0]


def _entered(passage: Passage[_Stream], proof: Path, digest: str) -> Streamed:
    """The release as the ledger knows it, once all parts are written."""
    outcome = passage.outcome
    warnings = spreadsheet_warnings(passage.total.changed)
    entered = outcome.enter(warnings)
    summary = outcome.summary(entered)
    summary = replace(summary, warnings=(*summary.warnings, *warnings))
    return Streamed(summary, outcome, entered, proof, digest)


def _as_written(kept: tuple[str, ...], kind: str, decision: Decision) -> Decision:
    """The released rows as a format can hold them."""
    assert decision.frame is not None
    frame, changed = ready(decision.frame, kept, kind)
    return replace(decision, frame=frame, changed=changed)


@dataclass(eq=False, repr=False)
class _Stream(Engine):
    """A table file that nobody may change from now on, read part by part, each time the same."""

    source: Source
    options: FileOptions
    state: tuple[object, ...]  # of the file when it was first looked at
    rows: int | None  # how many it has, None if not known yet

    @classmethod
    def of(cls, source: Source, given: Given, options: FileOptions) -> _Stream:
        """A file as it is now."""
        reading = Reading.of(given, given.marking)
        return cls(given, reading, source, options, source.state, source.rows())

    def each(self, what: str, work: Callable[[Table], _R]) -> Iterator[_R]:
        """As in `Engine`; parts in their order, several of them worked on at once."""
        wrong: list[WrongRows] = []
        sorting, done = _Sorting(self.source), 0
        worked = in_threads(partial(self._worked, work), _placed(self._parts()), table_threads())
        with self.options.progress(what, self.rows) as advance:
            for found in worked:
                if isinstance(found, LocatedError):
                    wrong.append(found.wrong)
                    continue
                end, names, one = found
                sorting.check(*names)
                yield one
                advance(end - done)
                done = end
        self.rows = done
        if self.source.state != self.state:
            raise InputError(f"{self.source.name} was changed while it was read; start again")
        check_parts(wrong)

    def _worked(
        self, work: Callable[[Table], _R], placed: tuple[int, pl.DataFrame]
    ) -> tuple[int, _Names, _R] | LocatedError:
        """Where a part ends, its chains, and what is made of it; or what is wrong with its rows."""
        before, frame = placed
        try:
            with _located(before, frame.height):
                table = self.reading.table(frame)
                kept = None if table.is_empty else table.names
                # Names alone, not the table: several parts wait to be asked for.
                return before + frame.height, (table.all_read.names, kept), work(table)
        except LocatedError as error:
            return LocatedError(error.wrong.shifted(before))

    def _parts(self) -> Iterator[pl.DataFrame]:
        columns = self.given.columns
        text = [columns.value, *(() if columns.keep_all else columns.keep)]
        # A quarter of a part: what is read beyond its end waits in memory.
        frames = self.source.batches(self.given.read_columns, max(_PART // 4, 1), text=text)
        return whole_chains(frames, columns.by, _PART)


def _placed(frames: Iterator[pl.DataFrame]) -> Iterator[tuple[int, pl.DataFrame]]:
    """With how many rows come before each."""
    before = 0
    for frame in frames:
        yield before, frame
        before += frame.height


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


@dataclass(eq=False, repr=False)
class _Sorting:
    """Whether the chains of a file come in order, so that none comes twice."""

    source: Source
    last: pl.DataFrame | None = None  # the name of the last chain
    last_kept: pl.DataFrame | None = None  # and of the last that is not left out

    def check(self, names: pl.DataFrame, kept: pl.DataFrame | None) -> None:
        """InputError unless the chains of a part come after those before."""
        self.last = self._checked(self.last, names)
        if kept is not None:
            # Without the chains that are left out, the others may be whole numbers, and sort so.
            self.last_kept = self._checked(self.last_kept, kept)

    def _checked(self, last: pl.DataFrame | None, names: pl.DataFrame) -> pl.DataFrame:
        """The last of the names of chains. last: the name of the chain before them."""
        if last is not None and last.schema != names.schema:
            raise self._mixed(last, names)
        if last is not None and not increasing(pl.concat([last, names[:1]]).get_columns()):
            raise self._unsorted(names)
        return names[-1:]

    def _mixed(self, last: pl.DataFrame, names: pl.DataFrame) -> InputError:
        mixed = next(name for name in names.columns if last.schema[name] != names.schema[name])
        return InputError(
            f"{self.source.name} cannot be streamed: column {mixed!r} names some chains by"
            " whole numbers and some by other text; leave --stream out, or begin all names"
            " with a letter and sort by them"
        )

    def _unsorted(self, names: pl.DataFrame) -> InputError:
        return InputError(
            f"{self.source.name} cannot be streamed: it is not sorted by"
            f' {", ".join(names.columns)}. Sort it first: python -c "import polars;'
            f' {self.source.sorting(names.schema)}"'
        )
