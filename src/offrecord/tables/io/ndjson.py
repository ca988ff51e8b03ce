"""Newline-delimited JSON: one object a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import BinaryIO, ClassVar

import polars as pl

from offrecord.tables.io.format import Format, ReadOptions
from offrecord.tables.io.limits import limit
from offrecord.tables.io.lines import check_objects
from offrecord.tables.io.source import TextSource
from offrecord.tables.io.text import text_at


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
        check_objects(text, limit("columns", options.limits))
        return NdjsonSource(str(path), path, options.limits, text)

    def holds(self, kind: pl.DataType) -> bool:
        """Whether JSON has this type: it has no bytes."""
        inner = [getattr(kind, name) for name in ("inner", "key", "value") if hasattr(kind, name)]
        if isinstance(kind, pl.Struct):
            inner += [field.dtype for field in kind.fields]
        return kind != pl.Binary and all(map(self.holds, inner))

    def write(self, frame: pl.LazyFrame, out: BinaryIO) -> None:
        """Write a table."""
        frame.sink_ndjson(out)
