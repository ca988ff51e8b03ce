"""Charts as files, drawn without a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from offrecord.charts.engine import check_drawable
from offrecord.errors import InputError
from offrecord.files import check_writable, write_bytes

FORMATS = ("svg", "png", "html")


def check_picture(path: str | Path, *, force: bool) -> None:
    """InputError unless a chart could be written there."""
    if Path(path).suffix.removeprefix(".") not in FORMATS:
        raise InputError(
            f"picture must end in {', '.join('.' + name for name in FORMATS)}, got {path}"
        )
    check_writable(path, force=force)
    check_drawable()


def write_chart(chart: Any, path: str | Path, *, force: bool = False) -> None:
    """Write a chart; the file name's ending says how."""
    import io

    check_picture(path, force=force)
    kind = Path(path).suffix.removeprefix(".")
    if kind == "png":
        buffer = io.BytesIO()
        chart.save(buffer, format="png", ppi=160)
        write_bytes(path, buffer.getvalue(), force=force)
    else:
        text = io.StringIO()
        chart.save(text, format=kind, **({"inline": True} if kind == "html" else {}))
        write_bytes(path, text.getvalue().encode(), force=force)
