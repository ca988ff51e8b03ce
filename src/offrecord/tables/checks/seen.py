"""Which records a model was learned from: one that saw what is redacted leaks it.

What a model learned from records that are released for certain reveals is post-processing
(docs/proofs/learned.md); from any other record it may leak what the release withholds. So a fit
remembers what it saw, in blocks of records that stand together in a chain: whose they are, from
which order value to which, and a number for what they held. Under a key these are enciphered, and
kept beside the key; the model file names them. When a table is decided, blocks of its chains that
hold the same are what the fit saw, unless they do so by chance, as where nothing ever changes:
other data, of another year say, may have the same names and numbers. So blocks in which a value
changes show whether the data are the same at all. A dry run looks at no value: it knows blocks by
their chains and order values alone.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.files import write_bytes
from offrecord.models.base import Integers, Mask
from offrecord.release.coins import Coins, encrypted, joined
from offrecord.release.keys import Key
from offrecord.tables.checks.check import DataCheck, Finding, Part
from offrecord.tables.guarding import engine
from offrecord.tables.io.parquet_counts import check_counts
from offrecord.text import many

if TYPE_CHECKING:
    from offrecord.models.file import Model
    from offrecord.tables.chains import Arranged
    from offrecord.tables.given import Given
    from offrecord.tables.plan import Plan

_BLOCK = 32  # records: one that was changed since hides so many others at most
_MOST = 1 << 20  # blocks, chains apart
_WHOSE, _WHAT = b"offrecord/whose", b"offrecord/what"
_COLUMNS = ("chain", "first", "last", "content")
_STRIP = 1 << 15  # records whose numbers of 64 bits fit into the processor's cache
#: Odd numbers that mix order values, and what is shown.
_ODD = np.array([0x9E3779B97F4A7C15, 0xD1B54A32D192ED03], dtype=np.uint64)
_LEARNED = "the model was learned from"
_NOT_KNOWN = (
    "whether the model was learned from records that are redacted here is not known, as it was not"
    " fitted under this key; if it was, its counts say something of them"
)


class LearnedFrom(DataCheck):
    """Looks for records that the model was learned from among those that may be redacted."""

    def before(self, plan: Plan) -> Iterator[Finding]:
        if plan.model is None or plan.model.origin is None:
            return
        foreign = of_elsewhere(plan.given, plan.model)
        if foreign is not None:
            yield Finding("doubt", foreign)
        if plan.seen is None:
            yield Finding("warning", _NOT_KNOWN)

    def observe(self, part: Part) -> Sighting | None:
        if part.rule.seen is None:
            return None
        table, marked = part.table, ~(part.never & ~part.waits)
        holding = np.flatnonzero(table.touched)
        return part.rule.seen.sighting(table.coins.key, table.arranged, holding, marked)

    def after(self, plan: Plan, observed: Sighting) -> Iterator[Finding]:
        count, options = observed.count, plan.given.options
        if count == 0:
            return
        said = (
            f"{_LEARNED} records that are not released for certain here ({many(count, 'record')}),"
            " so it says something of them"
        )
        origin = None if plan.model is None else plan.model.origin
        if origin is not None and origin.distance is not None:
            said += _remedy(plan, origin.distance)
        else:
            said += "; fit it with --private-list or --private, or let redact learn with --fit"
        if options.dry_run and not options.accepts("model"):  # which knows records by places alone
            text = f"{FORETOLD} unless the model was learned from other data: {said}, or add"
            yield Finding("warning", f"{text} --accept model, and the certificate says so")
        else:
            yield Finding("doubt", said)


#: How a dry run begins what a release would be refused for.
FORETOLD = "this would be refused, as far as is known without reading the values,"


def of_elsewhere(given: Given, model: Model) -> str | None:
    """Why a model is not of this column, or may have seen records that are redacted here."""
    origin, value = model.origin, given.options.value
    if origin is None:
        return None
    if origin.column != value:
        return f"{_LEARNED} the column {origin.column!r}, not {value!r}: fit one of this column"
    if origin.seen is not None and seen_of(given, model) is None:
        return (
            f"{_LEARNED} a column {value!r} under another key, so whether it saw records that are"
            " redacted here is not known: give fit and redact the same --key-file"
        )
    return None


def _remedy(plan: Plan, distance: int) -> str:
    """From how far away to learn instead, if that was not tried already."""
    policy, model = plan.chosen.policy, plan.model
    assert policy is not None
    assert model is not None
    needed = max(policy.reach + model.promise.order, distance + 1)
    if plan.given.options.fit and plan.given.options.fit_distance is None:
        return (
            f"; its rules reach {needed} steps, and too few records are so far from every private"
            " one: fit other data like these and give --model"
        )
    return f"; learn from records further away, --fit-distance {needed}, or from other data"


def seen_of(given: Given, model: Model) -> Seen | None:
    """Which records a model was learned from, where that is known."""
    origin, secret = model.origin, given.key.secret
    seen: Seen | None = None
    if origin is not None and isinstance(origin._counted, Seen):
        seen = origin._counted.keyed(secret)
    elif origin is not None and origin.seen is not None:
        seen = Seen.load(given.key, origin.seen)
    if seen is None or not given.options.dry_run:
        return seen
    return replace(seen, content=None)


def record_numbers(order: NDArray[np.integer], shown: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """(n,) a number for each record's order value and what it shows: equal sums, equal sets."""
    mixed = np.empty(len(shown), dtype=np.uint64)
    other = np.empty(min(_STRIP, len(shown)), dtype=np.uint64)
    for begin in range(0, len(shown), _STRIP):
        strip = slice(begin, begin + _STRIP)
        numbers = mixed[strip]
        rest = other[: len(numbers)]
        np.multiply(order[strip].astype(np.uint64), _ODD[0], out=numbers)
        numbers += np.multiply(shown[strip], _ODD[1], out=rest)
        numbers ^= np.right_shift(numbers, np.uint64(32), out=rest)
        numbers *= numbers  # a sum of what is linear would not distinguish 1 and 4 from 2 and 3
    return mixed


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

    def sighting(self, key: bytes, arranged: Arranged, holding: Integers, marked: Mask) -> Sighting:
        """How many of some rows were seen, all of the chains `holding`, which hold a secret."""
        chains = arranged.chains
        plain = _tags(arranged, holding)
        tags = _enciphered(key, plain, plain)[0]
        mine = np.isin(tags, self.chain)
        known = holding[mine]
        lengths = np.diff(chains.starts)[known]
        rows = np.repeat(chains.starts[known] - np.cumsum(lengths) + lengths, lengths)
        rows += np.arange(len(rows))
        at, inside = self._blocks_at(np.repeat(tags[mine], lengths), chains.order[rows])
        rows, at = rows[inside], at[inside]
        if self.content is None or not len(rows):
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

    def _blocks_at(
        self, tags: NDArray[np.uint64], order: NDArray[np.integer]
    ) -> tuple[Integers, Mask]:
        """(r,) the block that each record of some chains may lie in, and whether it does."""
        asked = pl.DataFrame({"chain": tags, "first": order.astype(np.int64)})
        found = asked.join_asof(
            self._blocks, on="first", by="chain", strategy="backward", check_sortedness=False
        )
        last = found["last"].fill_null(np.iinfo(np.int64).min).to_numpy()
        return found["at"].fill_null(0).to_numpy(), order <= last

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
