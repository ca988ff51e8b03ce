"""CSV. Cells are read as text: types are decided later from all cells, never guessed from a few."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, ClassVar

import polars as pl

from offrecord.errors import InputError
from offrecord.tables.guarding import collected
from offrecord.tables.io.compression import packing_of
from offrecord.tables.io.format import Format, ReadOptions
from offrecord.tables.io.limits import beyond, limit
from offrecord.tables.io.lines import check_end, check_lines, too_long
from offrecord.tables.io.source import TextSource
from offrecord.tables.io.text import Text, text_at


@dataclass(frozen=True, eq=False)
class CsvSource(TextSource):
    """A table in CSV."""

    kind: ClassVar[str] = "csv"
    has_header_line: ClassVar[bool] = True

    @cached_property
    def lazy(self) -> pl.LazyFrame:
        """The table, all cells as text."""
        # quoted or not, an empty cell is a missing one: that is how a redaction is written
        return pl.scan_csv(
            self.text.origin,
            separator=self.text.separator,
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
        separator = self.text.separator
        return ", infer_schema=False" + (f", separator={separator!r}" if separator != "," else "")

    @cached_property
    def _lines(self) -> None:
        check_lines(self.text)

    def check_whole(self) -> None:
        """InputError for lines that do not have equally many cells."""
        return self._lines

    def explain_failure(self) -> None:
        """InputError if it is not in UTF-8."""
        self.text.check_utf8()

    def check_header(self, columns: Sequence[str], names: Sequence[str]) -> None:
        """InputError if a column is not there, or several are called so."""
        super().check_header(columns, names)
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
        said = options.separator or ("tab" if is_tabbed(path) else None)
        header = _first_line(text)
        text = replace(text, separator=_separator(header, said))
        most = limit("columns", options.limits)
        if header.count(text.separator.encode()) >= most:
            raise beyond("columns", most, f"{path}: the first line has more columns than")
        if text.is_plain:
            check_end(text)
        return CsvSource(str(path), path, options.limits, text)

    def holds(self, kind: pl.DataType) -> bool:
        """Whether a cell of this type is one text."""
        return not (kind.is_nested() or kind in (pl.Binary, pl.Duration))

    def write(self, frame: pl.LazyFrame, out: BinaryIO) -> None:
        """Write a table, an empty cell for each null."""
        if len(frame.collect_schema().names()) == 1:
            out.write(_single_column(collected(frame)))
        else:
            frame.sink_csv(out, null_value="")


def is_tabbed(path: Path) -> bool:
    """Whether the ending of a name says that tabs separate cells."""
    plain = path.with_suffix("") if packing_of(path) else path
    return plain.suffix.lower() in Csv.read_endings


def checked_separator(said: str) -> str:
    """A separator of cells, one character; "tab" is one too."""
    separator = {"tab": "\t", "\\t": "\t"}.get(said, said)
    is_one = len(separator) == 1 and separator.isascii()
    if not is_one or separator.isalnum() or separator in '"\r\n\0':
        raise InputError(f"--separator must be one character, as ; or tab, got {said!r:.40}")
    return separator


def _first_line(text: Text) -> bytes:
    """The header; lines before it may be empty. InputError if it is too long."""
    with text.opened() as file:
        while line := file.readline(text.line + 1):
            if len(line) > text.line:
                raise too_long(text)
            if line.strip(b"\r\n" + codecs.BOM_UTF8):
                return line
    return b""


def _separator(header: bytes, said: str | None) -> str:
    """The one that is said, if it stands in the header; a comma without, or if it does not."""
    if said is None:
        return ","
    separator = checked_separator(said)
    return separator if separator.encode() in header else ","


def _single_column(frame: pl.DataFrame) -> bytes:
    """One column of CSV: an empty cell as a pair of quotes, since readers skip empty lines."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(frame.columns)
    for (cell,) in frame.cast(pl.String).iter_rows():
        writer.writerow(["" if cell is None else cell])
    return text.getvalue().encode()
