"""What a release by local designs leaves beside its key, so that later ones can be judged with it:
which records were private, and which design acted around them. Nothing of it depends on a value.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.files import write_bytes
from offrecord.mechanisms.blocks import Mask
from offrecord.models.base import Integers
from offrecord.release.certificate import Certificate
from offrecord.release.coins import ChainTags
from offrecord.release.keys import Key
from offrecord.release.ledger import NOT_TELLING
from offrecord.tables.batch import ChainBatch

_MOST = 1 << 21  # private records: more than these are not remembered
_ARRAYS = ("tags", "private", "around", "acting")
#: What a certificate says of its file and place in the ledger, and of the programs at work.
_CIRCUMSTANCES = ("release", "output", "versions")


def begins(batch: ChainBatch) -> Mask:
    """(p,) which private records of a batch begin a secret."""
    private, secrets = batch.private, batch.secrets
    width = batch.arranged.chains.width
    line = private.chain * width + private.place
    first = np.sort(secrets.chain * width + secrets.first)  # sorted already: no time
    at = np.searchsorted(first, line)
    return np.asarray(np.append(first, -1)[at] == line)


def _nothing() -> Integers:
    return np.zeros((0, 3), dtype=np.int64)


def _no_tags() -> ChainTags:
    return np.zeros((0, 2), dtype=np.uint64)


@dataclass(frozen=True, eq=False, repr=False)
class Remembered:
    """Private records and what acted around them.

    tags: (p, 2) the chain of each private record, as coins know it. private: (p, 3) its place and
    order value, and 1 if it begins a secret. around: (s, 2) the chain of each secret or cluster.
    acting: (s, 3) its first and last place, and the number of its design. is_lost: they are too
    many to be remembered.
    """

    tags: ChainTags = field(default_factory=_no_tags)
    private: Integers = field(default_factory=_nothing)
    around: ChainTags = field(default_factory=_no_tags)
    acting: Integers = field(default_factory=_nothing)
    is_lost: bool = False

    @property
    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in _ARRAYS}

    def __add__(self, other: Remembered) -> Remembered:
        if self.is_lost or other.is_lost or len(self.tags) + len(other.tags) > _MOST:
            return Remembered(is_lost=True)
        if len(self.tags) == 0 or len(other.tags) == 0:
            return self if len(other.tags) == 0 else other
        return Remembered(
            np.concatenate((self.tags, other.tags)),
            np.concatenate((self.private, other.private)),
            np.concatenate((self.around, other.around)),
            np.concatenate((self.acting, other.acting)),
        )

    def renumbered(self, uses: Integers | None) -> Remembered:
        """With the numbers that designs have in a certificate, which lists those that act."""
        if uses is None or self.is_lost:
            return self
        acting = self.acting.copy()
        acting[:, 2] = (np.cumsum(uses > 0) - 1)[acting[:, 2]]
        return Remembered(self.tags, self.private, self.around, acting)

    def save(self, key: Key, certificate: Certificate, entry: str) -> None:
        """Keep it beside a key, for a certificate. entry: a digest of the ledger's entry."""
        if self.is_lost:
            return
        content = io.BytesIO()
        told = np.frombuffer(entry.encode(), dtype=np.uint8)
        arrays = {name: _narrowed(one) for name, one in self._arrays.items()}
        np.savez(content, allow_pickle=False, entry=told, **arrays)
        try:
            key.releases_folder.mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise InputError(f"{key.releases_folder} cannot be made: {error.strerror}") from None
        write_bytes(_file(key, certificate), content.getbuffer(), force=True, mode=0o600)

    @classmethod
    def load(cls, key: Key, certificate: Certificate) -> tuple[Remembered, str] | None:
        """What is kept beside a key of a certificate's release, and of which entry of the ledger;
        None if nothing is.
        """
        file = _file(key, certificate)
        if not file.exists():
            return None
        try:
            with file.open("rb") as held, np.load(held, allow_pickle=False) as content:
                tags, private, around, acting = (_widened(content[name]) for name in _ARRAYS)
                entry = content["entry"].tobytes().decode()
            found = cls(tags, private, around, acting)
        except Exception:  # of the file, of its packing, of an array or of how it is written
            found, entry = cls(is_lost=True), ""
        if found.is_lost or not found._is_whole(len(certificate.designs.designs)):
            raise InputError(f"{file} is damaged: bring it back from a copy")
        return found, entry

    def _is_whole(self, designs: int) -> bool:
        """Its arrays are what they should be."""
        plain = Remembered()
        alike = all(
            one.dtype == self._arrays[name].dtype
            and one.shape[1:] == self._arrays[name].shape[1:]
            and self._arrays[name].ndim == one.ndim
            for name, one in plain._arrays.items()
        )
        if not alike or len(self.tags) != len(self.private) or len(self.around) != len(self.acting):
            return False
        first, last, which = self.acting.T
        placed = np.all(first >= 0) and np.all(last >= first) and np.all(self.private[:, 0] >= 0)
        return bool(placed and np.all((which >= 0) & (which < designs)))


def _narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in as few bytes as hold all of them: places and designs are small."""
    if array.dtype != np.int64 or array.size == 0:
        return array
    low, high = int(array.min()), int(array.max())
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return array.astype(kind)
    return array


def _widened(array: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers as they were."""
    return array.astype(np.int64) if array.dtype.kind == "i" else array


def entry_digest(entry: dict[str, str]) -> str:
    """What tells an entry of the ledger from others."""
    told = {name: one for name, one in entry.items() if name not in NOT_TELLING}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _file(key: Key, certificate: Certificate) -> Path:
    """Named by all that a certificate says, under the key: for another one there is nothing."""
    said = {k: v for k, v in certificate.to_dict().items() if k not in _CIRCUMSTANCES}
    text = json.dumps(said, sort_keys=True, ensure_ascii=False).encode()
    name = hashlib.blake2b(text, key=key.secret, digest_size=16, person=b"offrecord/after")
    return key.releases_folder / f"{name.hexdigest()}.npz"
