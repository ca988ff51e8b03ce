"""The table engine and the files it reads, guarded: it neither quotes cells nor spills them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from offrecord.errors import InputError

_SPILL, _NEVER = "POLARS_OOC_SPILL_MIN_BYTES", str(10**15)


def check_readable(path: Path) -> None:
    """InputError unless there is a file that can be read, with something in it."""
    try:
        if not path.is_file():
            raise InputError(f"{path} is not a file" if path.exists() else f"{path} does not exist")
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty")
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def collected(lazy: pl.LazyFrame) -> pl.DataFrame:
    """What a query gives, in memory and nowhere else."""
    never_spill()
    return lazy.collect(engine="in-memory")


def never_spill() -> None:
    """Keep the engine from writing what it reads, unredacted, to disk when memory is short.

    It must fail instead.
    """
    if os.environ.get(_SPILL) != _NEVER:
        # the engine may have read its settings long ago: the variable alone is not enough
        pl.Config.load(json.dumps({"environment": {_SPILL: _NEVER}}))


def memory_size() -> int:
    """What this machine has, in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def engine(message: str) -> Iterator[None]:
    """Whatever the engine throws becomes one line without a word of its own: it may quote cells."""
    try:
        yield
    except (InputError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the engine is not an Exception
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{message.split(':', maxsplit=1)[0]}: {error.strerror}") from None
        raise InputError(message) from None


def unreadable(name: str, kind: str) -> str:
    """What is said of a table that the engine cannot read."""
    return f"{name} cannot be read as {kind}: it is damaged, cut short, or of another format"
