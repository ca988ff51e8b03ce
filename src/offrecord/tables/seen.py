"""Which records a model was learned from: one that saw what is redacted tells about it.

What a model learned from records that are released for certain tells is post-processing
(docs/proofs/learned.md); from any other record it may tell what the release withholds. So a fit
remembers what it saw, in blocks of records that stand together in a chain: whose they are, from
which order value to which, and a number for what they held. Under a key these are enciphered, and
kept beside the key; the model file names them. When a table is decided, blocks of its chains that
hold the same are what the fit saw, unless they do so by chance, as where nothing ever changes:
other data, of another year say, may have the same names and numbers. So blocks in which a value
changes tell whether the data are the same at all. A dry run looks at no value: it knows blocks by
their chains and order values alone.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.files import write_bytes
from offrecord.models.base import Integers, Mask
from offrecord.parquet import check_counts
from offrecord.release.coins import Coins, encrypted, joined
from offrecord.release.keys import Key
from offrecord.tables.contents import record_numbers
from offrecord.tables.guarding import engine

if TYPE_CHECKING:
    from offrecord.tables.chains import Arranged

_BLOCK = 32  # records: one that was changed since hides so many others at most
_MOST = 1 << 20  # blocks, chains apart
_WHOSE, _WHAT = b"offrecord/whose", b"offrecord/what"
_COLUMNS = ("chain", "first", "last", "content")


@dataclass(frozen=True)
class Sighting:
    """What a model was learned from, met in a table.

    rows: those in question, in blocks that hold the same. changing: blocks whose values change, and
    alike: those of them that hold the same.
    """

    rows: int = 0
    changing: int = 0
    alike: int = 0

    def __add__(self, other: Sighting) -> Sighting:
        return Sighting(
            self.rows + other.rows, self.changing + other.changing, self.alike + other.alike
        )

    @property
    def count(self) -> int:
        """How many rows in question were seen: none if the table holds other data."""
        return self.rows if 2 * self.alike >= self.changing else 0


@dataclass(frozen=True, eq=False, repr=False)
class Seen:
    """Blocks of records that a model was learned from.

    chain, content: (m,) numbers for whose they are and what they hold, None where values are not to
    be looked at. first, last: (m,) their order values. is_keyed: the numbers are enciphered.
    """

    chain: NDArray[np.uint64]
    first: Integers
    last: Integers
    content: NDArray[np.uint64] | None
    is_keyed: bool = False

    @classmethod
    def of(cls, arranged: Arranged, kept: Mask) -> Seen:
        """The records of a table that are marked, each block within a chain."""
        rows = np.flatnonzero(kept)
        chains = arranged.chains
        if len(rows) == 0:
            none = np.empty(0, dtype=np.int64)
            return cls(none.astype(np.uint64), none, none, none.astype(np.uint64))
        chain = chains.chain_of[rows]
        breaks = np.append(True, (np.diff(rows) != 1) | (np.diff(chain) != 0))
        run = np.flatnonzero(breaks)
        within = np.arange(len(rows)) - np.repeat(run, np.diff(np.append(run, len(rows))))
        begins = np.flatnonzero(within % max(_BLOCK, -(-len(rows) // _MOST)) == 0)
        ends = np.append(begins[1:], len(rows)) - 1
        order = chains.order[rows].astype(np.int64)
        held = np.add.reduceat(record_numbers(order, _shown(chains.codes[rows])), begins)
        used, whose = np.unique(chain[begins], return_inverse=True)
        tags = _tags(arranged, used)[whose]
        return cls(tags, order[begins], order[ends], held)

    def keyed(self, key: bytes) -> Seen:
        """The same, under a key."""
        if self.is_keyed:
            return self
        assert self.content is not None
        chain, content = _enciphered(key, self.chain, self.content)
        return replace(self, chain=chain, content=content, is_keyed=True)

    def by_places(self) -> Seen:
        """The same, to be met without a look at values."""
        return replace(self, content=None)

    def sighting(self, key: bytes, arranged: Arranged, holding: Integers, marked: Mask) -> Sighting:
        """How many of some rows were seen, all of the chains `holding`, which hold a secret."""
        chains = arranged.chains
        plain = _tags(arranged, holding)
        tags = _enciphered(key, plain, plain)[0]
        mine = np.isin(tags, self.chain)
        if not mine.any():
            return Sighting()
        known = holding[mine]
        lengths = np.diff(chains.starts)[known]
        rows = np.repeat(chains.starts[known] - np.append(0, np.cumsum(lengths)[:-1]), lengths)
        rows += np.arange(len(rows))
        order = chains.order[rows].astype(np.int64)
        asked = pl.DataFrame({"chain": np.repeat(tags[mine], lengths), "first": order})
        found = asked.join_asof(
            self._blocks, on="first", by="chain", strategy="backward", check_sortedness=False
        )
        last = found["last"].fill_null(np.iinfo(np.int64).min).to_numpy()
        at = found["at"].fill_null(0).to_numpy()
        inside = order <= last
        if not inside.any():
            return Sighting()
        rows, at = rows[inside], at[inside]
        if self.content is None:
            return Sighting(int(np.count_nonzero(marked[rows])))
        begins = np.flatnonzero(np.append(True, np.diff(at) != 0))
        shown = _shown(chains.codes[rows])
        held = np.add.reduceat(record_numbers(chains.order[rows], shown), begins)
        whose = np.repeat(plain[mine], lengths)[inside][begins]
        alike = _enciphered(key, whose, held)[1] == self.content[at[begins]]
        same = np.repeat(alike, np.diff(np.append(begins, len(rows))))
        changing = np.minimum.reduceat(shown, begins) != np.maximum.reduceat(shown, begins)
        return Sighting(
            int(np.count_nonzero(same & marked[rows])),
            int(np.count_nonzero(changing)),
            int(np.count_nonzero(changing & alike)),
        )

    @cached_property
    def _blocks(self) -> pl.DataFrame:
        """Sorted by where they begin."""
        at = np.argsort(self.first, kind="stable")
        columns = {"chain": self.chain[at], "first": self.first[at], "last": self.last[at]}
        return pl.DataFrame(columns | {"at": at})

    # ---- beside the key

    def save(self, key: Key) -> str:
        """Keep it beside a key: the name under which it is found again."""
        mine = self.keyed(key.secret)
        columns = {name: getattr(mine, name) for name in _COLUMNS}
        digest = hashlib.blake2b(key=key.secret, digest_size=12, person=b"offrecord/saw")
        for values in columns.values():
            digest.update(np.ascontiguousarray(values).tobytes())
        content = io.BytesIO()
        pl.DataFrame(columns).write_parquet(content)
        try:
            key.fits_folder.mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise InputError(f"{key.fits_folder} cannot be made: {error.strerror}") from None
        name = digest.hexdigest()
        write_bytes(_file(key, name), content.getvalue(), force=True, mode=0o600)
        return name

    @classmethod
    def load(cls, key: Key, name: str) -> Seen | None:
        """What a fit kept beside a key; None if it did so elsewhere."""
        file = _file(key, name)
        if not name.isalnum() or not file.exists():
            return None
        damaged = f"{file} is damaged: fit the model anew"
        with engine(damaged):
            check_counts(file)
            frame = pl.read_parquet(file.read_bytes())
            columns: dict[str, Any] = {one: frame[one].to_numpy() for one in _COLUMNS}
        if [str(one.dtype) for one in columns.values()] != ["uint64", "int64", "int64", "uint64"]:
            raise InputError(damaged)
        return cls(**columns, is_keyed=True)


def _file(key: Key, name: str) -> Any:
    return key.fits_folder / f"{name}.parquet"


def _shown(codes: NDArray[np.int8]) -> NDArray[np.uint8]:
    return (codes + np.int8(2)).view(np.uint8)


def _tags(arranged: Arranged, chains: Integers) -> NDArray[np.uint64]:
    """(m,) a number for the name of each chain."""
    values = arranged.chain_values(chains)
    return np.ascontiguousarray(Coins(b"", "", "").chain_tags(joined(values, len(chains)))[:, 0])


def _enciphered(
    key: bytes, chain: NDArray[np.uint64], content: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Whose blocks are, and what they hold, for nobody without the key."""
    whose = encrypted(key, _WHOSE, np.stack((chain, np.zeros_like(chain)), axis=1))
    what = encrypted(key, _WHAT, np.stack((chain, content), axis=1))
    return np.ascontiguousarray(whose[:, 0]), np.ascontiguousarray(what[:, 0])
