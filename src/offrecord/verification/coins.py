"""The publisher's coins, drawn again from the key (docs/coins.md)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers
from offrecord.release.keys import Key
from offrecord.tables.cells import encoded, parsed_times
from offrecord.tables.private import Private
from offrecord.verification.reading import Records

Draws = NDArray[np.uint64]

#: Stands for a threshold of 2**64; no other probability gives it.
ALWAYS = np.uint64(2**64 - 1)
_MOST = 2.0**64 - 2.0**11  # the largest float below 2**64


def thresholds(chances: Floats) -> Draws:
    """Probabilities times 2**64, rounded up; ALWAYS for 1."""
    scaled = np.ceil(chances * 2.0**64)  # the product is exact: only the exponent changes
    return np.where(scaled > _MOST, ALWAYS, np.minimum(scaled, _MOST).astype(np.uint64))


@dataclass(frozen=True, eq=False)
class Coins:
    """The coins of a release."""

    key: bytes = field(repr=False)
    records: Records
    # names of chains that are text here were numbers, truth values or times in what was redacted
    typed: bool = False

    @property
    def id(self) -> str:
        """The key's public id."""
        return self._derived(b"offrecord/keyid", 8).hex()

    def _derived(self, purpose: bytes, size: int = 32) -> bytes:
        return hashlib.blake2b(key=self.key, digest_size=size, person=purpose).digest()

    @cached_property
    def _tags(self) -> Draws:
        """(chains, 2) the tag of each chain."""
        named = hashlib.blake2b(key=self.key, digest_size=16, person=b"offrecord/chain")
        for text in (self.records.said.dataset, self.records.said.columns.value):
            content = text.encode()
            named.update(b"\x03" + len(content).to_bytes(8, "little") + content)
        arranged = self.records.arranged
        rows = pl.Series(self.records.chains.starts[:-1])
        names = [arranged.names[name].gather(rows) for name in arranged.columns.by]
        columns = [encoded(_typed(one) if self.typed else one) for one in names]
        found = bytearray()
        for at in range(len(rows)):
            tag = named.copy()
            tag.update(b"".join(column[at] for column in columns))
            found += tag.digest()
        return np.frombuffer(bytes(found), dtype="<u8").reshape(-1, 2)

    def _blocks(self, chain: Integers, order: NDArray[np.integer]) -> Draws:
        """(r, 2) chain tag xor order block."""
        blocks = self._tags[chain]  # a copy, as it is an index and no slice
        # 15 bytes of two's complement, then the kind
        kind = 2 if self.records.chains.timed else 1
        sign = np.where(order < 0, np.uint64(2**56 - 1), np.uint64(0))
        blocks[:, 0] ^= order.astype(np.int64).view(np.uint64)
        blocks[:, 1] ^= sign | np.uint64(kind << 56)
        return blocks

    def _enciphered(self, purpose: bytes, blocks: Draws) -> Draws:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        cipher = Cipher(algorithms.AES(self._derived(purpose)), modes.ECB()).encryptor()
        content = cipher.update(blocks.astype("<u8", copy=False).tobytes()) + cipher.finalize()
        return np.frombuffer(content, dtype="<u8").reshape(-1, 2)

    def draws(
        self,
        chain: Integers,
        order: NDArray[np.integer],
        purpose: bytes = b"offrecord/coins",
        counter: int = 0,
    ) -> Draws:
        """(r,) the draws of some records. counter: which of a record's draws."""
        blocks = self._blocks(chain, order)
        blocks[:, 1] ^= np.uint64(counter)  # in bits that no order value uses
        return self._enciphered(purpose, blocks)[:, 0]

    def digest(self, private: Private) -> str:
        """Of which records are private."""
        blocks = self._blocks(private.chain, private.order)
        mixed = np.bitwise_xor.reduce(self._enciphered(b"offrecord/set", blocks), axis=0)
        return f"{mixed.astype('<u8').tobytes().hex()}:{private.count}"


def coins_of(records: Records, private: Private, key_file: Path | None) -> Coins | None:
    """The coins of a key, if it was given, drew them and knows these private records."""
    certificate, found = records.said, records.found
    if key_file is None:
        found.not_checked.append("Coins: the key was not given (key_id, dataset, private.digest).")
        return None
    coins = Coins(Key.load(key_file).secret, records)
    if found.unequal("key_id", certificate.key_id, coins.id):
        found.not_checked.append("Coins: the key is not the one that drew them.")
        return None
    said, there = certificate.private.digest, coins.digest(private)
    typed = replace(coins, typed=True)
    # the digest says which of the two was read
    if there != said and typed.digest(private) == said:
        there, coins = said, typed
    if not found.unequal("private.digest", said, there):
        found.checked.append("The private records are those of the certificate's digest.")
    return coins


def _typed(series: pl.Series) -> pl.Series:
    """Text as the large numbers, truth values or times that it stands for, if it does."""
    # some formats write everything as text, but coins are drawn for what was read
    if series.dtype != pl.String:
        return series
    if series.str.contains(r"^-?\d{1,20}$").all():
        numbers = series.cast(pl.Int64, strict=False)
        return series.cast(pl.UInt64, strict=False) if numbers.null_count() else numbers
    if series.is_in(["true", "false"]).all():
        return series == "true"
    times = parsed_times(series)
    return series if times is None else times
