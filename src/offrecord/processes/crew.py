"""A crew: other processes that share work which takes seconds and needs nothing but its arguments.

Python runs one thread at a time, so that designs, which are made by small steps, are made on
several cores by several processes alone. Work is a function of a module and its arguments. What
comes back is what this process would have found itself: the same function of the same numbers on
the same machine. Whatever a helper cannot do, for whatever reason, is done here.

Only commands have a crew; to whoever imports this package it starts no process. Models, problems,
designs and the pictures of a report go to and fro, never a table nor a key.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from importlib import import_module
from threading import Event, RLock, Thread, Timer
from typing import Any, TypeAlias

from offrecord.errors import InputError
from offrecord.processes import pipes

#: A function that other processes can import, and its arguments.
Work: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]

#: Seconds after which helpers are called: they take about twice as long to come.
_PATIENCE = 0.15
#: Seconds after which whoever waits for a busy helper looks whether there is still work for it,
#: and for which one is waited who is at something else that will soon be done.
_SHORT, _LONG = 0.05, 2.0
#: Seconds that somebody who is asked may take: whoever does not answer is sent away.
_ANSWERED = 30.0
_MOST = 7  # helpers, each of which has the libraries in memory

_crew: list[_Helper] = []


def hire(processes: int | None = None) -> None:
    """From now on work is shared by so many processes, this one included; by default as many as
    OFFRECORD_PROCESSES says, or one for each core.
    """
    dismiss()
    count = _asked() if processes is None else processes
    _crew.extend(_Helper() for _ in range(min(count - 1, _MOST)))


def size() -> int:
    """How many processes share work."""
    return 1 + sum(not helper.has_left for helper in _crew)


@atexit.register
def dismiss() -> None:
    """End all others."""
    while _crew:
        _crew.pop().leave()


def each(works: Sequence[Work]) -> Generator[Any]:
    """What each of some works comes to, in their order, or raises; close it where not all is asked
    for.
    """
    shift = _Shift(works)
    for helper in _crew[: max(len(works) - 1, 0)]:
        with suppress(RuntimeError):  # no more threads: done here
            Thread(target=shift.help, args=(helper,), daemon=True).start()
    try:
        for number in range(len(works)):
            yield shift.found(number)
    finally:
        shift.is_over.set()
        for helper in list(shift.helpers):  # at what nobody waits for any more
            helper.leave()
            if helper in _crew:
                _crew[_crew.index(helper)] = _Helper()


def prepare(work: Work) -> None:
    """Have a helper come now and do something, so that it has it at hand when it is `asked` for
    more of that kind; nobody waits for it.
    """
    for helper in _crew[:1]:
        helper.prepared.add(work[0].__module__)
        with suppress(RuntimeError):  # no more threads
            Thread(target=helper.prepare, args=(work,), daemon=True).start()


def asked(work: Work) -> Any:
    """What a work comes to: by a helper that was prepared for its kind, else here."""
    for helper in _crew:
        found = helper.asked(work)
        if found is not None:
            return found[0]
    return _done(work)


def _asked() -> int:
    """How many processes there may be."""
    said = os.environ.get("OFFRECORD_PROCESSES")
    if said:
        if not said.isdecimal() or int(said) == 0:
            raise InputError(f"OFFRECORD_PROCESSES is {said!r}; a whole number from 1 on is needed")
        return int(said)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Shift:
    """Works, which everybody takes in their order."""

    def __init__(self, works: Sequence[Work]) -> None:
        self.works, self.is_over = works, Event()
        self.futures: list[Future[tuple[Any] | None]] = [Future() for _ in works]
        self.helpers: set[_Helper] = set()  # who are at one of them
        self._open = deque(range(len(works)))

    def found(self, number: int) -> Any:
        """What a work comes to; until it is known, others are done here."""
        future = self.futures[number]
        while not future.done() and (mine := self._taken()) is not None:
            try:
                self.futures[mine].set_result((_done(self.works[mine]),))
            except Exception as error:  # raised when its turn has come
                self.futures[mine].set_exception(error)
        found = future.result()
        return _done(self.works[number]) if found is None else found[0]

    def help(self, helper: _Helper) -> None:
        """Have a helper do what is left once it is there, one after the other."""
        if not helper.is_there and self.is_over.wait(_PATIENCE):
            return
        while not helper.lock.acquire(timeout=_SHORT):  # it is at something else
            if self.is_over.is_set() or not self._open:
                return
        try:
            if not self.is_over.is_set():
                helper.come(self.works[-1][0])
            while self._is_open_to(helper) and (number := self._taken()) is not None:
                self._done_by(helper, number)
        finally:
            helper.lock.release()

    def _is_open_to(self, helper: _Helper) -> bool:
        return not (helper.has_left or self.is_over.is_set())

    def _done_by(self, helper: _Helper, number: int) -> None:
        found = None
        self.helpers.add(helper)
        try:
            found = helper.done(self.works[number])
        finally:
            self.helpers.discard(helper)
            self.futures[number].set_result(found)

    def _taken(self) -> int | None:
        try:
            return self._open.popleft()
        except IndexError:
            return None


class _Helper:
    """One process, started when it is first needed."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.lock = RLock()  # of whoever asks it
        self.has_come = self.has_left = False
        self.prepared: set[str] = set()  # modules of which it has something at hand

    @property
    def is_there(self) -> bool:
        """It was started."""
        return self.process is not None

    def come(self, function: Callable[..., Any]) -> None:
        """Start, and import what a function needs, before it takes anything that is waited for. One
        that would compute by other sources than this process leaves.
        """
        asked = (str(function.__module__),)
        self.has_come = not self.has_left and self.done((_sources, asked)) == (_sources(*asked),)
        if not self.has_come:
            self._end()

    def prepare(self, work: Work) -> None:
        """Come, and do something that nobody waits for."""
        with self.lock:
            self.come(work[0])
            if not self.has_left:
                self.done(work)

    def asked(self, work: Work) -> tuple[Any] | None:
        """What a work comes to; None where it was not prepared for it, or could not do it."""
        if work[0].__module__ not in self.prepared:
            return None
        if not self.lock.acquire(timeout=_LONG):
            self.prepared.clear()  # nobody waits for it once more
            return None
        late = Timer(_ANSWERED, self.leave)
        late.daemon = True
        try:
            with suppress(RuntimeError):  # no more threads
                late.start()
            return self.done(work) if self.has_come and not self.has_left else None
        finally:
            late.cancel()
            self.lock.release()

    def done(self, work: Work) -> tuple[Any] | None:
        """What a work comes to; None where it could not do it."""
        try:
            question = pickle.dumps(work)
        except Exception:  # made on the spot, such as a function without a name
            return None
        try:
            if self.process is None and not self.has_left:
                self.process = pipes.started(__name__)
            if self.process is None or self.has_left:  # while it was on its way
                self._end()
                return None
            answer = pipes.exchanged(self.process, question)
            if answer is not None:
                return (pickle.loads(answer),) if answer else None
        except Exception:  # whatever is wrong: who asked does it, and will say so
            pass
        except BaseException:  # its answer would be taken for that to the next question
            self._end()
            raise
        self._end()
        return None

    def leave(self) -> None:
        """End it, whatever it is at."""
        self.has_left = True
        if self.process is not None:
            self.process.kill()  # whoever asked it hears that there is no answer
        with self.lock:
            self._end()

    def _end(self) -> None:
        self.has_left = True
        if self.process is not None:
            pipes.ended(self.process)


def _done(work: Work) -> Any:
    function, arguments = work
    return function(*arguments)


def _sources(module: str) -> list[str | None]:
    """Where all that computes comes from in this process, which has imported a module then."""
    import highspy
    import numpy
    import scipy

    with suppress(ImportError):
        import_module(module)
    return [module.__file__ for module in (pipes, numpy, scipy, highspy)]


def _answered(question: bytes) -> bytes:
    """What a work comes to; nothing where it raises something."""
    try:
        return pickle.dumps(_done(pickle.loads(question)))
    except Exception:
        return b""


if __name__ == "__main__":
    pipes.serve(_answered)
