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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.files import write_private
from offrecord.models.base import Integers, Mask
from offrecord.release.coins import Coins, encrypted, joined
from offrecord.release.keys import Key
from offrecord.tables.checks.check import ACCEPT, REFUSED, Added, DataCheck, Finding, Part
from offrecord.tables.guarding import engine
from offrecord.tables.io.parquet_counts import check_counts
from offrecord.text import many

if TYPE_CHECKING:
    from offrecord.models.file import Model
    from offrecord.tables.chains import Arranged
    from offrecord.tables.given import Given
    from offrecord.tables.plan import Plan
    from offrecord.tables.table import Table

_BLOCK = 32  # records: one that was changed since hides so many others at most
_MOST = 1 << 20  # blocks, chains apart
_WHOSE, _WHAT = b"offrecord/whose", b"offrecord/what"
_SCHEMA = {"chain": pl.UInt64, "first": pl.Int64, "last": pl.Int64, "content": pl.UInt64}
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
        return part.rule.seen.sighting(part.table, ~(part.never & ~part.waits))

    def after(self, plan: Plan, observed: Sighting) -> Iterator[Finding]:
        if observed.count == 0:
            return
        said = (
            f"{_LEARNED} records that are not released for certain here"
            f" ({many(observed.count, 'record')}), so it says something of them{_remedy(plan)}"
        )
        options = plan.given.options
        if options.dry_run and not options.accepts("model"):  # which knows records by places alone
            foretold = f"{REFUSED}, as far as is known without reading the values, unless the model"
            yield Finding("warning", f"{foretold} was learned from other data: {said}{ACCEPT}")
        else:
            yield Finding("doubt", said)


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


def _remedy(plan: Plan) -> str:
    policy, model, options = plan.chosen.policy, plan.model, plan.given.options
    assert policy is not None
    assert model is not None
    distance = None if model.origin is None else model.origin.distance
    if distance is None:
        return "; fit it with --private-list or --private, or let redact learn with --fit"
    needed = max(policy.reach + model.promise.order, distance + 1)
    if options.fit and options.fit_distance is None:  # so distances were tried already
        return (
            f"; its rules reach {needed} steps, and too few records are so far from every private"
            " one: fit other data like these and give --model"
        )
    return f"; learn from records further away, --fit-distance {needed}, or from other data"


def seen_of(given: Given, model: Model) -> Seen | None:
    """Which records a model was learned from, where that is known."""
    origin = model.origin
    if origin is None:
        return None
    counted, seen = origin._counted, None
    if isinstance(counted, Seen):
        seen = counted.keyed(given.key.secret)
    elif origin.seen is not None:
        seen = Seen.load(given.key, origin.seen)
    if seen is None or not given.options.dry_run:
        return seen
    return Seen(seen.blocks.drop("content"), is_keyed=True)


def record_numbers(order: NDArray[np.integer], shown: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """(n,) a number for each record's order value and what it shows: equal sums, equal sets."""
    mixed = np.empty(len(shown), dtype=np.uint64)
    for begin in range(0, len(shown), _STRIP):
        strip = slice(begin, begin + _STRIP)
        numbers = order[strip].astype(np.uint64) * _ODD[0] + shown[strip] * _ODD[1]
        # a sum of what is linear would not distinguish 1 and 4 from 2 and 3
        mixed[strip] = np.square(numbers ^ numbers >> np.uint64(32))
    return mixed


@dataclass(frozen=True)
class Sighting(Added):
    """What a model was learned from, met in a table.

    rows: those in question, in blocks that hold the same. changing: blocks whose values change, and
    alike: those of them that hold the same.
    """

    rows: int = 0
    changing: int = 0
    alike: int = 0

    @property
    def count(self) -> int:
        """How many rows in question were seen: none if the table holds other data."""
        return self.rows if 2 * self.alike >= self.changing else 0


@dataclass(frozen=True, eq=False, repr=False)
class Seen:
    """Blocks of records that a model was learned from.

    blocks: of each a number for its chain, its first and last order values, and a number for what
    it holds, which is left out where values are not to be looked at. is_keyed: both numbers are
    enciphered.
    """

    blocks: pl.DataFrame
    is_keyed: bool = False

    @classmethod
    def of(cls, arranged: Arranged, kept: Mask) -> Seen:
        """The records of a table that are marked, each block within a chain."""
        rows, chains = np.flatnonzero(kept), arranged.chains
        order = chains.order[rows].astype(np.int64)
        begins = _beginnings(rows, chains.chain_of[rows])
        used, whose = np.unique(chains.chain_of[rows[begins]], return_inverse=True)
        held = np.add.reduceat(record_numbers(order, _shown(chains.codes[rows])), begins)
        last = order[np.append(begins[1:], len(rows)) - 1]
        columns = (_tags(arranged, used)[whose], order[begins], last, held)
        return cls(pl.DataFrame(dict(zip(_SCHEMA, columns, strict=True))))

    def keyed(self, key: bytes) -> Seen:
        """The same, under a key."""
        if self.is_keyed:
            return self
        chain, content = (self.blocks[name].to_numpy() for name in ("chain", "content"))
        whose = pl.Series("chain", _whose(key, chain))
        what = pl.Series("content", _what(key, chain, content))
        return Seen(self.blocks.with_columns(whose, what), is_keyed=True)

    def sighting(self, table: Table, marked: Mask) -> Sighting:
        """How many of the marked rows were seen, of chains that hold a secret."""
        chains, holding = table.chains, np.flatnonzero(table.touched)
        tags = _tags(table.arranged, holding)
        whose = _whose(table.coins.key, tags)
        known = np.isin(whose, self.blocks["chain"].to_numpy())
        rows = np.flatnonzero(np.isin(chains.chain_of, holding[known]))
        lengths = np.diff(chains.starts)[holding[known]]
        asked = {"chain": np.repeat(whose[known], lengths), "order": chains.order[rows]}
        inside, block = self._blocks_of(pl.DataFrame(asked))
        rows = rows[inside]
        if "content" not in self.blocks.columns or not len(rows):
            return Sighting(int(np.count_nonzero(marked[rows])))
        return self._alike(table, marked, rows, block, np.repeat(tags[known], lengths)[inside])

    def _alike(
        self, table: Table, marked: Mask, rows: Integers, block: Integers, tags: NDArray[np.uint64]
    ) -> Sighting:
        """Of rows in blocks, those in blocks that hold the same. tags: (r,) of their chains."""
        chains, begins = table.chains, np.flatnonzero(np.diff(block, prepend=-1))
        shown = _shown(chains.codes[rows])
        held = np.add.reduceat(record_numbers(chains.order[rows], shown), begins)
        # Data of another year may have the same chains and order values. A block in which nothing
        # changes may then hold the same by chance, so blocks that change are counted apart.
        now = _what(table.coins.key, tags[begins], held)
        alike = now == self.blocks["content"].to_numpy()[block[begins]]
        count = np.add.reduceat(marked[rows], begins, dtype=np.int64)
        changing = np.minimum.reduceat(shown, begins) != np.maximum.reduceat(shown, begins)
        return Sighting(int(count[alike].sum()), int(changing.sum()), int(changing[alike].sum()))

    def _blocks_of(self, asked: pl.DataFrame) -> tuple[Mask, Integers]:
        """(r,) which records of some chains lie in a block, and in which these do."""
        begins = pl.col("first").alias("order")
        blocks = self.blocks.select("chain", "last", begins, block=pl.int_range(pl.len()))
        found = asked.with_columns(pl.col("order").cast(pl.Int64)).join_asof(
            blocks.sort("order"), on="order", by="chain", check_sortedness=False
        )
        inside = (found["order"] <= found["last"]).fill_null(False)
        return inside.to_numpy(), found["block"].filter(inside).to_numpy()

    # ---- beside the key

    def save(self, key: Key) -> str:
        """Keep it beside a key: the name under which it is found again."""
        mine = self.keyed(key.secret).blocks
        name, content = _name(key, mine), io.BytesIO()
        mine.write_parquet(content)
        write_private(_file(key, name), content.getvalue())
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
            blocks = pl.read_parquet(file.read_bytes())
        if blocks.schema != _SCHEMA or sum(blocks.null_count().row(0)):
            raise InputError(damaged)
        return cls(blocks, is_keyed=True)


def _name(key: Key, blocks: pl.DataFrame) -> str:
    digest = hashlib.blake2b(key=key.secret, digest_size=12, person=b"offrecord/saw")
    for column in blocks:
        digest.update(np.ascontiguousarray(column.to_numpy()).tobytes())
    return digest.hexdigest()


def _beginnings(rows: Integers, chain: Integers) -> Integers:
    """Where blocks begin among marked rows: at each gap or new chain, and after so many rows."""
    breaks = np.append(True, (np.diff(rows) != 1) | (np.diff(chain) != 0))
    count = np.arange(len(rows))
    within = count - np.maximum.accumulate(np.where(breaks, count, 0))
    return np.flatnonzero(within % max(_BLOCK, -(-len(rows) // _MOST)) == 0)


def _file(key: Key, name: str) -> Path:
    return key.fits_folder / f"{name}.parquet"


def _shown(codes: NDArray[np.int8]) -> NDArray[np.uint8]:
    return (codes + np.int8(2)).view(np.uint8)


def _tags(arranged: Arranged, chains: Integers) -> NDArray[np.uint64]:
    """(m,) a number for the name of each chain."""
    values = arranged.chain_values(chains)
    return np.ascontiguousarray(Coins(b"", "", "").chain_tags(joined(values, len(chains)))[:, 0])


def _whose(key: bytes, chain: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """(m,) numbers of chains, for nobody without the key."""
    return encrypted(key, _WHOSE, np.stack((chain, np.zeros_like(chain)), axis=1))[:, 0]


def _what(key: bytes, chain: NDArray[np.uint64], content: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """(m,) numbers of what blocks hold, for nobody without the key."""
    return encrypted(key, _WHAT, np.stack((chain, content), axis=1))[:, 0]
