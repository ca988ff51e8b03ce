"""What is printed: results on standard output, all else on standard error."""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def as_json_text(content: Any) -> str:
    """One JSON object; infinity and NaN are no JSON."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def noted(message: str) -> None:
    """Say on standard error what a person may want to know."""
    _say(f"note: {message}")


def warned(message: str) -> None:
    """Say a warning on standard error."""
    _say(f"warning: {message}")


def failed(message: str) -> None:
    """Say on standard error what went wrong."""
    _say(message)


def fault_of(error: BaseException) -> str:
    """A fault of this program by kind and place alone: what it says itself may quote cells."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
    return f"internal error ({where})"


def _say(message: str) -> None:
    print(f"offrecord: {' '.join(message.split())}", file=sys.stderr)
