"""The verb demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, as_json_text, bar


@offering()
def demo(
    force: bool,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for what it writes.")
    ] = Path("offrecord-demo"),
    as_json: Json = False,
) -> None:
    """The whole job on real data: a year of rain at an airport, hour by hour; fit, redact, certify,
    report.
    """
    from offrecord.demo import run

    def unsaid(text: str) -> None:
        """With --json, standard output holds nothing else."""

    say = unsaid if as_json else typer.echo
    done = run(output, force=force, say=say, progress=bar)
    if as_json:
        typer.echo(as_json_text(done.to_dict()))
