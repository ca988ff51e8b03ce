"""Speed, each figure a ratio of two things measured in this one run. `make bench` runs it; exit 1
if a limit is missed.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import cvxpy
import numpy as np
import polars as pl

import offrecord as off
from offrecord.theory.redaction import Redaction

results: list[tuple[str, float, float, str]] = []


def best_of(action: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the fastest of some calls, after one that compiles and warms up."""
    action()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def report(what: str, value: float, limit: float, unit: str = "×") -> None:
    results.append((what, value, limit, unit))
    verdict = "ok" if value <= limit else "MISSED"
    print(f"{what:<92} {value:9.3f} {unit}  (limit {limit:g} {unit})  {verdict}", flush=True)


def exact_leakage() -> None:
    """Against np.cumprod along the same records: each step of a walk waits for the one before it,
    too, while np.exp takes as many entries at once as a processor can, two to eight times as many
    on one as on another. The second instance can never stop early, so every record is walked.
    """
    rng = np.random.default_rng(0)
    inside, outside = off.MarkovChain.binary(0.01, 0.8), off.MarkovChain.binary(1e-9, 2e-9)
    for name, chain, always in (
        ("all probabilities inside (0, 1)", inside, False),
        ("value 1 always redacted, slow chain: every record walked", outside, True),
    ):
        seconds = {}
        for n in (10**4, 10**5, 10**6, 10**7):
            matrix = rng.uniform(0.01, 0.99, (n, 2))
            if always:
                matrix[:, 0], matrix[:, 1] = 1 - 1e-9 * matrix[:, 0], 1.0
            matrix[0] = 1.0
            problem = off.Problem(chain, n, [1], 1.0)
            seconds[n] = best_of(lambda p=problem, m=matrix: off.leakage(p, m))
            if n == 10**6:
                product = best_of(lambda m=matrix: np.cumprod(m, axis=0))
                exp = best_of(lambda m=matrix: np.exp(m))
                report(f"leakage, n = 10⁶, {name} / np.cumprod", seconds[n] / product, 2.0)
                print(f"    / np.exp  {seconds[n] / exp:.2f} ×")
        growth = " ".join(f"10^{round(np.log10(n))}: {1e9 * s / n:.1f}" for n, s in seconds.items())
        print(f"    nanoseconds a record  {growth}")
        report(
            "    time a record, n = 10⁷ / n = 10⁵ (linear: about 1)",
            seconds[10**7] / seconds[10**5] / 100,
            2.0,
        )


def sets_of_models() -> None:
    """Two values, the walk over a box of models against that of one model, on the same stretches.

    Every record walked; a walk that may stop early; a window that a power crosses.
    """
    share = np.random.default_rng(0).uniform(0.01, 0.99, 10**5)
    share[0] = 0.0
    partial = np.ones((2, 10**5, 2))
    partial[0, :, 0], partial[1, :, 0] = 1 - 1e-9 * share, 1 - 0.5 * share
    window = Redaction.of(10**6, 2, [(0, 5 * 10**5, np.ones(2))])
    for name, rates, redaction in (
        ("10⁵ partial rows, slow chain", (1e-9, 2e-9), Redaction.from_matrix(partial[0], 10**5, 2)),
        ("10⁵ partial rows, fast chain", (0.01, 0.8), Redaction.from_matrix(partial[1], 10**5, 2)),
        ("a window of 500,000 records", (1e-6, 2e-6), window),
    ):
        chain = off.MarkovChain.binary(*rates)
        box = off.Box.binary(*((0.9 * rate, 1.1 * rate) for rate in rates))
        over, alone = (
            best_of(lambda p=problem, r=redaction: off.leakage(p, r), repeats=9)
            for problem in (
                off.Problem(chain, redaction.n, [1], 1.0, models=box),
                off.Problem(chain, redaction.n, [1], 1.0),
            )
        )
        report(f"leakage over a box of models, {name} / of one model", over / alone, 3.0)


def appendix_a(chain: off.MarkovChain, epsilon: float, room: int) -> None:
    """Appendix A's convex programme for one side, as a user of cvxpy would write it."""
    records = np.arange(2, room + 2)
    influence = off.pointwise_influence(chain, 1, records)
    medium = np.flatnonzero((influence[:, 0] <= epsilon) & (influence[:, 1] > epsilon))
    following = medium + 1
    deltas = np.where(np.isin(following, medium), influence[following, 0], influence[following, 1])
    if len(medium) == 0:
        return
    q = cvxpy.Variable(len(medium))
    constraints = [-cvxpy.cumsum(cvxpy.log(q)) <= epsilon - deltas, q <= 1]
    cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(q)), constraints).solve(solver=cvxpy.CLARABEL)


def three_region() -> None:
    chain, epsilon, n = off.MarkovChain.binary(1e-4, 1e-3), 0.5, 10**6
    # beyond the reach of this chain at ε/2, so that cvxpy's side prepares no more than it needs
    room = 20_000
    for place, private, sides, share in (
        ("p = 1", 1, 1, epsilon),
        ("p in the middle", n // 2, 2, epsilon / 2),
    ):
        theirs = sides * best_of(lambda share=share: appendix_a(chain, share, room), repeats=2)
        problem = off.Problem(chain, n, [private], epsilon)
        for tuning in ("convex", "constant"):
            ours = best_of(lambda p=problem, t=tuning: off.design(p, off.ThreeRegion(t)))
            report(
                f"3r-{tuning}, n = 10⁶, {place}, best split / cvxpy with Clarabel, ε/2 a side",
                ours / theirs,
                1.0,
            )


def best_local() -> None:
    """Against cvxpy with Clarabel on Appendix A's programme; the two-sided one for both its sides
    at ε/2.
    """
    chain = off.MarkovChain.binary(0.01, 0.8)
    epsilons = np.linspace(0.06, 3, 50)
    problems = [off.Problem(chain, 10, [1], float(epsilon)) for epsilon in epsilons]
    theirs = best_of(
        lambda: [appendix_a(chain, float(epsilon), 40) for epsilon in epsilons], repeats=1
    )
    forget_values()
    ours = best_of(
        lambda: [forget_values(), *(off.design(problem) for problem in problems)], repeats=3
    )
    report(
        "best-local, Fig. 2 over 50 ε, value functions included / cvxpy with Clarabel",
        ours / theirs,
        1.0,
    )
    chain = off.MarkovChain.binary(1e-3, 1e-2)
    theirs = best_of(lambda: appendix_a(chain, 0.25, 2000), repeats=3)
    for n in (10**5, 10**8):
        problem = off.Problem(chain, n, [n // 2], 0.5)
        ours = best_of(lambda p=problem: (forget_values(), off.design(p)))
        report(
            f"best-local, α = 10⁻³, β = 10⁻², ε = 0.5, n = {n:.0e}, p in the middle / one such"
            " solve",
            ours / theirs,
            10.0,
        )
    rng = np.random.default_rng(0)
    slow = off.MarkovChain(rng.dirichlet(np.full(8, 0.5), size=8) * 0.5 + np.eye(8) * 0.5)
    problem = off.Problem(slow, 200, [100], 1.0)
    start = time.perf_counter()
    policy = off.design(problem)
    report("best-local, k = 8, n = 200, one private record", time.perf_counter() - start, 30.0, "s")
    window = off.design(problem, off.BestWindow()).utility
    print(
        f"    utility {policy.utility:.4f}, window {window:.4f}, at most {policy.utility_bound:.4f}"
    )


def forget_values() -> None:
    """What a fresh process would have to compute again."""
    from offrecord.mechanisms.best_local import binary_optimum

    binary_optimum._tables.cache_clear()


def start_up() -> None:
    command = [str(Path(sys.executable).with_name("offrecord")), "--help"]
    seconds = best_of(lambda: subprocess.run(command, check=True, capture_output=True))
    report("offrecord --help", seconds, 0.3, "s")


SMALL = ("--by", "who", "--order", "day", "--value", "state", "--private", "private")
#: Chains of small tables, from those that forget within a few records to those that remember many.
KERNELS = (
    [[0.8, 0.2], [0.3, 0.7]],
    [[0.95, 0.05], [0.3, 0.7]],
    [[0.9, 0.1], [0.1, 0.9]],
    [[0.98, 0.02], [0.1, 0.9]],
    [[0.99, 0.01], [0.05, 0.95]],
    [[0.995, 0.005], [0.02, 0.98]],
    [[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]],
    [[0.7, 0.2, 0.1], [0.15, 0.7, 0.15], [0.1, 0.3, 0.6]],
    [[0.85, 0.1, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]],
    [[0.9, 0.08, 0.02], [0.2, 0.7, 0.1], [0.05, 0.15, 0.8]],
    [[0.95, 0.04, 0.01], [0.3, 0.6, 0.1], [0.1, 0.3, 0.6]],
)


def small_table(kernel: Sequence[Sequence[float]], rng: np.random.Generator) -> pl.DataFrame:
    """40 chains of 90 records, 22 of them private."""
    chain, chains, length = off.MarkovChain(kernel), 40, 90
    states = np.empty((chains, length), dtype=int)
    states[:, 0] = rng.choice(chain.k, chains, p=chain.marginal(1))
    up_to = np.cumsum(kernel, axis=1)[:, :-1]
    for day in range(1, length):
        states[:, day] = (rng.random((chains, 1)) >= up_to[states[:, day - 1]]).sum(axis=1)
    private = np.zeros(chains * length, dtype=bool)
    private[rng.choice(len(private), 22, replace=False)] = True
    return pl.DataFrame(
        {
            "who": np.repeat(np.arange(chains), length),
            "day": np.tile(np.arange(length), chains),
            "state": np.array(["a", "b", "c"])[states.ravel()],
            "private": private,
        }
    )


def first_redact() -> None:
    """The first `redact` of small tables, with its report, by a model and its set from another such
    table, where nothing was compiled but what pip compiles; and a later one.
    """
    compileall.compile_dir(Path(off.__file__).parent, quiet=1)
    for kernel in KERNELS:
        rng = np.random.default_rng(7)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            known, table, model = (folder / one for one in ("known", "small.parquet", "model.json"))
            learned = off.fit(small_table(kernel, rng), by="who", order="day", value="state")
            learned.model.save(model)
            small_table(kernel, rng).write_parquet(table)
            program = (str(Path(sys.executable).with_name("offrecord")), "redact", str(table))
            files = ("--model", str(model), "--key-file", str(folder / "key" / "key.json"))
            said = ("--epsilon", "1", "--dataset", "small", "--output", str(folder / "out.parquet"))
            command = (*program, *SMALL, *files, *said, "--force")
            first = seconds_of(*command, kept=known)
            again = seconds_of(*command, kept=folder / "anew")
            later = seconds_of(*command, kept=known)
        rows = ", ".join("(" + " ".join(f"{one:g}" for one in row) + ")" for row in kernel)
        report(f"first redact of a small table, {rows}", min(first, again), 5.0, "s")
        print(f"    two runs {first:.2f} and {again:.2f} s, a later one {later:.2f} s")


def seconds_of(*command: str, kept: Path) -> float:
    """What a process takes; kept: where it looks for compiled code and leaves it."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(kept)}
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - start


def main() -> int:
    exact_leakage()
    sets_of_models()
    three_region()
    best_local()
    start_up()
    first_redact()
    missed = sum(value > limit for _, value, limit, _ in results)
    print(f"{len(results)} figures, {missed} missed their limit")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
