"""Tables spread over machines: the same job on a PySpark DataFrame, and the same release to the
last bit.

Spark brings whole chains into one partition and sorts it, so that a task does with its partition
what a stream does with a file. The driver sees what is found of the parts, which is small, and
never a row. The key travels inside a small pickled function, which Spark shows nowhere; all else
that a task needs is broadcast.
"""

from __future__ import annotations

import json
import logging
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from offrecord.errors import InputError
from offrecord.files import check_apart, check_writable, write_text
from offrecord.tables.column_names import check_columns
from offrecord.tables.decision import Decision
from offrecord.tables.engines.engine import Engine, Made, Passage, Reading, whole_chains
from offrecord.tables.given import Given
from offrecord.tables.guarding import never_spill
from offrecord.tables.options import SparkOptions, takes
from offrecord.tables.outcome import Outcome
from offrecord.tables.problems import LocatedError, check_parts
from offrecord.tables.summary import Summary
from offrecord.tables.table import Table
from offrecord.tables.values import released_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Broadcast
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_R = TypeVar("_R")

_MARK = "offrecord: "  # how a message of ours begins among those of Spark
_CHANGED = "the table was changed after it was surveyed; redact it again"
#: Types that do not go through Arrow and back.
_UNKNOWN = ("interval", "variant", "void", "udt")
_ROWS = 1 << 16  # of a batch that Spark gets back


@dataclass(frozen=True, eq=False, repr=False)
class SparkRelease(Made):
    """A release as a DataFrame of Spark, which is evaluated when it is used: each time to the same
    rows.

    certificate: what it says about the release; `write` adds what it says about the files.
    """

    frame: DataFrame | None
    certificate: dict[str, Any]
    summary: Summary
    outcome: Outcome
    _held: DataFrame

    def write(
        self, path: str, *, certificate: str | Path, format: str = "parquet", force: bool = False
    ) -> None:
        """Write the release as a folder of files, then its certificate, with the SHA-256 of each of
        them, to a local file.
        """
        if self.frame is None:
            raise InputError("a dry run has nothing to write")
        proof = check_writable(Path(certificate), force=force)
        check_apart(self.outcome.plan.given.key.file, proof)
        spark = self.frame.sparkSession
        with _asked():
            self.frame.write.format(format).mode("overwrite" if force else "error").save(path)
            files = (
                spark.read.format("binaryFile")
                .load(path)
                .selectExpr("path", "sha2(content, 256) as digest")
                .collect()
            )
        output = {
            "format": format,
            "files": {row.path.rsplit("/", 1)[-1]: row.digest for row in sorted(files)},
            "rows": self.outcome.plan.survey.rows,
            "columns": self.frame.columns,
        }
        content = json.dumps(
            {**self.certificate, "output": output}, ensure_ascii=False, allow_nan=False, indent=1
        )
        write_text(Path(certificate), content + "\n", force=force)

    def unpersist(self) -> None:
        """Let go of the rows that executors hold in memory; the frame stays, and reads its source
        again.
        """
        self._held.unpersist()


@takes(SparkOptions)
def redact(df: DataFrame, options: SparkOptions) -> SparkRelease:
    """Redact a PySpark DataFrame so that no private record can be inferred beyond a likelihood
    ratio of e^epsilon.

    Takes no fit, single_chain and order="row"; private_list may be a PySpark DataFrame too, which
    the driver collects. The key, which must exist, and the ledger stay on the driver's machine.

    Raises InputError for wrong input, before anything is released.
    """
    started, given = time.monotonic(), Given.of(options)
    given.check_named()
    if given.model is None:
        raise InputError(
            "Spark needs a model: make one with offrecord.fit from reference data, and give it"
            " instead of fit=True"
        )
    _check(df, given)
    with _Spark.holding(df, given) as engine:
        passage = Passage.planned(engine, given.model, started)
        decided = frozenset(one.fingerprint for one in passage.parts(_counted))
        outcome, frame = Outcome.of(passage.plan, passage.total), None
        if not options.dry_run:
            schema = _schema(df, given, passage.plan.labels)
            frame = passage.engine.through(passage.work(), schema, decided)
        entered = outcome.enter()
    summary, certificate = outcome.summary(entered), outcome.certificate(entered).to_dict()
    return SparkRelease(frame, certificate, summary, outcome, engine.frame)


# ---- on the driver


def _check(df: DataFrame, given: Given) -> None:
    """InputError for what does not go through Spark."""
    if given.options.single_chain or given.columns.order is None:
        raise InputError(
            "Spark needs chains and an order column: by and order, not single_chain nor order='row'"
        )
    if not hasattr(df, "mapInArrow"):
        raise InputError(f"the table must be a PySpark DataFrame, got {type(df).__name__}")
    try:
        _ = df.sparkSession.sparkContext
    except Exception:
        raise InputError("offrecord needs a classic Spark session, not Spark Connect") from None
    if not given.key_path.exists():  # a driver may be gone tomorrow, and with it the key
        raise InputError(
            f"there is no key {given.key_path}: make one with offrecord key new, and keep it where"
            " it lasts"
        )
    wanted = _wanted(given)
    check_columns(wanted, df.columns, "the table")
    for name in wanted:
        kind = df.schema[name].dataType.simpleString()
        if any(one in kind for one in _UNKNOWN):
            raise InputError(f"column {name!r} holds {kind}, which does not go through Arrow")


def _wanted(given: Given) -> list[str]:
    """The columns that are needed."""
    private = given.options.private
    return [*given.columns.released, *([private] if isinstance(private, str) else [])]


@dataclass(eq=False, repr=False)
class _Spark(Engine):
    """A table as partitions of whole chains, sorted, which executors hold in memory."""

    frame: DataFrame

    @classmethod
    @contextmanager
    def holding(cls, df: DataFrame, given: Given) -> Iterator[_Spark]:
        """A table; should anything go wrong, executors let go of it."""
        from pyspark.storagelevel import StorageLevel

        private = given.options.private if isinstance(given.options.private, str) else None
        with _asked():
            reading = Reading.of(given, private)
            frame = _by_chain(df, given).persist(StorageLevel.MEMORY_ONLY)
        try:
            yield cls(given, reading, frame)
        except LocatedError as error:
            frame.unpersist()
            # those of a private list, whose rows come in any order
            check_parts([error.wrong.unnumbered()])
        except BaseException:
            frame.unpersist()
            raise

    def each(self, what: str, work: Callable[[Table], _R]) -> Iterator[_R]:
        with _asked():
            rows = self.through(work, "found binary").collect()
        answers = [pickle.loads(row.found) for row in rows]
        wrong = []
        for error in (one for one in answers if isinstance(one, InputError)):
            if not isinstance(error, LocatedError):
                raise error
            wrong.append(error.wrong.unnumbered())
        check_parts(wrong)
        yield from answers

    def through(
        self,
        work: Callable[[Table], Any],
        schema: Any,
        decided: frozenset[tuple[str, int]] | None = None,
    ) -> DataFrame:
        """What tasks make of their parts, evaluated when it is used: answers, or where it is known
        which parts were decided, the rows that leave of them.
        """
        reading = replace(self.reading, coins=replace(self.reading.coins, key=b""))
        columns = tuple(_wanted(self.given))
        shared = _Shared(version("offrecord"), columns, reading, work, decided)
        with _asked():
            sent = self.frame.sparkSession.sparkContext.broadcast(shared)
            return self.frame.mapInArrow(_Task(self.reading.coins.key, sent), schema)


def _by_chain(df: DataFrame, given: Given) -> DataFrame:
    """The columns that are needed, with all of a chain in one partition, sorted."""
    from pyspark.sql import functions as sql

    count = given.options.partitions  # type: ignore[attr-defined] # of SparkOptions
    if count is None:
        count = 4 * df.sparkSession.sparkContext.defaultParallelism
    wanted = _wanted(given)
    # mapInArrow takes no names with dots.
    names = [f"c{i}" for i in range(len(wanted))]
    columns = [
        sql.col("`" + name.replace("`", "``") + "`").alias(short)
        for name, short in zip(wanted, names, strict=True)
    ]
    table = df.select(columns)
    by = names[: len(given.columns.by)]
    # Text as such: under a collation, names that differ would be sorted as one.
    texts = [name for name in by if table.schema[name].dataType.simpleString().startswith("string")]
    table = table.withColumns({name: table[name].cast("string") for name in texts})
    # The token makes this partitioning unlike any other. Spark would take the partitions of a join
    # on the same columns for these, and split them where they are skewed, which would cut chains;
    # and it would take rows that it holds for another release of the same source for these.
    place = sql.xxhash64(sql.lit(token_hex(8)), *by)
    return table.repartition(count, place).sortWithinPartitions(*by, names[len(by)])


def _schema(df: DataFrame, given: Given, labels: tuple[Any, ...]) -> StructType:
    """The schema of what leaves."""
    from pyspark.sql.types import StructField, StructType

    columns, value = given.columns, given.columns.value
    wanted = df.select([df["`" + value.replace("`", "``") + "`"]]).limit(0)
    kind = released_type(pl.DataFrame(wanted.toArrow()).schema[value], labels)
    empty = pl.DataFrame(schema={value: kind}).to_arrow(compat_level=pl.CompatLevel.oldest())
    types = {name: df.schema[name].dataType for name in columns.released}
    types[value] = df.sparkSession.createDataFrame(empty).schema[value].dataType
    return StructType([StructField(name, kind) for name, kind in types.items()])


@contextmanager
def _asked() -> Iterator[None]:
    """Whatever Spark throws becomes one line, and where a program logs everything, the bridge to
    Spark does not log what it sends, the key among it.
    """
    names = ("py4j", "py4j.clientserver", "py4j.java_gateway")
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(max(logger.getEffectiveLevel(), logging.INFO))
    failure: InputError | None = None
    try:
        yield
    except (InputError, KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:
        failure = _failure(type(error).__name__, str(error))
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
    if failure is not None:  # out here nothing of what went wrong is attached to it
        raise failure


def _failure(kind: str, said: str) -> InputError:
    """What is said of an error of Spark."""
    if "No module named 'offrecord'" in said:
        return InputError(
            "an executor cannot import offrecord: install it there, in the same version as here"
        )
    if _MARK in said:
        return InputError(said.split(_MARK, 1)[1].splitlines()[0])
    return InputError(f"Spark could not do it ({kind}); its own messages say more")


# ---- on executors


def _counted(decision: Decision) -> tuple[Decision, Counter[str]]:
    """What the driver learns of a part: numbers, and no row."""
    return replace(decision, frame=None), Counter()


@dataclass(frozen=True, eq=False, repr=False)
class _Shared:
    """What tasks need besides the key.

    columns: of the rows, in their order. reading: without the key. decided: fingerprints of all
    parts that may leave; None as long as nothing does.
    """

    version: str
    columns: tuple[str, ...]
    reading: Reading
    work: Callable[[Table], Any]
    decided: frozenset[tuple[str, int]] | None


class _Task:
    """What an executor does with a partition. It holds the key, so it shows nothing of itself, nor
    of an error in it.
    """

    def __init__(self, key: bytes, shared: Broadcast[_Shared]) -> None:
        self._key, self._sent = key, shared

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        failure = ""
        try:
            counts = self._shared.decided is None
            yield from self._answers(batches) if counts else self._released(batches)
        except (GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except InputError as error:
            failure = str(error)
        # A panic of the table engine is not an Exception; what it says may quote cells.
        except BaseException as error:
            failure = f"internal error ({type(error).__name__}) on an executor"
        if failure:  # out here nothing of what went wrong is attached to it
            raise RuntimeError(_MARK + failure)

    @cached_property
    def _shared(self) -> _Shared:
        """What the driver sent."""
        never_spill()
        shared: _Shared = self._sent.value
        if shared.version != version("offrecord"):
            raise InputError(
                f"an executor has offrecord {version('offrecord')}, the driver {shared.version}:"
                " install the same"
            )
        return shared

    def _parts(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
        columns = [*self._shared.columns]
        frames = (pl.DataFrame(batch.rename_columns(columns)) for batch in batches)
        return whole_chains(frames, self._shared.reading.reader.columns.by)

    def _worked(self, rows: pl.DataFrame) -> Any:
        reading = self._shared.reading
        keyed = replace(reading, coins=replace(reading.coins, key=self._key))
        return self._shared.work(keyed.table(rows))

    def _answers(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What is found of each part, for the driver. What is wrong with the table is an answer,
        not a failure: that would only be tried again.
        """
        import pyarrow as pa

        for rows in self._parts(batches):
            try:
                found = self._worked(rows)
            except InputError as error:
                found = error
            answer = pa.array([pickle.dumps(found)], pa.binary())
            yield pa.RecordBatch.from_arrays([answer], names=["found"])

    def _released(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that leave, with the types that their columns came in."""
        import pyarrow as pa

        first = next(batches, None)
        if first is None:
            return
        value = self._shared.reading.reader.columns.value
        decided = self._shared.decided
        assert decided is not None
        came = dict(zip(self._shared.columns, first.schema.types, strict=True))
        for rows in self._parts(chain([first], batches)):
            part = self._worked(rows)
            if part is None:
                continue
            if part.fingerprint not in decided:  # the ledger knows of others
                raise InputError(_CHANGED)
            released = part.decision.frame.to_arrow(compat_level=pl.CompatLevel.oldest())
            fields = [
                # nullable, as Spark takes columns as they were declared
                pa.field(one.name, one.type if one.name == value else came[one.name], nullable=True)
                for one in released.schema
            ]
            yield from released.cast(pa.schema(fields)).to_batches(max_chunksize=_ROWS)
