"""The publisher's own check: each record's coin anew from the key (docs/coins.md)."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.release.certificate import Certificate
from offrecord.verify.table.cells import Integers, is_timed, nanoseconds, times_of
from offrecord.verify.table.found import Found
from offrecord.verify.table.listed import Private
from offrecord.verify.table.rows import Table

_BYTES = 32
_WHOLE = re.compile("(0|-?[1-9][0-9]{0,17})")
_KINDS = {"integer": 1, "time": 2}
_MOST = 1 << 20  # bytes of a key file
ALWAYS = np.uint64(2**64 - 1)  #: stands for a threshold of 2⁶⁴


def read_key(path: Path) -> bytes:
    """The secret in a key file."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a file")
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_MOST))
        secret = bytes.fromhex(content["key"])
        known = content["format"] == "offrecord-key" and content["version"] == 1
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        known, secret = False, b""
    if not known or len(secret) != _BYTES:
        raise InputError(f"{path} is not a key file")
    return secret


def thresholds(redaction: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Redaction probabilities times 2⁶⁴, rounded up; ALWAYS for 1."""
    scaled = np.ceil(redaction * 2.0**64)
    certain = scaled >= 2.0**64
    return np.where(certain, ALWAYS, np.where(certain, 0.0, scaled).astype(np.uint64))


@dataclass(frozen=True, eq=False)
class Coins:
    """The coins of a release. typed: names of chains that are text here were large numbers, truth
    values or times in what was redacted.
    """

    key: bytes = field(repr=False)
    certificate: Certificate
    table: Table
    typed: bool = False

    @property
    def id(self) -> str:
        """The key's public id."""
        return self._derived(b"offrecord/keyid", 8).hex()

    def _derived(self, purpose: bytes, size: int = 32) -> bytes:
        return hashlib.blake2b(key=self.key, digest_size=size, person=purpose).digest()

    @cached_property
    def _named(self) -> Any:
        tag = hashlib.blake2b(key=self.key, digest_size=16, person=b"offrecord/chain")
        tag.update(_text(self.certificate.dataset) + _text(self.certificate.columns.value))
        return tag

    @cached_property
    def _tags(self) -> NDArray[np.uint64]:
        """(chains, 2) the tags of all chains: draws of many purposes ask for them."""
        rows = self.table.starts[:-1]
        names = [series.gather(rows) for series in self.table.names]
        columns = [_fields(_typed(series) if self.typed else series) for series in names]
        found = bytearray()
        for at in range(self.table.chains):
            tag = self._named.copy()
            for column in columns:
                tag.update(column[at])
            found += tag.digest()
        return np.frombuffer(bytes(found), dtype="<u8").reshape(-1, 2)

    def _blocks(self, chain: Integers, order: Integers) -> NDArray[np.uint64]:
        """(r, 2) chain tag xor order block."""
        blocks = self._tags[chain]
        kind = _KINDS[self.certificate.columns.order_kind]
        sign = np.where(order < 0, np.uint64(2**56 - 1), np.uint64(0))
        blocks[:, 0] ^= order.astype(np.int64).view(np.uint64)
        blocks[:, 1] ^= sign | np.uint64(kind << 56)
        return blocks

    def _enciphered(self, purpose: bytes, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        cipher = Cipher(algorithms.AES(self._derived(purpose)), modes.ECB()).encryptor()
        content = cipher.update(blocks.astype("<u8", copy=False).tobytes()) + cipher.finalize()
        return np.frombuffer(content, dtype="<u8").reshape(-1, 2)

    def draws(
        self,
        chain: Integers,
        order: Integers,
        purpose: bytes = b"offrecord/coins",
        counter: Integers | int = 0,
    ) -> NDArray[np.uint64]:
        """(r,) the draws of some records. counter: which of a record's draws."""
        blocks = self._blocks(chain, order)
        blocks[:, 1] ^= np.asarray(counter, dtype=np.int64).astype(np.uint64)
        return self._enciphered(purpose, blocks)[:, 0]

    def several(
        self, chain: Integers, order: Integers, purpose: bytes, count: int
    ) -> NDArray[np.uint64]:
        """(r, count) the first draws of some records."""
        blocks = np.repeat(self._blocks(chain, order)[:, None, :], count, axis=1)
        blocks[:, :, 1] ^= np.arange(count, dtype=np.uint64)
        return self._enciphered(purpose, blocks)[:, 0].reshape(len(chain), count)

    def draws_of(self, rows: Integers) -> NDArray[np.uint64]:
        """(r,) the draws of some rows."""
        return self.draws(self.table.chain_of(rows), self.table.order[rows])

    def digest(self, private: Private) -> str:
        """Of which records are private."""
        blocks = self._blocks(private.chain, private.order)
        mixed = np.bitwise_xor.reduce(self._enciphered(b"offrecord/set", blocks), axis=0)
        return f"{mixed.astype('<u8').tobytes().hex()}:{private.count}"


def _typed(series: pl.Series) -> pl.Series:
    """Text as the large numbers, truth values or times that it stands for, if it does."""
    if series.dtype != pl.String:
        return series
    if series.str.contains(r"^-?\d{1,20}$").all():
        return series.cast(pl.Int128)
    if series.is_in(["true", "false"]).all():
        return series == "true"
    times = times_of(series)
    return series if times is None else times


def _field(kind: int, content: bytes) -> bytes:
    return bytes((kind,)) + len(content).to_bytes(8, "little") + content


def _text(text: str) -> bytes:
    return _field(3, text.encode())


def _number(kind: int, value: int) -> bytes:
    return _field(kind, value.to_bytes(16, "little", signed=True))


def _fields(series: pl.Series) -> list[bytes]:
    """The names of chains as fields."""
    if is_timed(series):
        return [_number(2, value) for value in nanoseconds(series).tolist()]
    if series.dtype == pl.Boolean:
        return [_field(4, bytes((int(value),))) for value in series.to_list()]
    if series.dtype.is_integer():
        return [_number(1, value) for value in series.to_list()]
    return [
        _number(1, int(text)) if _WHOLE.fullmatch(text) else _text(text)
        for text in series.to_list()
    ]


def coins_of(key_file: Path, certificate: Certificate, table: Table, found: Found) -> Coins | None:
    """The coins of a key, if it is the one that drew; a problem if it is not."""
    coins = Coins(read_key(key_file), certificate, table)
    if found.unequal("key_id", certificate.key_id, coins.id):
        found.not_checked.append("Coins: the key is not the one that drew them.")
        return None
    return coins


def check_digest(coins: Coins, private: Private, found: Found) -> Coins:
    """Compare the digest of private records with what the certificate says; the coins by which
    names of chains are what they were.
    """
    said = coins.certificate.private.digest
    if said is None:
        found.not_checked.append("The digest of private records: the certificate has none.")
        return coins
    there, typed = coins.digest(private), replace(coins, typed=True)
    if there != said and typed.digest(private) == said:
        there, coins = said, typed
    found.unequal("private.digest", said, there)
    found.checked.append("The private records are those of the certificate's digest.")
    return coins
