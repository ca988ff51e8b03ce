"""Runs of redact that are killed at any moment, that meet a full disk, or that share a ledger: an
output only whole, with its certificate and its entry in the ledger; no entry lost; no needle in
what is left; and the next run works.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

from soak import needles
from soak.frames import table
from soak.running import Campaign, Notes, ViolationError

_REDACT = "from offrecord.cli import run; run()"
_LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0})); "
_ASIDE = ("offrecord: warning: ", "offrecord: note: ")
_TIMES = 300  # the small table is repeated so often that writing takes its time


def _killed(kind: str, rng: random.Random, folder: Path) -> Notes:
    ending, _, how = kind.partition(" ")
    _tables(folder, ending)
    runs = 2 if how == "twice at once" else 1
    notes: Notes = Counter()
    if how == "over an older release":
        _start(folder, ending, "older", "0.5").wait()
    before = _entries(folder)
    began = time.monotonic()
    processes = [_start(folder, ending, f"run{i}", str(1 + i)) for i in range(runs)]
    wait = rng.choice(["start", "writing"])
    for process in processes:
        if wait == "start":
            time.sleep(rng.uniform(0.3, 4.0))
        else:
            while process.poll() is None and not _writes(folder) and time.monotonic() < began + 60:
                time.sleep(0.001)
            time.sleep(rng.choice([0.0, 0.001, 0.01, 0.05]) * rng.random())
        notes["ended before" if process.poll() is not None else "killed"] += 1
        process.kill()
        process.wait()
    after = _entries(folder)
    if not before <= after:
        raise ViolationError("an entry of the ledger is lost")
    notes["whole outputs"] += _check_pair(folder, ending, after)
    _check_left(folder, ending)
    again = _start(folder, ending, "again", "2")
    if again.wait() != 0:
        raise ViolationError(f"a run after the kill ends with {again.returncode}")
    _check_pair(folder, ending, _entries(folder))
    return notes


def _full(kind: str, rng: random.Random, folder: Path) -> Notes:
    """No file can grow beyond a size, as on a disk that fills up; then there is room again."""
    ending = kind.split(maxsplit=1)[0]
    _tables(folder, ending)
    room = int(2 ** rng.uniform(0, 23))
    process = _start(folder, ending, "full", "1", room=room, heard=True)
    said = process.communicate()[1].decode().splitlines()
    wrong = [line for line in said if not line.startswith(_ASIDE)]
    if process.returncode not in (0, 2) or len(wrong) > (process.returncode == 2):
        raise ViolationError(f"exit {process.returncode} with room for {room} bytes: {said!r:.300}")
    if left := [file.name for file in folder.rglob("*.partial")]:
        raise ViolationError(f"{left[0]} is left")
    entries = _entries(folder)
    if _check_pair(folder, ending, entries) != (process.returncode == 0):
        raise ViolationError(f"exit {process.returncode}, but the output says otherwise")
    _check_left(folder, ending)
    if _start(folder, ending, "again", "2").wait() != 0:
        raise ViolationError("a run with room again fails")
    _check_pair(folder, ending, _entries(folder))
    return Counter({f"exit {process.returncode}": 1})


def _shared(kind: str, rng: random.Random, folder: Path) -> Notes:
    """Several releases at once under one key: each has its output and its entry."""
    ending, count = kind.split(maxsplit=1)[0], rng.choice([2, 3, 4])
    _tables(folder, ending)
    names = [f"run{i}" for i in range(count)]
    processes = [_start(folder, ending, name, "1", out=name) for name in names]
    if any(process.wait() for process in processes):
        raise ViolationError("a release beside others fails")
    missing = set(names) - _entries(folder)
    if missing:
        raise ViolationError(f"entries are lost: {sorted(missing)}")
    for name in names:
        _check_pair(folder, ending, set(names), out=name)
    return Counter({"releases": count})


def _tables(folder: Path, ending: str) -> None:
    import polars as pl

    import table_files

    frame, private = table()
    frames, lists = (
        [one.with_columns(pl.col("id") + f"{i}") for i in range(_TIMES)] for one in (frame, private)
    )
    table_files.write(pl.concat(frames), folder / f"table{ending}")
    pl.concat(lists).write_csv(folder / "list.csv")
    rows = [[600, 300, 100], [300, 500, 200], [200, 300, 500]]
    known = {"kind": "chain", "labels": ["low", "mid", needles.VALUE]}
    known["transition"] = [[one / 1000 for one in row] for row in rows]
    model = {"kind": "chains", "chains": [known]}
    content = {"format": "offrecord-model", "version": 2, "model": model}
    (folder / "model.json").write_text(json.dumps(content))
    (folder / "out").mkdir()


def _start(
    folder: Path,
    ending: str,
    dataset: str,
    epsilon: str,
    *,
    out: str = "out",
    room: int | None = None,
    heard: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a release. room: bytes that a file may have. heard: whether its errors are kept."""
    given = [
        f"table{ending}", "--value", "v", "--order", "t", "--by", "id", "--keep", "k",
        "--private-list", "list.csv", "--model", "model.json", "--epsilon", epsilon, "--mechanism",
        "window", "--dataset", dataset, "--key-file", "key/key.json", "-o", f"out/{out}{ending}",
        "--accept", "model", "--force", "--no-report",
    ]  # fmt: skip
    code = _REDACT if room is None else _LIMITED.format(room) + _REDACT
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code, "redact", *given],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE if heard else subprocess.DEVNULL,
    )


def _writes(folder: Path) -> bool:
    names = os.listdir(folder / "out")
    key = folder / "key"
    return any(name.endswith((".partial", ".certificate.json")) for name in names) or (
        key.exists() and any("partial" in name for name in os.listdir(key))
    )


def _entries(folder: Path) -> set[str]:
    file = folder / "key" / "key.ledger.json"
    if not file.exists():
        return set()
    try:
        return set(json.loads(file.read_bytes())["releases"])
    except ValueError:
        raise ViolationError("the ledger is damaged") from None


def _check_pair(folder: Path, ending: str, entries: set[str], out: str = "out") -> int:
    """An output only with the certificate that is its own, and with an entry; 1 if there is one."""
    output = folder / "out" / f"{out}{ending}"
    certificate = output.with_name(f"{output.name}.certificate.json")
    if not output.exists():
        return 0
    try:
        content = json.loads(certificate.read_bytes())
    except (OSError, ValueError):
        raise ViolationError("an output without a whole certificate") from None
    if content["dataset"] not in entries:
        raise ViolationError("a release without an entry in the ledger")
    if content["output"]["sha256"] != hashlib.sha256(output.read_bytes()).hexdigest():
        raise ViolationError("an output with the certificate of another")
    return 1


def _check_left(folder: Path, ending: str) -> None:
    """What else is there is hidden and partial, and nothing holds a needle."""
    known = {f"out{ending}", f"out{ending}.certificate.json"}
    for name in set(os.listdir(folder / "out")) - known:
        if not (name.startswith(".") and name.endswith(".partial")):
            raise ViolationError(f"{name} is left in the folder of the output")
    found = needles.found_under(folder, {f"table{ending}", "list.csv", "model.json"})
    if found is not None:
        raise ViolationError(f"needle: {found}")


_KINDS = (".csv", ".parquet", ".csv.gz", ".parquet over an older release", ".csv twice at once")
CAMPAIGN = Campaign(
    {kind: partial(_killed, kind) for kind in _KINDS}
    | {kind: partial(_full, kind) for kind in (".csv full disk", ".parquet full disk")}
    | {".csv one ledger": partial(_shared, ".csv one ledger")},
    limit=180.0,
    words="`redact` is killed (SIGKILL) at random moments, mostly while it writes; over an older"
    " release; two runs at once with one output. No file may grow beyond a random size, as on a"
    " full disk. Two to four releases at once share a key and its ledger. A violation is an output"
    " that is not whole, has not its own certificate or no entry in the ledger; a lost entry;"
    " anything but hidden partial files beside the output, and after a full disk any file; a"
    " needle; more than one line of error; or a run afterwards that fails.",
)
