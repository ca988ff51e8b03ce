"""What a release by local designs leaves beside its key, so that later ones can be judged with it:
which records were private, and which design acted around them. Nothing of it depends on a value.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.files import write_bytes
from offrecord.models.base import Integers
from offrecord.release.certificate import Certificate
from offrecord.release.coins import ChainTags
from offrecord.release.keys import Key
from offrecord.release.ledger import NOT_TELLING

_MOST = 1 << 21  # private records: more than these are not remembered
#: What a certificate says of its file and place in the ledger, and of the programs at work.
_CIRCUMSTANCES = ("release", "output", "versions")


class Part(NamedTuple):
    """Private records of some chains and what acted around them.

    tags: (p, 2) the chain of each private record, as coins know it. private: (p, 3) its place and
    order value, and 1 if it begins a secret. around: (s, 2) the chain of each secret or cluster.
    acting: (s, 3) its first and last place, and the number of its design.
    """

    tags: ChainTags
    private: Integers
    around: ChainTags
    acting: Integers


def _nothing() -> Part:
    tags, numbers = np.zeros((0, 2), dtype=np.uint64), np.zeros((0, 3), dtype=np.int64)
    return Part(tags, numbers, tags, numbers)


@dataclass(frozen=True, eq=False, repr=False)
class Remembered:
    """Private records of a table and what acted around them, part by part. is_lost: they are too
    many to be remembered.
    """

    parts: tuple[Part, ...] = ()
    is_lost: bool = False

    @cached_property
    def whole(self) -> Part:
        """All parts as one."""
        parts = self.parts or (_nothing(),)
        return parts[0] if len(parts) == 1 else Part(*map(np.concatenate, zip(*parts, strict=True)))

    @property
    def _count(self) -> int:
        """How many private records there are."""
        return sum(len(part.private) for part in self.parts)

    def __add__(self, other: Remembered) -> Remembered:
        # put together once they are all there
        if self.is_lost or other.is_lost or self._count + other._count > _MOST:
            return Remembered(is_lost=True)
        return Remembered((*self.parts, *other.parts))

    def renumbered(self, uses: Integers | None) -> Remembered:
        """With the numbers that designs have in a certificate, which lists those that act."""
        if uses is None or self.is_lost:
            return self
        acting = self.whole.acting.copy()
        acting[:, 2] = (np.cumsum(uses > 0) - 1)[acting[:, 2]]
        return Remembered((self.whole._replace(acting=acting),))

    def save(self, key: Key, certificate: Certificate, entry: str) -> None:
        """Keep it beside a key, for a certificate. entry: a digest of the ledger's entry."""
        if self.is_lost:
            return
        content = io.BytesIO()
        told = np.frombuffer(entry.encode(), dtype=np.uint8)
        arrays = {name: _narrowed(one) for name, one in self.whole._asdict().items()}
        np.savez(content, allow_pickle=False, entry=told, **arrays)
        try:
            key.releases_folder.mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise InputError(f"{key.releases_folder} cannot be made: {error.strerror}") from None
        write_bytes(_file(key, certificate), content.getbuffer(), force=True, mode=0o600)

    @classmethod
    def load(cls, key: Key, certificate: Certificate) -> tuple[Part, str] | None:
        """What is kept beside a key of a certificate's release, and of which entry of the ledger;
        None if nothing is.
        """
        file = _file(key, certificate)
        if not file.exists():
            return None
        try:
            with file.open("rb") as held, np.load(held, allow_pickle=False) as content:
                found = Part(*(_widened(content[name]) for name in Part._fields))
                entry = content["entry"].tobytes().decode()
            is_whole = _is_whole(found, len(certificate.designs.designs))
        except Exception:  # of the file, of its packing, of an array or of how it is written
            is_whole = False
        if not is_whole:
            raise InputError(f"{file} is damaged: bring it back from a copy")
        return found, entry


def _is_whole(part: Part, designs: int) -> bool:
    """Its arrays are what they should be."""
    alike = all(
        one.dtype == plain.dtype and one.shape[1:] == plain.shape[1:] and one.ndim == plain.ndim
        for one, plain in zip(part, _nothing(), strict=True)
    )
    if not alike or len(part.tags) != len(part.private) or len(part.around) != len(part.acting):
        return False
    first, last, which = part.acting.T
    placed = np.all(first >= 0) and np.all(last >= first) and np.all(part.private[:, 0] >= 0)
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
