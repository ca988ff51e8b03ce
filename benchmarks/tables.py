"""Speed of `offrecord redact`, whole processes: against polars reading the same columns and writing
the released table, streamed against in memory, on a local Spark against in memory (if the extra
spark is there: `make test-spark` brings it), and of `offrecord verify` (without and with the key,
and with the original too) and `offrecord attack` against the `redact` that they are about.

`make bench` runs it; `make bench MSNBC=msnbc.parquet` also takes that file (columns seq_id, t,
state; UCI msnbc.com web data). Exit 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

import offrecord as off

ALPHA, BETA, LENGTH, PRIVATE = 0.05, 0.3, 100, 0.02
BASELINE = """
import sys, polars
frame = polars.read_parquet(sys.argv[1], columns=sys.argv[3].split(","))
frame.select(sys.argv[4].split(",")).write_parquet(sys.argv[2])
"""
missed = []


def simulated(rows: int, path: Path) -> None:
    """Chains of 100 records, sorted by chain and order, two values as int8, 2 % private."""
    rng = np.random.default_rng(0)
    chains = rows // LENGTH
    values = np.empty((chains, LENGTH), dtype=np.int8)
    values[:, 0] = rng.random(chains) < ALPHA / (ALPHA + BETA)
    for t in range(1, LENGTH):
        u = rng.random(chains)
        values[:, t] = np.where(values[:, t - 1] == 1, u >= BETA, u < ALPHA)
    frame = pl.DataFrame(
        {
            "chain": np.repeat(np.arange(chains, dtype=np.int32), LENGTH),
            "t": np.tile(np.arange(LENGTH, dtype=np.int32), chains),
            "v": values.ravel(),
            "private": rng.random(rows) < PRIVATE,
        }
    )
    frame.write_parquet(path)


def shuffled(table: Path, path: Path) -> None:
    """The same rows in any order."""
    pl.read_parquet(table).sample(fraction=1.0, shuffle=True, seed=0).write_parquet(path)


def marked(source: Path, table: Path, model: Path) -> None:
    """The msnbc data with 2 % of the records private, and their model."""
    frame = pl.read_parquet(source)
    private = pl.Series("private", np.random.default_rng(5).random(frame.height) < PRIVATE)
    frame.with_columns(private).write_parquet(table)
    off.fit(frame, value="state", order="t", by="seq_id").model.save(model)


def elsewhere(function: Callable[..., None], *arguments: object) -> None:
    """In a process of its own: what this one has used counts as its children's peak memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(function, *arguments).result()


class Run(NamedTuple):
    """Of a process: seconds, peak memory (GB), and seconds of processor time."""

    seconds: float
    memory: float
    busy: float


def process(*command: str) -> Run:
    """Run a command."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert child.stderr is not None
    said = child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command} failed: {said}")
    seconds = time.perf_counter() - start
    return Run(seconds, usage.ru_maxrss / 1e6, usage.ru_utime + usage.ru_stime)


def best(repeats: int, *command: str) -> tuple[float, float]:
    """The fastest of some runs."""
    runs = [process(*command) for _ in range(repeats)]
    return min(run.seconds for run in runs), max(run.memory for run in runs)


def judged(name: str, ratio: float, limit: float | None) -> str:
    """What a ratio comes to."""
    if limit is not None and ratio > limit:
        missed.append(name)
    return "" if limit is None else f"  (limit {limit:g} ×)  {'ok' if ratio <= limit else 'MISSED'}"


def command(
    name: str, table: Path, columns: tuple[str, str, str], model: Path, folder: Path
) -> tuple[str, ...]:
    """The command that redacts a table; designs are kept from one run to the next."""
    by, order, value = columns
    program = str(Path(sys.executable).with_name("offrecord"))
    verb = (
        program,
        "redact",
        str(table),
        "--value",
        value,
        "--order",
        order,
        "--by",
        by,
        "--max-rows",
        str(10**9),
    )
    options = (
        "--private",
        "private",
        "--epsilon",
        "1",
        "--dataset",
        name,
        "--model",
        str(model),
        "--force",
        "--no-report",  # about a second whatever the table is, which is told apart
    )
    files = (
        "--designs",
        str(folder / f"{model.stem}.designs.json"),
        "--key-file",
        str(folder / "key" / "key.json"),
    )
    return (*verb, *options, *files, "--output", str(folder / f"{table.stem}.released.parquet"))


def streamed(name: str, table: Path, model: Path, folder: Path, limit: float | None = None) -> None:
    """The same table part by part and at once: the same bytes."""
    redact = command(name, table, ("chain", "t", "v"), model, folder)
    released = folder / f"{table.stem}.released.parquet"
    ours, memory = best(2, *redact, "--stream")
    digest = hashlib.sha256(released.read_bytes()).digest()
    theirs, their_memory = best(2, *redact, "--in-memory")
    if hashlib.sha256(released.read_bytes()).digest() != digest:
        missed.append(f"{name}: other bytes")
    name = f"{name}, streamed against in memory"
    verdict = judged(name, ours / theirs, limit)
    sizes = f"{memory:.2f} GB against {their_memory:.2f} GB"
    print(
        f"{name}: {ours:.2f} s against {theirs:.2f} s = {ours / theirs:.2f} ×, {sizes}{verdict}",
        flush=True,
    )
    if memory > 2:
        missed.append(f"{name}: memory")


def on_spark(name: str, table: Path, model: Path, folder: Path, limit: float | None) -> None:
    """On two cores of a session that is warm, against in memory; and what Spark takes to hand rows
    to Python and write them.
    """
    redact = command(name, table, ("chain", "t", "v"), model, folder)
    process(*redact, "--in-memory")
    theirs, _ = best(3, *redact, "--in-memory")
    split = folder / "split"
    elsewhere(in_files, table, split)
    program = Path(__file__).with_name("on_spark.py")
    keys = (str(folder / "key" / "key.json"), str(folder / f"{model.stem}.designs.json"))
    said = subprocess.run(
        [
            sys.executable,
            str(program),
            str(split),
            str(folder),
            name,
            str(model),
            *keys,
            f"{table.stem}.released.parquet",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    survey, decision, floor = map(float, said.stdout.splitlines()[-1].split())
    shutil.rmtree(split)
    ours = survey + decision
    verdict = judged(f"{name}, Spark", ours / theirs, limit)
    print(
        f"{name}, Spark: {survey:.1f} s + {decision:.1f} s against {theirs:.2f} s ="
        f" {ours / theirs:.2f} ×{verdict};",
        end=" ",
    )
    print(
        f"rows to Python, back and written as they are: {floor:.1f} s = {floor / theirs:.2f} ×",
        flush=True,
    )


def owners(name: str, table: Path, model: Path, folder: Path, limit: float) -> None:
    """The same table by the owner's mechanism and the best local one, with known designs."""
    seconds = []
    for mechanism in ("owner", "best-local"):
        redact = command(f"{name} {mechanism}", table, ("chain", "t", "v"), model, folder)
        mine = str(folder / f"{model.stem}.{mechanism}.designs.json")
        redact = (*redact, "--designs", mine, "--mechanism", mechanism, "--in-memory")
        process(*redact)
        seconds.append(best(3, *redact)[0])
    ratio = seconds[0] / seconds[1]
    name = f"{name}, owner against best-local"
    print(
        f"{name}: {seconds[0]:.2f} s against {seconds[1]:.2f} s = {ratio:.2f} ×"
        f"{judged(name, ratio, limit)}",
        flush=True,
    )


def checked(name: str, table: Path, model: Path, folder: Path, limits: dict[str, float]) -> None:
    """`offrecord verify` and `offrecord attack` of what the owner's mechanism and best-local
    release, against redacting it with known designs: processor time, in turn. limits: of each verb.
    """
    for mechanism in ("owner", "best-local"):
        redact = command(f"{name} {mechanism}", table, ("chain", "t", "v"), model, folder)
        mine = str(folder / f"{model.stem}.{mechanism}.designs.json")
        redact = (*redact, "--designs", mine, "--mechanism", mechanism, "--in-memory")
        redact = (*redact, "--publish-positions")
        released = redact[redact.index("--output") + 1]
        verify = (redact[0], "verify", f"{released}.certificate.json", released)
        key = ("--key-file", redact[redact.index("--key-file") + 1])
        verbs = {
            "verify": verify,
            "verify with the key": (*verify, *key),
            "verify with key and original": (*verify, *key, "--original", str(table)),
            "attack": (redact[0], "attack", released),
        }
        process(*redact)
        rounds = [[process(*one) for one in (redact, *verbs.values())] for _ in range(2)]
        theirs, *ours = (min(run.busy for run in runs) for runs in zip(*rounds, strict=True))
        memory = [max(run.memory for run in runs) for runs in zip(*rounds, strict=True)]
        for verb, busy, peak in zip(verbs, ours, memory[1:], strict=True):
            what = f"{name}, {verb} against redact, {mechanism}"
            print(
                f"{what}: {busy:.2f} s against {theirs:.2f} s of processor time ="
                f" {busy / theirs:.2f} ×, {peak:.2f} GB against {memory[0]:.2f} GB"
                f"{judged(what, busy / theirs, limits[verb.split()[0]])}",
                flush=True,
            )


def in_files(table: Path, folder: Path) -> None:
    """A table as eight files, as Spark would have it."""
    folder.mkdir()
    frame = pl.read_parquet(table)
    size = -(-frame.height // 8)
    for i in range(8):
        frame[i * size : (i + 1) * size].write_parquet(folder / f"part-{i}.parquet")


def compare(
    name: str,
    table: Path,
    columns: tuple[str, str, str],
    model: Path,
    folder: Path,
    limit: float | None,
) -> float:
    """Designs once, then our process against polars', each the best of some runs on a warm disk
    cache.
    """
    by, order, value = columns
    redact = command(name, table, columns, model, folder)
    first = process(*redact).seconds
    print(f"{name}: first run, with designs {first:.1f} s", flush=True)
    ours, memory = best(3, *redact, "--in-memory")
    leaving = f"{by},{order},{value}"
    copy = folder / "copy.parquet"
    theirs, their_memory = best(
        3, sys.executable, "-c", BASELINE, str(table), str(copy), f"{leaving},private", leaving
    )
    ratio = ours / theirs
    verdict = judged(name, ratio, limit)
    sizes = f"{memory:.2f} GB against {their_memory:.2f} GB"
    print(
        f"{name}: {ours:.2f} s against {theirs:.2f} s = {ratio:.2f} ×, {sizes}{verdict}", flush=True
    )
    return first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--msnbc", type=Path, help="msnbc.parquet, for the benchmark with 17 values"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # With bytecode, as an installed package has it, and polars here: an environment that
        # forbids it would have a checkout compiled from its source in every run.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        model = folder / "two.json"
        off.MarkovChain.binary(ALPHA, BETA).save(model)
        columns = ("chain", "t", "v")
        spark = find_spec("pyspark") is not None
        if not spark:
            print(
                "Spark: not measured, the extra spark is not installed; make test-spark does that"
            )
        for millions in (1, 5, 10, 20, 50, 100):
            table = folder / f"rows{millions}.parquet"
            elsewhere(simulated, millions * 10**6, table)
            label = f"{millions} million rows"
            compare(
                f"{label}, sorted", table, columns, model, folder, 4.0 if millions == 20 else None
            )
            streamed(f"{label}, sorted", table, model, folder, 1.5 if millions == 20 else None)
            if millions == 20:
                owners(label, table, model, folder, 1.3)
                checked(label, table, model, folder, {"verify": 3.0, "attack": 5.0})
                mixed = folder / "shuffled.parquet"
                elsewhere(shuffled, table, mixed)
                compare(f"{label}, shuffled", mixed, columns, model, folder, None)
                if spark:
                    on_spark(f"{label}, sorted", table, model, folder, None)
                    on_spark(f"{label}, shuffled", mixed, model, folder, 5.0)
                mixed.unlink()
            table.unlink()
        if arguments.msnbc is None:
            print("msnbc: not measured; give its file: make bench MSNBC=msnbc.parquet")
        else:
            table, model = folder / "msnbc.parquet", folder / "msnbc.json"
            elsewhere(marked, arguments.msnbc, table, model)
            first = compare("msnbc, 17 values", table, ("seq_id", "t", "state"), model, folder, 4.0)
            print(
                f"msnbc: designs and all {first:.0f} s  (limit 120 s) "
                f" {'ok' if first <= 120 else 'MISSED'}"
            )
            if first > 120:
                missed.append("msnbc designs")
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
