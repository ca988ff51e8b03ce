"""Messages between a process and one that it started to work for it: a length, then as many bytes,
on standard input and output.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import IO

_LENGTH = struct.Struct(">Q")


def started(module: str) -> subprocess.Popen[bytes]:
    """A process that runs a module which serves; OSError where none can be started."""
    return subprocess.Popen(
        # -P: a folder that happens to hold a json.py is no place to import from
        [sys.executable, "-P", "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def exchanged(process: subprocess.Popen[bytes], question: bytes) -> bytes | None:
    """The answer to a question; None if the process has gone."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        _write(process.stdin, question)
    except BrokenPipeError:
        return None
    return _read(process.stdout)


def ended(process: subprocess.Popen[bytes]) -> None:
    """End it, whatever it is at; once more does nothing."""
    process.kill()
    with suppress(OSError, ValueError):  # its pipes are broken, or closed
        process.communicate()


def serve(answer: Callable[[bytes], bytes]) -> None:
    """Answer one question after the other, until whoever asks has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who asks ends it
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)  # nothing else reads what is asked,
    os.dup2(nowhere, 1)  # and whatever a library prints is no answer
    warnings.simplefilter("ignore")
    questions: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(asked, questions), daemon=True).start()
    with suppress(BrokenPipeError):
        while True:
            _write(answers, answer(questions.get()))


def _listen(asked: IO[bytes], questions: SimpleQueue[bytes]) -> None:
    """Hear what is asked; once nobody is left to ask, end this process, whatever it is at."""
    while (question := _read(asked)) is not None:
        questions.put(question)
    os._exit(0)


def _read(stream: IO[bytes]) -> bytes | None:
    """The next message; None if whoever writes has gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    size = _LENGTH.unpack(head)[0]
    content = stream.read(size)
    return content if len(content) == size else None


def _write(stream: IO[bytes], content: bytes) -> None:
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()
