"""The verb attack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from offrecord.cli.files import Original, PrivateList
from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, as_json_text, busy


@offering()
def attack(  # noqa: PLR0913, PLR0917 - an option each
    released: Annotated[Path, typer.Argument(metavar="RELEASED", help="The released table.")],
    certificate: Annotated[
        Path | None,
        typer.Option(help="Its certificate.  [default: RELEASED.certificate.json]"),
    ] = None,
    private_list: PrivateList = None,
    original: Original = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit 1 if any attacker finds more than ε."),
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the ratios of all secrets: .svg, .png or .html.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the picture.")] = False,
    as_json: Json = False,
    limits: Any = None,
) -> None:
    """Infer private records from a release as anyone could, and as some who know more: exit 0 if
    what is promised holds, 1 if it does not.
    """
    from offrecord.attacks import attack as attacked

    if picture is not None:
        from offrecord.charts import check_picture

        check_picture(picture, force=force)
    with busy("attacking"):
        found = attacked(
            released,
            certificate=certificate,
            private_list=private_list,
            original=original,
            limits=dict(limits or ()),
        )
    if picture is not None:
        found.plot().write(picture, force=force)
    typer.echo(as_json_text(found.to_dict()) if as_json else str(found))
    if not found.holds or (strict and found.exceeded):
        raise typer.Exit(1)
