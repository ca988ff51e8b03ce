"""What is printed: results on standard output; notes, warnings and bars on standard error."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offrecord.text import plain, plain_lines

if TYPE_CHECKING:
    from rich.progress import Progress

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def show(as_json: bool, content: Any, text: object) -> None:
    """Print a result: for machines its content, else its text."""
    typer.echo(_json(content) if as_json else plain_lines(str(text)))


def _json(content: Any) -> str:
    # infinity and NaN are no JSON: `content` has words for them
    return "".join(map(_escaped, json.dumps(content, ensure_ascii=False, allow_nan=False)))


def _escaped(character: str) -> str:
    # a terminal acts on some characters that may stand in JSON as they are
    return character if character.isprintable() else json.dumps(character)[1:-1]


def noted(message: str) -> None:
    """Say on standard error what a person may want to know."""
    failed(f"note: {message}")


def warned(message: str) -> None:
    """Say a warning on standard error."""
    failed(f"warning: {message}")


def failed(message: str) -> None:
    """Say on standard error what went wrong."""
    print(f"offrecord: {plain(message)}", file=sys.stderr)


def fault_of(error: BaseException) -> str:
    """A fault of this program by kind and place alone: what it says itself may quote cells."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
    return f"internal error ({where})"


# ---- progress: bars on a terminal, lines elsewhere

#: Seconds between lines of progress where standard error is no terminal, such as a file.
LINES_EVERY = 10.0


@contextmanager
def bar(what: str, count: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar with the time left; without a count of items it moves to and fro. Where
    standard error is no terminal, a line every ten seconds.
    """
    shown = _bar if sys.stderr.isatty() else _lines
    with shown(what, count) as advance:
        yield advance


def _display() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    name, done = TextColumn("{task.description}"), TextColumn("{task.fields[done]}")
    columns = name, BarColumn(), done, TimeRemainingColumn()
    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def _bar(what: str, count: int | None) -> Iterator[Callable[[int], None]]:
    start, total, of = monotonic(), 0, _of(count)
    with _display() as progress:
        task = progress.add_task(what, total=count, done="", visible=count is None)

        def advance(more: int) -> None:
            nonlocal total
            total += more
            late = monotonic() - start > 1  # bars of shorter steps would flicker
            progress.update(task, completed=total, done=f"{total:,}{of}", visible=late)

        yield advance


@contextmanager
def _lines(what: str, count: int | None) -> Iterator[Callable[[int], None]]:
    done, ended, start = 0, Event(), monotonic()

    def advance(more: int) -> None:
        nonlocal done
        done += more

    def say() -> None:
        while not ended.wait(LINES_EVERY):
            noted(f"{what}{_so_far(done, count)} after {monotonic() - start:.0f} s")

    # a thread, as single steps of numpy take longer than ten seconds
    speaker = Thread(target=say, daemon=True)
    speaker.start()
    try:
        yield advance
    finally:
        ended.set()
        speaker.join()


def _so_far(done: int, count: int | None) -> str:
    # 0 of an unknown number says nothing
    return f": {done:,}{_of(count)}" if done or count else ""


def _of(count: int | None) -> str:
    return "" if count is None else f" of {count:,}"
