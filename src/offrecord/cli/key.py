"""The verb key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, show, warned
from offrecord.errors import InputError


@offering()
def key(
    action: Annotated[
        str, typer.Argument(metavar="new|show-id", help="Make a key, or show the public id of one.")
    ],
    key_file: Path | None,
    as_json: Json = False,
) -> None:
    """Make a key, or show its public id."""
    from offrecord.release.keys import Key, default_key_file

    file = key_file or default_key_file()
    if action not in ("new", "show-id"):
        raise InputError(f"key takes new or show-id, got {action!r}")
    found = Key.new(file) if action == "new" else Key.load(file)
    if action == "new":
        warned(f"made {file}: keep it secret, and keep it; a re-release needs the same key")
    show(as_json, {"id": found.id, "file": str(file)}, found.id)
