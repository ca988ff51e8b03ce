"""A table in text as bytes of UTF-8, however it is packed and encoded, and text packed on its way
out.

What is not said is never guessed: text in another encoding than UTF-8 is an error that names it. A
stream that is damaged or cut short is an error, never a shorter text; several members or frames one
after the other are one text.
"""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from offrecord.errors import InputError
from offrecord.tables.io.limits import LIMITS, beyond, limit, unpacked_limit

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

#: The endings that say how a text is packed, and how it begins then.
PACKINGS = {".gz": "gzip", ".zst": "zstd"}
_MAGIC = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
UTF8 = "utf-8"
_BLOCK = 1 << 20  # bytes that are read, packed or unpacked at a time
#: Byte order marks, and the encodings that begin so; the longer ones first.
_MARKS = {
    codecs.BOM_UTF8: UTF8,
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_PLAIN = 'abc,;|\t"123\r\n'  # what every encoding of tables can say


@dataclass(frozen=True, eq=False)
class Text:
    """Where a text lies, and how it is packed and encoded."""

    origin: Path | bytes
    name: str
    packing: str | None = None
    encoding: str = UTF8
    line: int = LIMITS["line"]  # bytes that a line may have
    unpacked: int = LIMITS["unpacked"]  # bytes that all of it may have

    @property
    def is_plain(self) -> bool:
        """Its bytes are UTF-8 as they lie there."""
        return self.packing is None and self.encoding == UTF8

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Its bytes from the first one, as UTF-8."""
        if self.is_plain:
            with self._file() as file:
                yield file
        else:
            with io.BufferedReader(_Joined(self._decoded()), _BLOCK) as file:
                yield cast("BinaryIO", file)

    def _file(self) -> BinaryIO:
        if isinstance(self.origin, bytes):
            return io.BytesIO(self.origin)
        if self.packing is None:
            return self.origin.open("rb")
        packer: Any = gzip if self.packing == "gzip" else _zstd()
        return cast("BinaryIO", packer.open(self.origin, "rb"))

    def _blocks(self) -> Generator[bytes]:
        """Its bytes before they are decoded; InputError if it unpacks to too many."""
        done = 0
        with self._file() as file:
            while block := file.read(_BLOCK):
                done += len(block)
                if self.packing is not None and done > self.unpacked:
                    raise beyond(
                        "unpacked", self.unpacked, f"{self.name} unpacks to more bytes than"
                    )
                yield block

    def _decoded(self) -> Generator[bytes]:
        """Its bytes as UTF-8, which is not looked into where it is that already."""
        return self._blocks() if self.encoding == UTF8 else self._recoded()

    def _recoded(self) -> Generator[bytes]:
        decoder = codecs.getincrementaldecoder(self.encoding)()
        try:
            for block in self._blocks():
                yield decoder.decode(block).encode()
            yield decoder.decode(b"", final=True).encode()
        except UnicodeError:  # also for halves of a character that UTF-8 has no bytes for
            said = f"{self.encoding}, or is damaged: give the --encoding that it is in"
            if self.encoding == UTF8:
                windows = "if it is in Latin-1 or in Windows' encoding"
                said = f"UTF-8: {windows}, give --encoding latin-1 or cp1252"
            raise InputError(f"{self.name} is not in {said}") from None

    def held(self, limit: int) -> Text:
        """The same in memory; InputError if it comes to more than so many bytes."""
        content = io.BytesIO()
        for block in self._decoded():
            if content.tell() + len(block) > limit:
                raise InputError(
                    f"{self.name} comes to more than {limit >> 20} MiB, more than this machine's"
                    " memory holds; redact it with --stream"
                )
            content.write(block)
        return replace(self, origin=content.getvalue(), packing=None, encoding=UTF8)

    def exceeds(self, size: int) -> bool:
        """It comes to more bytes than that, once it is unpacked."""
        if self.packing is None and isinstance(self.origin, Path):
            return self.origin.stat().st_size > size
        done = 0
        return any((done := done + len(block)) > size for block in self._blocks())

    def check_utf8(self) -> None:
        """InputError if it should be UTF-8 and is not."""
        if self.encoding == UTF8:
            for _ in self._recoded():
                pass


class _Joined(io.RawIOBase):
    def __init__(self, blocks: Generator[bytes]) -> None:
        self.blocks, self.left = blocks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.blocks.close()
        super().close()

    def readinto(self, buffer: WriteableBuffer) -> int:
        target = memoryview(buffer).cast("B")
        while not self.left:  # blocks may be empty
            block = next(self.blocks, None)
            if block is None:
                return 0
            self.left = memoryview(block)
        size = min(len(target), len(self.left))
        target[:size] = self.left[:size]
        self.left = self.left[size:]
        return size


# ---- packing


def packing_of(path: Path) -> str | None:
    """How a file is packed, by the ending of its name; None if it is not."""
    return PACKINGS.get(path.suffix.lower())


def without_packing(path: Path) -> Path:
    """A name without the ending that says how the file is packed."""
    return path.with_suffix("") if packing_of(path) else path


def _check_packing(beginning: bytes, packing: str | None, name: str) -> None:
    found = next((one for one, magic in _MAGIC.items() if beginning.startswith(magic)), None)
    if found == packing:
        return
    if packing is not None:
        raise InputError(f"{name} is named as one packed by {packing}, but it is not")
    ending = next(ending for ending, one in PACKINGS.items() if one == found)
    raise InputError(
        f"{name} is packed by {found}: give it a name that ends so, like .csv{ending}, or unpack it"
    )


def _zstd() -> Any:
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


@contextmanager
def packed(out: BinaryIO, packing: str | None) -> Iterator[BinaryIO]:
    """A file to write a text to, so that it is packed; as it is, if it is not to be."""
    if packing is None:
        yield out
        return
    packer = _Packer(out, packing)
    yield cast("BinaryIO", packer)
    packer.finish()


class _Packer(io.RawIOBase):
    # by blocks of one size, so that the bytes do not depend on the pieces in which the text came

    def __init__(self, out: BinaryIO, packing: str) -> None:
        self.out, self.held = out, bytearray()
        self.failure: OSError | None = None  # the engine may not say that a write failed
        # one that says neither when it was made nor of which file, and adds a checksum
        self.compressor: Any = zlib.compressobj(wbits=31)
        if packing == "zstd":
            zstd = _zstd()
            options = {zstd.CompressionParameter.checksum_flag: 1}
            self.compressor = zstd.ZstdCompressor(options=options)

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


# ---- encodings


def text_at(path: Path, said: str | None, kind: str, limits: Mapping[str, int] | None) -> Text:
    """A text with the encoding that is said, UTF-8 without.

    InputError if it is empty, or begins as text of another packing or encoding does.
    """
    name, packing = str(path), packing_of(path)
    most = unpacked_limit(path.stat().st_size, limits)
    with path.open("rb") as file:
        _check_packing(file.read(4), packing, name)
    text = Text(path, name, packing, line=limit("line", limits), unpacked=most)
    with text.opened() as file:
        beginning = file.read(1 << 10)
    if not beginning:
        raise InputError(f"{name} is empty")
    return replace(text, encoding=_encoding(beginning, name, said, kind))


def _encoding(beginning: bytes, name: str, said: str | None, kind: str) -> str:
    """The encoding of a text: the one that is said, unless a mark says another."""
    chosen = UTF8 if said is None else _checked_encoding(said)
    marked = _marked(beginning)
    if marked == UTF8:
        return UTF8
    found = marked or ("utf-16" if b"\0" in beginning.partition(b"\n")[0] else None)
    if found is None or (chosen.startswith(found) and kind == "csv"):
        return chosen
    which = found if marked else f"{found}-le or {found}-be"
    how = f"give --encoding {which}" if kind == "csv" else "convert it to UTF-8 first"
    raise InputError(f"{name} is in {found.upper()}{'' if marked else ', without a mark'}: {how}")


def marked_encoding(path: Path) -> str | None:
    """The encoding that the byte order mark of a text file says; None without a mark."""
    with Text(path, str(path), packing_of(path)).opened() as file:
        return _marked(file.read(4))


def _marked(beginning: bytes) -> str | None:
    return next((one for mark, one in _MARKS.items() if beginning.startswith(mark)), None)


def _checked_encoding(said: str) -> str:
    """The name of an encoding as Python has it; InputError if it is none of text."""
    try:
        name = codecs.lookup(said).name
        is_known = _PLAIN.encode(name).decode(name) == _PLAIN
        codecs.getincrementaldecoder(name)
    except (LookupError, UnicodeError, ValueError, TypeError):
        is_known = False
    if not is_known:
        raise InputError(
            f"--encoding must be one such as utf-8, utf-16, latin-1 or cp1252, got {said!r:.40}"
        )
    return UTF8 if name in ("utf-8-sig", "ascii") else name
