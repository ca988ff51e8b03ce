"""Newline-delimited JSON: one object a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import BinaryIO, ClassVar

import polars as pl

from offrecord.tables.io.csv import too_long
from offrecord.tables.io.format import Format, ReadOptions, TextSource
from offrecord.tables.io.limits import beyond, limit
from offrecord.tables.io.text import Text, text_at

_BLOCK = 1 << 20  # bytes that are looked at together


@dataclass(frozen=True, eq=False)
class NdjsonSource(TextSource):
    """A table in NDJSON."""

    kind: ClassVar[str] = "ndjson"

    @cached_property
    def lazy(self) -> pl.LazyFrame:
        """The table, with the types that all cells come to."""
        return pl.scan_ndjson(self._origin, infer_schema_length=None)

    @property
    def _origin(self) -> str | bytes:
        origin = self.text.origin
        return escape(str(origin)) if isinstance(origin, Path) else origin

    def typed(self, schema: Mapping[str, pl.DataType], text: Sequence[str]) -> pl.LazyFrame:
        """The table with some columns as text."""
        if not text:
            return self.lazy
        kinds = {name: pl.String() if name in text else kind for name, kind in schema.items()}
        return pl.scan_ndjson(self._origin, schema=kinds)


class Ndjson(Format):
    """NDJSON, read and written."""

    name = "ndjson"
    endings = (".ndjson", ".jsonl")
    is_text = True

    def source(self, path: Path, options: ReadOptions) -> NdjsonSource:
        """A table in NDJSON; InputError for lines that are too long, or have too many keys."""
        text = text_at(path, options.encoding, self.name, options.limits)
        # before the engine types all cells, which takes it long for many keys
        _check_objects(text, limit("columns", options.limits))
        return NdjsonSource(path, options.limits, text)

    def holds(self, kind: pl.DataType) -> bool:
        """Whether JSON has this type: it has no bytes."""
        inner = [getattr(kind, name) for name in ("inner", "key", "value") if hasattr(kind, name)]
        if isinstance(kind, pl.Struct):
            inner += [field.dtype for field in kind.fields]
        return kind != pl.Binary and all(map(self.holds, inner))

    def write(self, frame: pl.LazyFrame, out: BinaryIO) -> None:
        """Write a table."""
        frame.sink_ndjson(out)


def _check_objects(text: Text, keys: int) -> None:
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
