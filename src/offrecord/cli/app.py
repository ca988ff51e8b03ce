"""The command and its verbs; exit codes, and what is said when something goes wrong."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, Any

import typer

from offrecord.cli.keys import answer, key, ledger
from offrecord.cli.learning import fit, look
from offrecord.cli.parameters import Grouped
from offrecord.cli.printing import failed, fault_of, warned
from offrecord.cli.problems import compare, design
from offrecord.cli.redact import redact
from offrecord.cli.released import attack, report, verify
from offrecord.cli.showing import demo, explore, reproduce
from offrecord.errors import ChosenByValue, InputError, OffrecordWarning, flags_shown

_OBJECTS = 100_000  # that are made before anybody looks for some that nobody has any more
INTERRUPTED = 130  #: the exit code of what a person stopped

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


_VERBS = (  # in the order in which a person meets them
    *(demo, look, fit, redact, verify, attack, report),
    *(design, compare, explore, reproduce, ledger, answer, key),
)
for verb in _VERBS:
    app.command(cls=Grouped)(verb)


# ---- running it


@flags_shown()
def main(arguments: Iterable[str] | None = None) -> int:
    """Run the command line; the exit code. Wrong input is one line on standard error and 2."""
    held: list[str] = []

    def shown(message: Warning | str, category: type[Warning], *about: Any, **more: Any) -> None:
        # Warnings wait until all is done, as what goes wrong is one line. What private values have
        # to do with does not wait.
        (warned if issubclass(category, ChosenByValue) else held.append)(str(message))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", OffrecordWarning)
            warnings.showwarning = shown
            code = app(args=None if arguments is None else list(arguments), standalone_mode=False)
    except SystemExit:
        raise
    except BaseException as error:  # a panic of the table engine is not an Exception
        return _ended(error)
    for message in held:
        warned(message)
    return code if isinstance(code, int) else 0


def _ended(error: BaseException) -> int:
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):  # whoever would read about it has gone
        sys.stderr.close()
        return 2
    known = _known(error)
    if known is None and os.environ.get("OFFRECORD_TRACEBACK"):
        raise error
    report = f"{fault_of(error)}; nothing was released. Please report it with this line"
    failed(report if known is None else known)
    return 2


def _known(error: BaseException) -> str | None:
    # The message of an error; None if it is a fault of this program.
    match error:
        case typer.TyperException():
            return error.format_message()
        case InputError():
            return str(error)
        case MemoryError() | RecursionError():
            return "this problem is too large for this machine's memory"
        case OSError():
            file = f"{error.filename}: " if error.filename else ""
            return file + (error.strerror or "the output cannot be written")
    return None


def run() -> None:
    """Entry point of the `offrecord` command."""
    _silence_engine()
    # Matrices here are small: several threads for one product would only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(_OBJECTS)  # what a start makes is there to stay
    code = main()
    if not _is_read():
        code = code or 2
    with suppress(OSError, ValueError):  # nobody reads it, or it is closed
        sys.stderr.flush()
    # All is written by now. Taking the libraries down one by one would take a third of one second.
    os._exit(code)


def _is_read() -> bool:
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:  # whoever read it has gone
        return False
    return True


def _silence_engine() -> None:
    # A panic of the table engine writes to standard error itself, and may quote cells: this program
    # alone has it from here on.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if sys.stderr is None:
        # Closed: what is said goes nowhere, not into the next file that is opened.
        sys.stderr = os.fdopen(os.dup(nowhere), "w", encoding="utf-8")
    else:
        sys.stderr.flush()
        own = os.dup(2)
        sys.stderr = os.fdopen(own, "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    os.dup2(nowhere, 2)
    if nowhere != 2:
        os.close(nowhere)
    _leave_no_core()


def _leave_no_core() -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no image of memory
