"""Speed, each figure beside its limit: `make bench`. Exit 1 if a limit is missed.

Figures are seconds of processor time of one thread, so that they hold on a busy machine too; of
whole commands they include imports. `python benchmarks/bench.py fit decide` measures some of them.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SINGLE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")
os.environ.update(dict.fromkeys(SINGLE, "1"))

import numpy as np  # noqa: E402 - one thread, said before
import polars as pl  # noqa: E402

import offrecord as off  # noqa: E402
from offrecord.fitting.fit import fit  # noqa: E402
from offrecord.mechanisms.deciding.decide import decide  # noqa: E402
from offrecord.mechanisms.deciding.layout import settings_needed  # noqa: E402
from offrecord.mechanisms.design_table import design_table, drawn_for_design  # noqa: E402
from offrecord.mechanisms.rules import LocalRule, Pair, Setting  # noqa: E402
from offrecord.mechanisms.table_policy import TablePolicy  # noqa: E402
from offrecord.models.records import Chains, Runs  # noqa: E402
from offrecord.release.coins import Coins, encoded_integers  # noqa: E402
from offrecord.theory.window import smallest_windows  # noqa: E402

#: Transitions of a year of hourly rain, by the two hours before.
RAIN = {1: [[3850, 136], [95, 281]], 2: [[3813, 77], [37, 59], [76, 19], [58, 204]]}
ROWS, LENGTH, PRIVATE = 20_000_000, 100, 0.02  # of the table that is decided
missed: list[str] = []


def report(what: str, value: float, limit: float | None, unit: str = "s") -> None:
    """Print a figure beside its limit."""
    if limit is None:
        print(f"{what:<84} {value:8.2f} {unit}", flush=True)
        return
    if value > limit:
        missed.append(what)
    verdict = "ok" if value <= limit else "MISSED"
    print(f"{what:<84} {value:8.2f} {unit}  (limit {limit:g} {unit})  {verdict}", flush=True)


def everywhere(chain: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The place of a record where places make no difference."""
    return np.zeros(np.broadcast(chain, step).shape, dtype=np.int64)


def busy(action: Callable[[], object]) -> float:
    """Seconds of processor time."""
    begin = time.process_time()
    action()
    return time.process_time() - begin


def command(*words: object) -> tuple[float, float]:
    """Seconds of processor time of a command, and its largest memory in GB."""
    program = Path(sys.executable).with_name("offrecord")
    child = subprocess.Popen([program, *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{words} ends with {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e6


def walk(rows: np.ndarray, count: int, size: int, seed: int) -> np.ndarray:
    """(count, size) values of chains of order 1."""
    rng, limits = np.random.default_rng(seed), rows.cumsum(axis=1)
    values = np.zeros((count, size), dtype=np.int8)
    law = np.linalg.matrix_power(rows, 1 << 12)[0]
    values[:, 0] = rng.choice(len(rows), size=count, p=law / law.sum())
    for t in range(1, size):
        draws = rng.random(count)
        values[:, t] = (draws[:, np.newaxis] > limits[values[:, t - 1], :-1]).sum(axis=1)
    return values


def chains_of(values: np.ndarray) -> Chains:
    """One chain a row."""
    count, size = values.shape
    order = np.tile(np.arange(size), count)
    return Chains(np.arange(count + 1) * size, values.ravel(), order, False, None)


def posterior_of(order: int, k: int = 2) -> off.Posterior:
    """Rain of an order, its counts those of the two hours before shared out; other k at random."""
    if k == 2:
        counts = np.array(RAIN[min(order, 2)])
        for _ in range(order - 2):
            counts = np.concatenate([counts, counts]) // 2 + 1
        return off.Posterior(counts, order)
    rng = np.random.default_rng(1)
    counts = rng.integers(5, 60, size=(k**order, k))
    counts[np.arange(k**order), np.arange(k**order) % k] += 300
    return off.Posterior(counts, order)


# ---- what is measured


def fits() -> None:
    eight = np.full((8, 8), 0.05) + 0.6 * np.eye(8)
    two = np.array([[0.95, 0.05], [0.3, 0.7]])
    for what, rows, count, size in (
        ("fit: 50,000 rows of 8 values, 500 chains", eight, 500, 100),
        ("fit: 50,000 rows of 8 values, one chain", eight, 1, 50_000),
        ("fit: 1,000,000 rows of 2 values, 1,000 chains", two, 1000, 1000),
    ):
        chains = chains_of(walk(rows, count, size, 3))
        labels = list(range(len(rows)))
        report(what, busy(lambda c=chains, named=labels: fit(c, named)), 10.0)


def windows() -> None:
    for order, limit in ((1, None), (2, None), (3, 1.0), (5, None)):
        posterior = posterior_of(order)
        members, allowed = drawn_for_design(posterior, 1.0)
        seconds = busy(lambda m=members, a=allowed: smallest_windows(m, "record", 0, 1.0, a))
        report(f"windows over 8,000 draws, order {order} ({2**order} contexts)", seconds, limit)


def designs() -> None:
    """Design and validation of the owner's rules for a table with single records and runs."""
    settings = [Setting("record"), Setting("run"), Setting("first"), Setting("last")]
    for order, k, limit in ((1, 2, 10.0), (2, 2, 10.0), (3, 2, 10.0), (5, 2, 60.0), (1, 5, 10.0)):
        posterior = posterior_of(order, k)
        found: list[TablePolicy] = []
        seconds = busy(
            lambda p=posterior, f=found: f.append(
                design_table(off.OwnerStopping(), p, 1.0, "run", settings)
            )
        )
        said = f"owner's rules, {k} values, order {order} ({k**order} contexts)"
        report(f"{said}: {found[0].mechanism} acts", seconds, limit)


def first_redact() -> None:
    """A small table by the command, nothing known before, report included."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        values = walk(np.array([[0.95, 0.05], [0.3, 0.7]]), 60, 90, 1)
        frame = pl.DataFrame(
            {
                "who": np.repeat(np.arange(60), 90),
                "day": np.tile(np.arange(90), 60),
                "ill": values.ravel(),
            }
        )
        private = np.random.default_rng(2).random(len(frame)) < 0.004
        frame.with_columns(private=private).write_parquet(folder / "table.parquet")
        table = ("--value", "ill", "--order", "day", "--by", "who", "--step", "1")
        seconds, memory = command(
            "redact", folder / "table.parquet", *table, "--private", "private", "--fit",
            "--epsilon", "1", "--dataset", "bench", "--key-file", folder / "key" / "key.json",
            "-o", folder / "out.parquet",
        )  # fmt: skip
        report("first redact --fit, 5,400 rows of 2 values, report included", seconds, 15.0)
        report("    its memory", memory, 2.0, "GB")
        certificate = folder / "out.parquet.certificate.json"
        seconds, _ = command("verify", certificate, folder / "out.parquet")
        report("verify of that release", seconds, 3.0)


def first_releases() -> None:
    """Tables of the kinds that publishers hold, by `fit` and `redact --fit`, nothing known before,
    report included.
    """
    rng, designed = np.random.default_rng(7), 60.0  # s more where more than 8 contexts are designed
    stages = np.full((5, 5), 0.02) + np.diag([0.9, 0.8, 0.9, 0.9, 0.92])
    sticky = {k: np.full((k, k), (1 - stay) / (k - 1)) for k, stay in ((6, 0.6), (8, 0.5))}
    for k, stay in ((6, 0.6), (8, 0.5)):
        np.fill_diagonal(sticky[k], stay)
    for name, values, more in (
        ("panel, 25,632 rows of 6 values", walk(sticky[6], 2136, 12, 1), designed),
        ("one chain of order 4, 9,868 rows of 2 values", memory(rng, 9868), designed),
        ("100,000 rows of 8 values", walk(sticky[8], 1000, 100, 2), designed),
        ("20 nights, 18,000 rows of 5 values", walk(stages / stages.sum(axis=1, keepdims=True),
                                                    20, 900, 3), designed),
        ("4 sensors, 80,000 rows of 2 values", walk(np.array([[0.99, 0.01], [0.02, 0.98]]),
                                                    4, 20_000, 4), 0.0),
    ):  # fmt: skip
        with tempfile.TemporaryDirectory() as place:
            folder, (count, size) = Path(place), values.shape
            private = rng.random(values.size) < min(0.01, 600 / values.size)
            columns = {"t": np.tile(np.arange(size), count), "v": values.ravel()}
            by = ("--single-chain",)
            if count > 1:
                columns["who"], by = np.repeat(np.arange(count), size), ("--by", "who")
            frame = pl.DataFrame({**columns, "private": private})
            frame.write_parquet(folder / "table.parquet")
            table = (folder / "table.parquet", "--value", "v", "--order", "t", *by, "--step", "1",
                     "--private", "private")  # fmt: skip
            seconds, _ = command("fit", *table, "-o", folder / "model.json")
            report(f"first fit: {name}", seconds, 10.0)
            seconds, memory_used = command(
                "redact", *table, "--fit", "--accept", "model", "--epsilon", "1", "--dataset",
                "bench", "--key-file", folder / "key" / "key.json", "-o", folder / "out.parquet",
            )  # fmt: skip
            report(f"first redact --fit: {name}", seconds, 15.0 + more)
            report("    its memory", memory_used, None, "GB")


def memory(rng: np.random.Generator, size: int) -> np.ndarray:
    """(1, size) one chain of 0 and 1 with memory 4."""
    values, draws = np.zeros((1, size), dtype=np.int8), rng.random(size)
    chances = (0.15, 0.4, 0.6, 0.85)
    for t in range(4, size):
        seen = values[0, t - 1] + values[0, t - 2] + values[0, t - 4]
        values[0, t] = draws[t] < chances[seen]
    return values


def deciding() -> None:
    """Twenty million rows of 200,000 chains, 2 % private: local and stopping rules."""
    values = walk(np.array([[0.95, 0.05], [0.3, 0.7]]), ROWS // LENGTH, LENGTH, 0)
    chains = chains_of(values)
    private = np.random.default_rng(0).random(ROWS) < PRIVATE
    coins = Coins(bytes(32), "bench", "v")
    tags = coins.chain_tags(encoded_integers(np.arange(chains.count), 1))

    def draw(chain: np.ndarray, order: np.ndarray, purpose: bytes, counter: object) -> np.ndarray:
        return coins.draw(tags[chain], order, 1, purpose, counter)

    found: list[Runs] = []
    report("private runs of 20,000,000 rows", busy(lambda: found.append(Runs.of(chains, private))),
           None)  # fmt: skip
    runs = found[0]
    needed = settings_needed(chains, runs, 1, "run", everywhere)
    promise = off.KnownChains([off.MarkovChain.binary(0.05, 0.3)])
    owner = design_table(off.OwnerStopping(), promise, 1.0, "run", sorted(needed))
    pair = Pair(LocalRule.window(5, 2), LocalRule.window(5, 2))
    sides = {"first": Pair(None, pair.right), "last": Pair(pair.left, None)}
    rules = {one: sides.get(one.kind, pair) for one in needed}
    window = TablePolicy("window", 1.0, "run", None, rules)
    for what, policy in (("windows", window), (owner.mechanism, owner)):
        kept: list[np.ndarray] = []
        seconds = busy(
            lambda p=policy, k=kept: k.append(decide(chains, runs, p, everywhere, draw, 1))
        )
        share = 1 - kept[0].mean()
        report(f"deciding 20,000,000 rows, 2 % private, by {what}: keeps {share:.1%}", seconds, 4.0)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    report("    memory of this process", memory, None, "GB")


def whole_table() -> None:
    """The same by the command: reading, redacting, writing, verifying."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        simulated(folder / "table.parquet")
        model = {"format": "offrecord-model", "version": 2}
        promise = off.KnownChains([off.MarkovChain.binary(0.05, 0.3)])
        (folder / "model.json").write_text(json.dumps({**model, "model": promise.to_dict()}))
        table = ("--value", "v", "--order", "t", "--by", "chain", "--private", "private")
        for mechanism in ("window", "owner"):
            out = folder / f"{mechanism}.parquet"
            seconds, memory = command(
                "redact", folder / "table.parquet", *table, "--model", folder / "model.json",
                "--mechanism", mechanism, "--epsilon", "1", "--dataset", mechanism, "--key-file",
                folder / "key" / "key.json", "--limit", f"rows={10**9}", "--no-report",
                "--accept", "model", "--in-memory", "-o", out,
            )  # fmt: skip
            report(f"redact, 20,000,000 rows, {mechanism}", seconds, None)
            report("    its memory", memory, None, "GB")
            verified, _ = command("verify", f"{out}.certificate.json", out)
            report("verify of it / redact", verified / seconds, 1.5, "×")


def simulated(path: Path) -> None:
    """The table of `deciding` as a file."""
    values = walk(np.array([[0.95, 0.05], [0.3, 0.7]]), ROWS // LENGTH, LENGTH, 0)
    pl.DataFrame(
        {
            "chain": np.repeat(np.arange(ROWS // LENGTH, dtype=np.int32), LENGTH),
            "t": np.tile(np.arange(LENGTH, dtype=np.int32), ROWS // LENGTH),
            "v": values.ravel(),
            "private": np.random.default_rng(0).random(ROWS) < PRIVATE,
        }
    ).write_parquet(path)


MEASURED = {
    "fit": fits,
    "windows": windows,
    "designs": designs,
    "redact": first_redact,
    "first": first_releases,
    "decide": deciding,
    "table": whole_table,
}


def main() -> int:
    """Measure all, or those that are named."""
    for name in sys.argv[1:] or MEASURED:
        MEASURED[name]()
    if missed:
        print(f"{len(missed)} missed: {'; '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
