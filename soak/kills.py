"""Runs of redact that are killed at any moment, alone and several on one ledger: an output only
whole, with its certificate and its entry in the ledger; no entry lost; no needle in what is left.

Runs are forked from a process that has everything in memory already, so that a run is as short as
what it does, and moments are spread over that.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import offrecord as off
from soak import needles
from soak.campaign import Case, Notes, ViolationError
from soak.frames import CHAINS, EARLY, LONG, PRIVATE

ROWS = 12_000  # so many that writing takes its time
_LONGEST = 60.0  # seconds after which a run that nobody kills hangs
_GROWS, _AFTER = "a table that grows", "after another release"
_SERIES = (_GROWS, _AFTER)  # releases of the same records, of which the first is there already
_AGAIN = 77  # the number of a run after the kill
_MEASURED = 98  # numbers from here on are of runs by which others are timed


class KillsCampaign:
    """Every engine and format, one run and several."""

    name = "kills"
    least = 1_000
    limit = 300.0
    memory = None
    kinds: ClassVar = {
        "in memory, .csv": 1.0,
        "in memory, .parquet": 1.0,
        "in memory, .arrow": 1.0,
        "in memory, .csv.gz": 1.0,
        "streamed, .csv": 1.0,
        "streamed, .parquet": 1.0,
        "over an older release": 2.0,
        "with a designs file": 1.0,
        "a new key": 1.0,
        "several on one ledger": 3.0,
        "several on one output": 3.0,
        _GROWS: 2.0,
        _AFTER: 2.0,
    }

    def prepared(self, folder: Path) -> None:
        """A table with needles, its list and its model."""
        import polars as pl

        store = folder / "kills"
        if (store / "whole").exists():
            return
        store.mkdir(parents=True, exist_ok=True)
        copies = ROWS // (len(CHAINS) * LONG)
        rows, private, rng = [], [], random.Random(1)
        for copy in range(copies):
            for name in CHAINS:
                for t in range(LONG):
                    hidden = (name, t) in PRIVATE and copy % 4 == 0
                    rows.append(_row(rng, f"{name}{copy}", t, hidden=hidden))
                    if hidden:
                        private.append({"id": f"{name}{copy}", "t": t})
        frame = pl.DataFrame(rows)
        frame.write_parquet(store / "table.parquet")
        frame.write_csv(store / "table.csv")
        listed = pl.DataFrame(private)
        listed.write_csv(store / "list.csv")
        frame.filter(pl.col("t") < EARLY).write_parquet(store / "early.parquet")
        frame.filter(pl.col("t") < EARLY).write_csv(store / "early.csv")
        listed.filter(pl.col("t") < EARLY).write_csv(store / "early-list.csv")
        _model().save(store / "model.json", force=True)
        (store / "whole").touch()

    def ready(self, folder: Path, kind: str) -> None:
        """What every run imports, and its compiled loops."""
        import offrecord.cli
        import offrecord.tables.engines.memory
        import offrecord.tables.engines.stream
        import offrecord.verify.table  # noqa: F401

        off.design(off.Problem(_model(), 9, [4], 1.0), "window")

    def run(self, case: Case, folder: Path, store: Path) -> Notes:
        """Start one run or several, kill them at some moment, and look at what is left."""
        rng = case.random()
        here = folder / "case"
        first = not here.exists()
        for name in ("key", "tmp"):
            (here / name).mkdir(parents=True, exist_ok=True)
        shutil.rmtree(here / "out", ignore_errors=True)
        (here / "out").mkdir()
        desk = _Desk(here, store / "kills")
        if first or case.kind == "a new key":
            desk.measure(case, fresh=case.kind == "a new key")
        older = None
        if case.kind in ("over an older release", *_SERIES):
            older = desk.release(case, 0, "older")
        before = desk.entries()
        count = rng.choice([2, 3]) if case.kind.startswith("several") else 1
        runs = [desk.started(case, number) for number in range(count)]
        notes: Notes = Counter()
        for run in runs:
            desk.kill(rng, run, spared=count > 1 and run is runs[-1] and rng.random() < 0.3)
            notes["kills" if run.code is None else "ended before"] += 1
        try:
            _check(case, desk, runs, before, older, notes)
            if rng.random() < (0.5 if case.kind in _SERIES else 0.2):
                desk.finish(case)
                notes["done again after the kill"] += 1
        except ViolationError:
            shutil.copytree(here, folder / f"case-{case.number}", dirs_exist_ok=True)
            raise
        return notes


def _row(rng: random.Random, name: str, t: int, *, hidden: bool) -> dict[str, Any]:
    return {
        "id": name,
        "t": t,
        "v": needles.VALUE if hidden else rng.choice(["low", "mid"]),
        "k": needles.KEPT if hidden else rng.choice(["k", "l"]),
        "x": needles.DROPPED if hidden else "x",
    }


def _model() -> off.MarkovChain:
    kernel = [[0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]]
    return off.MarkovChain(kernel, labels=["low", "mid", needles.VALUE])


class _Run:
    """A run under way. code: how it ended by itself, None if it was killed."""

    def __init__(self, process: int, dataset: str, out: Path) -> None:
        self.process, self.dataset, self.out = process, dataset, out
        self.code: int | None = None
        self.began = time.monotonic()


class _Entry(NamedTuple):
    """A release in a ledger."""

    dataset: str
    content: str


class _Desk:
    """A folder with a key, outputs and a place for temporary files."""

    def __init__(self, here: Path, given: Path) -> None:
        self.here, self.given = here, given
        self.key = here / "key" / "key.json"
        #: what kills before have left there
        self.left = set(_names(self.key.with_name("key.releases")))

    # ---- runs

    def arguments(self, case: Case, dataset: str, out: Path, name: str) -> list[str]:
        """The words of one run."""
        streamed = case.kind.startswith("streamed") or case.number % 3 == 1
        ending = "csv" if out.suffix == ".csv" else "parquet"
        table, listed = f"table.{ending}", "list.csv"
        if case.kind == _GROWS and name == "older":
            table, listed = f"early.{ending}", "early-list.csv"
        given = [
            "redact", str(self.given / table), "--value", "v", "--order", "t", "--by",
            "id", "--keep", "k", "--private-list", str(self.given / listed), "--model",
            str(self.given / "model.json"), "--epsilon", "1", "--mechanism", "window", "--dataset",
            dataset, "--key-file", str(self.key), "-o", str(out), "--accept-model",
        ]  # fmt: skip
        if case.kind.startswith("in memory") or case.kind == _AFTER or not streamed:
            given.append("--in-memory")
        else:
            given.append("--stream")
        if case.kind == "with a designs file":
            given += ["--designs", str(self.here / "key" / "designs.json")]
        if case.kind in ("over an older release", "several on one output"):
            given.append("--force")
        if case.kind == _GROWS:
            given += ["--growing", "--lag", "8", "--step", "1"]
        if case.kind == _AFTER and name != "older":
            given += ["--epsilon", "0.7" if name != "next" else "0.4", "--joint-epsilon", "inf"]
            others = [f"earlier{out.suffix}"] + [f"out{_AGAIN}{out.suffix}"] * (name == "next")
            for one in others:
                given += ["--after", str(out.with_name(f"{one}.certificate.json"))]
        return given

    def started(self, case: Case, number: int, name: str = "") -> _Run:
        """Fork a run."""
        suffix = case.kind.partition(", ")[2] or (".csv", ".parquet", ".arrow")[case.number % 3]
        same = case.kind in ("several on one output", "over an older release")
        out = self.here / "out" / f"out{'' if same else number}{suffix}"
        dataset = f"{case.batch}-{case.number}-{number}{name}"
        if case.kind in _SERIES:
            dataset = f"{case.batch}-{case.number}{'-measured' * (number >= _MEASURED)}"
            out = out.with_stem("earlier") if name == "older" else out
        arguments = self.arguments(case, dataset, out, name)
        if same:  # what runs release differs, or nobody could tell whose certificate an output has
            arguments[arguments.index("--epsilon") + 1] = str(len(name) + number % 9 / 2 + 0.5)
        process = os.fork()
        if process == 0:
            os._exit(_as_a_process(arguments, self.here, number))
        return _Run(process, dataset, out)

    def measure(self, case: Case, *, fresh: bool) -> None:
        """How long a whole run takes here, and a first entry."""
        if fresh:
            shutil.rmtree(self.here / "key")
            (self.here / "key").mkdir()
            if (self.here / "seconds").exists():
                return
        if case.kind in _SERIES:
            self.release(case, _MEASURED, "older")
        run = self.started(case, _MEASURED + 1)
        self.wait(run)
        if run.code != 0:
            said = (self.here / f"said-{_MEASURED + 1}").read_text()
            raise ViolationError(f"a run that nobody kills ends with {run.code}: {said:.300}")
        (self.here / "seconds").write_text(str(time.monotonic() - run.began))
        if fresh:
            shutil.rmtree(self.here / "key")
            (self.here / "key").mkdir()
        for file in (self.here / "out").iterdir():
            file.unlink()

    def release(self, case: Case, number: int, name: str) -> bytes:
        """A release that nobody kills; its SHA-256."""
        run = self.started(case, number, name)
        self.wait(run)
        if run.code != 0:
            said = (self.here / f"said-{number}").read_text()
            raise ViolationError(f"a run that nobody kills ends with {run.code}: {said:.300}")
        return hashlib.sha256(run.out.read_bytes()).digest()

    def wait(self, run: _Run) -> None:
        """Until it ends by itself."""
        ends = time.monotonic() + _LONGEST
        while time.monotonic() < ends:
            if self._has_ended(run):
                return
            time.sleep(0.002)
        os.kill(run.process, signal.SIGKILL)
        os.waitpid(run.process, 0)
        raise ViolationError("a run hangs that nobody kills")

    def _has_ended(self, run: _Run) -> bool:
        process, status = os.waitpid(run.process, os.WNOHANG)
        if process:
            run.code = os.waitstatus_to_exitcode(status)
        return bool(process)

    def kill(self, rng: random.Random, run: _Run, *, spared: bool) -> None:
        """At a moment anywhere in the run, or, more often, while it writes."""
        if spared:
            self.wait(run)
            return
        whole = float((self.here / "seconds").read_text())
        if rng.random() < 0.35:
            time.sleep(max(rng.uniform(0, 1.1 * whole) - (time.monotonic() - run.began), 0))
        else:
            until = run.began + 3 * whole + 5
            waits_for = rng.choice([".partial", ".certificate.json", "key.ledger", "key.releases"])
            while time.monotonic() < until and not self._has_written(run, waits_for):
                if self._has_ended(run):
                    return
                time.sleep(0.0005)
            time.sleep(rng.choice([0, 0.001, 0.005, 0.02, 0.1]) * rng.random())
        if not self._has_ended(run):
            os.kill(run.process, signal.SIGKILL)
            _, status = os.waitpid(run.process, 0)
            if not os.WIFSIGNALED(status):
                run.code = os.waitstatus_to_exitcode(status)

    def _has_written(self, run: _Run, what: str) -> bool:
        if what == "key.ledger":  # the ledger is about to be written anew
            return any(
                "key.ledger" in name and "partial" in name for name in _names(self.key.parent)
            )
        if what == "key.releases":  # what later releases need is about to be kept
            kept = _names(self.key.with_name(what))
            return any(name.endswith(".partial") and name not in self.left for name in kept)
        return any(name.endswith(what) and run.out.name in name for name in _names(run.out.parent))

    def finish(self, case: Case) -> None:
        """What was killed, done again: it works, whatever is left of before."""
        for number, name in ((_AGAIN, "again"), (_AGAIN + 1, "next")):
            if name == "next" and case.kind != _AFTER:
                break
            run = self.started(case, number, name)
            self.wait(run)
            if run.code != 0:
                said = (self.here / f"said-{number}").read_text()
                raise ViolationError(f"after a kill a run ends with {run.code}: {said:.300}")
            _check_pair(run.out, self.entries(), Counter())
            if case.kind in _SERIES:
                _check_series(run, self.entries(), case.kind, 2 if name == "again" else 3)

    # ---- what is left

    def entries(self) -> set[_Entry]:
        """What the ledger knows; it can be read at every moment."""
        file = self.key.with_name("key.ledger.json")
        if not file.exists():
            return set()
        try:
            releases = json.loads(file.read_bytes())["releases"]
        except ValueError as error:
            raise ViolationError(f"the ledger is damaged: {error}") from None
        return {
            _Entry(dataset, json.dumps(one, sort_keys=True))
            for dataset, entries in releases.items()
            for one in entries
        }


def _names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.exists() else []


def _as_a_process(arguments: list[str], here: Path, number: int) -> int:
    """Run the command, with what it says in a file."""
    try:
        from offrecord import cli

        said = os.open(here / f"said-{number}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.environ["TMPDIR"] = str(here / "tmp")
        return cli.main(arguments)
    except BaseException:
        return 71


def _check(
    case: Case,
    desk: _Desk,
    runs: list[_Run],
    before: set[_Entry],
    older: bytes | None,
    notes: Notes,
) -> None:
    after = desk.entries()
    if not before <= after:
        raise ViolationError(f"{len(before - after)} entries of the ledger are lost")
    ended = {run.code for run in runs} - {None, 0}
    if case.kind == "several on one output":
        ended -= {2}  # the others may have it
    if ended:
        said = " ".join((desk.here / f"said-{n}").read_text()[:200] for n in range(len(runs)))
        raise ViolationError(f"exit codes {sorted(ended)}: {said}")
    for run in runs:
        if run.code == 0 and run.dataset not in {one.dataset for one in after}:
            raise ViolationError("a run that ended has no entry in the ledger")
        notes["outputs whole"] += run.out.exists()
    outs = {run.out for run in runs}
    for out in outs:
        _check_pair(out, after, notes, None if case.kind in _SERIES else older)
    if case.kind in _SERIES:
        first = runs[0].out.with_name(f"earlier{runs[0].out.suffix}")
        if not first.exists() or hashlib.sha256(first.read_bytes()).digest() != older:
            raise ViolationError("the release before is another, or gone")
        _check_pair(first, after, Counter())
        outs.add(first)
    key = desk.key
    if key.with_name("key.ledger.json").exists() and not key.exists():
        raise ViolationError("a ledger without its key")
    _check_left(desk, outs, notes)


def _check_pair(out: Path, entries: set[_Entry], notes: Notes, older: bytes | None = None) -> None:
    """An output only with the certificate that is its own, and with an entry."""
    certificate = out.with_name(f"{out.name}.certificate.json")
    if certificate.exists():
        try:
            content = json.loads(certificate.read_bytes())
        except ValueError:
            raise ViolationError("a certificate that is cut short") from None
        if content["dataset"] not in {one.dataset for one in entries}:
            raise ViolationError("a certificate without an entry in the ledger")
    if not out.exists():
        notes["certificate, its output not yet there"] += certificate.exists()
        return
    if not certificate.exists():
        raise ViolationError("an output without its certificate")
    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    if content["output"]["sha256"] != digest:
        raise ViolationError("an output with the certificate of another")
    if older is not None:
        notes["the older release is there still"] += bytes.fromhex(digest) == older


def _check_series(run: _Run, entries: set[_Entry], kind: str, count: int) -> None:
    """So many releases of these records are known, the one that was killed once, and what they tell
    together is kept.
    """
    known = sum(one.dataset == run.dataset for one in entries)
    if known != count:
        raise ViolationError(f"{known} entries in the ledger for {count} releases")
    content = json.loads(run.out.with_name(f"{run.out.name}.certificate.json").read_bytes())
    said = content["release"]
    # cases before had the same records under other names, with the same key
    elsewhere = said["composed"] is None and "of other data sets" in said["why"]
    if kind == _GROWS and said["composed"] is not True and not elsewhere:
        raise ViolationError("a table that grows, of which more is told than its last release does")
    if kind == _AFTER and len(content["joint"]["releases"]) != count - 1:
        raise ViolationError("a release that does not speak of those before")


def _check_left(desk: _Desk, outs: set[Path], notes: Notes) -> None:
    """What else is there is hidden and partial, and holds no needle; nor does anything."""
    beside = "", ".certificate.json", ".report.html"
    known = {f"{out.name}{one}" for out in outs for one in beside}
    for name in set(_names(desk.here / "out")) - known:
        notes["partial files left"] += 1
        if not (name.startswith(".") and name.endswith(".partial")):
            raise ViolationError(f"{name} is left in the folder of the output")
    which = needles.found_under(desk.here, set())
    notes["files scanned for needles"] += sum(file.is_file() for file in desk.here.rglob("*"))
    if which is not None:
        raise ViolationError(f"needle: {which}")
