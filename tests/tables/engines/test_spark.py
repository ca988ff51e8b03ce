"""A real local Spark gives the local release, to the last bit, also when tasks are killed; and
tells nobody the key.
"""

import base64
import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
from datetime import date, datetime, timedelta
from itertools import groupby
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import samples
from offrecord.release.keys import Key

pyspark = pytest.importorskip("pyspark", reason="needs the extra spark: make test-spark")
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql import functions as sql  # noqa: E402

from offrecord.tables.engines import spark as engine  # noqa: E402
from offrecord.tables.given import Given  # noqa: E402
from offrecord.tables.options import SparkOptions  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support pandas:FutureWarning"
)

CHAIN = off.MarkovChain([[0.8, 0.2], [0.4, 0.6]])
COLUMNS = {"value": "state", "order": "hour", "by": "room"}
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.maxResultSize": "1m",  # so that rows cannot be collected unnoticed
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
}


def session(folder, master="local[2,3]"):
    """Two cores, and three attempts for each task; everything that is written goes to a folder."""
    for name in ("local", "warehouse", "events"):
        (folder / name).mkdir(parents=True)
    builder = SparkSession.builder.master(master).appName("offrecord")
    java = (
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
        f" -Djava.io.tmpdir={folder / 'local'}"
    )
    folders = {
        "spark.local.dir": folder / "local",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.eventLog.dir": folder / "events",
        "spark.driver.extraJavaOptions": java,
    }
    for name, value in (SETTINGS | folders).items():
        builder = builder.config(name, str(value))
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("FATAL")
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def spark(folder):
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    made = session(folder)
    yield made
    gateway = made.sparkContext._gateway
    made.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)


@pytest.fixture(scope="module")
def key(folder):
    return Key.new(folder / "keys" / "key.json")


def frame(rooms=12, length=40, seed=1, gaps=0.0, empty=0.0):
    """Rooms of some hours each, rows in any order, some private."""
    rng = np.random.default_rng(seed)
    rows = rooms * length
    table = pl.DataFrame(
        {
            "room": np.repeat(np.arange(rooms, dtype=np.int32), length),
            "hour": np.tile(np.arange(length, dtype=np.int32), rooms),
            "state": samples(CHAIN, rooms, length, rng).ravel().astype(np.int8),
            "hidden": rng.random(rows) < 0.06,
        }
    )
    table = table.with_columns(
        pl.when(pl.Series(rng.random(rows) >= empty)).then("state").alias("state")
    )
    table = table.filter((pl.col("hour") % (length - 1) == 0) | pl.Series(rng.random(rows) >= gaps))
    return table.sample(fraction=1.0, shuffle=True, seed=seed)


def as_spark(session, table):
    """A frame of polars as one of Spark; times without a zone stay such, where Spark would give
    them its own.
    """
    bare = [
        name
        for name, kind in table.schema.items()
        if isinstance(kind, pl.Datetime) and kind.time_zone is None
    ]
    plain = table.with_columns(pl.col(bare).dt.strftime("%Y-%m-%d %H:%M:%S%.6f"))
    found = session.createDataFrame(plain.to_arrow(compat_level=pl.CompatLevel.oldest()))
    return found.withColumns({name: sql.col(name).cast("timestamp_ntz") for name in bare})


def there(spark, table):
    """A table as several partitions of Spark."""
    return as_spark(spark, table).repartition(5)


def options(key, **others):
    return (
        COLUMNS
        | {
            "private": "hidden",
            "model": CHAIN,
            "epsilon": 1.5,
            "dataset": "rooms",
            "key_file": key.file,
        }
        | others
    )


@pytest.fixture
def same(spark, key):
    """Redact here and there, and compare rows, certificate and summary."""

    def compare(table, df=None, there_options=None, **others):
        chosen = options(key, **({"accept": "another-release"} | others))
        here = off.redact(table, **chosen)
        release = engine.redact(
            there(spark, table) if df is None else df,
            partitions=3,
            **(chosen | (there_options or {})),
        )
        by = [chosen["by"]] if isinstance(chosen["by"], str) else chosen["by"]
        expected = here.frame.sort([*by, chosen["order"]])
        found = release.frame.toArrow()
        found = pl.DataFrame(found).sort([*by, chosen["order"]])
        found = found.with_columns(
            pl.col(name).cast(kind) for name, kind in expected.schema.items()
        )
        assert found.equals(expected)
        assert release.frame.columns == expected.columns
        assert release.certificate == here.certificate
        for name, value in here.summary.to_dict().items():
            if name not in ("seconds", "warnings"):
                assert release.summary.to_dict()[name] == value, name
        dropped = table.height - expected.height
        assert 0 < here.summary.redacted + dropped < table.height
        release.unpersist()
        return release

    return compare


# ---- the same release


@pytest.mark.parametrize(
    "others",
    [
        {"mechanism": "owner"},
        {"mechanism": "owner", "step": 1},
        {"mechanism": "best-local", "step": 1},
        {"protect": "each", "publish_positions": True},
        {"mechanism": "window"},
        {
            "model": off.MarkovChain([[0.8, 0.2], [0.4, 0.6]], start=[0.5, 0.5]),
            "mechanism": "window",
        },
        {"model": off.Posterior([[800, 200], [400, 600]], 1), "step": 1, "mechanism": "window"},
        {"epsilon": 0.0},
        {"growing": True, "step": 1, "accept": ()},
        {"growing": True, "step": 1, "accept": (), "mechanism": "window"},
    ],
    ids=str,
)
def test_the_local_release(same, others):
    same(
        frame(gaps=0.1 if "step" in others else 0.0, empty=0.1), dataset=f"rooms {others}", **others
    )


@pytest.mark.parametrize("keep_rows", [False, True])
def test_whole_chains_where_no_rules_serve_the_model(same, keep_rows):
    found = same(
        frame(rooms=60, length=10),
        dataset=f"whole chains {keep_rows}",
        model=off.Posterior([[800, 200], [400, 600]], 1),
        epsilon=0.0,
        keep_rows=keep_rows,
    )
    assert found.certificate["kind"] == "whole chains"


START = datetime(2026, 3, 8)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("room", lambda n: [f"room {i}" for i in n]),
        ("room", lambda n: [str(i) for i in n]),
        ("room", lambda n: [str(i) if i % 3 else f"hall {i}" for i in n]),
        ("room", lambda n: [date(2026, 1, 1) + timedelta(days=i) for i in n]),
        ("room", lambda n: [i * 10**12 for i in n]),
        ("hour", lambda n: [date(2026, 1, 1) + timedelta(days=i) for i in n]),
        ("hour", lambda n: [START + timedelta(hours=i) for i in n]),
        (
            "hour",
            lambda n: pl.Series([START + timedelta(hours=i) for i in n]).dt.replace_time_zone(
                "UTC"
            ),
        ),
        ("state", lambda n: ["unwell" if i else "ok" for i in n]),
        ("state", lambda n: [bool(i) for i in n]),
        ("state", lambda n: [0.5 * i for i in n]),
        ("state", lambda n: [i + 2**40 for i in n]),
        ("hidden", lambda n: ["true" if i else "false" for i in n]),
    ],
)
def test_types(same, name, cells):
    table = frame()
    table = table.with_columns(pl.Series(name, cells(table[name].cast(pl.Int64).to_list())))
    labels = sorted(table["state"].unique().to_list())
    same(
        table,
        dataset=f"types of {name} {table[name].dtype} {table[name][0]}",
        model=off.MarkovChain(CHAIN.transition, labels=labels),
    )


def test_a_model_of_another_table_is_refused(spark, key):
    other = off.MarkovChain([[0.99, 0.01], [0.02, 0.98]])
    before = key.ledger_file.read_bytes()
    with pytest.raises(off.InputError, match="does not match these data"):
        engine.redact(there(spark, frame()), **options(key, dataset="another", model=other))
    assert key.ledger_file.read_bytes() == before
    release = engine.redact(
        there(spark, frame()), **options(key, dataset="another", model=other, accept="model")
    )
    assert len(release.certificate["evidence"]["accepted"]) == 1


def test_opt_outs_chosen_by_value_are_noticed(spark, key):
    table = frame(rooms=40).with_columns(hidden=pl.col("hidden") & (pl.col("state") == 1))
    with pytest.warns(off.ChosenByValue):
        engine.redact(there(spark, table), **options(key, dataset="chosen"))


def test_kept_columns_of_every_shape(same):
    table = frame().with_columns(
        pl.format("note {}", "hour").alias("a note"),
        pl.concat_list("hour", "room").alias("list"),
        pl.struct(x="hour", y=pl.lit("z")).alias("both"),
        pl.lit(b"bytes").alias("bin.ary"),
        pl.when(pl.col("hour") > 3).then(pl.lit(2.5)).alias("number"),
    )
    same(table, dataset="kept", keep=["a note", "list", "both", "bin.ary", "number"])


def test_chains_stand_together_also_where_a_collation_does_not_tell_them_apart(spark, key):
    names = ["a", "A", "b", "B", "c", "C", "d", "D", "e", "E", "f", "F"]
    table = frame().with_columns(room=pl.col("room").replace_strict([*range(12)], names))
    collated = there(spark, table).withColumn("room", sql.expr("collate(room, 'UTF8_LCASE')"))
    given = Given.of(SparkOptions(**options(key), partitions=3))
    tasks = engine._by_chain(collated, given).rdd.glom().collect()
    found = [name for task in tasks for name, _ in groupby(row[0] for row in task)]
    assert sorted(found) == sorted(names)


def test_several_chain_columns(same):
    table = frame().with_columns(
        (pl.col("room") % 3).alias("wing"), (pl.col("room") // 3).cast(pl.String).alias("room")
    )
    same(table, dataset="wings", by=["wing", "room"])


@pytest.mark.parametrize("kind", ["polars", "spark"])
def test_private_lists(spark, same, kind):
    table = frame(gaps=0.1)
    keys = pl.DataFrame({"room": [3, 1, 3, 11, 3], "hour": [7, 3, 8, 20, 7]})
    listed = keys if kind == "polars" else spark.createDataFrame(keys.to_arrow()).repartition(3)
    same(
        table,
        dataset="listed",
        private=None,
        private_list=keys,
        step=1,
        there_options={"private_list": listed},
    )


@pytest.mark.parametrize("kind", ["polars", "spark"])
@pytest.mark.parametrize("form", ["ranges", "days", "chains", "dropped"])
def test_ranges_and_chains(spark, same, kind, form):
    table = frame(gaps=0.1)
    chosen = {"step": 1}
    if form == "ranges":
        keys = pl.DataFrame(
            {"room": [3, 1, 3, 11, 5], "from": [7, None, 9, 20, 3], "to": [9, 3, 12, 20, 5000]}
        )
    elif form == "days":
        begin = datetime(2024, 3, 1)
        hours = pl.lit(begin) + pl.duration(hours=pl.col("hour"))
        table = table.with_columns(hours.alias("hour"))
        keys = pl.DataFrame({"room": [3, 1, 4], "from": [begin, None, begin], "to": [begin] * 3})
        chosen = {"step": "1h"}
    else:
        keys = pl.DataFrame({"room": [3, 11, 3]})
        chosen |= {"keep_rows": form == "chains"}
    keys = keys.with_columns(pl.col("room").cast(pl.Int32))
    listed = keys if kind == "polars" else as_spark(spark, keys).repartition(3)
    release = same(
        table,
        dataset=f"listed as {form}",
        private="hidden",
        private_list=keys,
        there_options={"private_list": listed},
        **chosen,
    )
    if form == "dropped":
        assert release.summary.chains == 10


def test_wrong_rows_are_counted_over_the_whole_table(spark, key):
    table = frame().with_columns(hour=pl.lit(1))
    with pytest.raises(off.InputError, match=f"in {table.height} rows .* room 0, hour 1"):
        engine.redact(there(spark, table), **options(key, dataset="ties"))


def test_a_table_that_was_joined_on_its_chains(spark, same):
    """Spark may take partitions by the join for ours, and split them where they are skewed: then
    chains would be cut.
    """
    settings = {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1000",
        "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.0",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1000",
    }
    table = frame(rooms=8, length=200)
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        wings = spark.createDataFrame(
            [(room, "west") for room in range(8)], "room int, wing string"
        )
        joined = there(spark, table).join(wings, "room")
        same(table, joined.select(*table.columns), dataset="joined")
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_a_dry_run_expects_what_it_does_here(spark, key):
    table = frame(empty=0.1)
    chosen = options(key, dataset="dry", dry_run=True)
    here, release = off.redact(table, **chosen), engine.redact(there(spark, table), **chosen)
    assert release.frame is None
    assert release.certificate == here.certificate
    assert release.summary.released == pytest.approx(here.summary.released, rel=1e-12)
    assert release.summary.regions == here.summary.regions
    with pytest.raises(off.InputError, match="dry run"):
        release.write("nowhere", certificate="nowhere.json")


def test_a_table_that_changes_after_it_was_surveyed_is_not_decided(spark, key, tmp_path):
    table, file = frame(rooms=4), tmp_path / "t.parquet"
    table.with_columns((pl.col("hour") == 15 + pl.col("room") % 2).alias("hidden")).write_parquet(
        file
    )
    release = engine.redact(spark.read.parquet(str(file)), **options(key, dataset="changed"))
    release.unpersist()
    table.with_columns((pl.col("hour") == 16 - pl.col("room") % 2).alias("hidden")).write_parquet(
        file
    )
    with pytest.raises(pyspark.errors.PythonException, match="was changed after it was surveyed"):
        release.frame.collect()
    with pytest.raises(off.InputError, match="was changed after it was surveyed"):
        release.write(str(tmp_path / "out"), certificate=tmp_path / "c.json")
    assert not (tmp_path / "c.json").exists()


def test_nor_one_whose_values_change_after_the_ledger_knows_them(spark, key, tmp_path):
    table, file = frame(rooms=4), tmp_path / "t.parquet"
    table.write_parquet(file)
    release = engine.redact(spark.read.parquet(str(file)), **options(key, dataset="other values"))
    release.unpersist()
    table.with_columns((1 - pl.col("state")).alias("state")).write_parquet(file)
    with pytest.raises(pyspark.errors.PythonException, match="was changed after it was surveyed"):
        release.frame.collect()


# ---- tasks that die


def killing(marker, place):
    """A stage that kills its own worker once, before or after its rows."""

    def once(batches):
        if place == "before":
            die()
        yield from batches
        if place == "after":
            die()

    def die():
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    return once


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("stage", ["survey", "decision"])
def test_a_task_that_is_killed_is_tried_again_and_changes_nothing(
    spark, key, tmp_path, stage, place
):
    table = frame()
    chosen = options(key, dataset="killed")
    expected = off.redact(table, **chosen).frame
    marker = str(tmp_path / "killed")
    df = there(spark, table)
    if stage == "survey":
        df = df.mapInArrow(killing(marker, place), df.schema)
    release = engine.redact(df, **chosen)
    released = release.frame
    if stage == "decision":
        released = released.mapInArrow(killing(marker, place), released.schema)
    found = pl.DataFrame(released.toArrow()).sort("room", "hour")
    assert Path(marker).exists()
    assert found.equals(expected)
    assert release.certificate == off.redact(table, **chosen).certificate


# ---- the key


def forms(secret):
    """What a key may look like in a file."""
    found = [
        secret,
        secret.hex().encode(),
        repr(secret).encode()[2:-1],
        str(list(secret)).encode()[1:-1],
    ]
    found += [json.dumps(repr(secret)).encode()[3:-2]]
    for shift in range(3):
        text = base64.b64encode(bytes(shift) + secret)
        found.append(text[4 : -4 if shift else -6])
    return found


def test_nobody_is_told_the_key(spark, key, folder, tmp_path, caplog):
    with caplog.at_level(logging.DEBUG):
        release = engine.redact(
            there(spark, frame()), **options(key, dataset="told", accept="another-release")
        )
        release.write(str(tmp_path / "out"), certificate=tmp_path / "certificate.json")
        assert release.summary.rows == frame().height
        plans = [
            release.frame._jdf.queryExecution().toString(),
            repr(release),
            str(release.summary),
        ]
    files = [
        file
        for place in (folder, tmp_path)
        for file in place.rglob("*")
        if file.is_file() and file != key.file
    ]
    events = [file for file in files if file.is_relative_to(folder / "events")]
    assert sum(file.stat().st_size for file in events) > 10_000
    texts = {str(file): file.read_bytes() for file in files} | {
        "log": caplog.text.encode(),
        "plan": "\n".join(plans).encode(),
    }
    assert "py4j" in caplog.text  # or nothing would have been logged
    for where, content in texts.items():
        assert [form for form in forms(key.secret) if form in content] == [], where
    assert any(
        form in b"..." + base64.b64encode(b"abc" + key.secret) for form in forms(key.secret)
    )  # such as these are found


# ---- files


def test_files_and_their_certificate(spark, key, tmp_path):
    table = frame()
    release = engine.redact(there(spark, table), **options(key, dataset="files"))
    with pytest.raises(off.InputError, match="must not lie beside"):
        release.write(str(tmp_path / "out"), certificate=key.file.with_name("c.json"))
    release.write(str(tmp_path / "out"), certificate=tmp_path / "c.json")
    proof = json.loads((tmp_path / "c.json").read_text())
    parts = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in (tmp_path / "out").glob("part-*")
    }
    assert proof["output"]["files"] == parts
    assert proof["output"]["rows"] == table.height
    found = pl.read_parquet(tmp_path / "out" / "*.parquet").sort("room", "hour")
    assert found.equals(off.redact(table, **options(key, dataset="files")).frame)
    with pytest.raises(off.InputError, match="exists"):
        release.write(str(tmp_path / "out"), certificate=tmp_path / "c.json")


# ---- wrong input: one line on the driver


WRONG = {
    "column": ({"value": "stat"}, None, "did you mean 'state'"),
    "interval": (
        {},
        lambda df: df.withColumn("hour", sql.expr("make_ym_interval(1, hour)")),
        "'hour' holds interval",
    ),
    "array": ({}, lambda df: df.withColumn("room", sql.array("room")), "'room' must name chains"),
    "fraction": (
        {},
        lambda df: df.withColumn("hour", sql.col("hour") / 2),
        "'hour' must hold whole numbers, dates or times to order records, got Float64",
    ),
    "kept": (
        {"keep": "odd"},
        lambda df: df.withColumn("odd", sql.expr("make_ym_interval(1, 2)")),
        "'odd' holds interval",
    ),
    "no key": ({"key_file": "nowhere/key.json"}, None, "offrecord key new"),
    "no model": ({"model": None, "fit": True}, None, "needs a model"),
    "row": ({"order": "row"}, None, "order column"),
    "single": ({"by": None, "single_chain": True}, None, "needs chains"),
    "null": (
        {},
        lambda df: df.withColumn("hidden", sql.expr("if(hour = 7, null, hidden)")),
        "must not be empty, but is in 12 rows: room 0, hour 7; room 1, hour 7;",
    ),
    "twice": (
        {},
        lambda df: df.withColumn("hour", sql.lit(1)),
        "in 480 rows of one chain or another: room 0",
    ),
    "value": ({}, lambda df: df.withColumn("state", sql.col("state") + 1), "does not know"),
    "none": ({}, lambda df: df.withColumn("hidden", sql.lit(False)), "no record is private"),
    "empty": ({}, lambda df: df.limit(0), "no rows"),
    "lost": (
        {"private": None, "private_list": pl.DataFrame({"room": [1, 99], "hour": [2, 2]})},
        None,
        "names 1 record that the table does not have",
    ),
    "lost hour": (
        {"private": None, "private_list": pl.DataFrame({"room": [1], "hour": [99]})},
        None,
        "no opt-out may be lost (records in gaps can be protected with step): room 1, hour 99",
    ),
    "list type": (
        {"private": None, "private_list": pl.DataFrame({"room": [1.0], "hour": [2]})},
        None,
        "'room' holds Int32 in the table but Float64 in the private list",
    ),
    "list zone": (
        {
            "private": None,
            "private_list": pl.DataFrame({"room": [1], "hour": [datetime(2026, 1, 1)]}),
        },
        lambda df: df.withColumn("hour", sql.expr("timestamp_seconds(hour)")),
        "the table's times have a time zone, the private list's have none",
    ),
    "list null": (
        {"private": None, "private_list": pl.DataFrame({"room": [1, None], "hour": [2, 3]})},
        None,
        "in every row",
    ),
    "lost range": (
        {
            "private": None,
            "step": 1,
            "private_list": pl.DataFrame({"room": [1, 2], "from": [50, 39], "to": [60, 90]}),
        },
        None,
        "names 1 range that the table does not have; no opt-out may be lost: room 1, hour 50 to 60",
    ),
    "lost chain": (
        {"private": None, "private_list": pl.DataFrame({"room": [99, 1, 98]})},
        None,
        "names 2 chains that the table does not have; no opt-out may be lost: room 98; room 99",
    ),
    "turned": (
        {"private": None, "private_list": pl.DataFrame({"room": [1], "from": [9], "to": [8]})},
        None,
        "whose 'from' is after its 'to': room 1, hour 9 to 8",
    ),
    "all private": (
        {"private_list": pl.DataFrame({"room": [*range(12)]})},
        None,
        "nothing is left to release",
    ),
    "kept column tells": (
        {"keep": "copy"},
        lambda df: df.withColumn("copy", sql.col("state") + 5),
        "'copy' gives away the value",
    ),
    "released before": (
        {"dataset": "before", "epsilon": 2.0},
        None,
        "was released before with another epsilon",
    ),
}


@pytest.mark.parametrize(("others", "change", "said"), WRONG.values(), ids=WRONG)
def test_wrong_input(spark, key, others, change, said):
    df = there(spark, frame())
    engine.redact(df, **options(key, dataset="before")).unpersist()
    ledger = key.ledger_file.read_bytes()
    with pytest.raises(off.InputError) as caught:
        engine.redact(
            df if change is None else change(df), **options(key, **({"dataset": "wrong"} | others))
        )
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert key.ledger_file.read_bytes() == ledger


def test_something_else_than_a_table_of_spark(key):
    with pytest.raises(off.InputError, match="must be a PySpark DataFrame, got DataFrame"):
        engine.redact(frame(), **options(key))


def test_executors_of_another_version(spark, key, monkeypatch):
    monkeypatch.setattr(engine, "version", lambda name: "0.0.1")
    with pytest.raises(off.InputError, match=r"the driver 0\.0\.1: install the same"):
        engine.redact(there(spark, frame()), **options(key, dataset="version"))


MISSING = """
import sys
import polars as pl
import offrecord as off
import test_spark
from pathlib import Path
folder = Path(sys.argv[1])
spark = test_spark.session(folder / "spark")
key = test_spark.Key.new(folder / "keys" / "key.json")
try:
    test_spark.engine.redact(test_spark.there(spark, test_spark.frame()), **test_spark.options(key))
except off.InputError as error:
    print(f"said: {error}")
"""


def test_executors_without_the_package(tmp_path):
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text(
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'offrecord':\n"
        "            raise ModuleNotFoundError(\"No module named 'offrecord'\", name='offrecord')\n"
        "sys.meta_path.insert(0, Block())\n"
    )
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={blocked}:$PYTHONPATH exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    environment = os.environ | {
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment["PYTHONPATH"] = os.pathsep.join(
        [*map(str, Path(__file__).parents[:3]), *os.environ.get("PYTHONPATH", "").split()]
    )
    command = [sys.executable, "-W", "ignore", "-c", MISSING, str(tmp_path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "said: an executor cannot import offrecord: install it there" in ended.stdout, (
        ended.stderr[-2000:]
    )
