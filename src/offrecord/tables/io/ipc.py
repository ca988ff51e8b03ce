"""Arrow IPC in its file format, also known as Feather."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import BinaryIO, ClassVar

import polars as pl

from offrecord.tables.io.format import GROUP, Format, ReadOptions, Source
from offrecord.tables.io.limits import beyond, limit

_TAIL = b"ARROW1"  # how a file ends, after the size of its footer in four bytes
_COLUMN = 1 << 12  # bytes of the footer a column takes at most; usual are 100 to 300


@dataclass(frozen=True, eq=False)
class IpcSource(Source):
    """A table in Arrow IPC."""

    kind: ClassVar[str] = "ipc"

    @cached_property
    def lazy(self) -> pl.LazyFrame:
        """The table."""
        return pl.scan_ipc(escape(self.name))


class Ipc(Format):
    """Arrow IPC."""

    name = "ipc"
    endings = (".arrow", ".ipc", ".feather")

    def source(self, path: Path, options: ReadOptions) -> IpcSource:
        """A table in Arrow IPC; InputError for a footer of too many columns."""
        most = limit("columns", options.limits)
        if _footer_size(path) > _COLUMN * max(most, 100):
            raise beyond("columns", most, f"{path} describes more columns than")
        return IpcSource(path, options.limits)

    def write(self, frame: pl.LazyFrame, out: BinaryIO) -> None:
        """Write a table."""
        # the oldest layout stores each cell's own text, never a buffer shared with cells that are
        # gone
        oldest = pl.CompatLevel.oldest()
        frame.sink_ipc(out, compression="zstd", compat_level=oldest, record_batch_size=GROUP)


def _footer_size(path: Path) -> int:
    """Bytes of the footer; 0 where the file has none, as the engine will say."""
    with path.open("rb") as file:
        file.seek(-min(path.stat().st_size, len(_TAIL) + 4), os.SEEK_END)
        tail = file.read()
    return int.from_bytes(tail[:4], "little") if tail[4:] == _TAIL else 0
