"""What is known about a table before anything is decided: counts, settings and digests.

Nothing of it depends on a value, only on which records that are not private have one. Surveys of
parts add up, in any order, to that of the table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.mechanisms.deciding.expect import Geometry, geometry
from offrecord.mechanisms.deciding.layout import settings_needed
from offrecord.mechanisms.rules import Setting
from offrecord.models.file import Model
from offrecord.models.members import Places
from offrecord.models.records import Chains
from offrecord.tables.chains import Columns, order_warnings
from offrecord.tables.grid import Spacing
from offrecord.tables.growing import Before, open_ended
from offrecord.tables.steps import Step
from offrecord.tables.table import Table
from offrecord.text import many

_HELD = 64  # surveys at a time: few, as each holds its geometry
_DIGESTS = ("private_digest", "records_digest", "known_digest")
#: What depends on the release before, of counts and digests.
_BEFORE = ("known", "reached", "known_digest")
#: How the fields of parts become those of a table; all others are counts, which are added.
_JOINED: dict[str, Callable[[list[Any]], Any]] = {
    **dict.fromkeys(_DIGESTS, lambda parts: np.bitwise_xor.reduce(parts, axis=0)),
    **dict.fromkeys(("settings", "joined"), lambda parts: frozenset().union(*parts)),
    **dict.fromkeys(("spacings", "positions"), lambda parts: list(chain.from_iterable(parts))),
    **dict.fromkeys(("names_are_text", "order_type"), lambda parts: parts[0]),
    "names_are_integers": lambda parts: tuple(map(all, zip(*parts, strict=True))),
    "spread": lambda parts: _widest([part for part in parts if part is not None]),
    "geometry": Geometry.joined,
    "newest": max,
}


@dataclass(frozen=True)
class Surveyor:
    """What surveys a part of a table."""

    protect: Literal["run", "each"]
    order: int = 1  # of the model, as are places: they decide where rules act
    places: Places | None = None
    before: Before | None = None  # the release of a growing table that this one continues
    positions: bool = False  # list the keys of private records
    open_ended: bool = False

    def survey(self, table: Table) -> Survey:
        """What is known about a table."""
        arranged, private, chains = table.arranged, table.private, table.chains
        acting = chains if not self.open_ended else open_ended(chains)
        runs, place_of = table.runs(self.protect), table.place_of(self.places)
        needed = partial(settings_needed, acting, runs, self.order, self.protect, place_of)
        known, reached = np.zeros(private.count, dtype=bool), 0
        if self.before is not None:
            known = self.before.holding.knows(arranged, private)
            reached = self.before.reached(arranged, private, runs, self.protect)
        names = [arranged.names[name].dtype for name in arranged.columns.by]
        texts = [arranged.frame[name].dtype for name in arranged.columns.by]
        return Survey(
            rows=table.rows,
            chains=chains.count,
            missing=int(np.count_nonzero(~table.valued)),
            private=private.count,
            runs=len(runs.chain),
            touched=int(np.count_nonzero(table.touched)),
            partly=int(np.count_nonzero(table.partly_private)),
            touched_records=int(np.count_nonzero(table.valued & chains.spread(table.touched))),
            beside=arranged.grid.beside,
            spread=arranged.grid.spread,
            pairs=arranged.grid.pairs[0],
            linked=arranged.grid.pairs[1],
            spacings=[] if arranged.grid.spacing is None else [arranged.grid.spacing],
            names_are_integers=tuple(kind.is_integer() for kind in names),
            names_are_text=tuple(kind == pl.String for kind in texts),
            order_type=arranged.order_type,
            settings=frozenset(needed(joining=False)),
            joined=frozenset(needed(joining=True)),
            geometry=geometry(acting, runs, self.order, place_of),
            private_digest=table.set_digest(private.chain, private.order),
            records_digest=table.digest_anywhere(),
            positions=_positions(table) if self.positions else [],
            newest=int(chains.order.max()),
            known=int(known.sum()),
            known_digest=table.set_digest(private.chain[known], private.order[known]),
            reached=reached,
            too_long=_too_long(self.places, chains),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Survey:
    """What is known about a table, or a part of it, before anything is decided."""

    rows: int
    chains: int
    missing: int  # rows without a value, private ones apart
    private: int  # private records, in rows or gaps
    runs: int
    touched: int  # chains with a private record
    partly: int  # chains with a private record and another one
    touched_records: int  # records of touched chains that have a value
    beside: int  # rows that do not lie on the grid of the step
    pairs: int  # neighbouring rows
    linked: int  # neighbouring rows one step apart
    too_long: int  # chains with more steps than the model has kernels for
    known: int  # private records that were known when the table was released before it grew
    reached: int  # private runs that were not, but reach records that have left
    private_digest: NDArray[np.uint64]  # of the private records
    records_digest: NDArray[np.uint64]  # the same, whatever the name of the data set
    known_digest: NDArray[np.uint64]
    spread: tuple[int, int] | None  # without a step, least and most time between rows
    spacings: list[Spacing]  # of parts, without a step
    names_are_integers: tuple[bool, ...]  # of all chains, column by column of their names
    names_are_text: tuple[bool, ...]  # as they came
    order_type: pl.DataType
    settings: frozenset[Setting]  # for which local rules are needed
    joined: frozenset[Setting]  # for which stopping rules are
    geometry: Geometry  # where rules act
    positions: list[list[Any]]  # the keys of private records
    newest: int  # the largest order value

    @property
    def is_timed(self) -> bool:
        """The order column holds dates or times."""
        return not self.order_type.is_integer()

    @property
    def zone(self) -> str | None:
        """The time zone of the order column, if it has one."""
        return getattr(self.order_type, "time_zone", None)

    @property
    def records(self) -> int:
        """How many records have a value."""
        return self.rows - self.missing

    @property
    def spacing(self) -> float | None:
        """The median distance of neighbours, in seconds or numbers, without a step."""
        if not self.spacings:
            return None
        # of a table in parts, about the median
        medians, weights, _ = np.array(sorted(self.spacings)).T
        median = float(medians[np.searchsorted(np.cumsum(weights), weights.sum() / 2)])
        return median / 1e9 if self.is_timed else median

    @property
    def fingerprint(self) -> str:
        """The same for another survey of the same records, and of no others."""
        return self._digest([])

    @property
    def table_fingerprint(self) -> str:
        """As `fingerprint`, and the same whatever was released before the table grew."""
        return self._digest(_BEFORE)

    def _digest(self, leaving_out: Sequence[str]) -> str:
        counted = [one.name for one in fields(self) if one.name not in (*_JOINED, *leaving_out)]
        numbers = tuple(getattr(self, name) for name in counted)
        digest = hashlib.sha256(repr((numbers, sorted(self.settings))).encode())
        for name in _DIGESTS:
            if name not in leaving_out:
                digest.update(getattr(self, name).tobytes())
        return digest.hexdigest()

    def check_lengths(self, model: Model | None) -> None:
        """InputError for chains with more steps than the model has kernels for."""
        if self.too_long:
            assert model is not None
            assert model.promise.places is not None
            have = "has" if self.too_long == 1 else "have"
            raise InputError(
                f"the model knows chains of {model.promise.places.count} steps, but"
                f" {many(self.too_long, 'chain')} {have} more: fit a model with --phase none, or to"
                " chains as long"
            )

    def warnings(self, columns: Columns, step: Step | None) -> list[str]:
        """What a person should know about the order of records."""
        return order_warnings(columns, step, self.beside, self.spread, self.spacings)

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
        """The survey of a table from those of its parts, of which few are held at a time."""
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
        if any(
            part.is_timed != first.is_timed
            or (part.is_timed and part.order_type != first.order_type)
            for part in parts
        ):
            raise InputError(
                f"column {columns.order!r} must hold whole numbers, dates or times (ISO 8601), all"
                " of one kind"
            )
        columnwise = {one.name: [getattr(part, one.name) for part in parts] for one in fields(cls)}
        return cls(**{name: _JOINED.get(name, sum)(found) for name, found in columnwise.items()})


def _widest(spreads: list[tuple[int, int]]) -> tuple[int, int] | None:
    if not spreads:
        return None
    lows, highs = zip(*spreads, strict=True)
    return min(lows), max(highs)


def _too_long(places: Places | None, chains: Chains) -> int:
    if places is None or places.cyclic or places.goes_on:
        return 0
    ends = chains.places[chains.starts[1:] - 1] + 1
    return int(np.count_nonzero(ends > places.count))


def _positions(table: Table) -> list[list[Any]]:
    """The key of each private record: its chain's names, and its order value."""
    arranged, private = table.arranged, table.private
    order = private.order.tolist()
    if not arranged.columns.by:
        return [[value] for value in order]
    names = arranged.names[arranged.chains.starts[private.chain]]
    return [[*map(_plain, row), value] for row, value in zip(names.iter_rows(), order, strict=True)]


def _plain(cell: Any) -> Any:
    return cell if isinstance(cell, (str, int, bool)) else cell.isoformat()


def digest_text(digest: NDArray[np.uint64], size: int) -> str:
    """The digest of a set of records as text, with how many they are."""
    return f"{digest.astype('<u8').tobytes().hex()}:{size}"
