"""A process that computes answers, one question after the other, so that the page's own process is
never busy: questions on standard input, answers on standard output, a length before each.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from offrecord.errors import InputError

LENGTH = struct.Struct(">I")
OK, REFUSED, FAILED = b"+", b"?", b"!"


def read_frame(stream: IO[bytes]) -> bytes | None:
    """The next message; None if whoever writes has gone."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    size = LENGTH.unpack(head)[0]
    content = stream.read(size)
    return content if len(content) == size else None


def write_frame(stream: IO[bytes], content: bytes) -> None:
    """Say a message."""
    stream.write(LENGTH.pack(len(content)) + content)
    stream.flush()


def main() -> None:
    """Answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who asks ends it
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whatever a library prints is no answer
    warnings.simplefilter("ignore")
    with suppress(BrokenPipeError):
        while (question := read_frame(sys.stdin.buffer)) is not None:
            write_frame(answers, answer(question))


def answer(question: bytes) -> bytes:
    """The answer to a question, a sign first; never an exception."""
    from offrecord.explorer.state import FieldError

    try:
        asked = json.loads(question)
        return OK + _doing(asked["do"])(asked["what"]).encode()
    except FieldError as error:
        return REFUSED + _refusal(error.field, str(error))
    except InputError as error:
        return REFUSED + _refusal(None, str(error))
    except (MemoryError, RecursionError):
        return REFUSED + _refusal(None, "this problem is too large for this machine's memory")
    except Exception as error:
        return FAILED + _refusal(None, f"internal error ({type(error).__name__})")


def _refusal(field: str | None, message: str) -> bytes:
    from offrecord.explorer.forms import Refusal, Wrong

    return Refusal(errors=[Wrong(field=field, message=message)]).model_dump_json().encode()


def _doing(name: str) -> Callable[[Any], str]:
    return {
        "regions": _regions,
        "policy": _policy,
        "curve": _curve,
        "warm": _warm,
        "vega": _vega,
    }[name]


def _regions(what: Any) -> str:
    from offrecord.explorer.regions import regions_of
    from offrecord.explorer.state import Asked

    return regions_of(Asked(**what)).model_dump_json()


def _policy(what: Any) -> str:
    from offrecord.explorer.policies import policy_of
    from offrecord.explorer.state import Asked

    return policy_of(Asked(**what)).model_dump_json()


def _curve(what: Any) -> str:
    from offrecord.explorer.policies import curve_of
    from offrecord.explorer.state import AskedCurve

    return curve_of(AskedCurve(**what)).model_dump_json()


def _warm(what: Any) -> str:
    """Compile what takes seconds to compile, before anybody waits for it."""
    for n, private in ((10, "1"), (1000, "500")):
        for mechanism in what:
            _policy({"n": n, "private": private, "mechanism": mechanism})
    return ""


def _vega(what: Any) -> str:
    """The libraries that draw, as one script."""
    import vl_convert

    return vl_convert.javascript_bundle(None)


if __name__ == "__main__":
    main()
