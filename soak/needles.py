"""Values that must be nowhere in what a run leaves: cells beside private values, in a column that
is kept and in one that is not, and a value that only private records have.
"""

from __future__ import annotations

import gzip
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

#: A value that only private records have; it is a label, so models and certificates name it.
VALUE = "NEEDLE-VALUE-7f3a9"
#: Cells beside private values, of a column that is kept and of one that is not.
KEPT = "NEEDLE-KEPT-51c0d"
DROPPED = "NEEDLE-DROPPED-e82b6"
#: Files that name the labels of the model; a summary says what the rarest one may come to.
_NAMES_LABELS = re.compile(r"certificate|model|designs|policy|explain|said|report|new\.json")
_ZSTD = b"\x28\xb5\x2f\xfd"


def found_in(content: bytes, needles: tuple[str, ...]) -> str | None:
    """The first of some needles in a file's bytes, as they are or unpacked."""
    for part in _parts(content):
        for needle in needles:
            if needle.encode() in part or needle.encode("utf-16-le") in part:
                return needle
    return None


def found_under(folder: Path, apart: set[str]) -> str | None:
    """Where a needle is in any file of a folder, names and all; apart: names of files that were
    given.
    """
    for file in sorted(folder.rglob("*")):
        name = str(file.relative_to(folder))
        if name in apart or not file.is_file():
            continue
        labels = _NAMES_LABELS.search(name) is not None
        needle = found_in(file.read_bytes(), (KEPT, DROPPED) if labels else (VALUE, KEPT, DROPPED))
        if needle is not None or "NEEDLE" in name:
            return f"{needle} is in {name}"
    return None


def _parts(content: bytes) -> Iterator[bytes]:
    yield content
    if content.startswith(b"\x1f\x8b"):
        with gzip.open(io.BytesIO(content)) as packed:
            yield _readable(packed)
    if content.startswith(b"PK"):
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                for name in packed.namelist():
                    yield packed.read(name)
        except (zipfile.BadZipFile, OSError, EOFError):
            pass
    for match in re.finditer(re.escape(_ZSTD), content):
        yield _unpacked(content[match.start() :])


def _readable(stream: gzip.GzipFile) -> bytes:
    """What can be read of a stream that may be cut short."""
    read = bytearray()
    try:
        while piece := stream.read(1 << 16):
            read += piece
    except (OSError, EOFError):
        pass
    return bytes(read)


def _unpacked(content: bytes) -> bytes:
    """What a compressed stretch holds, as far as it goes."""
    try:
        from compression import zstd
    except ImportError:
        from backports import zstd
    try:
        return zstd.ZstdDecompressor().decompress(content)
    except zstd.ZstdError:
        return b""
