"""The verb explore."""

from __future__ import annotations

from typing import Annotated

import typer

from offrecord.cli.parameters import whole
from offrecord.cli.printing import Json, show


def explore(
    port: Annotated[
        int,
        typer.Option(parser=whole, metavar="NUMBER", help="Port on 127.0.0.1; 0 takes any."),
    ] = 8750,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address and open nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """A page on this machine alone that shows what a design does while sliders move."""
    from offrecord.charts import check_drawable
    from offrecord.explorer.app import serve

    def say(url: str) -> None:
        show(as_json, {"address": url}, f"{url} (Ctrl-C ends it)")

    check_drawable()
    serve(port, open_browser=not no_browser, say=say)
