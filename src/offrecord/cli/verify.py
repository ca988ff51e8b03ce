"""The verb verify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from offrecord.cli.files import Certificate, Original, PrivateList, Released
from offrecord.cli.parameters import offering, whole
from offrecord.cli.printing import Json, busy, show


@offering()
def verify(
    certificate: Certificate,
    released: Released = None,
    private_list: PrivateList = None,
    key_file: Annotated[
        Path | None, typer.Option(help="The publisher's key: every coin is drawn again.")
    ] = None,
    original: Original = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Draw plausible chains from this seed, for tests; else from the machine's own"
            " randomness.",
            parser=whole,
            metavar="NUMBER",
        ),
    ] = None,
    as_json: Json = False,
    limits: Any = None,
) -> None:
    """Check a certificate by code of its own, under plausible chains drawn anew: exit 0 if it
    holds, 1 if it does not.
    """
    from offrecord.verification import verify as check

    given = {"private_list": private_list, "key_file": key_file, "original": original}
    with busy("verifying"):
        verdict = check(certificate, released, **given, seed=seed, limits=dict(limits or ()))
    show(as_json, verdict.to_dict(), verdict)
    if not verdict.is_verified:
        raise typer.Exit(1)
