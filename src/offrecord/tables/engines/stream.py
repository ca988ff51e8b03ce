"""Tables larger than memory: a file whose chains stand together goes through part by part, and is
never held whole.

Deciding takes two looks: the first surveys each part, the second decides and writes it. What leaves
is sorted by chain and order, as always; where chains stand together but in another order, redacted
rows (and nothing else) wait in a file without a name, in the folder of the output, until all are
there.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from offrecord.errors import InputError
from offrecord.files import check_outputs, check_writable
from offrecord.models.base import Integers
from offrecord.release.certificate import certified
from offrecord.tables.deciding import Tally
from offrecord.tables.formats import MAX_ROWS, Source, format_of, table_file
from offrecord.tables.frames import from_native
from offrecord.tables.job import Job
from offrecord.tables.parts import Part, Survey
from offrecord.tables.sorting import increasing
from offrecord.tables.summary import Summary
from offrecord.tables.writing import (
    ready,
    spreadsheet_warnings,
    write_pieces,
    write_release,
    write_table,
)

if TYPE_CHECKING:
    import polars as pl

_PART = 1 << 20  # rows of a part, about
#: Called with what is done and how many rows there are (None: unknown), for a function that is told
#: how many more are done.
Watch: TypeAlias = Callable[[str, "int | None"], AbstractContextManager[Callable[[int], None]]]


@contextmanager
def unwatched(what: str, rows: int | None) -> Iterator[Callable[[int], None]]:
    """Nobody looks."""
    yield lambda done: None


@dataclass(frozen=True)
class Streamed:
    """What became of a table that went through. certificate: where it is, None after a dry run."""

    summary: Summary
    certificate: Path | None


def redact_file(
    table: str | Path,
    output: str | Path | None,
    *,
    format: str | None = None,
    output_format: str | None = None,
    certificate: str | Path | None = None,
    explain: str | Path | None = None,
    explain_format: str | None = None,
    force: bool = False,
    max_rows: int = MAX_ROWS,
    watch: Watch = unwatched,
    **options: Any,
) -> Streamed:
    """Redact a table file of any size into another; memory holds a million rows at a time, or the
    longest chain.

    table: its chains stand together. output: None for a dry run. format, output_format,
    explain_format: instead of the endings of names. certificate: where it goes, instead of beside
    the output. explain: a file for the rule of each row. watch: is told how far it is. options:
    those of `offrecord.redact`, but for fit and single_chain.

    The same rows and key give the same bytes as `offrecord.redact` does in memory.
    """
    job = Job(**options)
    if job.given is None:
        raise InputError(
            "a table that is streamed needs a model: make one with offrecord fit, and give --model"
            " instead of --fit"
        )
    if job.single_chain:
        raise InputError("a single chain is decided as a whole: leave --stream away")
    if (output is None) != job.dry_run:
        raise InputError("give either an output or a dry run")
    path, kind, proof = None, "", None
    if output is not None:
        path, kind = Path(output), format_of(Path(output), output_format)
        proof = check_outputs(
            path, None if certificate is None else Path(certificate), job.key_path, force=force
        )
    if explain is not None:
        check_writable(explain, force=force)
        format_of(Path(explain), explain_format)
    looks = _Looks(job, table_file(table, format), max_rows, watch)
    plan = job.plan(
        looks.reading, looks.survey(), 0 if looks.listed is None else looks.listed.height
    )
    tally, changed = Tally(), Counter[str]()

    def decided() -> Iterator[pl.DataFrame]:
        nonlocal tally
        again: list[Survey] = []
        for part in looks.parts("redacting"):
            again = [Survey.of_all([*again, looks.reading.survey(part)], job.columns)]
            with _located(tally.rows, len(part.arranged.chains.codes)):
                frame, mine = plan.deciding.decide(part)
            frame, spreadsheet = ready(frame, job.columns.keep, kind)
            tally += mine
            changed.update(spreadsheet)
            yield frame
        if again[0].fingerprint != plan.survey.fingerprint:
            raise InputError(f"{table} was changed while it was read; start again")

    def enter() -> None:
        plan.judge(tally)
        plan.enter(tally)

    if path is None or proof is None:
        for part in looks.parts("expecting"):
            with _located(tally.rows, len(part.arranged.chains.codes)):
                tally += plan.deciding.expect(part)
        plan.judge(tally)
    else:
        write_release(
            lambda file: write_pieces(looks.in_order(decided(), file), file, kind),
            path,
            proof,
            lambda digest: certified(plan.certificate(), kind, job.columns.released, digest),
            enter,
            force=force,
        )
    warnings = spreadsheet_warnings(changed)
    if explain is not None:
        file = Path(explain)
        rules = (plan.deciding.explain(part) for part in looks.parts("explaining"))
        warnings += write_table(
            looks.in_order(rules, file), file, format_of(file, explain_format), force=force
        )
    summary = plan.summary(tally)
    return Streamed(replace(summary, warnings=(*summary.warnings, *warnings)), proof)


@contextmanager
def _located(done: int, rows: int) -> Iterator[None]:
    """An error about a part says which rows it holds: they are counted by themselves."""
    try:
        yield
    except InputError as error:
        raise InputError(
            f"{error} (in rows {done + 1:,} to {done + rows:,}, read by themselves)"
        ) from None


class _Looks:
    """Looks at a table file, part by part, each time the same parts."""

    def __init__(self, job: Job, source: Source, max_rows: int, watch: Watch) -> None:
        assert job.given is not None
        self.job, self.source, self.max_rows, self.watch = job, source, max_rows, watch
        self.reading = job.reading(job.given)
        self.listed = None if job.private_list is None else from_native(job.private_list)
        self.rows = source.rows()
        self.seen = self._state()
        self.order: _Order | None = None  # where chains do not stand in order

    def _state(self) -> tuple[int, ...]:
        found = os.stat(self.source.name)
        return found.st_ino, found.st_size, found.st_mtime_ns

    def parts(self, what: str) -> Iterator[Part]:
        """The parts of the table."""
        columns = self.job.columns
        wanted = [*columns.released, *([] if self.job.private is None else [self.job.private])]
        done = 0
        with self.watch(what, self.rows) as tell:
            text = [columns.value, *(() if columns.keep_all else columns.keep)]
            batches = self.source.batches(
                wanted, max(_PART // 4, 1), text=text, max_rows=self.max_rows
            )
            for frame in whole_chains(batches, columns.by):
                with _located(done, frame.height):
                    part = self.reading.part(frame, self.listed)
                yield part
                done += frame.height
                tell(frame.height)
        if self._state() != self.seen:
            raise InputError(f"{self.source.name} was changed while it was read; start again")

    def survey(self) -> Survey:
        """The survey of the table; InputError unless its chains stand together."""
        columns = self.job.columns
        last: pl.DataFrame | None = None
        ascending = True

        import polars as pl

        def surveys(
            names: list[pl.DataFrame], lengths: list[Integers], *, keep: bool
        ) -> Iterator[Survey]:
            nonlocal last, ascending
            for part in self.parts("reading"):
                starts = part.arranged.chains.starts
                chains = part.arranged.names[starts[:-1]]
                if keep:
                    names.append(chains)
                    lengths.append(np.diff(starts))
                if last is not None:
                    # a column of text may seem to be one of numbers in one part and not in another
                    ascending &= last.schema == chains.schema and increasing(
                        pl.concat([last, chains[:1]]).get_columns()
                    )
                last = chains[-1:]
                yield self.reading.survey(part)

        survey = Survey.of_all(surveys([], [], keep=False), columns)
        if not ascending:  # so a chain may come twice: once more, with all their names
            names: list[pl.DataFrame] = []
            lengths: list[Integers] = []
            survey = Survey.of_all(surveys(names, lengths, keep=True), columns)
            self.order = _Order(np.concatenate(lengths), _ranks(names, self.source))
        self.rows = survey.rows
        return survey

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
                rank, group = (
                    " ".join([*piece.columns, "rank"]),
                    " ".join([*piece.columns, "group"]),
                )  # no column's own
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
        last = (
            len(changes) - int(np.argmax(changes[::-1])) if changes.any() else 0
        )  # of `joined`: where its last chain begins
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
        file = Path(source.name)
        untyped = ", infer_schema=False" if source.kind == "csv" else ""
        scan = f"scan_{source.kind}({str(file)!r}{untyped})"
        there = str(file.with_stem(f"{file.stem}-sorted"))
        raise InputError(
            f"{file} cannot be streamed: the rows of {twice} chains do not stand together. Sort it"
            " first:"
            f' python -c "import polars; polars.{scan}.sort({by!r},'
            f' maintain_order=True).sink_{source.kind}({there!r})"'
        )
    ranks = np.empty(chains.height, dtype=np.int64)
    ranks[chains.select(pl.arg_sort_by(by)).to_series().to_numpy()] = np.arange(chains.height)
    return ranks
