"""Bars on standard error, none when that is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic

from offrecord.text import followed, unwatched


@contextmanager
def bar(what: str, count: int | None) -> Iterator[Callable[[int], None]]:
    """A bar that is told how many more are done, once it takes over a second."""
    if not sys.stderr.isatty():
        with unwatched(what, count) as tell:
            yield tell
        return
    from rich.console import Console
    from rich.progress import Progress

    start = monotonic()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=count, visible=False)
        yield lambda done: progress.update(task, advance=done, visible=monotonic() - start > 1)


#: Goes through a list of what is to be designed, with a bar.
designing = partial(followed, what="designing", progress=bar)


@contextmanager
def row_bar(what: str, count: int | None) -> Iterator[Callable[[int], None]]:
    """A bar that is told how many more rows are done, and says what time is left."""
    if not sys.stderr.isatty():
        with unwatched(what, count) as tell:
            yield tell
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rows]} rows"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        of = "" if count is None else f" of {count:,}"
        task = progress.add_task(what, total=count, rows=f"0{of}")
        total = 0

        def tell(done: int) -> None:
            nonlocal total
            total += done
            progress.update(task, completed=total, rows=f"{total:,}{of}")

        yield tell


@contextmanager
def busy(what: str) -> Iterator[None]:
    """A spinner while something takes long."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        yield
