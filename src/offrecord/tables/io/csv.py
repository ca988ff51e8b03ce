"""CSV. Cells are read as text: types are decided later from all cells, never guessed from a few."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, ClassVar

import polars as pl

from offrecord.errors import InputError
from offrecord.tables.column_names import check_columns
from offrecord.tables.io.format import Format, ReadOptions, TextSource
from offrecord.tables.io.limits import beyond, limit
from offrecord.tables.io.text import Text, text_at, without_packing
from offrecord.text import many

_BLOCK = 1 << 20  # bytes that are looked at together


@dataclass(frozen=True, eq=False)
class CsvSource(TextSource):
    """A table in CSV."""

    kind: ClassVar[str] = "csv"

    separator: str

    @cached_property
    def lazy(self) -> pl.LazyFrame:
        """The table, all cells as text."""
        # quoted or not, an empty cell is a missing one: that is how a redaction is written
        return pl.scan_csv(
            self.text.origin,
            separator=self.separator,
            infer_schema=False,
            empty_string_is_null=True,
            glob=False,
        )

    @property
    def sorted_path(self) -> Path:
        """Other endings, such as .tsv, are not written."""
        return super().sorted_path.with_suffix(".csv")

    @property
    def scan_options(self) -> str:
        """All cells are text."""
        separator = self.separator
        return ", infer_schema=False" + (f", separator={separator!r}" if separator != "," else "")

    @cached_property
    def _lines(self) -> None:
        with self.text.opened() as file:
            is_even = _is_even(file, self.separator.encode(), self.text.line)
        if not is_even:
            with self.text.opened() as file:
                _check_rows(file, self.text, self.separator)

    def check_whole(self) -> None:
        """InputError for lines that do not have equally many cells; they are read once."""
        return self._lines

    def explain_failure(self) -> None:
        """InputError if it is not in UTF-8."""
        self.text.check_utf8()

    def check_header(self, columns: Sequence[str], names: Sequence[str]) -> None:
        """InputError if a column is not there, or several are called so."""
        check_columns(columns, names, self.name, cells=True)
        twice = [name for name in columns if f"{name}_duplicated_0" in names]
        if twice:
            raise InputError(
                f"{self.name} has several columns {twice[0]!r}; give each its own name"
            )


class Csv(Format):
    """Comma-separated values. Written with commas; read with any separator."""

    name = "csv"
    endings = (".csv",)
    read_endings = (".tsv", ".tab")
    is_text = True

    def source(self, path: Path, options: ReadOptions) -> CsvSource:
        """A table in CSV; InputError if it plainly is not whole."""
        text = text_at(path, options.encoding, self.name, options.limits)
        header = _first_line(text)
        separator = _separator(header, options.separator or ("tab" if is_tabbed(path) else ","))
        most = limit("columns", options.limits)
        if header.count(separator.encode()) >= most:
            raise beyond("columns", most, f"{path}: the first line has more columns than")
        if text.is_plain:
            _check_end(text)
        return CsvSource(path, options.limits, text, separator)

    def holds(self, kind: pl.DataType) -> bool:
        """Whether a cell of this type is one text."""
        return not (kind.is_nested() or kind in (pl.Binary, pl.Duration))

    def write(self, frame: pl.LazyFrame, out: BinaryIO) -> None:
        """Write a table, an empty cell for each null."""
        # readers skip empty lines: the empty cell of a single column is a pair of quotes
        is_single = len(frame.collect_schema()) == 1
        frame.sink_csv(out, null_value='""' if is_single else "")


def is_tabbed(path: Path) -> bool:
    """Whether the ending of a name says that tabs separate cells."""
    return without_packing(path).suffix.lower() in Csv.read_endings


def _first_line(text: Text) -> bytes:
    """The header; lines before it may be empty. InputError if it is too long."""
    with text.opened() as file:
        while line := file.readline(text.line + 1):
            if len(line) > text.line:
                raise too_long(text)
            if line.strip(b"\r\n" + codecs.BOM_UTF8):
                return line
    return b""


def _separator(header: bytes, said: str) -> str:
    """The one that is said, one character or "tab"; a comma if the header does not hold it."""
    separator = {"tab": "\t", "\\t": "\t"}.get(said, said)
    is_one = len(separator) == 1 and separator.isascii()
    if not is_one or separator.isalnum() or separator in '"\r\n\0':
        raise InputError(f"--separator must be one character, as ; or tab, got {said!r:.40}")
    return separator if separator.encode() in header else ","


# ---- whether all lines are there, up to a line end, with as many cells as the first: the engine
# fills up lines that are too short, and cuts those that are too long where their last cells are not
# asked for


def too_long(text: Text) -> InputError:
    """The error of a line, or a quoted cell, beyond its limit."""
    return beyond("line", text.line, f"{text.name} has a line of more bytes than")


def _check_end(text: Text) -> None:
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


def _is_even(file: BinaryIO, separator: bytes, longest: int) -> bool:
    """All lines plainly have as many cells as the first; quotes surround whole cells."""
    held, line, one = b"", b"", re.escape(separator)
    quoted = re.compile(rb'(?<![^%b\n])"[^"]*(?:""[^"]*)*"(?=[%b\r\n])' % (one, one))
    others = bytes(byte for byte in range(256) if byte not in separator + b'\n"')
    size = min(_BLOCK, longest)  # a line that is too long then spans several blocks
    while block := file.read(size):
        block = held + block
        if not line:
            block = block.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n")
        cut = block.rfind(b"\n") + 1
        if block.count(b'"', 0, cut) % 2:  # that line end is within a cell: back to the last before
            cut = block.rfind(b"\n", 0, block.rfind(b'"', 0, cut)) + 1
        block, held = block[:cut], block[cut:]
        if len(held) > longest:
            return False
        bare = (quoted.sub(b"", block) if b'"' in block else block).translate(None, delete=others)
        line = line or bare[: bare.find(b"\n") + 1]
        if bare and (b'"' in bare or bare != line * (len(bare) // len(line))):
            return False
    return not held


def _check_rows(file: BinaryIO, text: Text, separator: str) -> None:
    """The same row by row, for files in which quotes may stand anywhere; InputError if not."""
    decoded = io.TextIOWrapper(file, encoding="latin-1", newline="")
    before = csv.field_size_limit(text.line)
    width = count = first = row = 0
    try:
        for cells in csv.reader(_lines(decoded, text), strict=True, delimiter=separator):
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
        what = "commas" if separator == "," else "separators"
        raise InputError(
            f"{text.name}: {many(count, 'row')} {have} more or fewer cells than its header"
            f" ({width}), first row {first}; cells that hold {what} or line ends need quotes"
        )


def _lines(decoded: io.TextIOWrapper, text: Text) -> Iterator[str]:
    """The lines of a text, without a mark before the first; InputError if the last has no end."""
    line = decoded.readline(text.line).removeprefix(codecs.BOM_UTF8.decode("latin-1"))
    while line:
        if len(line) >= text.line:
            raise too_long(text)
        following = decoded.readline(text.line)
        if not following and not line.endswith("\n"):
            raise _cut_short(text)
        yield line
        line = following
