"""Whether anything can be drawn here: the drawing engine ends the process where it has no room."""

from __future__ import annotations

from contextlib import suppress

from offrecord.errors import InputError

#: Bytes of address space, which is not memory, that the engine (V8) is sure to find enough.
_ROOM = 128 << 30


def undrawable() -> str | None:
    """Why nothing is drawn here; None where all is well."""
    with suppress(ImportError):  # where it is missing, there is no such limit
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY and limit < _ROOM:
            return (
                f"pictures take {_ROOM >> 30} GiB of address space, and a limit leaves"
                f" {limit / 2**30:.3g} (ulimit -v)"
            )
    return None


def check_drawable() -> None:
    """InputError where nothing can be drawn."""
    why = undrawable()
    if why is not None:
        raise InputError(f"{why}: raise the limit, or ask for no picture")
