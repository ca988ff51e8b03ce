"""Parts of a table: stretches of whole chains, and what is found out about them before anything is
decided.

A chain is decided by itself, so a table may come in parts: all of it at once, stretch by stretch
from a file, or spread over machines. What parts have in common (which designs are needed, what the
certificate and the ledger say) needs no more of each part than its `Survey`; surveys add up, in any
order, to that of the table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from offrecord.designs.library import Model
from offrecord.designs.sharing import Needs, context_of, distinct
from offrecord.errors import InputError
from offrecord.models.base import Integers
from offrecord.models.clock import phases_of
from offrecord.models.phased import PhasedChain
from offrecord.release import coins as draws
from offrecord.tables.cells import MISSING
from offrecord.tables.chains import Arranged, Chains, Columns, arrange, order_warnings
from offrecord.tables.model_check import check_lengths
from offrecord.tables.secrets import Private, Secrets, private_records, secrets_of
from offrecord.tables.steps import Step

if TYPE_CHECKING:
    import polars as pl

_HELD = 64  # surveys at a time


@dataclass(frozen=True, eq=False)
class Part:
    """Whole chains, what is private in them, and the secrets that makes.

    around: (s, 4) the surroundings of each secret, and contexts, as in Needs. phases: of each
    record, if the model has them.
    tagged, tags: the chains that hold a secret, sorted, and the tags their coins come from.
    """

    arranged: Arranged
    hidden: Private
    secrets: Secrets
    around: Integers
    contexts: dict[int, Integers]
    phases: NDArray[np.int8] | None
    coins: draws.Coins
    tagged: Integers
    tags: draws.ChainTags

    @cached_property
    def distinct(self) -> tuple[Integers, Integers, Integers]:
        """The distinct surroundings, which one each secret has, and how many secrets have each."""
        return _distinct(self.around)

    @property
    def kind(self) -> int:
        """What order values are, for coins."""
        return draws.TIME if self.arranged.chains.timed else draws.INTEGER

    def tags_of(self, chains: Integers) -> draws.ChainTags:
        """(r, 2) the tags of some chains that hold a secret."""
        return self.tags[np.searchsorted(self.tagged, chains)]

    def drawn(self, rows: Integers) -> draws.Draws:
        """The draw of each row."""
        chains = self.arranged.chains
        of = np.searchsorted(chains.starts, rows, side="right") - 1
        return self.coins.draw(self.tags_of(of), chains.order[rows], self.kind)


@dataclass(frozen=True, eq=False)
class Reading:
    """How parts of a table are read. limits: rooms beyond which a larger one makes no
    difference.
    """

    columns: Columns
    private: str | None
    step: Step | None
    protect: str
    model: Model
    limits: tuple[int | None, int | None]
    coins: draws.Coins
    positions: bool = False

    def part(self, frame: pl.DataFrame, listed: pl.DataFrame | None) -> Part:
        """Rows of whole chains as a part."""
        arranged = arrange(
            frame, self.columns, labels=self.model.labels, private=self.private, step=self.step
        )
        return self.part_of(arranged, private_records(arranged, listed, self.step))

    def part_of(self, arranged: Arranged, hidden: Private) -> Part:
        """Arranged chains as a part."""
        chains = arranged.chains
        phases = None
        if isinstance(self.model, PhasedChain):
            phases = arranged.phases(self.model.phase, self.model.zone)
        secrets = secrets_of(chains, hidden, self.protect)
        rooms = [
            room if limit is None else np.minimum(room, limit)
            for room, limit in zip(secrets.rooms(chains), self.limits, strict=True)
        ]
        around = np.stack(
            (*rooms, secrets.last - secrets.first + 1, np.zeros_like(secrets.first)), axis=1
        )
        contexts: dict[int, Integers] = {}
        if isinstance(self.model, PhasedChain):
            assert phases is not None
            for secret, (left, right, length, _) in enumerate(around.tolist()):
                along = self._along(
                    self.model,
                    arranged,
                    hidden,
                    phases,
                    int(secrets.chain[secret]),
                    left + length + max(right, 1),
                )
                around[secret, 3] = context_of(along)
                contexts[int(around[secret, 3])] = along
        tagged = secrets.chain[np.diff(secrets.chain, prepend=-1) > 0]  # sorted: each chain once
        tags = self.coins.chain_tags(draws.joined(arranged.chain_values(tagged), len(tagged)))
        return Part(arranged, hidden, secrets, around, contexts, phases, self.coins, tagged, tags)

    def _along(
        self,
        model: PhasedChain,
        arranged: Arranged,
        hidden: Private,
        phases: NDArray[np.int8],
        chain: int,
        count: int,
    ) -> Integers:
        """The phases of the first records of a chain: by their own clocks, as in a fit.

        Of missing ones by the time that a private list gives them, else by the chain's grid.
        """
        chains = arranged.chains
        begin, end = int(chains.starts[chain]), int(chains.starts[chain + 1])
        if chains.steps is None:
            return phases[begin : min(begin + count, end)].astype(np.int64)
        places = chains.steps[begin:end]
        known = int(np.searchsorted(places, count))
        along = np.full(count, -1, dtype=np.int64)
        along[places[:known]] = phases[begin : begin + known]
        gaps = np.flatnonzero(along < 0)
        if len(gaps):
            along[gaps] = phases_of(arranged.gap_times(chain, gaps), model.phase, model.zone)
            listed = slice(*np.searchsorted(hidden.chain, (chain, chain + 1)))
            asked, times = hidden.place[listed], hidden.order[listed]
            missing = np.isin(asked, gaps)
            along[asked[missing]] = phases_of(times[missing], model.phase, model.zone)
        return along

    def survey(self, part: Part) -> Survey:
        """What is found out about a part before anything is decided."""
        import polars as pl

        arranged, hidden, secrets = part.arranged, part.hidden, part.secrets
        chains = arranged.chains
        check_lengths(self.model, chains)
        rows, used, counts = part.distinct
        placed = part.coins.set_digests(
            part.tags_of(secrets.chain), secrets.order, part.kind, used, len(rows)
        )
        one = np.zeros(hidden.count, dtype=np.int64)
        private = part.coins.set_digests(
            part.tags_of(hidden.chain), hidden.order, part.kind, one, 1
        )
        return Survey(
            rows=len(chains.codes),
            chains=chains.count,
            missing=_missing(chains, hidden),
            private=hidden.count,
            secrets=secrets.count,
            touched=len(part.tagged),
            marked=len(hidden.rows(chains)),
            keys=hidden.keys,
            beside=arranged.beside,
            spread=arranged.spread,
            pairs=arranged.pairs[0],
            linked=arranged.pairs[1],
            spacings=() if arranged.spacing is None else (arranged.spacing,),
            kinds=tuple(arranged.names[name].dtype.is_integer() for name in self.columns.by),
            texts=tuple(arranged.frame[name].dtype == pl.String for name in self.columns.by),
            order_type=arranged.order_type,
            needs=Needs(rows, counts, part.contexts),
            placed=placed,
            digest=private[0],
            positions=_positions(part) if self.positions else [],
        )


@dataclass(frozen=True, eq=False)
class Survey:
    """What is found out about a table, or a part of it, before anything is decided.

    Nothing of it depends on a value, only on which records that are not private have one. missing:
    rows without a value, private ones apart. touched: chains that hold a secret. marked: rows that
    are private. keys: rows of the private list that were found. pairs, linked: neighbouring rows,
    and those one step apart. spacings: without a step, median distances of neighbours in parts, and
    of how many. kinds, texts: whether all chain names are whole numbers, and whether they came as
    text, column by column. placed: (m, 2) for each surrounding the digest of its secrets. digest:
    that of the private records.
    """

    rows: int
    chains: int
    missing: int
    private: int
    secrets: int
    touched: int
    marked: int
    keys: int
    beside: int
    spread: tuple[int, int] | None
    pairs: int
    linked: int
    spacings: tuple[tuple[float, int], ...]
    kinds: tuple[bool, ...]
    texts: tuple[bool, ...]
    order_type: pl.DataType
    needs: Needs
    placed: NDArray[np.uint64]
    digest: NDArray[np.uint64]
    positions: list[list[Any]]

    @property
    def timed(self) -> bool:
        """The order column holds dates or times."""
        return not self.order_type.is_integer()

    @property
    def spacing(self) -> float | None:
        """The median distance of neighbours, in seconds or numbers, where there is no step; about
        that of a table in parts.
        """
        if not self.spacings:
            return None
        medians, weights = np.array(sorted(self.spacings)).T
        median = float(medians[np.searchsorted(np.cumsum(weights), weights.sum() / 2)])
        return median / 1e9 if self.timed else median

    @property
    def fingerprint(self) -> str:
        """The same for another survey of the same records, and of no others: it says which records
        are private and where.
        """
        counted = (self.rows, self.chains, self.missing, self.private, self.secrets, self.keys)
        rows = np.lexsort(self.needs.around.T)
        told = hashlib.sha256(repr(counted).encode() + self.digest.tobytes())
        for values in (self.needs.around, self.needs.counts, self.placed):
            told.update(np.ascontiguousarray(values[rows]).tobytes())
        return told.hexdigest()

    def warnings(self, columns: Columns, step: Step | None) -> list[str]:
        """What a person should know about the order of records."""
        return order_warnings(columns, step, self.beside, self.spread)

    @classmethod
    def of_all(cls, parts: Iterable[Survey], columns: Columns) -> Survey:
        """The survey of a table from those of its parts, of which never more than a few
        are held.
        """
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
            part.timed != first.timed or (first.timed and part.order_type != first.order_type)
            for part in parts
        ):
            raise InputError(
                f"column {columns.order!r} must hold whole numbers, dates or times (ISO 8601), all"
                " of one kind"
            )
        total = {
            name: sum(getattr(part, name) for part in parts)
            for name in (
                "rows",
                "chains",
                "missing",
                "private",
                "secrets",
                "touched",
                "marked",
                "keys",
                "beside",
                "pairs",
                "linked",
            )
        }
        around = np.concatenate([part.needs.around for part in parts])
        rows, used, _ = _distinct(around)
        placed = np.zeros((len(rows), 2), dtype=np.uint64)
        np.bitwise_xor.at(placed, used, np.concatenate([part.placed for part in parts]))
        counts = np.zeros(len(rows), dtype=np.int64)
        np.add.at(counts, used, np.concatenate([part.needs.counts for part in parts]))
        contexts = {number: along for part in parts for number, along in part.needs.phases.items()}
        spreads = [part.spread for part in parts if part.spread is not None]
        return cls(
            **total,
            spread=(
                (min(low for low, _ in spreads), max(high for _, high in spreads))
                if spreads
                else None
            ),
            spacings=tuple(spacing for part in parts for spacing in part.spacings),
            kinds=tuple(all(kinds) for kinds in zip(*(part.kinds for part in parts), strict=True)),
            texts=first.texts,
            order_type=first.order_type,
            needs=Needs(rows, counts, contexts),
            placed=placed,
            digest=np.bitwise_xor.reduce(np.stack([part.digest for part in parts]), axis=0),
            positions=[row for part in parts for row in part.positions],
        )

    def published_positions(self) -> list[list[Any]]:
        """The keys of private records, sorted; chain names as whole numbers only where all of them
        are.
        """
        if not self.positions:
            return []
        texts = [text and not kind for text, kind in zip(self.texts, self.kinds, strict=True)] + [
            False
        ]  # the order value
        return sorted(
            [str(cell) if text else cell for cell, text in zip(row, texts, strict=True)]
            for row in self.positions
        )


def _distinct(around: Integers) -> tuple[Integers, Integers, Integers]:
    """The distinct surroundings, which one each is, and how often each comes."""
    if len(around) == 0:
        none = np.empty(0, dtype=np.int64)
        return around, none, none
    return distinct(*around.T)


def _missing(chains: Chains, hidden: Private) -> int:
    """Rows without a value; of private ones nobody is told."""
    if chains.whole:
        return 0
    empty = chains.codes == MISSING
    empty[hidden.rows(chains)] = False
    return int(empty.sum())


def _positions(part: Part) -> list[list[Any]]:
    """The key of each private record: its chain's names, and its order value."""
    arranged, hidden = part.arranged, part.hidden
    order = hidden.order.tolist()
    if not arranged.columns.by:
        return [[value] for value in order]
    names = arranged.names[arranged.chains.starts[hidden.chain]]
    return [[*map(_plain, row), value] for row, value in zip(names.iter_rows(), order, strict=True)]


def _plain(cell: Any) -> Any:
    return cell if isinstance(cell, (str, int, bool)) else cell.isoformat()


def hexed(digest: NDArray[np.uint64], size: int) -> str:
    """The digest of a set of records as text, with how many they are."""
    return f"{digest.astype('<u8').tobytes().hex()}:{size}"
