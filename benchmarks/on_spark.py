"""One redaction on a warm local Spark with two cores: seconds of both looks, and of handing the
same rows to Python and back.

Used by tables.py; the last line of its output is the three figures.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
from pyspark.sql import SparkSession

from offrecord.tables.spark import redact

RUNS = 4  # the first of which warms it


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def unchanged(batches: Iterator[object]) -> Iterator[object]:
    yield from batches


def main() -> None:
    table, folder, name, model, key, designs, released = sys.argv[1:]
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    with tempfile.TemporaryDirectory() as scratch:
        builder = (
            SparkSession.builder.master("local[2]")
            .config("spark.driver.memory", "6g")
            .config("spark.ui.enabled", "false")
        )
        builder = builder.config("spark.driver.host", "127.0.0.1").config(
            "spark.local.dir", scratch
        )
        spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        df = spark.read.parquet(table)
        out = str(Path(scratch) / "out")
        options = {
            "value": "v",
            "order": "t",
            "by": "chain",
            "private": "private",
            "epsilon": 1,
            "dataset": name,
        }
        options |= {"model": model, "key_file": key, "designs": designs}
        surveys, decisions = [], []
        for _ in range(RUNS):
            start = time.perf_counter()
            release = redact(df, **options)
            surveys.append(time.perf_counter() - start)
            decisions.append(
                seconds(lambda frame=release.frame: frame.write.mode("overwrite").parquet(out))
            )
            release.unpersist()
        found = pl.read_parquet(f"{out}/*.parquet").sort("chain", "t")
        if not found.equals(pl.read_parquet(Path(folder) / released)):
            sys.exit("Spark released something else")
        same = df.mapInArrow(unchanged, df.schema).select("chain", "t", "v")
        floors = [seconds(lambda: same.write.mode("overwrite").parquet(out)) for _ in range(RUNS)]
        spark.stop()
    print(min(surveys[1:]), min(decisions[1:]), min(floors[1:]))


if __name__ == "__main__":
    main()
