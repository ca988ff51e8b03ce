"""Text packed by gzip or zstd: read within a limit, and written to the same bytes each time.

A stream that is damaged or cut short is an error, never a shorter text; several members or frames
one after the other are one text.
"""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from offrecord.errors import InputError
from offrecord.tables.io.limits import beyond

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

#: The endings that say how a text is packed, and how it begins then.
PACKINGS = {".gz": "gzip", ".zst": "zstd"}
_MAGIC = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
_BLOCK = 1 << 20  # bytes that are packed or unpacked at a time


def packing_of(path: Path) -> str | None:
    """How a file is packed, by the ending of its name; None if it is not."""
    return PACKINGS.get(path.suffix.lower())


def check_packing(beginning: bytes, packing: str | None, name: str) -> None:
    """InputError if a text begins as another packing does than the one its name says."""
    found = next((one for one, magic in _MAGIC.items() if beginning.startswith(magic)), None)
    if found == packing:
        return
    if packing is not None:
        raise InputError(f"{name} is named as one packed by {packing}, but it is not")
    ending = next(ending for ending, one in PACKINGS.items() if one == found)
    raise InputError(
        f"{name} is packed by {found}: give it a name that ends so, like .csv{ending}, or unpack it"
    )


def unpacked(path: Path, packing: str, most: int) -> Iterator[bytes]:
    """A packed text, block by block; InputError if it comes to more than so many bytes."""
    done = 0
    with _opened(path, packing) as file:
        while block := file.read(_BLOCK):
            done += len(block)
            if done > most:
                raise beyond("unpacked", most, f"{path} unpacks to more bytes than")
            yield block


def _opened(path: Path, packing: str) -> BinaryIO:
    if packing == "gzip":
        import gzip

        return cast("BinaryIO", gzip.open(path, "rb"))
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return cast("BinaryIO", zstd.open(path, "rb"))


class _Compressor(Protocol):
    """What packs a text, part by part."""

    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


def _compressor(packing: str) -> _Compressor:
    """One that says neither when it was made nor of which file, and adds a checksum."""
    if packing == "gzip":
        return zlib.compressobj(wbits=31)
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    options: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
    return cast("_Compressor", zstd.ZstdCompressor(options=options))


@contextmanager
def packed(out: BinaryIO, packing: str | None) -> Iterator[BinaryIO]:
    """A file to write a text to, so that it is packed; as it is, if it is not to be."""
    if packing is None:
        yield out
        return
    packer = _Packer(out, _compressor(packing))
    yield cast("BinaryIO", packer)
    packer.finish()


class _Packer(io.RawIOBase):
    """Packs what is written to it by blocks of one size, so that the bytes do not depend on the
    pieces in which the text came.
    """

    def __init__(self, out: BinaryIO, compressor: _Compressor) -> None:
        self.out, self.compressor, self.held = out, compressor, bytearray()
        self.failure: OSError | None = None  # the engine may not say that a write failed

    def writable(self) -> bool:
        return True

    def write(self, content: ReadableBuffer) -> int:
        self.held += content
        whole = len(self.held) // _BLOCK * _BLOCK
        try:
            for start in range(0, whole, _BLOCK):
                block = bytes(self.held[start : start + _BLOCK])
                self.out.write(self.compressor.compress(block))
        except OSError as error:
            self.failure = error
            raise
        del self.held[:whole]
        return len(memoryview(content).cast("B"))

    def finish(self) -> None:
        """Write what is left; OSError if anything could not be written."""
        if self.failure is not None:
            raise self.failure
        self.out.write(self.compressor.compress(bytes(self.held)) + self.compressor.flush())
