"""The verb look."""

from __future__ import annotations

from typing import Any

from offrecord.cli.files import Table
from offrecord.cli.parameters import offering
from offrecord.cli.printing import Json, show


@offering()
def look(table: Table, as_json: Json = False, **asked: Any) -> None:
    """Look at a table: what its columns seem to be, and the fit and redact commands to run next."""
    from offrecord.tables.look import look as look_at

    found = look_at(table, **asked)
    show(as_json, found.to_dict(), found)
