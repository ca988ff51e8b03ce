"""A process that computes answers, one question after the other, so that the page's own process is
never busy.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from offrecord.errors import InputError
from offrecord.processes import pipes
from offrecord.theory._compiling import stay

OK, REFUSED, FAILED = b"+", b"?", b"!"


def answer(question: bytes) -> bytes:
    """The answer to a question, a sign first; never an exception."""
    from offrecord.explorer.state import FieldError

    try:
        asked = json.loads(question)
        do, what = _DOING[asked["do"]], asked["what"]
        if do in (_policy, _curve):
            _compile(what["mechanism"], what.get("model") is not None)
        with _within(asked.get("seconds")):
            return OK + do(what).encode()
    except FieldError as error:
        return REFUSED + _refusal(error.field, str(error))
    except InputError as error:
        return REFUSED + _refusal(None, str(error))
    except (MemoryError, RecursionError):
        return REFUSED + _refusal(None, "this problem is too large for this machine's memory")
    except Exception as error:
        return FAILED + _refusal(None, f"internal error ({type(error).__name__})")


@contextmanager
def _within(seconds: float | None) -> Iterator[None]:
    """So many seconds of this process's own time: the system ends it after that, wherever it is,
    and whoever asked hears nothing more.
    """
    if seconds is None or not hasattr(signal, "setitimer"):  # whoever asks has a clock, too
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@cache
def _compile(mechanism: str, of_model: bool) -> None:
    """Have all compiled that a mechanism takes seconds for on first use, whatever is asked."""
    from offrecord.explorer.policies import policy_of
    from offrecord.explorer.state import AskedPolicy

    states: list[dict[str, Any]]
    if of_model:
        states = [{"n": 20, "private": "9", "model": _THREE}]
    else:
        states = [{}, {"n": 1000, "private": "500"}]
    for state in states:
        with suppress(InputError):  # not every mechanism takes every chain
            policy_of(AskedPolicy(mechanism=mechanism, **state))


_THREE = {
    "format": "offrecord-model",
    "version": 1,
    "labels": [0, 1, 2],
    "transition": [[0.9, 0.08, 0.02], [0.2, 0.7, 0.1], [0.05, 0.15, 0.8]],
}


def _refusal(field: str | None, message: str) -> bytes:
    from offrecord.explorer.forms import Refusal, Wrong

    return Refusal(errors=[Wrong(field=field, message=message)]).model_dump_json().encode()


def _regions(what: Any) -> str:
    from offrecord.explorer.regions import regions_of
    from offrecord.explorer.state import Asked

    return regions_of(Asked(**what)).model_dump_json()


def _policy(what: Any) -> str:
    from offrecord.explorer.policies import policy_of
    from offrecord.explorer.state import AskedPolicy

    return policy_of(AskedPolicy(**what)).model_dump_json()


def _curve(what: Any) -> str:
    from offrecord.explorer.policies import curve_of
    from offrecord.explorer.state import AskedCurve

    return curve_of(AskedCurve(**what)).model_dump_json()


def _warm(what: Any) -> str:
    """Compile before anybody waits for it."""
    for mechanism in what:
        _compile(mechanism, False)
    return ""


def _vega(what: Any) -> str:
    """The libraries that draw, as one script."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")


_DOING: dict[str, Callable[[Any], str]] = {
    "regions": _regions,
    "policy": _policy,
    "curve": _curve,
    "warm": _warm,
    "vega": _vega,
}

if __name__ == "__main__":
    stay()
    pipes.serve(answer)
