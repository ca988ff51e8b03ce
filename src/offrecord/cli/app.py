"""The command and its verbs."""

from __future__ import annotations

from typing import Annotated

import typer

from offrecord.cli.keys import answer, key, ledger
from offrecord.cli.learning import fit, look
from offrecord.cli.parameters import Grouped
from offrecord.cli.problems import compare, design
from offrecord.cli.redact import redact
from offrecord.cli.released import attack, report, verify
from offrecord.cli.showing import demo, explore, reproduce

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
