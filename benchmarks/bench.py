"""Speed, each figure a ratio of two things measured in this one run. `make bench` runs it; exit 1 if a limit is missed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import cvxpy
import numpy as np

import offrecord as off

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
    """Against one np.exp over the same array. The second instance can never stop early, so every record is walked."""
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
                exp = best_of(lambda m=matrix: np.exp(m))
                report(f"leakage, n = 10⁶, {name} / np.exp", seconds[n] / exp, 1.5)
        growth = " ".join(f"10^{round(np.log10(n))}: {1e9 * s / n:.1f}" for n, s in seconds.items())
        print(f"    nanoseconds a record  {growth}")
        report("    time a record, n = 10⁷ / n = 10⁵ (linear: about 1)", seconds[10**7] / seconds[10**5] / 100, 2.0)


def appendix_a(chain: off.MarkovChain, epsilon: float, room: int) -> None:
    """Appendix A's convex programme for one side, as a user of cvxpy would write it."""
    records = np.arange(2, room + 2)
    influence = off.pointwise_influence(chain, 1, records)
    medium = np.flatnonzero((influence[:, 0] <= epsilon) & (influence[:, 1] > epsilon))
    following = medium + 1
    deltas = np.where(np.isin(following, medium), influence[following, 0], influence[following, 1])
    q = cvxpy.Variable(len(medium))
    constraints = [-cvxpy.cumsum(cvxpy.log(q)) <= epsilon - deltas, q <= 1]
    cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(q)), constraints).solve(solver=cvxpy.CLARABEL)


def three_region() -> None:
    chain, epsilon, n = off.MarkovChain.binary(1e-4, 1e-3), 0.5, 10**6
    room = 20_000  # beyond the reach of this chain at ε/2, so that cvxpy's side prepares no more than it needs
    for place, private, sides, share in (("p = 1", 1, 1, epsilon), ("p in the middle", n // 2, 2, epsilon / 2)):
        theirs = sides * best_of(lambda share=share: appendix_a(chain, share, room), repeats=2)
        problem = off.Problem(chain, n, [private], epsilon)
        for tuning in ("convex", "constant"):
            ours = best_of(lambda p=problem, t=tuning: off.design(p, off.ThreeRegion(t)))
            report(f"3r-{tuning}, n = 10⁶, {place}, best split / cvxpy with Clarabel, ε/2 a side", ours / theirs, 1.0)


def start_up() -> None:
    command = [str(Path(sys.executable).with_name("offrecord")), "--help"]
    seconds = best_of(lambda: subprocess.run(command, check=True, capture_output=True))
    report("offrecord --help", seconds, 0.3, "s")


def main() -> int:
    exact_leakage()
    three_region()
    start_up()
    missed = sum(value > limit for _, value, limit, _ in results)
    print(f"{len(results)} figures, {missed} missed their limit")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
