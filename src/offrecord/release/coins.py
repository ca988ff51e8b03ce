"""Keyed exact coins: one 64-bit draw for each record, the same at every run, for every engine and
in any order.

A record's draw is a function of the key, the data set's name, the value column's name, the chain
and the record's own order value, and of nothing else (docs/coins.md has the bytes and test
vectors):

    chain tag  h = BLAKE2b-128 keyed with the key, over the name of the data set, the value column
    and the chain's values draw         = first 64 bits of AES-256(h xor order value)

AES is keyed with a key of its own derived from the same secret. For different chains h is an
independent 128-bit number, and within a chain order values differ, so no two records give AES the
same block: draws are independent and uniform as far as anyone without the key can see. What needs
several draws for one record counts them, in bits that no order value uses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

KEY_BYTES = 32
INTEGER, TIME, TEXT, BOOLEAN = 1, 2, 3, 4  #: kinds of order and chain values
#: What draws are for; one for another purpose is independent of them.
RECORDS = b"offrecord/coins"
#: The threshold of a redaction with probability 1; every other probability has a smaller one.
ALWAYS = np.uint64(2**64 - 1)

Draws: TypeAlias = NDArray[np.uint64]
ChainTags: TypeAlias = NDArray[np.uint64]
Counter: TypeAlias = int | NDArray[np.int64]


def thresholds(redaction: NDArray[np.float64]) -> Draws:
    """Redaction probabilities as multiples of 2⁻⁶⁴, rounded up: see `redacts`."""
    # More redaction never leaks more (F3). The product is exact, and floats below 1 give at most
    # 2⁶⁴ − 2¹¹, so that ALWAYS stands for 1 alone.
    scaled = np.ceil(np.asarray(redaction, dtype=np.float64) * 2.0**64)
    certain = scaled >= 2.0**64
    return np.where(certain, ALWAYS, np.where(certain, 0.0, scaled).astype(np.uint64))


def redacts(draws: Draws, limits: Draws) -> NDArray[np.bool_]:
    """Which records go: always at ALWAYS, else where the draw lies below the threshold."""
    return np.asarray((limits == ALWAYS) | (draws < limits))


@dataclass(frozen=True)
class Coins:
    """The coins of one column of one data set under one key."""

    key: bytes = field(repr=False)
    dataset: str
    column: str

    def __getstate__(self) -> dict[str, object]:
        # the hash that is cached cannot be sent
        return {name: getattr(self, name) for name in ("key", "dataset", "column")}

    @cached_property
    def _named(self) -> hashlib.blake2b:
        """The chain hash, ready for a chain's values."""
        named = hashlib.blake2b(key=self.key, digest_size=16, person=b"offrecord/chain")
        for text in (self.dataset, self.column):
            named.update(encoded_text(text))
        return named

    def chain_tags(self, chains: Iterable[bytes]) -> ChainTags:
        """(m, 2) the 128-bit tag of each chain, given its encoded values."""
        tags = bytearray()
        for chain in chains:
            tag = self._named.copy()
            tag.update(chain)
            tags += tag.digest()
        return np.frombuffer(bytes(tags), dtype="<u8").reshape(-1, 2).astype(np.uint64)

    def tags_anywhere(self, chains: Sequence[bytes]) -> ChainTags:
        """(m, 2) another tag of each chain, under any name of the data set; not for draws."""
        # CBC-MAC under a key of its own, of the column's name and then the chain's values, each
        # filled up with zeros to whole blocks. Encoded values say how long they are, so that no
        # message is the beginning of another, for which it is as good as AES.
        start = self._chained(np.zeros((1, 2), dtype=np.uint64), [encoded_text(self.column)])
        sizes = np.fromiter(map(len, chains), dtype=np.int64, count=len(chains))
        tags = np.repeat(start, len(chains), axis=0)
        for size in np.unique(sizes).tolist():
            alike = np.flatnonzero(sizes == size)
            tags[alike] = self._chained(tags[alike], [chains[i] for i in alike.tolist()])
        return tags

    def _chained(self, states: NDArray[np.uint64], messages: Sequence[bytes]) -> NDArray[np.uint64]:
        """(m, 2) states after messages (m,) of one length, block by block."""
        size = len(messages[0])
        if not size:  # of a table without a column that names chains
            return states
        filled = np.zeros((len(messages), -(-size // 16) * 16), dtype=np.uint8)
        filled[:, :size] = np.frombuffer(b"".join(messages), dtype=np.uint8).reshape(-1, size)
        blocks = filled.view("<u8").astype(np.uint64, copy=False)
        for at in range(0, blocks.shape[1], 2):
            states = encrypted(self.key, b"offrecord/again", states ^ blocks[:, at : at + 2])
        return states

    def draw(
        self,
        tags: ChainTags,
        order: NDArray[np.integer],
        kind: int,
        purpose: bytes = RECORDS,
        counter: Counter = 0,
    ) -> Draws:
        """(r,) a draw for each record, given its chain's tag (r, 2) and its order value. counter:
        which of a record's draws, from 0, below 2⁴⁸.
        """
        blocks = _blocks(tags, order, kind)
        if isinstance(counter, np.ndarray) or counter:
            blocks[:, 1] ^= np.asarray(counter).astype(np.uint64)
        return np.ascontiguousarray(encrypted(self.key, purpose, blocks)[:, 0])

    def set_digest(
        self, tags: ChainTags, order: NDArray[np.integer], kind: int
    ) -> NDArray[np.uint64]:
        """(2,) a 128-bit digest of records that nobody without the key can compute or test."""
        # whatever their order: the digest of two sets together is the exclusive or of theirs
        blocks = encrypted(self.key, b"offrecord/set", _blocks(tags, order, kind))
        # numpy is quick in one dimension
        return np.array([np.bitwise_xor.reduce(half) for half in blocks.T], dtype=np.uint64)

    def content_digest(
        self, tags: ChainTags, content: NDArray[np.uint64], lengths: NDArray[np.integer]
    ) -> int:
        """The same of what some chains hold, given a number for the content of each."""
        blocks = tags ^ np.stack((content, lengths.astype(np.uint64)), axis=1)
        low, high = np.bitwise_xor.reduce(
            encrypted(self.key, b"offrecord/left", blocks), axis=0
        ).tolist()
        return int(low | high << 64)


def encrypted(key: bytes, purpose: bytes, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """(r, 2) blocks of 128 bits under AES-256, with a key of their own purpose."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # One block a record, no two alike: ECB over all of them is AES applied to each.
    cipher = Cipher(algorithms.AES(subkey(key, purpose)), modes.ECB()).encryptor()
    content = cipher.update(blocks.astype("<u8", copy=False).tobytes()) + cipher.finalize()
    return np.frombuffer(content, dtype="<u8").reshape(-1, 2).astype(np.uint64, copy=False)


def _blocks(tags: ChainTags, order: NDArray[np.integer], kind: int) -> NDArray[np.uint64]:
    """(r, 2) what AES is given for each record: its chain's tag xor its order value."""
    # 15 bytes of two's complement, then the kind
    sign = np.where(order < 0, np.uint64(2**56 - 1), np.uint64(0))
    return tags ^ np.stack((order.astype(np.uint64), sign | np.uint64(kind << 56)), axis=1)


def subkey(key: bytes, purpose: bytes, size: int = 32) -> bytes:
    """A key for one purpose, or a public id, derived from the secret one."""
    return hashlib.blake2b(key=key, digest_size=size, person=purpose).digest()


# ---- the bytes that stand for a value: a kind, a length, the value; all numbers little-endian


def _encoded(kind: int, content: bytes) -> bytes:
    return bytes((kind,)) + len(content).to_bytes(8, "little") + content


def encoded_text(text: str) -> bytes:
    """A text, as UTF-8."""
    return _encoded(TEXT, text.encode())


def encoded_boolean(value: bool) -> bytes:
    """A truth value, as one byte."""
    return _encoded(BOOLEAN, bytes((value,)))


def encoded_whole(value: int) -> bytes:
    """One whole number, as 16 bytes of two's complement."""
    return _encoded(INTEGER, value.to_bytes(16, "little", signed=True))


def encoded_integers(values: NDArray[np.integer], kind: int) -> list[bytes]:
    """Integers of any width, or times as nanoseconds, as `encoded_whole` has them."""
    form = np.dtype([("kind", "u1"), ("length", "<u8"), ("low", "<u8"), ("high", "<u8")])
    packed = np.zeros(len(values), dtype=form)
    packed["kind"], packed["length"] = kind, 16
    packed["low"] = values.astype(np.uint64)
    packed["high"] = np.where(values < 0, np.uint64(2**64 - 1), np.uint64(0))
    content, size = packed.tobytes(), form.itemsize
    return [content[i : i + size] for i in range(0, len(content), size)]


def joined(columns: Sequence[Sequence[bytes]], count: int) -> Iterable[bytes]:
    """The encoded values of each of `count` chains, column after column."""
    if not columns:
        return [b""] * count
    return columns[0] if len(columns) == 1 else map(b"".join, zip(*columns, strict=True))
