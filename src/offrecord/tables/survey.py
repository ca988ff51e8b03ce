"""What is found out about a table before anything is decided.

What batches have in common (which designs are needed, what the certificate and the ledger say)
needs no more of each than its `Survey`; surveys add up, in any order, to that of the table.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from offrecord.designs.needs import SurroundingCounts, distinct
from offrecord.errors import InputError
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.tables.chains import Columns, order_warnings
from offrecord.tables.seen import Sighting
from offrecord.tables.steps import Step

if TYPE_CHECKING:
    import polars as pl

_HELD = 64  # surveys at a time
#: What is counted in each batch.
_COUNTED = (
    "rows",
    "chains",
    "missing",
    "private",
    "secrets",
    "chains_with_secret",
    "private_rows",
    "keys",
    "beside",
    "pairs",
    "linked",
    "known",
    "reached",
)


@dataclass(frozen=True, eq=False, repr=False)
class Dropped:
    """Chains that are left out of a release, and of all that is said of it: how many, with how many
    rows and private records. keys: rows of the private list that name nothing else. digest: of
    which records these are, for the ledger alone. seen: what the model was learned from among them.
    """

    chains: int = 0
    rows: int = 0
    private: int = 0
    keys: int = 0
    digest: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(2, dtype=np.uint64))
    seen: Sighting = field(default_factory=Sighting)

    def __add__(self, other: Dropped) -> Dropped:
        return Dropped(
            self.chains + other.chains,
            self.rows + other.rows,
            self.private + other.private,
            self.keys + other.keys,
            self.digest ^ other.digest,
            self.seen + other.seen,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Survey:
    """What is found out about a table, or a batch of it, before anything is decided.

    Nothing of it depends on a value, only on which records that are not private have one. missing:
    rows without a value, private ones apart. private: private records, in rows or gaps. keys: rows
    of the private list that were found. pairs, linked: neighbouring rows, and those one step apart.
    spacings: without a step, median distances of neighbours in batches, and of how many.
    names_are_integers, names_are_text: whether all chain names are whole numbers, and whether they
    came as text, column by column. clustered: how many secrets there are in clusters with each
    surrounding. secrets_digests: (m, 2) for each surrounding the digest of its
    secrets. private_digest: that of the private records; records_digest: the same, whatever the
    name of the data set. newest: the largest order value. known,
    known_digest, reached: where the table was released before it grew, the private records that
    were known, and secrets that were not but reach records that have left.
    """

    rows: int
    chains: int
    missing: int
    private: int
    secrets: int
    chains_with_secret: int
    private_rows: int
    keys: int
    beside: int
    spread: tuple[int, int] | None
    pairs: int
    linked: int
    spacings: tuple[tuple[float, int], ...]
    names_are_integers: tuple[bool, ...]
    names_are_text: tuple[bool, ...]
    order_type: pl.DataType
    needs: SurroundingCounts
    clustered: dict[Surrounding, int]
    secrets_digests: NDArray[np.uint64]
    private_digest: NDArray[np.uint64]
    records_digest: NDArray[np.uint64]
    positions: list[list[Any]]
    newest: int
    known: int
    known_digest: NDArray[np.uint64]
    reached: int

    @property
    def is_timed(self) -> bool:
        """The order column holds dates or times."""
        return not self.order_type.is_integer()

    @property
    def spacing(self) -> float | None:
        """The median distance of neighbours, in seconds or numbers, where there is no step; about
        that of a table in batches.
        """
        if not self.spacings:
            return None
        medians, weights = np.array(sorted(self.spacings)).T
        median = float(medians[np.searchsorted(np.cumsum(weights), weights.sum() / 2)])
        return median / 1e9 if self.is_timed else median

    @property
    def fingerprint(self) -> str:
        """The same for another survey of the same records, and of no others: it says which records
        are private and where.
        """
        counted = (self.rows, self.chains, self.missing, self.private, self.secrets, self.keys)
        around = np.stack(self.needs.columns, axis=1)
        rows = np.lexsort(around.T)
        told = hashlib.sha256(repr(counted).encode() + self.private_digest.tobytes())
        for values in (around, self.needs.counts, self.secrets_digests):
            told.update(np.ascontiguousarray(values[rows]).tobytes())
        return told.hexdigest()

    def warnings(self, columns: Columns, step: Step | None) -> list[str]:
        """What a person should know about the order of records."""
        return order_warnings(columns, step, self.beside, self.spread)

    def published_positions(self) -> list[list[Any]]:
        """The keys of private records, sorted; chain names as whole numbers only where all are."""
        kinds = zip(self.names_are_text, self.names_are_integers, strict=True)
        texts = [text and not integer for text, integer in kinds]
        texts.append(False)  # the order value
        return sorted(
            [str(cell) if text else cell for cell, text in zip(row, texts, strict=True)]
            for row in self.positions
        )

    @classmethod
    def of_all(cls, parts: Iterable[Survey], columns: Columns) -> Survey:
        """The survey of a table from those of its batches, of which few are held at a time."""
        held: list[Survey] = []
        for part in parts:
            held.append(part)
            if len(held) > _HELD:
                held = [cls._together(held, columns)]
        if not held:
            raise InputError("the table has no rows")
        return cls._together(held, columns)

    @classmethod
    def _together(cls, parts: Sequence[Survey], columns: Columns) -> Survey:
        first = parts[0]
        if len(parts) == 1:
            return first
        if not all(_alike(part, first) for part in parts):
            raise InputError(
                f"column {columns.order!r} must hold whole numbers, dates or times (ISO 8601), all"
                " of one kind"
            )
        needs, used = _needs_of_all([part.needs for part in parts])
        digests = np.zeros((len(needs), 2), dtype=np.uint64)
        np.bitwise_xor.at(digests, used, np.concatenate([part.secrets_digests for part in parts]))
        spreads = [part.spread for part in parts if part.spread is not None]
        integers = zip(*(part.names_are_integers for part in parts), strict=True)
        return cls(
            **{name: sum(getattr(part, name) for part in parts) for name in _COUNTED},
            spread=(min(low for low, _ in spreads), max(high for _, high in spreads))
            if spreads
            else None,
            spacings=tuple(spacing for part in parts for spacing in part.spacings),
            names_are_integers=tuple(map(all, integers)),
            names_are_text=first.names_are_text,
            order_type=first.order_type,
            needs=needs,
            clustered=_clustered(part.clustered for part in parts),
            secrets_digests=digests,
            **{
                name: np.bitwise_xor.reduce([getattr(part, name) for part in parts], axis=0)
                for name in ("private_digest", "records_digest", "known_digest")
            },
            newest=max(part.newest for part in parts),
            positions=[row for part in parts for row in part.positions],
        )


def _clustered(parts: Iterable[dict[Surrounding, int]]) -> dict[Surrounding, int]:
    """How many secrets are in clusters, of some batches together."""
    total: Counter[Surrounding] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)


def _alike(one: Survey, other: Survey) -> bool:
    """Both have order values of one kind."""
    if one.is_timed != other.is_timed:
        return False
    return not one.is_timed or one.order_type == other.order_type


def _needs_of_all(parts: Sequence[SurroundingCounts]) -> tuple[SurroundingCounts, NDArray[Any]]:
    """The surroundings of some batches, and which of them each batch's are."""
    columns = (np.concatenate(each) for each in zip(*(one.columns for one in parts), strict=True))
    rows, used, _ = distinct(*columns)
    counts = np.zeros(len(rows), dtype=np.int64)
    np.add.at(counts, used, np.concatenate([part.counts for part in parts]))
    phases = {number: along for part in parts for number, along in part.phases.items()}
    gaps = tuple(sorted({gap for part in parts for gap in part.gaps}))
    return SurroundingCounts.of(rows, counts, phases, gaps), used


def digest_text(digest: NDArray[np.uint64], size: int) -> str:
    """The digest of a set of records as text, with how many they are."""
    return f"{digest.astype('<u8').tobytes().hex()}:{size}"
