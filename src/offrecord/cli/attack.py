"""The verb attack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from offrecord.cli.files import Original, PrivateList
from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, busy, show


@offering()
def attack(
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
    as_json: Json = False,
    **options: Any,
) -> None:
    """Infer private records from a release as anyone could, and as some who know more: exit 0 if
    what is promised holds, 1 if it does not.
    """
    from offrecord.attacks import attack as attacked
    from offrecord.charts import check_picture

    force, limits = options["force"], dict(options["limits"] or ())
    if picture is not None:
        check_picture(picture, force=force)
    given = {"certificate": certificate, "private_list": private_list, "original": original}
    with busy("attacking"):
        found = attacked(released, **given, limits=limits)
    if picture is not None:
        found.plot().write(picture, force=force)
    show(as_json, found.to_dict(), found)
    if not found.holds or (strict and found.exceeded):
        raise typer.Exit(1)
