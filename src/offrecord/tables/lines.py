"""Whether a table in CSV is whole: up to a line end, all lines with as many cells as the first.

The engine fills up lines that are too short, and cuts those that are too long where their last
cells are not asked for.
"""

from __future__ import annotations

import csv
import io
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from offrecord.errors import InputError
from offrecord.text import many

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK = 1 << 20  # bytes that are looked at together
_CELL = 1 << 24  # bytes of a quoted cell, at most
_BOM = b"\xef\xbb\xbf"
_QUOTED = re.compile(rb'(?<![^,\n])"[^"]*(?:""[^"]*)*"(?=[,\r\n])')  # a cell in quotes
_OTHERS = bytes(byte for byte in range(256) if byte not in b',\n"')


def check_end(content: Path | io.BytesIO, name: str) -> None:
    """InputError if a table in CSV stops in the middle of a line."""
    with _opened(content) as file:
        file.seek(-1, io.SEEK_END)
        if file.read() != b"\n":
            how = f"echo >> {content}" if isinstance(content, Path) else "end it with one"
            raise InputError(
                f"{name} stops in the middle of a line: it was cut short; a table in CSV ends with"
                f" a line end (if this one is whole and merely lacks it: {how})"
            )


def check_lines(content: Path | io.BytesIO, name: str) -> None:
    """InputError for lines with more or fewer cells than the header, or an end in a quoted cell."""
    with _opened(content) as file:
        file.seek(0)
        if not _even(file):
            file.seek(0)
            _check_rows(file, name)


def _even(file: BinaryIO) -> bool:
    """All lines plainly have as many cells as the first; quotes surround whole cells."""
    held, line = b"", b""
    while block := file.read(_BLOCK):
        block = held + block
        if not line:
            block = block.removeprefix(_BOM).lstrip(b"\r\n")
        cut = block.rfind(b"\n") + 1
        if block.count(b'"', 0, cut) % 2:  # that line end is within a cell: back to the last before
            cut = block.rfind(b"\n", 0, block.rfind(b'"', 0, cut)) + 1
        block, held = block[:cut], block[cut:]
        if len(held) > _CELL:
            return False
        bare = (_QUOTED.sub(b"", block) if b'"' in block else block).translate(None, delete=_OTHERS)
        line = line or bare[: bare.find(b"\n") + 1]
        if bare and (b'"' in bare or bare != line * (len(bare) // len(line))):
            return False
    return not held


def _check_rows(file: BinaryIO, name: str) -> None:
    """The same check row by row, for files in which quotes may stand anywhere."""
    text = io.TextIOWrapper(file, encoding="latin-1", newline="")
    before = csv.field_size_limit(_CELL)
    width = count = first = row = 0
    try:
        if text.read(len(_BOM)).encode("latin-1") != _BOM:
            text.seek(0)
        for cells in csv.reader(text, strict=True):
            if not width:
                width = len(cells)  # lines before the header may be empty
            else:
                row += 1
                if len(cells or [""]) != width:
                    count, first = count + 1, first or row
    except csv.Error:  # strict: a quote that does not end, or a cell that goes on after it
        raise InputError(
            f"{name} has a quoted cell that does not end as one: it was cut short, or damaged"
        ) from None
    finally:
        csv.field_size_limit(before)
        text.detach()
    if count:
        have = "has" if count == 1 else "have"
        raise InputError(
            f"{name}: {many(count, 'row')} {have} more or fewer cells than its header ({width}),"
            f" first row {first}; cells that hold commas or line ends need quotes"
        )


@contextmanager
def _opened(content: Path | io.BytesIO) -> Iterator[BinaryIO]:
    if isinstance(content, Path):
        with content.open("rb") as file:
            yield file
    else:
        yield content
