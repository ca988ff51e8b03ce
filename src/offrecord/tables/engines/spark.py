"""Tables spread over machines: the same job on a PySpark DataFrame, and the same release to the
last bit.

Spark brings whole chains into one partition and sorts it, so that a task does with its partition
what a stream does with a file. The driver sees what is found of the parts, which is small, and
never a row. The key travels inside a small pickled function, which Spark shows nowhere; all else
that a task needs is broadcast.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import polars as pl

from offrecord.errors import InputError
from offrecord.files import check_apart, check_writable, write_bytes
from offrecord.models.base import Label
from offrecord.tables.column_names import check_columns
from offrecord.tables.decision import Decision
from offrecord.tables.engines.engine import Decided, Engine, Made, Passage, Reading, whole_chains
from offrecord.tables.given import Given
from offrecord.tables.guarding import never_spill
from offrecord.tables.options import SparkOptions, takes
from offrecord.tables.problems import LocatedError, WrongRows, check_parts
from offrecord.tables.table import Table
from offrecord.tables.values import released_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Broadcast
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

_R = TypeVar("_R")
_Prints: TypeAlias = frozenset[tuple[str, int]]  # fingerprints of parts

#: What logs what Python sends to Spark.
_BRIDGE = ("py4j", "py4j.clientserver", "py4j.java_gateway")
_MARK = "offrecord: "  # how a message of ours begins among those of Spark
_CHANGED = "the table was changed after it was surveyed; redact it again"
#: Types that do not go through Arrow and back.
_UNKNOWN = ("interval", "variant", "void", "udt")
_ROWS = 1 << 16  # of a batch that Spark gets back


@dataclass(eq=False, repr=False)
class SparkRelease(Made):
    """A release as a DataFrame of Spark, which is evaluated when it is used: each time to the same
    rows.
    """

    frame: DataFrame | None
    _held: DataFrame

    @property
    def certificate(self) -> dict[str, Any]:
        """What it says about the release; `write` adds what it says about the files."""
        return self._certificate().to_dict()

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
        with _asked():
            self.frame.write.format(format).mode("overwrite" if force else "error").save(path)
            files = _digests(self.frame.sparkSession, path)
        said = self._certificate().of_output(format, self.frame.columns, files=files)
        write_bytes(proof, said.to_json(), force=force)

    def unpersist(self) -> None:
        """Let go of the rows that executors hold in memory; the frame stays, and reads its source
        again.
        """
        self._held.unpersist()


def _digests(spark: SparkSession, path: str) -> dict[str, str]:
    """The SHA-256 of each file in a folder, by name."""
    table = spark.read.format("binaryFile").load(path)
    rows = table.selectExpr("path", "sha2(content, 256) as digest").collect()
    return {Path(row.path).name: row.digest for row in sorted(rows)}


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
        outcome = passage.outcome
        frame = None if options.dry_run else _frame(df, passage, decided)
        entered = outcome.enter()
    return SparkRelease(outcome.summary(entered), outcome, entered, frame, engine.frame)


# ---- on the driver


def _check(df: DataFrame, given: Given) -> None:
    """InputError for what does not go through Spark."""
    if given.options.single_chain or given.columns.order is None:
        raise InputError(
            "Spark needs chains and an order column: by and order, not single_chain nor order='row'"
        )
    if not hasattr(df, "mapInArrow"):
        raise InputError(f"the table must be a PySpark DataFrame, got {type(df).__name__}")
    if not hasattr(df, "_jdf"):
        raise InputError("offrecord needs a classic Spark session, not Spark Connect")
    if not given.key_path.exists():  # a driver may be gone tomorrow, and with it the key
        raise InputError(
            f"there is no key {given.key_path}: make one with offrecord key new, and keep it where"
            " it lasts"
        )
    check_columns(given.read_columns, df.columns, "the table")
    _check_types(df, given)


def _check_types(df: DataFrame, given: Given) -> None:
    for name in given.read_columns:
        kind = _type(df, name)
        if any(one in kind for one in _UNKNOWN):
            raise InputError(f"column {name!r} holds {kind}, which does not go through Arrow")


def _type(df: DataFrame, name: str) -> str:
    return str(df.schema[name].dataType.simpleString())


def _quoted(name: str) -> str:
    """A column's name where Spark would take dots in it for fields."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(eq=False, repr=False)
class _Spark(Engine):
    """A table as partitions of whole chains, sorted, which executors hold in memory."""

    frame: DataFrame

    @classmethod
    @contextmanager
    def holding(cls, df: DataFrame, given: Given) -> Iterator[_Spark]:
        """A table; should anything go wrong, executors let go of it."""
        from pyspark.storagelevel import StorageLevel

        with _asked():
            reading = Reading.of(given, given.marking)
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
        check_parts([_wrong(one) for one in answers if isinstance(one, InputError)])
        yield from answers

    def through(
        self, work: Callable[[Table], Any], schema: Any, decided: _Prints | None = None
    ) -> DataFrame:
        """What tasks make of their parts, evaluated when it is used: answers, or where it is known
        which parts were decided, the rows that leave of them.
        """
        reading = replace(self.reading, coins=replace(self.reading.coins, key=b""))
        shared = _Shared(version("offrecord"), self.given.read_columns, reading, work, decided)
        with _asked():
            sent = self.frame.sparkSession.sparkContext.broadcast(shared)
            return self.frame.mapInArrow(_Task(self.reading.coins.key, sent), schema)


def _wrong(error: InputError) -> WrongRows:
    """The rows that an error is about, which come in any order; the error itself for no rows."""
    if not isinstance(error, LocatedError):
        raise error
    return error.wrong.unnumbered()


def _by_chain(df: DataFrame, given: Given) -> DataFrame:
    """The columns that are needed, with all of a chain in one partition, sorted."""
    from pyspark.sql import functions as sql

    count = given.options.partitions  # type: ignore[attr-defined] # of SparkOptions
    if count is None:
        count = 4 * df.sparkSession.sparkContext.defaultParallelism
    table, by = _renamed(df, given), [_short(i) for i in range(len(given.columns.by))]
    # Text as such: under a collation, names that differ would be sorted as one.
    texts = [name for name in by if _type(table, name).startswith("string")]
    table = table.withColumns({name: table[name].cast("string") for name in texts})
    # The token makes this partitioning unlike any other. Spark would take the partitions of a join
    # on the same columns for these, and split them where they are skewed, which would cut chains;
    # and it would take rows that it holds for another release of the same source for these.
    place = sql.xxhash64(sql.lit(token_hex(8)), *by)
    return table.repartition(count, place).sortWithinPartitions(*by, _short(len(by)))


def _short(number: int) -> str:
    """What tasks get a column as: mapInArrow takes no names with dots."""
    return f"c{number}"


def _renamed(df: DataFrame, given: Given) -> DataFrame:
    """The columns that are needed: those that name chains first, then the order column."""
    wanted = enumerate(given.read_columns)
    return df.selectExpr([f"{_quoted(name)} AS {_short(i)}" for i, name in wanted])


def _frame(df: DataFrame, passage: Passage[_Spark], decided: _Prints) -> DataFrame:
    """What leaves, in columns of the types that they came in but for the value."""
    from pyspark.sql.types import StructField, StructType

    columns = passage.plan.given.columns
    types = {name: df.schema[name].dataType for name in columns.released}
    types[columns.value] = _value_type(df, columns.value, passage.plan.labels)
    schema = StructType([StructField(name, kind) for name, kind in types.items()])
    return passage.engine.through(passage.work(), schema, decided)


def _value_type(df: DataFrame, value: str, labels: tuple[Label, ...]) -> DataType:
    """The type of the released values, by way of Arrow."""
    none = pl.DataFrame(df.select(df[_quoted(value)]).limit(0).toArrow())
    left = pl.DataFrame(schema={value: released_type(none.schema[value], labels)})
    arrow = left.to_arrow(compat_level=pl.CompatLevel.oldest())
    return df.sparkSession.createDataFrame(arrow).schema[value].dataType


@contextmanager
def _asked() -> Iterator[None]:
    """Whatever Spark throws becomes one line, and no log holds the key."""
    failure: InputError | None = None
    with _unlogged():
        try:
            yield
        except (InputError, KeyboardInterrupt, SystemExit):
            raise
        except Exception as error:
            failure = _failure(type(error).__name__, str(error))
    if failure is not None:  # out here nothing of what went wrong is attached to it
        raise failure


@contextmanager
def _unlogged() -> Iterator[None]:
    """The bridge to Spark does not log what it sends."""
    # Where a program logs everything, it would: the function that holds the key among it.
    loggers = [logging.getLogger(name) for name in _BRIDGE]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(max(logger.getEffectiveLevel(), logging.INFO))
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _failure(kind: str, said: str) -> InputError:
    """What is said of an error of Spark."""
    if "No module named 'offrecord'" in said:
        return InputError(
            "an executor cannot import offrecord: install it there, in the same version as here"
        )
    if _MARK in said:
        return InputError(said.split(_MARK, 1)[1].splitlines()[0])
    # Spark's own words may quote cells.
    return InputError(f"Spark could not do it ({kind}); its own messages say more")


# ---- on executors


def _counted(decision: Decision) -> Decision:
    """What the driver learns of a part: numbers, and no row."""
    return replace(decision, frame=None)


@dataclass(frozen=True, eq=False, repr=False)
class _Shared:
    """What tasks need besides the key."""

    version: str
    columns: list[str]  # of the rows, in their order
    reading: Reading  # without the key
    work: Callable[[Table], Any]
    decided: _Prints | None  # of all parts that may leave; None as long as nothing does


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
        columns = self._shared.columns
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
        first = next(batches, None)
        if first is None:
            return
        came = dict(zip(self._shared.columns, first.schema.types, strict=True))
        del came[self._shared.reading.reader.columns.value]
        for rows in self._parts(chain([first], batches)):
            part = self._worked(rows)
            if part is not None:
                yield from self._checked(part, came).to_batches(max_chunksize=_ROWS)

    def _checked(self, part: Decided, came: dict[str, pa.DataType]) -> pa.Table:
        """The rows of a part; InputError if it is none of those that were decided."""
        import pyarrow as pa

        decided, frame = self._shared.decided, part.decision.frame
        assert decided is not None
        assert frame is not None
        if part.fingerprint not in decided:  # the ledger knows of others
            raise InputError(_CHANGED)
        released = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        # nullable, as Spark takes columns as they were declared
        fields = [
            pa.field(one.name, came.get(one.name, one.type), nullable=True)
            for one in released.schema
        ]
        return released.cast(pa.schema(fields))
