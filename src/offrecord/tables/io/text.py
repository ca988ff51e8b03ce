"""A table in text as bytes of UTF-8, however it is packed and encoded.

What is not said is never guessed: text in another encoding than UTF-8 is an error that names it.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from offrecord.errors import InputError
from offrecord.tables.io.compression import check_packing, packing_of, unpacked
from offrecord.tables.io.limits import LIMITS, limit, unpacked_limit

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

UTF8 = "utf-8"
_BLOCK = 1 << 20
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
    """Where a text lies, and how it is packed, encoded, and, in CSV, separated.

    line, unpacked: how many bytes a line may have, and all of it once it is unpacked.
    """

    origin: Path | bytes
    name: str
    packing: str | None = None
    encoding: str = UTF8
    separator: str = ","
    line: int = LIMITS["line"]
    unpacked: int = LIMITS["unpacked"]

    @property
    def is_plain(self) -> bool:
        """Its bytes are UTF-8 as they lie there."""
        return self.packing is None and self.encoding == UTF8

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Its bytes from the first one, as UTF-8."""
        if not self.is_plain:
            with io.BufferedReader(_Joined(self._decoded()), _BLOCK) as file:
                yield cast("BinaryIO", file)
        elif isinstance(self.origin, Path):
            with self.origin.open("rb") as file:
                yield file
        else:
            yield io.BytesIO(self.origin)

    def _blocks(self) -> Generator[bytes]:
        """Its bytes before they are decoded."""
        if isinstance(self.origin, Path) and self.packing is not None:
            yield from unpacked(self.origin, self.packing, self.unpacked)
            return
        with replace(self, encoding=UTF8).opened() as file:
            while block := file.read(_BLOCK):
                yield block

    def _decoded(self) -> Generator[bytes]:
        if self.encoding == UTF8:
            yield from self._blocks()
            return
        decoder = codecs.getincrementaldecoder(self.encoding)()
        try:
            for block in self._blocks():
                yield decoder.decode(block).encode()
            yield decoder.decode(b"", final=True).encode()
        except UnicodeError:  # also for halves of a character that UTF-8 has no bytes for
            raise InputError(
                f"{self.name} is not in {self.encoding}, or is damaged: give the --encoding that it"
                " is in"
            ) from None

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
        for block in self._blocks():
            done += len(block)
            if done > size:
                return True
        return False

    def check_utf8(self) -> None:
        """InputError if it should be UTF-8 and is not."""
        if self.encoding == UTF8:
            decoder = codecs.getincrementaldecoder(UTF8)()
            try:
                for block in self._blocks():
                    decoder.decode(block)
            except UnicodeDecodeError:
                raise InputError(
                    f"{self.name} is not in UTF-8: if it is in Latin-1 or in Windows' encoding,"
                    " give --encoding latin-1 or cp1252"
                ) from None


class _Joined(io.RawIOBase):
    """Blocks of bytes as a file."""

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


def text_at(path: Path, said: str | None, kind: str, limits: Mapping[str, int] | None) -> Text:
    """A text with the encoding that is said, UTF-8 without.

    InputError if it is empty, or begins as text of another packing or encoding does.
    """
    name, packing = str(path), packing_of(path)
    most = unpacked_limit(path.stat().st_size, limits)
    raw = Text(path, name, line=limit("line", limits), unpacked=most)
    with raw.opened() as file:
        check_packing(file.read(4), packing, name)
    text = replace(raw, packing=packing)
    with text.opened() as file:
        beginning = file.read(1 << 10)
    if not beginning:
        raise InputError(f"{name} is empty")
    return replace(text, encoding=_encoding(beginning, name, said, kind))


def _encoding(beginning: bytes, name: str, said: str | None, kind: str) -> str:
    """The encoding of a text: the one that is said, unless a mark says another."""
    chosen = UTF8 if said is None else checked_encoding(said)
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
    """The encoding that a mark at the beginning says."""
    return next((one for mark, one in _MARKS.items() if beginning.startswith(mark)), None)


def checked_encoding(said: str) -> str:
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
