"""The command line. Each verb imports what it needs when it runs, so that --help answers
at once.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from offrecord.cli import tables, theory
from offrecord.errors import ChosenByValue, InputError

app = typer.Typer(
    name="offrecord",
    help="Take records off the record: redact what would give them away, release the rest.",
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"offrecord {installed('offrecord')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


# In the order in which a person meets them.
for verb in (
    tables.demo,
    tables.fit,
    tables.redact,
    theory.design,
    theory.compare,
    theory.reproduce,
    tables.answer,
    tables.key,
):
    app.command()(verb)


def main(arguments: Iterable[str] | None = None) -> int:
    """Run the command line; the exit code. Wrong input is one line on standard error and 2."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", ChosenByValue)
            warnings.showwarning = _shown
            code = app(args=None if arguments is None else list(arguments), standalone_mode=False)
    except typer.TyperException as error:
        return _fail(error.format_message())
    except InputError as error:
        return _fail(str(error))
    except (MemoryError, RecursionError):
        return _fail("this problem is too large for this machine's memory")
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 2
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        return _fail(file + (error.strerror or "the output cannot be written"))
    except SystemExit:
        raise
    except BaseException as error:  # a panic of the table engine is not an Exception
        # A fault of this program. What it says may quote cells, so only its kind and place are
        # shown.
        if os.environ.get("OFFRECORD_TRACEBACK"):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
        return _fail(
            f"internal error ({where}); nothing was released. Please report it with this line"
        )
    return code if isinstance(code, int) else 0


def _shown(message: Warning | str, *about: Any, **more: Any) -> None:
    """A Python warning, as one of this program's own."""
    tables.warned(str(message))


def _fail(message: str) -> int:
    print(f"offrecord: {' '.join(message.split())}", file=sys.stderr)
    return 2


def run() -> None:
    """Entry point of the `offrecord` command."""
    _silence_engine()
    code = main()
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    # whoever read it has gone: what is left goes nowhere, instead of failing once more at the end
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = code or 2
    sys.exit(code)


def _silence_engine() -> None:
    """Let this program alone write to standard error: a panic of the table engine writes there
    itself, and may quote cells.
    """
    nothing = os.open(os.devnull, os.O_WRONLY)
    if (
        sys.stderr is None
    ):  # closed: what is said goes nowhere, not into the next file that is opened
        sys.stderr = os.fdopen(os.dup(nothing), "w", encoding="utf-8")
    else:
        sys.stderr.flush()
        sys.stderr = os.fdopen(
            os.dup(2), "w", encoding="utf-8", errors="backslashreplace", buffering=1
        )
    os.dup2(nothing, 2)
    if nothing != 2:
        os.close(nothing)
    with suppress(
        ImportError, OSError, ValueError
    ):  # nor should a crash leave an image of memory behind
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
