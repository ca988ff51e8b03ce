"""The verb explore."""

from __future__ import annotations

from typing import Annotated

import typer

from offrecord.cli.parameters import offering, whole


@offering("port", "no_browser")
def explore(
    port: Annotated[
        int,
        typer.Option(parser=whole, metavar="NUMBER", help="Port on 127.0.0.1; 0 takes any."),
    ] = 8750,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address and open nothing.")
    ] = False,
) -> None:
    """A page on this machine alone that shows what a design does while sliders move."""
    from offrecord.charts import check_drawable
    from offrecord.explorer.serving import serve

    check_drawable()
    serve(port, open_browser=not no_browser, say=typer.echo)
