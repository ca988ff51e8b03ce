"""Who computes: one process for what somebody waits for, one for what takes longer."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from threading import Lock, Thread, Timer
from typing import Any

from offrecord.explorer.state import Asked, AskedPolicy
from offrecord.explorer.worker import FAILED, OK
from offrecord.mechanisms import MECHANISMS
from offrecord.processes import pipes

_QUICK_SECONDS, _SLOW_SECONDS = 5.0, 10.0
_PATIENCE = 60.0
_LATE = (
    "this takes longer than {seconds:g} seconds, the most that the explorer spends on one question;"
    " offrecord design has no such limit"
)


@dataclass(frozen=True)
class Answer:
    """content: JSON, or a script. status: of the HTTP response."""

    status: int
    content: bytes


@dataclass(eq=False)
class Worker:
    """One process, started when it is first asked, and anew if it took too long."""

    seconds: float
    lock: Lock = field(default_factory=Lock)
    process: subprocess.Popen[bytes] | None = None
    closed: bool = False

    def ask(self, do: str, what: Any, *, limited: bool = True) -> Answer:
        """An answer; whoever asks waits for its turn. limited: within so many seconds of the
        process's own time, and of nobody's within a minute more.
        """
        seconds = self.seconds if limited else None
        question = json.dumps({"do": do, "what": what, "seconds": seconds}).encode()
        with self.lock:
            if self.closed:
                return Answer(422, _refusal("the explorer is being stopped"))
            process = self._started()
            timer = Timer(self.seconds + _PATIENCE, process.kill)
            if limited:
                timer.start()
            try:
                found = pipes.exchanged(process, question)
            finally:
                timer.cancel()
            if found is None:
                self._ended(process)
        if found is None:
            return Answer(422, _refusal(_LATE.format(seconds=self.seconds)))
        status = {OK: 200, FAILED: 500}.get(found[:1], 422)
        return Answer(status, found[1:])

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.process.poll() is not None:
            self.process = pipes.started("offrecord.explorer.worker")
        return self.process

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        pipes.ended(process)
        self.process = None

    def rest(self) -> None:
        """End the process, once it is at nothing; the next question starts another."""
        with self.lock:
            if self.process is not None:
                self._ended(self.process)

    def close(self) -> None:
        """End the process, whatever it is at."""
        self.closed = True
        process = self.process
        if process is not None:
            process.kill()  # whoever waits for an answer hears that there is none
        self.rest()


def _refusal(message: str) -> bytes:
    return json.dumps({"errors": [{"field": None, "message": message}]}).encode()


@dataclass(eq=False)
class Workers:
    """The two processes, and one that makes the script that draws."""

    quick: Worker = field(default_factory=lambda: Worker(_QUICK_SECONDS))
    slow: Worker = field(default_factory=lambda: Worker(_SLOW_SECONDS))
    maker: Worker = field(default_factory=lambda: Worker(_SLOW_SECONDS))
    _script: bytes = b""
    _making: Lock = field(default_factory=Lock)

    def regions(self, asked: Asked) -> Answer:
        """What records tell."""
        worker = self.quick if asked.model is None else self.slow
        return worker.ask("regions", asked.model_dump())

    def policy(self, asked: AskedPolicy) -> Answer:
        """What a mechanism does."""
        worker = self.quick if is_quick(asked) else self.slow
        return worker.ask("policy", asked.model_dump())

    def curve(self, asked: Asked) -> Answer:
        """What a mechanism releases at other budgets."""
        return self.slow.ask("curve", asked.model_dump())

    def vega(self) -> bytes:
        """The libraries that draw, as one script: made once, in a process of its own, as that
        takes seconds.
        """
        with self._making:
            if not self._script:
                made = self.maker.ask("vega", None, limited=False)
                self._script = made.content if made.status == 200 else b""
                self.maker.rest()
            return self._script

    def warm_up(self) -> None:
        """Have everything ready that the first page asks for, while it is being opened."""
        jobs = (
            self.vega,
            lambda: self.quick.ask("warm", MECHANISMS, limited=False),
            lambda: self.slow.ask("warm", MECHANISMS, limited=False),
        )
        for job in jobs:
            Thread(target=job, daemon=True).start()

    def close(self) -> None:
        """End all of them."""
        for worker in (self.quick, self.slow, self.maker):
            worker.close()


def is_quick(asked: AskedPolicy) -> bool:
    """Whether somebody waits for an answer that takes no longer than a picture should."""
    return asked.soon and asked.model is None and "," not in asked.private
