"""Batches of cases, each batch in a process of its own that is watched from outside: what hangs is
killed, what crashes is seen, and the case that did it is known.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from soak.campaign import Campaign, Case, Outcome, ViolationError

_NOW = struct.Struct("qqd")  # cases done, the number of the case under way, and when it began
_MOST_FOUND = 20  # in one batch: after so many it ends


@dataclass
class Watched:
    """A batch under way."""

    campaign: Campaign
    kind: str
    batch: int
    process: int
    shared: mmap.mmap
    answer: int  # the end of a pipe
    folder: Path
    store: Path
    began: float

    @classmethod
    def start(
        cls, campaign: Campaign, kind: str, batch: int, store: Path, *,
        seconds: float, cases: int | None = None, first: int = 0,
    ) -> Watched:  # fmt: skip
        """Fork a process that runs cases for so many seconds, or so many of them."""
        campaign.ready(store, kind)
        shared = mmap.mmap(-1, _NOW.size)
        shared[:] = _NOW.pack(0, first, time.monotonic())
        reading, writing = os.pipe()
        folder = Path(tempfile.mkdtemp(prefix="soak-"))
        began = time.monotonic()
        process = os.fork()
        if process == 0:
            try:
                os.close(reading)
                os.setsid()
                _limit(campaign.memory)
                done = _cases(campaign, kind, batch, folder, store, shared, (seconds, cases, first))
                told = {
                    "cases": done.cases, "notes": done.notes, "found": done.found, "cpu": _cpu(),
                }  # fmt: skip
                with os.fdopen(writing, "w") as pipe:
                    json.dump(told, pipe)
                os._exit(0)
            except BaseException:
                traceback.print_exc(file=sys.__stderr__)
                os._exit(70)
        os.close(writing)
        return cls(campaign, kind, batch, process, shared, reading, folder, store, began)

    def ended(self) -> Outcome | None:
        """What became of it; None while it goes on. One that hangs is killed."""
        cases, number, since = _NOW.unpack(self.shared[:])
        hangs = time.monotonic() - since > self.campaign.limit
        if hangs:
            os.killpg(self.process, signal.SIGKILL)
        process, status = os.waitpid(self.process, 0 if hangs else os.WNOHANG)
        if process == 0:
            return None
        _end_group(self.process)
        with os.fdopen(self.answer) as pipe:
            told = pipe.read()
        seconds = time.monotonic() - self.began
        kept = {path.name: path for path in self.folder.glob("case-*")}
        if status == 0 and told and not hangs:
            read = json.loads(told)
            found = [(int(number), str(what)) for number, what in read["found"]]
            outcome = Outcome(read["cases"], Counter(read["notes"]), found, seconds, read["cpu"])
        else:
            how = "hangs" if hangs else f"ends the process ({_how(status)})"
            outcome = Outcome(cases + 1, Counter(), [(number, how)], seconds)
            last = self.folder / "case"
            if last.exists():
                kept[f"case-{number}"] = last
        self._keep(kept)
        shutil.rmtree(self.folder, ignore_errors=True)
        return outcome

    def _keep(self, kept: dict[str, Path]) -> None:
        """The files of cases in which something was found."""
        for name, path in kept.items():
            target = self.store / "found" / f"{self.campaign.name}-{self.kind}-{self.batch}-{name}"
            shutil.rmtree(target, ignore_errors=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(path, target, ignore=shutil.ignore_patterns("pipe"))


def _cases(campaign, kind, batch, folder, store, shared, bounds):
    """Run cases one after the other, until time or their number is up."""
    seconds, most, first = bounds
    outcome, began, number = Outcome(), time.monotonic(), first
    while (most is None or outcome.cases < most) and time.monotonic() - began < seconds:
        shared[:] = _NOW.pack(outcome.cases, number, time.monotonic())
        case = Case(campaign.name, kind, batch, number)
        try:
            outcome.notes.update(campaign.run(case, folder, store))
        except ViolationError as violation:
            outcome.found.append((number, str(violation)))
        except BaseException as error:  # a panic of the table engine is not an Exception
            outcome.found.append((number, _in_one_line(error)))
        outcome.cases += 1
        number += 1
        if len(outcome.found) >= _MOST_FOUND:
            break
    shared[:] = _NOW.pack(outcome.cases, number, time.monotonic())
    return outcome


def _in_one_line(error):
    places = traceback.extract_tb(error.__traceback__)[-3:]
    where = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in reversed(places))
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]} ({where})"


def _limit(memory: int | None) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _cpu() -> float:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _end_group(process: int) -> None:
    """End what a batch may have left running."""
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit {os.waitstatus_to_exitcode(status)}"
