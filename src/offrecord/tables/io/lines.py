"""Whether a table in CSV is whole: up to a line end, all lines with as many cells as the first.

The engine fills up lines that are too short, and cuts those that are too long where their last
cells are not asked for.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO

from offrecord.errors import InputError
from offrecord.tables.io.limits import beyond
from offrecord.tables.io.text import Text
from offrecord.text import many

_BLOCK = 1 << 20  # bytes that are looked at together
_BOM = b"\xef\xbb\xbf"


def check_end(text: Text) -> None:
    """InputError if a table in CSV that lies there as it is stops in the middle of a line."""
    with text.opened() as file:
        file.seek(-1, io.SEEK_END)
        if file.read() != b"\n":
            raise _cut_short(text)


def _cut_short(text: Text) -> InputError:
    is_file = isinstance(text.origin, Path) and text.is_plain
    how = f"echo >> {text.name}" if is_file else "end it with one"
    return InputError(
        f"{text.name} stops in the middle of a line: it was cut short; a table in CSV ends with a"
        f" line end (if this one is whole and merely lacks it: {how})"
    )


def check_lines(text: Text) -> None:
    """InputError for lines with more or fewer cells than the header, or an end within one."""
    with text.opened() as file:
        if _even(file, text):
            return
    with text.opened() as file:
        _check_rows(file, text)


def check_objects(text: Text, keys: int) -> None:
    """InputError for a line of NDJSON that is too long, or has more keys than so many."""
    found = length = 0
    with text.opened() as file:
        while block := file.read(_BLOCK):
            for number, part in enumerate(block.split(b"\n")):
                is_new = number > 0  # the first part goes on where the block before ended
                found = part.count(b'":') + (0 if is_new else found)
                length = len(part) + (0 if is_new else length)
                if length > text.line:
                    raise too_long(text)
                if found > keys:
                    raise beyond("columns", keys, f"{text.name} has a line with more keys than")


def too_long(text: Text) -> InputError:
    """The error of a line, or a quoted cell, beyond its limit."""
    return beyond("line", text.line, f"{text.name} has a line of more bytes than")


@cache
def _quoted_cell(separator: bytes) -> re.Pattern[bytes]:
    """A cell in quotes."""
    one = re.escape(separator)
    return re.compile(rb'(?<![^%b\n])"[^"]*(?:""[^"]*)*"(?=[%b\r\n])' % (one, one))


@cache
def _others(separator: bytes) -> bytes:
    """Bytes that neither part nor quote cells."""
    return bytes(byte for byte in range(256) if byte not in separator + b'\n"')


def _even(file: BinaryIO, text: Text) -> bool:
    """All lines plainly have as many cells as the first; quotes surround whole cells."""
    held, line, separator = b"", b"", text.separator.encode()
    size = min(_BLOCK, text.line)  # a line that is too long then spans several blocks
    quoted, others = _quoted_cell(separator), _others(separator)
    while block := file.read(size):
        block = held + block
        if not line:
            block = block.removeprefix(_BOM).lstrip(b"\r\n")
        cut = block.rfind(b"\n") + 1
        if block.count(b'"', 0, cut) % 2:  # that line end is within a cell: back to the last before
            cut = block.rfind(b"\n", 0, block.rfind(b'"', 0, cut)) + 1
        block, held = block[:cut], block[cut:]
        if len(held) > text.line:
            return False
        bare = (quoted.sub(b"", block) if b'"' in block else block).translate(None, delete=others)
        line = line or bare[: bare.find(b"\n") + 1]
        if bare and (b'"' in bare or bare != line * (len(bare) // len(line))):
            return False
    return not held


def _check_rows(file: BinaryIO, text: Text) -> None:
    """The same check row by row, for files in which quotes may stand anywhere."""
    decoded = io.TextIOWrapper(file, encoding="latin-1", newline="")
    before = csv.field_size_limit(text.line)
    width = count = first = row = 0
    try:
        for cells in csv.reader(_lines(decoded, text), strict=True, delimiter=text.separator):
            if not width:
                width = len(cells)  # lines before the header may be empty
            else:
                row += 1
                if len(cells or [""]) != width:
                    count, first = count + 1, first or row
    except csv.Error:  # strict: a quote that does not end, or a cell that goes on after it
        raise InputError(
            f"{text.name} has a quoted cell that does not end as one: it was cut short, or damaged"
        ) from None
    finally:
        csv.field_size_limit(before)
        decoded.detach()
    if count:
        have = "has" if count == 1 else "have"
        what = "commas" if text.separator == "," else "separators"
        raise InputError(
            f"{text.name}: {many(count, 'row')} {have} more or fewer cells than its header"
            f" ({width}), first row {first}; cells that hold {what} or line ends need quotes"
        )


def _lines(decoded: io.TextIOWrapper, text: Text) -> Iterator[str]:
    """The lines of a text, without a mark before the first; InputError if the last has no end."""
    line = decoded.readline(text.line).removeprefix(_BOM.decode("latin-1"))
    while line:
        if len(line) >= text.line:
            raise too_long(text)
        following = decoded.readline(text.line)
        if not following and not line.endswith("\n"):
            raise _cut_short(text)
        yield line
        line = following
