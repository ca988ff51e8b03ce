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
    """Redaction probabilities as multiples of 2⁻⁶⁴, rounded up (F3): a record is redacted if its
    draw is below.

    The product with 2⁶⁴ is exact. Probabilities below 1 give at most 2⁶⁴ − 2¹¹, and 1 gives ALWAYS,
    which `redacts` knows.
    """
    scaled = np.ceil(np.asarray(redaction, dtype=np.float64) * 2.0**64)
    certain = scaled >= 2.0**64
    return np.where(certain, ALWAYS, np.where(certain, 0.0, scaled).astype(np.uint64))


def redacts(draws: Draws, limits: Draws) -> NDArray[np.bool_]:
    """Which records are redacted: always at ALWAYS, else where the draw lies below the
    threshold.
    """
    return np.asarray((limits == ALWAYS) | (draws < limits))


@dataclass(frozen=True)
class Coins:
    """The coins of one column of one data set under one key."""

    key: bytes = field(repr=False)
    dataset: str
    column: str

    def __getstate__(self) -> dict[str, object]:
        return {
            name: getattr(self, name) for name in ("key", "dataset", "column")
        }  # what is cached cannot be sent

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
        """(m, 2) another 128-bit tag of each chain, given its encoded values, whatever the name of
        the data set: for what is to be known again, never for draws.

        CBC-MAC under a key of its own, of the column's name and then the chain's values, each
        filled up with zeros to whole blocks. Encoded values say how long they are, so that no
        message is the beginning of another, for which it is as good as AES.
        """
        begin = np.zeros((1, 2), dtype=np.uint64)
        (start,) = self._chained(begin, [encoded_text(self.column)])
        if len(set(map(len, chains))) == 1:  # numbers are all as long
            return self._chained(np.repeat(start[np.newaxis], len(chains), axis=0), chains)
        sizes = np.fromiter(map(len, chains), dtype=np.int64, count=len(chains))
        tags = np.empty((len(chains), 2), dtype=np.uint64)
        for size in np.unique(sizes).tolist():
            alike = np.flatnonzero(sizes == size)
            some = [chains[i] for i in alike.tolist()]
            tags[alike] = self._chained(np.repeat(start[np.newaxis], len(alike), axis=0), some)
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
            states = self._encrypt(b"offrecord/again", states ^ blocks[:, at : at + 2])
        return states

    def draw(
        self,
        tags: ChainTags,
        order: NDArray[np.integer],
        kind: int,
        purpose: bytes = RECORDS,
        counter: Counter = 0,
    ) -> Draws:
        """(r,) a draw for each record, given its chain's tag (r, 2) and its order value.

        counter: which of a record's draws, from 0, below 2⁴⁸; one for all of them, or (r,).
        """
        blocks = _blocks(tags, order, kind)
        if isinstance(counter, np.ndarray) or counter:
            blocks[:, 1] ^= np.asarray(counter).astype(np.uint64)
        return np.ascontiguousarray(self._encrypt(purpose, blocks)[:, 0])

    def set_digest(
        self, tags: ChainTags, order: NDArray[np.integer], kind: int
    ) -> NDArray[np.uint64]:
        """(2,) a 128-bit digest of records that nobody without the key can compute or test.

        Whatever their order: the digest of two sets together is the exclusive or of theirs.
        """
        blocks = self._encrypt(b"offrecord/set", _blocks(tags, order, kind))
        # numpy is quick in one dimension
        return np.array([np.bitwise_xor.reduce(half) for half in blocks.T], dtype=np.uint64)

    def content_digest(
        self, tags: ChainTags, content: NDArray[np.uint64], lengths: NDArray[np.integer]
    ) -> int:
        """A 128-bit digest of what some chains hold, given a number for the content of each, as
        above: for the key's owner alone, whatever the order of the chains, and that of two sets of
        them is the exclusive or of theirs.
        """
        blocks = tags ^ np.stack((content, lengths.astype(np.uint64)), axis=1)
        low, high = np.bitwise_xor.reduce(self._encrypt(b"offrecord/left", blocks), axis=0).tolist()
        return int(low | high << 64)

    def _encrypt(self, purpose: bytes, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return encrypted(self.key, purpose, blocks)


def encrypted(key: bytes, purpose: bytes, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """(r, 2) blocks of 128 bits under AES-256, with a key of their own purpose."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # One block a record, no two alike: ECB over all of them is AES applied to each.
    cipher = Cipher(algorithms.AES(subkey(key, purpose)), modes.ECB()).encryptor()
    content = cipher.update(blocks.astype("<u8", copy=False).tobytes()) + cipher.finalize()
    return np.frombuffer(content, dtype="<u8").reshape(-1, 2).astype(np.uint64, copy=False)


def _blocks(tags: ChainTags, order: NDArray[np.integer], kind: int) -> NDArray[np.uint64]:
    """(r, 2) what AES is given for each record: its chain's tag and its order value."""
    low, high = order_block(order, kind)
    return tags ^ np.stack((low, high), axis=1)


def subkey(key: bytes, purpose: bytes, size: int = 32) -> bytes:
    """A key for one purpose, or a public id, derived from the secret one."""
    return hashlib.blake2b(key=key, digest_size=size, person=purpose).digest()


# ---- the bytes that stand for a value: a kind, a length, the value; all numbers little-endian


def order_block(
    order: NDArray[np.integer], kind: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The two halves of the 16 bytes of an order value: 15 bytes of two's complement, then its
    kind.
    """
    low = order.astype(np.uint64)  # two's complement for negative ones
    sign = np.where(order < 0, np.uint64(2**56 - 1), np.uint64(0))
    return low, sign | np.uint64(kind << 56)


def encoded_text(text: str) -> bytes:
    """A text as its kind, its length in bytes, and its UTF-8."""
    content = text.encode()
    return bytes((TEXT,)) + len(content).to_bytes(8, "little") + content


def encoded_boolean(value: bool) -> bytes:
    """A truth value as its kind, its length 1, and one byte."""
    return bytes((BOOLEAN,)) + (1).to_bytes(8, "little") + bytes((int(value),))


def encoded_whole(value: int) -> bytes:
    """One whole number."""
    return (
        bytes((INTEGER,)) + (16).to_bytes(8, "little") + value.to_bytes(16, "little", signed=True)
    )


def encoded_integers(values: NDArray[np.integer], kind: int) -> list[bytes]:
    """Integers of any width, or times as nanoseconds: kind, length 16, 16 bytes of two's
    complement.
    """
    packed = np.zeros(
        len(values),
        dtype=np.dtype([("kind", "u1"), ("length", "<u8"), ("low", "<u8"), ("high", "<u8")]),
    )
    packed["kind"], packed["length"] = kind, 16
    packed["low"] = values.astype(np.uint64)
    packed["high"] = np.where(values < 0, np.uint64(2**64 - 1), np.uint64(0))
    content, size = packed.tobytes(), packed.dtype.itemsize
    return [content[i : i + size] for i in range(0, len(content), size)]


def joined(columns: Sequence[Sequence[bytes]], count: int) -> Iterable[bytes]:
    """The encoded values of each chain, column after column; of `count` chains without any column,
    nothing.
    """
    if not columns:
        return [b""] * count
    return columns[0] if len(columns) == 1 else map(b"".join, zip(*columns, strict=True))
