"""What executors of Spark do to their rows: pack whole chains together, survey, decide."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.release.coins import Coins
from offrecord.tables.chains import Arranged, Columns
from offrecord.tables.decision import Decision, Rule
from offrecord.tables.guarding import never_spill
from offrecord.tables.optouts import FROM, TO, OptOuts
from offrecord.tables.problems import LocatedError, WrongRows
from offrecord.tables.survey import Survey, Surveyor
from offrecord.tables.table import Dropped, Reader, Table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Broadcast

_PACKED = 1 << 20  # rows that are packed at a time, and rows of a part, about
_FIBONACCI = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, as in Fibonacci hashing
LISTED = "offrecord listed"  #: marks the rows of a private list among those of the table
#: Its ranges, beside the table's own columns.
ENDS = {FROM: "offrecord from", TO: "offrecord to"}
_CHANGED = "the table was changed after it was surveyed; redact it again"
MARK = "offrecord: "  # how a message of ours begins among those of Spark


@dataclass(frozen=True)
class Packing:
    """Rows as Arrow IPC streams, one for each bucket that chains fall into. names: of the
    columns.
    """

    names: list[str]
    by: tuple[str, ...]
    buckets: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What becomes of the rows of a task."""
        held: list[pa.RecordBatch] = []
        count = 0
        for batch in batches:
            held.append(batch)
            count += batch.num_rows
            if count >= _PACKED:
                yield self._packed(held)
                held, count = [], 0
        if count:
            yield self._packed(held)

    def _packed(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        import pyarrow as pa

        table = pa.Table.from_batches(batches).rename_columns(self.names)
        bucket = (_hashed(table.select(self.by)) % np.uint64(self.buckets)).astype(np.int32)
        order = np.argsort(
            bucket.astype(np.int16) if self.buckets < 1 << 15 else bucket, kind="stable"
        )
        table = table.take(order).combine_chunks()
        found, starts = np.unique(bucket[order], return_index=True)
        rows = np.diff(np.append(starts, len(order)))
        contents = [
            _stream(table.slice(start, length))
            for start, length in zip(starts.tolist(), rows.tolist(), strict=True)
        ]
        arrays = [
            pa.array(found, pa.int32()),
            pa.array(rows, pa.int64()),
            pa.array(contents, pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(arrays, names=["bucket", "rows", "content"])


def _hashed(names: pa.Table) -> NDArray[np.uint64]:
    """A number for each row that depends on its chain's name alone, on every machine."""
    import pyarrow as pa

    hashes = np.zeros(names.num_rows, dtype=np.uint64)
    for column in names.itercolumns():
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            words = column.combine_chunks().dictionary_encode()
            known = [crc32((word or "").encode()) for word in words.dictionary.to_pylist()]
            values = np.array([*known, 0], dtype=np.uint64)[
                words.indices.fill_null(len(known)).to_numpy()
            ]
        else:
            small = pa.types.is_boolean(column.type) or pa.types.is_date32(column.type)
            narrow = pa.uint8() if pa.types.is_boolean(column.type) else pa.int32()
            whole = column.cast(narrow) if small else column
            values = whole.cast(pa.int64()).fill_null(0).to_numpy().astype(np.uint64)
        hashes = (hashes ^ values) * _FIBONACCI
        hashes ^= hashes >> np.uint64(32)  # the high bits, which are the mixed ones, down
    return hashes


@dataclass(frozen=True, eq=False)
class Shared:
    """What executors need besides the key.

    coins: without their key. rule: what decides, once that is known. form, days: as in OptOuts, of
    the whole private list. touched: every chain with a private record is left out. surveyed: the
    fingerprints of all parts. contents: what leaves of them.
    """

    version: str
    coins: Coins
    reader: Reader
    surveyor: Surveyor
    rule: Rule | None = None
    form: str = "records"
    days: bool = False
    touched: bool = False
    dry_run: bool = False
    surveyed: frozenset[str] = frozenset()
    contents: frozenset[int] = frozenset()


class _Work(ABC):
    """What an executor does to its buckets. It holds the key, so it shows nothing of itself, nor of
    an error in it.
    """

    def __init__(self, key: bytes, shared: Broadcast[Shared]) -> None:
        self._key, self._shared = key, shared

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        failure = ""
        try:
            yield from self._done(batches)
        except (GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except InputError as error:
            failure = str(error)
        except (
            BaseException
        ) as error:  # a panic of the table engine is not an Exception; what it says may quote cells
            failure = f"internal error ({type(error).__name__}) on an executor"
        if failure:  # out here nothing of what went wrong is attached to it
            raise RuntimeError(MARK + failure)

    @abstractmethod
    def _done(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What becomes of the rows of a task."""

    @cached_property
    def _common(self) -> Shared:
        """What the driver sent."""
        never_spill()
        shared: Shared = self._shared.value
        if shared.version != version("offrecord"):
            raise InputError(
                f"an executor has offrecord {version('offrecord')}, the driver {shared.version}:"
                " install the same"
            )
        return shared

    @property
    def _reader(self) -> Reader:
        return self._common.reader

    def _read(self, table: pa.Table) -> tuple[OptOuts | None, Table | None]:
        """Rows, and those of a private list among them; None if there are none of the one or the
        other.
        """
        import pyarrow as pa

        optouts = None
        if LISTED in table.column_names:
            optouts = self._optouts(table.filter(table[LISTED]))
            table = table.filter(pa.compute.invert(table[LISTED]))
            table = table.drop_columns([*ENDS.values()] if self._common.form == "ranges" else [])
        if not table.num_rows:
            return optouts, None
        read = self._reader.read(pl.DataFrame(table), optouts, touched=self._common.touched)
        return optouts, read.keyed(replace(self._common.coins, key=self._key))

    def _optouts(self, listed: pa.Table) -> OptOuts:
        """The rows of a private list."""
        columns, form = self._reader.columns, self._common.form
        ends = ENDS if form == "ranges" else {}
        keyed = [*columns.by, *(columns.ordering if form == "records" else [])]
        frame = pl.DataFrame(listed.select([*keyed, *ends.values()]))
        frame = frame.rename({there: here for here, there in ends.items()})
        return OptOuts.of(frame, columns, days=self._common.days)


class Surveyed(NamedTuple):
    """What a task knows about its parts: None if nothing is left of them; their fingerprints; what
    is left out, and what is wrong.
    """

    survey: Survey | None
    marks: list[str]
    dropped: Dropped
    wrong: list[WrongRows]

    def with_part(self, table: Table, surveyor: Surveyor, columns: Columns) -> Surveyed:
        """The same, with another part."""
        dropped = self.dropped + table.dropped
        if table.is_empty:
            return self._replace(dropped=dropped)
        survey = surveyor.survey(table)
        held = [] if self.survey is None else [self.survey]
        total = Survey.of_all([*held, survey], columns)
        return self._replace(survey=total, marks=[*self.marks, survey.fingerprint], dropped=dropped)


class Surveying(_Work):
    """Makes parts of buckets, surveys them, and passes their rows on, sorted.

    What is wrong with the table is an answer, not a failure: that would only be tried again.
    """

    def _done(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found, wrong = Surveyed(None, [], Dropped(), []), list[WrongRows]()
        try:
            for rows in self._tables(batches):
                table = None
                try:
                    table = self._looked_up(rows)
                except LocatedError as error:
                    wrong.append(error.wrong)
                if table is None:
                    continue
                found = found.with_part(table, self._common.surveyor, self._reader.columns)
                whole = table if table.whole is None else table.whole
                yield _row(survey=None, rows=_stream(_sorted(rows, whole.arranged)))
            yield _row(survey=pickle.dumps(found._replace(wrong=wrong)), rows=None)
        except InputError as error:
            yield _row(survey=pickle.dumps(str(error)), rows=None)

    def _looked_up(self, rows: pa.Table) -> Table | None:
        """Rows; InputError for opt-outs among them that name nothing."""
        optouts, table = self._read(rows)
        if optouts is not None:
            found = np.zeros(optouts.count, dtype=bool)
            if table is not None and optouts.count:
                found = table.private.found
            optouts.check_found(found, stepped=self._reader.step is not None)
        return table

    def _tables(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Buckets, enough of them together to make a batch."""
        import pyarrow as pa

        held: dict[int, list[pa.Buffer]] = defaultdict(list)
        rows: dict[int, int] = defaultdict(int)
        for batch in batches:
            for bucket, count, content in zip(*(batch.column(i) for i in range(3)), strict=True):
                held[bucket.as_py()].append(content.as_buffer())
                rows[bucket.as_py()] += count.as_py()
        together: list[pa.Buffer] = []
        size = 0
        for bucket in sorted(held):
            together += held.pop(bucket)
            size += rows[bucket]
            if size >= _PACKED or not held:
                yield pa.concat_tables(
                    [pa.ipc.open_stream(content).read_all() for content in together]
                )
                together, size = [], 0


class _Again(_Work):
    """Goes through parts that have been surveyed."""

    def _parts(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Table, pa.Schema]]:
        """Each with the types its columns came in."""
        import pyarrow as pa

        for batch in batches:
            for content in batch.column(0):
                rows = pa.ipc.open_stream(content.as_buffer()).read_all()
                table = self._read(rows)[1]
                if table is None:
                    raise InputError(_CHANGED)
                yield table, rows.schema

    def _surveyed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Table, pa.Schema]]:
        """Those of which something is left; InputError if they are not as they were."""
        for table, schema in self._parts(batches):
            if table.is_empty:
                continue
            if self._common.surveyor.survey(table).fingerprint not in self._common.surveyed:
                raise InputError(_CHANGED)
            yield table, schema

    @property
    def _rule(self) -> Rule:
        rule = self._common.rule
        assert rule is not None
        return rule


class Resurveying(_Again):
    """Surveys parts that are read in another way."""

    def _done(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = Surveyed(None, [], Dropped(), [])
        for table, _ in self._parts(batches):
            found = found.with_part(table, self._common.surveyor, self._reader.columns)
        yield _row(survey=pickle.dumps(found))


class Counting(_Again):
    """Counts what is decided, or for a dry run expected; and what leaves of each part."""

    def _done(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total, contents = Decision(), []
        wrong: list[WrongRows] = []
        for table, _ in self._surveyed(batches):
            try:
                decision = self._decided(table)
            except LocatedError as error:
                wrong.append(error.wrong)
                continue
            contents.append(decision.content)
            total += decision
        yield _row(decision=pickle.dumps((total, contents, wrong)))

    def _decided(self, table: Table) -> Decision:
        if self._common.dry_run:
            return self._rule.expect(table)
        return self._rule.decide(table)


class Releasing(_Again):
    """Gives the released rows."""

    def _done(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        value = self._reader.columns.value
        for table, schema in self._surveyed(batches):
            decision = self._rule.decide(table)
            if decision.content not in self._common.contents:  # the ledger knows of others
                raise InputError(_CHANGED)
            assert decision.frame is not None
            released = decision.frame.to_arrow(compat_level=pl.CompatLevel.oldest())
            fields = [
                field if field.name == value else schema.field(field.name)
                for field in released.schema
            ]
            # Spark takes columns as they were declared
            plain = [pa.field(one.name, one.type, nullable=True) for one in fields]
            yield from released.cast(pa.schema(plain)).to_batches(max_chunksize=1 << 16)


def _sorted(table: pa.Table, arranged: Arranged) -> pa.Table:
    """The rows as they were arranged, then keys of private records, so that the next pass need not
    sort again.
    """
    import pyarrow as pa

    rows = arranged.rows
    if rows is None:
        return table
    if LISTED not in table.column_names:
        return table.take(rows)
    keys = table.filter(table[LISTED])
    return pa.concat_tables([table.filter(pa.compute.invert(table[LISTED])).take(rows), keys])


def _stream(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _row(**cells: bytes | None) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict(
        {name: pa.array([cell], pa.binary()) for name, cell in cells.items()}
    )
