"""Where a report may be written."""

from __future__ import annotations

from pathlib import Path

from offrecord.errors import InputError
from offrecord.files import check_writable

FORMS = (".html", ".md")


def check_report(path: str | Path, *, force: bool) -> Path:
    """The path, if a report may be written there; InputError otherwise."""
    if Path(path).suffix not in FORMS:
        raise InputError(f"a report must end in {' or '.join(FORMS)}, got {path}")
    return check_writable(path, force=force)
