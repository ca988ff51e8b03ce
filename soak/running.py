"""Batches of cases: each runs in a process of its own, which may hang or crash.

A case is drawn from its campaign, kind and number alone. Results are one line a batch in
out/soak/results.jsonl, so that a run that ends at any moment goes on where it was.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
STATE = ROOT / "out" / "soak"
BATCH = 20.0  # seconds of a batch; starting a process takes one of them
_MOST_FOUND = 10  # violations after which a batch ends

#: Notes of a case: numbers that are added up.
Notes = Counter[str]
#: Runs one case with its random numbers, in a folder of its own.
Run = Callable[[random.Random, Path], Notes]


class ViolationError(Exception):
    """What must not be, in one line."""


class Campaign(NamedTuple):
    """kinds: what runs a case of each. limit: seconds after which a case hangs. words: what is
    tried, and what a violation is.
    """

    kinds: Mapping[str, Run]
    limit: float
    words: str


class Result(NamedTuple):
    """What became of a batch. found: (number of the case, what)."""

    campaign: str
    kind: str
    first: int
    cases: int
    notes: dict[str, float]
    found: list[tuple[int, str]]
    seconds: float
    commit: str


def numbers(campaign: str, kind: str, number: int) -> random.Random:
    """The random numbers of a case."""
    return random.Random(f"{campaign}/{kind}/{number}")


# ---- in the process of a batch


def batch(campaign: str, run: Run, kind: str, cases: range | count[int], seconds: float) -> None:
    """Run cases until time is over, and print a line for each."""
    ends, found = time.monotonic() + seconds, 0
    for number in cases:
        line: dict[str, object] = {"number": number}
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            try:
                line["notes"] = dict(run(numbers(campaign, kind, number), Path(folder)))
            except BaseException as error:  # a panic of the table engine is no Exception
                line["found"] = _in_one_line(error)
                found += 1
        print(json.dumps(line), flush=True)
        if time.monotonic() > ends or found >= _MOST_FOUND:
            break


def _in_one_line(error: BaseException) -> str:
    if isinstance(error, ViolationError):
        return str(error)
    import traceback

    places = traceback.extract_tb(error.__traceback__)[-2:]
    where = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in reversed(places))
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]} ({where})"


# ---- outside of it


def watched(
    campaign: str, kind: str, first: int, limit: float, *, seconds: float, cases: int | None = None
) -> Result:
    """A batch in a process of its own; one that prints nothing for `limit` seconds is killed."""
    words = ["batch", campaign, kind, str(first), "--seconds", str(seconds)]
    words += [] if cases is None else ["--cases", str(cases)]
    single = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as wrong:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "soak", *words],
            cwd=ROOT, env=os.environ | single, stdout=said, stderr=wrong, start_new_session=True,
        )  # fmt: skip
        hangs = not _ends(process, said.fileno(), limit)
        said.seek(0)
        wrong.seek(0)
        lines = [json.loads(line) for line in said if line.endswith("\n")]
        last_words = wrong.read().strip().splitlines()[-1:]
    notes: Notes = Counter()
    for line in lines:
        notes.update(line.get("notes", {}))
    found = [(line["number"], line["found"]) for line in lines if "found" in line]
    if hangs or process.returncode:
        how = "hangs" if hangs else f"ends the process ({process.returncode}): {last_words}"
        found.append((lines[-1]["number"] + 1 if lines else first, how))
    done = len(lines) + bool(hangs or process.returncode)
    seconds = round(time.monotonic() - began, 3)
    return Result(campaign, kind, first, done, dict(notes), found, seconds, commit())


def _ends(process: subprocess.Popen[bytes], output: int, limit: float) -> bool:
    """Whether a process ends by itself."""
    size, since = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(0.05)
        now = os.fstat(output).st_size
        if now != size:
            size, since = now, time.monotonic()
        if time.monotonic() - since > limit + 30:  # it imports first
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False
    return True


def commit() -> str:
    """Of the sources that run, and whether they were changed since."""
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=9"],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    return said.stdout.strip() or "unknown"


def results(state: Path = STATE) -> Iterator[Result]:
    """What was run; a line that was cut short is left out."""
    file = state / "results.jsonl"
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                yield Result(**json.loads(line))
            except (ValueError, TypeError):
                continue


def run(campaigns: Mapping[str, Campaign], state: Path, *, minutes: float, processes: int) -> bool:
    """Batches for some minutes: every campaign has the same time, and every kind of it.

    Returns whether nothing was found.
    """
    state.mkdir(parents=True, exist_ok=True)
    spent: dict[tuple[str, str], float] = defaultdict(float)
    following: dict[tuple[str, str], int] = defaultdict(int)
    for one in results(state):
        spent[one.campaign, one.kind] += one.seconds
        following[one.campaign, one.kind] = max(
            following[one.campaign, one.kind], one.first + one.cases
        )
    ends, lock, good = time.monotonic() + 60 * minutes, threading.Lock(), [True]

    def work() -> None:
        while (left := ends - time.monotonic()) > 0:
            with lock:
                whole = {c: sum(spent[c, kind] for kind in campaigns[c].kinds) for c in campaigns}
                name = min(whole, key=whole.__getitem__)
                kind = min(campaigns[name].kinds, key=lambda kind: spent[name, kind])
                spent[name, kind] += BATCH  # so that the other process takes another
                first = following[name, kind]
            done = watched(name, kind, first, campaigns[name].limit, seconds=min(BATCH, left))
            with lock:
                spent[name, kind] += done.seconds - BATCH
                following[name, kind] = first + done.cases
                good[0] &= record(done, state)

    with ThreadPoolExecutor(processes) as pool:
        for one in [pool.submit(work) for _ in range(processes)]:
            one.result()
    return good[0]


def record(done: Result, state: Path) -> bool:
    """Keep what was run, and print what was found; whether that is nothing."""
    with (state / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(done._asdict(), ensure_ascii=False) + "\n")
    for number, what in done.found:
        print(f"{done.campaign} {done.kind!r} {number}: {what}", flush=True)
    return not done.found
