"""The verb demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, bar, show


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

    said: list[str] = []
    say = said.append if as_json else typer.echo  # each part when it is done
    content = run(output, force=force, say=say, progress=bar)
    if as_json:
        show(as_json, content, "")
