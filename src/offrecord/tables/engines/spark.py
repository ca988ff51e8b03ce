"""Tables spread over machines: the same job on a PySpark DataFrame, and the same release to the
last bit.

Rows are packed into buckets by a hash of their chain's name, so that whole chains meet in one task.
One pass surveys the buckets; the driver sees the surveys, which are small, and never a row.
Another pass decides them; of released rows the driver sees a sample then, if columns are kept. The
key travels inside a small pickled function, which Spark shows nowhere; all else that executors need
is broadcast.
"""

from __future__ import annotations

import json
import logging
import operator
import pickle
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from offrecord.errors import InputError, advise
from offrecord.files import check_apart, check_writable, write_text
from offrecord.tables.chains import Columns
from offrecord.tables.choosing import WHOLE, choose
from offrecord.tables.column_names import check_columns
from offrecord.tables.decision import Decision, Rule
from offrecord.tables.engines.spark_work import (
    ENDS,
    LISTED,
    MARK,
    Counting,
    Packing,
    Releasing,
    Resurveying,
    Shared,
    Surveyed,
    Surveying,
)
from offrecord.tables.frames import Native, listed_keys
from offrecord.tables.given import Given
from offrecord.tables.options import SparkOptions, takes
from offrecord.tables.optouts import TO, are_days, form_of
from offrecord.tables.outcome import Outcome
from offrecord.tables.plan import Plan, surveyor
from offrecord.tables.problems import LIST, Check, LocatedError, RowNames, WrongRows, check_parts
from offrecord.tables.summary import Summary
from offrecord.tables.survey import Survey, Surveyor
from offrecord.tables.table import Dropped, nothing_left
from offrecord.tables.values import released_type

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

# at most, and eight for each partition, unless there are more partitions: few rows in a bucket
# cost more
_BUCKETS = 4096
_NAMES = (
    "string",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
)
_ORDERS = tuple(name for name in _NAMES if name != "boolean")
_NUMBERS = ("float", "double", "decimal")
_VALUES = (*_NAMES, *_NUMBERS)
_MARKS = ("boolean", "tinyint", "smallint", "int", "bigint", "string")
_UNKEPT = ("interval", "variant", "void", "udt")


@dataclass(frozen=True, eq=False, repr=False)
class SparkRelease:
    """A release as a DataFrame of Spark, which is evaluated when it is used: each time to the same
    rows.

    certificate: what it says about the release; `write` adds what it says about the files.
    """

    frame: DataFrame | None
    certificate: dict[str, Any]
    summary: Summary
    outcome: Outcome
    _held: DataFrame

    def __repr__(self) -> str:
        return f"<SparkRelease {self.summary.short}>"

    def __str__(self) -> str:
        return self.summary.figures()

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
        with _spark_errors():
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

    Takes no fit, single_chain and order="row"; private_list may be a PySpark DataFrame too. The
    key, which must exist, and the ledger stay on the driver's machine.

    Raises InputError for wrong input, before anything is released.
    """
    started, given = time.monotonic(), Given.of(options)
    given.check_named()
    model = given.model
    if model is None:
        raise InputError(
            "Spark needs a model: make one with offrecord.fit from reference data, and give it"
            " instead of fit=True"
        )
    _check(df, given)
    table, listed = _table(df, given)
    private = options.private if isinstance(options.private, str) else None
    shared = Shared(
        version("offrecord"),
        given.coins,
        given.reader(private),
        surveyor(given, model),
        form=listed.form,
        days=listed.days,
    )
    with _Held.surveying(table, shared, options.partitions) as read:
        held, survey = read, read.survey(given.columns)
        survey.check_lengths(model)
        given.check_private(survey.private + held.dropped.private)
        chosen = choose(given, model, survey)
        if chosen.kind == WHOLE and not options.keep_rows:
            held = read.without_touched(surveyor(given, None))
            survey = held.survey(given.columns)
        labels = model.promise.labels
        plan = Plan.of(given, model, chosen, survey, held.dropped, labels, started)
        decision = held.decided(plan.rule, dry_run=options.dry_run)
        outcome = Outcome.of(plan, decision)
        frame = None
        if not options.dry_run:
            frame = held.released(plan.rule, _schema(df, given.columns, labels))
        outcome.advise()
        entered = outcome.enter()
        advise(() if entered is None else entered.warnings)
    summary = outcome.summary(entered)
    return SparkRelease(frame, outcome.certificate(entered).to_dict(), summary, outcome, held.frame)


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


class _Listed(NamedTuple):
    """A private list: how many rows it has, and what they are, as in OptOuts."""

    rows: int = 0
    form: str = "records"
    days: bool = False


def _table(df: DataFrame, given: Given) -> tuple[DataFrame, _Listed]:
    """The rows that are needed, those of a private list among them, and what these are."""
    from pyspark.sql import functions as sql

    table, listed = _checked(df, given), given.options.private_list
    if listed is None:
        return table, _Listed()
    keys, common = _keys(listed, df, given.columns)
    flagged = table.withColumn(LISTED, sql.lit(False))
    marked = keys.withColumn(LISTED, sql.lit(True))
    return flagged.unionByName(marked, allowMissingColumns=True), common


@dataclass(frozen=True, eq=False, repr=False)
class _Held:
    """A table in buckets of whole chains that executors hold in memory, surveyed.

    frame: rows and surveys. key: travels inside the functions that are sent; all else that they
    need is broadcast. found: what each task has found out.
    """

    frame: DataFrame
    key: bytes
    shared: Shared
    found: list[Surveyed]
    contents: set[int] = field(default_factory=set)  # what leaves of each batch

    @classmethod
    @contextmanager
    def surveying(cls, table: DataFrame, common: Shared, partitions: int | None) -> Iterator[_Held]:
        """Survey a table; should anything go wrong then, executors let go of it."""
        from pyspark.storagelevel import StorageLevel

        key, columns = common.coins.key, common.reader.columns
        common = replace(common, coins=replace(common.coins, key=b""))
        shared = _broadcast(table, common)
        count = 4 * table.sparkSession.sparkContext.defaultParallelism
        count = count if partitions is None else partitions
        with _spark_errors(), _unlogged():
            # it takes no names with dots
            plain = table.toDF(*(f"c{i}" for i in range(len(table.columns))))
            buckets = max(min(8 * count, _BUCKETS), count)
            packing = Packing(table.columns, columns.by, buckets)
            packed = plain.mapInArrow(packing, "bucket int, rows long, content binary")
            # The function before it keeps Spark from taking this for a repartition that the table
            # has had already.
            frame = packed.repartition(count, "bucket").mapInArrow(
                Surveying(key, shared), "survey binary, rows binary"
            )
            frame = frame.persist(StorageLevel.MEMORY_ONLY)
            rows = frame.select("survey").where("survey is not null").collect()
        try:
            yield cls(frame, key, common, _answers(rows))
        except BaseException:
            frame.unpersist()
            raise

    def without_touched(self, surveyor: Surveyor) -> _Held:
        """The same table without any chain that has a private record."""
        common = replace(self.shared, touched=True, surveyor=surveyor)
        with _spark_errors(), _unlogged():
            work = Resurveying(self.key, _broadcast(self.frame, common))
            rows = self._rows.mapInArrow(work, "survey binary").collect()
        return replace(self, shared=common, found=_answers(rows))

    def survey(self, columns: Columns) -> Survey:
        """Of the whole table; InputError if nothing is left of it."""
        surveys = [task.survey for task in self.found if task.survey is not None]
        if not surveys and self.dropped.chains:
            raise nothing_left()
        return Survey.of_all(surveys, columns)

    @property
    def dropped(self) -> Dropped:
        """What is left out of it."""
        return sum((task.dropped for task in self.found), Dropped())

    def decided(self, rule: Rule, *, dry_run: bool) -> Decision:
        """What is decided, or for a dry run expected."""
        with _spark_errors(), _unlogged():
            work = Counting(self.key, _broadcast(self.frame, self._shared(rule, dry_run=dry_run)))
            counted = self._rows.mapInArrow(work, "decision binary").collect()
        decisions: list[tuple[Decision, list[int], list[WrongRows]]]
        decisions = [pickle.loads(row.decision) for row in counted]
        _check_wrong(one for _, _, wrong in decisions for one in wrong)
        self.contents.update(one for _, each, _ in decisions for one in each)
        return sum((one for one, _, _ in decisions), Decision())

    def released(self, rule: Rule, schema: Any) -> DataFrame:
        """The released rows, evaluated when they are used."""
        with _spark_errors(), _unlogged():
            shared = replace(self._shared(rule), contents=frozenset(self.contents))
            work = Releasing(self.key, _broadcast(self.frame, shared))
            return self._rows.mapInArrow(work, schema)

    @property
    def _rows(self) -> DataFrame:
        return self.frame.select("rows").where("rows is not null")

    def _shared(self, rule: Rule, *, dry_run: bool = False) -> Shared:
        surveyed = frozenset(mark for task in self.found for mark in task.marks)
        return replace(self.shared, rule=rule, dry_run=dry_run, surveyed=surveyed)


def _answers(rows: Iterable[Any]) -> list[Surveyed]:
    """What tasks say of their parts; InputError for what is wrong with them."""
    found = [pickle.loads(row.survey) for row in rows]
    for error in (one for one in found if isinstance(one, str)):
        raise InputError(error)
    _check_wrong(one for task in found for one in task.wrong)
    return found


def _check_wrong(wrong: Iterable[WrongRows]) -> None:
    """InputError for what tasks have found to be wrong; rows have no numbers there."""
    check_parts([one.unnumbered() for one in wrong])


def _broadcast(df: DataFrame, shared: Shared) -> Broadcast[Shared]:
    return df.sparkSession.sparkContext.broadcast(shared)


def _column(name: str) -> Any:
    from pyspark.sql import functions as sql

    return sql.col("`" + name.replace("`", "``") + "`")


def _kind(kind: DataType) -> str:
    """What a type of Spark is called, without its parameters."""
    return str(kind.simpleString()).split("(")[0].split("<")[0].split(" ")[0]


def _checked(df: DataFrame, given: Given) -> DataFrame:
    """The columns that are needed; InputError for one that is not there, or is of a type that Spark
    and we do not share.
    """
    columns = given.columns
    wanted = [
        *columns.released,
        *([] if given.options.private is None else [given.options.private]),
    ]
    check_columns(wanted, df.columns, "the table")
    allowed: dict[str, tuple[str, ...]] = dict.fromkeys(columns.by, _NAMES)
    allowed |= {str(columns.order): _ORDERS, columns.value: _VALUES}
    allowed |= {} if given.options.private is None else {given.options.private: _MARKS}
    for name in wanted:
        kind = _kind(df.schema[name].dataType)
        if name in allowed and kind not in allowed[name]:
            raise InputError(
                f"column {name!r} holds {kind}; it must hold one of {', '.join(allowed[name])}"
            )
        if any(one in df.schema[name].dataType.simpleString() for one in _UNKEPT):
            raise InputError(f"column {name!r} cannot be kept: it holds {kind}")
    return df.select(*map(_column, wanted))


def _keys(listed: Native, df: DataFrame, columns: Columns) -> tuple[DataFrame, _Listed]:
    """The rows of a private list with the types that the table has, and what they are."""
    if not hasattr(listed, "mapInArrow"):
        read = listed_keys(listed)
        assert read is not None
        listed = as_spark(df.sparkSession, read)
    form, order = form_of(listed.columns, columns), str(columns.order)
    keyed = [*columns.by, *([order] if form == "records" else [])]
    ends = ENDS if form == "ranges" else {}
    chosen = []
    for name, there in [*zip(keyed, keyed, strict=True), *ends.items()]:
        kind = df.schema[order if name in ends else name].dataType
        here, given = _kind(kind), _kind(listed.schema[name].dataType)
        is_whole = {here, given} <= {"tinyint", "smallint", "int", "bigint"}
        is_open = name in ends and given == "void"  # every range ends where its chain does
        if here != given and not is_whole and not is_open:
            raise InputError(
                f"column {name!r} holds {here} in the table but {given} in the private list; give"
                " both the same type"
            )
        # a number too large for the table names no record of it, but may end a range
        cast = "bigint" if is_whole and name in ends else kind
        chosen.append(_column(name).try_cast(cast).alias(there))
    keys = listed.select(*chosen)
    empty = reduce(operator.or_, (_column(name).isNull() for name in keyed))
    with _spark_errors():
        count = keys.count()
        lost = pl.DataFrame(keys.where(empty).select(*map(_column, keyed)).toArrow())
        days = bool(ends) and are_days(pl.DataFrame(listed.select(_column(TO)).toArrow())[TO])
    if lost.height:
        said = (
            "the private list must name something of the table in every row, but not in ",
            "row",
            "",
        )
        where = RowNames(lost, columns.by, keyed[len(columns.by) :], where=LIST)
        error = where.error(np.arange(lost.height), Check.LIST_FILLED, said)
        raise LocatedError(error.wrong.unnumbered())
    return keys, _Listed(count, form, days)


def as_spark(session: SparkSession, frame: pl.DataFrame) -> DataFrame:
    """A frame of polars as one of Spark; times without a zone stay such, where Spark would give
    them its own.
    """
    bare = [
        name
        for name, kind in frame.schema.items()
        if isinstance(kind, pl.Datetime) and kind.time_zone is None
    ]
    plain = frame.with_columns(pl.col(bare).dt.strftime("%Y-%m-%d %H:%M:%S%.6f"))
    found = session.createDataFrame(plain.to_arrow(compat_level=pl.CompatLevel.oldest()))
    return (
        found.withColumns({name: _column(name).cast("timestamp_ntz") for name in bare})
        if bare
        else found
    )


def _schema(df: DataFrame, columns: Columns, labels: Sequence[Any]) -> Any:
    """The schema of what leaves."""
    from pyspark.sql import types as kinds

    widths = {
        "tinyint": pl.Int8(),
        "smallint": pl.Int16(),
        "int": pl.Int32(),
        "float": pl.Float32(),
    }
    kind = released_type(widths.get(_kind(df.schema[columns.value].dataType), pl.Int64()), labels)
    if _kind(df.schema[columns.value].dataType) == "double":
        kind = released_type(pl.Float64(), labels)
    there = {
        pl.String: kinds.StringType(),
        pl.Boolean: kinds.BooleanType(),
        pl.Int8: kinds.ByteType(),
        pl.Int16: kinds.ShortType(),
        pl.Int32: kinds.IntegerType(),
        pl.Int64: kinds.LongType(),
        pl.Float32: kinds.FloatType(),
        pl.Float64: kinds.DoubleType(),
    }
    types = {name: df.schema[name].dataType for name in columns.released} | {
        columns.value: there[type(kind)]
    }
    return kinds.StructType([kinds.StructField(name, types[name]) for name in columns.released])


@contextmanager
def _spark_errors() -> Iterator[None]:
    """Whatever Spark throws becomes one line."""
    try:
        yield
    except (InputError, KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:
        said = str(error)
        kind = type(error).__name__
    else:
        return
    if "No module named 'offrecord'" in said:
        raise InputError(
            "an executor cannot import offrecord: install it there, in the same version as here"
        )
    if MARK in said:
        raise InputError(said.split(MARK, 1)[1].splitlines()[0])
    raise InputError(f"Spark could not do it ({kind}); its own messages say more")


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep the bridge to Spark from logging what it sends, the key among it, where a program logs
    everything.
    """
    loggers = [
        logging.getLogger(name) for name in ("py4j", "py4j.clientserver", "py4j.java_gateway")
    ]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(max(logger.getEffectiveLevel(), logging.INFO))
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
