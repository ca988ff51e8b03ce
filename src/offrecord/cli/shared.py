"""What the verbs share: numbers as people write them, progress, and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import typer

_T = TypeVar("_T")


def number(text: str) -> float:
    """A number as a person writes it."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number, got {text!r}") from None


def whole(text: str) -> int:
    """A whole number as a person writes it."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"must be a whole number, got {text!r}") from None


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output.")]


def progress(items: list[_T], what: str) -> Iterator[_T]:
    """The items, with a bar on standard error once it takes over a second; none when that is not a
    terminal.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    import time

    from rich.console import Console
    from rich.progress import Progress

    start = time.monotonic()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=len(items), visible=False)
        for item in items:
            yield item
            progress.update(task, advance=1, visible=time.monotonic() - start > 1)


@contextmanager
def rows_done(what: str, rows: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on standard error that is told how many more rows are done; none when that is not a
    terminal.
    """
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    shown = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]} rows"))
    with Progress(
        *shown,
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        of = "" if rows is None else f" of {rows:,}"
        task = bar.add_task(what, total=rows, rows=f"0{of}")
        total = 0

        def tell(done: int) -> None:
            nonlocal total
            total += done
            bar.update(task, completed=total, rows=f"{total:,}{of}")

        yield tell


@contextmanager
def busy(what: str) -> Iterator[None]:
    """A spinner on standard error while something takes long; nothing when that is not a
    terminal.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        yield


def as_json_text(content: Any) -> str:
    """One JSON object; infinity and NaN are no JSON."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False)
