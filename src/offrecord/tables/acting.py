"""Which designs act around the secrets of a batch: one for a cluster of near secrets, one for each
secret, or windows.

Of these those that redact least by expectation, group by group of secrets whose designs may meet.
By F3 each choice is private for every secret, and what decides are the places of records, which of
them have a value, and the model. With windows among the choices a release keeps at least what
windows would, by expectation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.designs.needs import SurroundingCounts, mixed
from offrecord.mechanisms.base import Decider, Design
from offrecord.mechanisms.blocks import Block, Mask, Secrets
from offrecord.mechanisms.local.design import LocalDesign
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.models.base import Floats, Integers, Model
from offrecord.models.records import MISSING, Chains
from offrecord.tables.batch import ChainBatch
from offrecord.tables.openings import summed
from offrecord.tables.threads import in_threads, table_threads

#: Rows that are decided at a time: so many that what is done once for each block counts little.
BLOCK = 1 << 20
_SURELY = 1e-6  # of a record: so much less is less in whatever order costs are summed
_OVERLAPS = 8  # designs that fall on a piece, on average
_FIRST = 16  # bits of numbers by which these are known again
_UNIT = 2.0**32  # of a record: sums of whole numbers are the same in every order of their parts


class Acting(NamedTuple):
    """Secrets, or clusters of them, and which design acts around each. uses: (designs,) how many
    secrets each serves, None where nothing was chosen.
    """

    secrets: Secrets
    which: Integers
    uses: Integers | None = None


@dataclass(frozen=True, eq=False)
class Alternatives:
    """What may act instead of the designs that secrets have by their surroundings.

    together: by the surroundings of a cluster, the number of its design. windows: by those of a
    secret, the number of its window. plain: by those of a secret, 1 if its design redacts no more
    than its window where nothing else is near. sizes, rests: (designs, 2) how far a design redacts
    to the left and right, and whether to the end of the chain. surely: (designs,) whether it always
    redacts all of that.
    """

    together: Mapping[Surrounding, int]
    windows: Mapping[tuple[int, ...], int]
    plain: Mapping[tuple[int, ...], int]
    sizes: Integers
    rests: Mask
    surely: Mask

    @classmethod
    def of(
        cls,
        designs: Sequence[Design],
        windows: Sequence[Design],
        needs: SurroundingCounts,
        which: tuple[Integers, Integers],
        model: Model,
        cap: int,
    ) -> Alternatives:
        """Of designs, numbered from 0, and windows, numbered after them. which: of either, those of
        the surroundings of secrets. cap: the largest room that surroundings name.
        """
        plain, numbers = [], []
        masses = model.along().marginal(1) if model.is_stationary else None
        for row, i, j in zip(needs.rows, *(one.tolist() for one in which), strict=True):
            pair = _local(designs[i]), _local(windows[j])
            is_plain = masses is not None and not any(_goes_on(one, row, cap) for one in pair)
            if masses is not None and is_plain:
                own, window = (one.cost(masses, row[0], row[1]) for one in pair)
                is_plain = own == window or own < window - _SURELY
            plain.append(int(is_plain))
            numbers.append(len(designs) + j)
        every = [_local(one) for one in (*designs, *windows)]
        sizes = [[side.size for side in one.sides] for one in every]
        return cls(
            {one.surrounding: i for i, one in enumerate(designs) if one.surrounding.inside},
            dict(zip(needs.rows, numbers, strict=True)),
            dict(zip(needs.rows, plain, strict=True)),
            np.array(sizes, dtype=np.int64).reshape(-1, 2),
            np.array([_rests(one) for one in every], dtype=bool).reshape(-1, 2),
            np.array([_is_sure(one) for one in every], dtype=bool),
        )

    def acting(self, batch: ChainBatch, which: Integers, decider: Decider, model: Model) -> Acting:
        """What acts in a batch, whose secrets have the designs `which` by their surroundings."""
        secrets, windows = batch.secrets, batch.looked_up(self.windows)
        clusters = self._clusters(batch)
        groups = self._groups(batch, (which, windows), clusters)
        unsure = np.bincount(groups.of, minlength=len(groups.chain)) > 1
        unsure |= ~_is_complete(batch.chains)[groups.chain]
        unsure[groups.of[batch.looked_up(self.plain) == 0]] = True
        unsure |= batch.openings is not None  # what stands with an edge counts too
        none = clusters.where(np.zeros(secrets.count, dtype=bool))
        together, single, window = range(3)
        choice = np.full(len(unsure), single)
        if unsure.any():
            near = np.zeros(len(unsure), dtype=bool)  # else what is together is what is single
            near[groups.of[clusters.begin]] = True
            asked = (unsure & near)[groups.of]
            joined = _laid(secrets, which, clusters.where(asked), asked)
            alone = _laid(secrets, which, none, unsure[groups.of])
            options = (joined, alone, alone._replace(which=windows[alone.at]))

            masses = batch.masses(model)

            def foretold(laid: _Laid) -> Integers:
                return self._costs(batch, laid, groups, decider, model, masses)

            threads = table_threads(len(options)) if batch.rows > 2 * BLOCK else 1
            costs = list(in_threads(foretold, options, threads))
            costs[together] = np.where(near, costs[together], costs[single])
            choice[unsure] = np.argmin(np.stack(costs), axis=0)[unsure]
        chosen = choice[groups.of]
        own = np.where(chosen == window, windows, which)
        laid = _laid(secrets, own, clusters.where(chosen == together), np.full(len(own), True))
        uses = np.bincount(laid.which, laid.members, minlength=len(self.rests)).astype(np.int64)
        return Acting(laid.secrets, laid.which, uses)

    def _clusters(self, batch: ChainBatch) -> _Designed:
        """The clusters of a batch that have a design."""
        clusters = batch.clusters
        numbers = [self.together.get(one, -1) for one in clusters.around]
        number = np.array(numbers, dtype=np.int64)[clusters.used]
        kept = number >= 0
        return _Designed(clusters.begin[kept], clusters.end[kept], number[kept])

    def _groups(
        self, batch: ChainBatch, singles: tuple[Integers, Integers], clusters: _Designed
    ) -> _Groups:
        """Secrets whose designs may fall on the same records: all of a chain, where one of them
        goes to its end.
        """
        secrets, chains = batch.secrets, batch.chains
        rests = np.zeros(chains.count, dtype=bool)
        resting: Mask = np.any(self.rests, axis=1)
        for which in singles:
            rests[secrets.chain[resting[which]]] = True
        rests[secrets.chain[clusters.begin[resting[clusters.number]]]] = True
        between = secrets.first[1:] - secrets.last[:-1] - 1
        meets = secrets.chain[1:] == secrets.chain[:-1]
        meets &= (between <= 2 * int(self.sizes.max())) | rests[secrets.chain[1:]]
        begins = np.concatenate(([True], ~meets))
        return _Groups(np.cumsum(begins) - 1, secrets.chain[begins])

    def _costs(
        self,
        batch: ChainBatch,
        laid: _Laid,
        groups: _Groups,
        decider: Decider,
        model: Model,
        masses: Floats,
    ) -> Integers:
        """(groups,) how many records with a value what is laid there redacts by expectation, in
        small units.
        """
        chains, behind = batch.chains, batch.behind
        # taken, which is far faster than an index into rows of two
        sizes, rests = self.sizes.take(laid.which, axis=0), self.rests.take(laid.which, axis=0)
        begin, end = laid.secrets.bounds(chains, sizes, rests)
        falls = end > begin  # others fall on no record
        if not falls.all():
            laid, begin, end = laid.part(np.flatnonzero(falls)), begin[falls], end[falls]
        spread = _Spread.of(begin, end)
        if masses.ndim == 1 and bool(np.all(self.surely[laid.which])):
            own, begin, end = spread.stretches
            rows = end - begin - _missing(chains, begin, end)
            if behind is not None:
                rows = rows + summed(behind, begin, end)
            found = rows * _units(masses.sum())
        else:
            pieces = _Pieces.of(spread, laid.secrets.low, model.is_stationary)
            looked, same = _looked_at(chains, laid, pieces, model, behind)
            own, part = pieces.own, pieces.part(looked)
            found = _expected(chains, laid, part, decider, masses, behind)[same]
        costs = np.zeros(len(groups.chain), dtype=np.int64)
        np.add.at(costs, groups.of[laid.at[own]], found)
        return costs


class _Designed(NamedTuple):
    """Clusters that have a design: secrets begin … end − 1, and the number of the design."""

    begin: Integers
    end: Integers
    number: Integers

    def where(self, kept: Mask) -> _Designed:
        """Those of which the first secret is kept, as then the others are."""
        return _Designed(*(one[kept[self.begin]] for one in self))


class _Groups(NamedTuple):
    """of: (s,) the group of each secret. chain: of each group."""

    of: Integers
    chain: Integers


class _Spread(NamedTuple):
    """The rows of designs, which are sorted as their secrets are. since, until: the first row of
    each design and of those after it, and the one after the last of it and of those before. apart:
    which of them fall on no row that one before does.
    """

    since: Integers
    until: Integers
    apart: Mask

    @classmethod
    def of(cls, begin: Integers, end: Integers) -> _Spread:
        """From the first row of each, and the one after the last."""
        until = np.maximum.accumulate(end)
        since = np.minimum.accumulate(begin[::-1])[::-1]
        apart = np.concatenate(([True], until[:-1] <= since[1:]))[: len(begin)]
        return cls(since, until, apart)

    @property
    def stretches(self) -> tuple[Integers, Integers, Integers]:
        """Rows that designs fall on without a break: the first design of each, and the rows."""
        own = np.flatnonzero(self.apart)
        last = np.append(own[1:], len(self.apart))[: len(own)] - 1
        return own, self.since[own], self.until[last]


class _Pieces(NamedTuple):
    """Stretches of rows that designs fall on: what a group costs is what its pieces cost, and most
    pieces are alike.

    own: a design of each, in its group. begin, end: its rows. first, after: designs that fall on
    them are among first … after − 1. since, until: all rows that these fall on.
    """

    own: Integers
    begin: Integers
    end: Integers
    first: Integers
    after: Integers
    since: Integers
    until: Integers

    @classmethod
    def of(cls, spread: _Spread, low: Integers, fine: bool) -> _Pieces:
        """From the rows of designs. low: where a secret begins. fine: cut where a secret begins,
        not only where no design falls.
        """
        since, until, apart = spread
        cuts = np.where(apart, since, low)
        # A piece ends where the next one begins, or where no design falls any more.
        stops = np.append(np.where(apart[1:], until[:-1], low[1:]), until[-1:])
        begins = np.flatnonzero(apart)
        if not fine or len(low) == 0:
            return cls._cut(begins, (cuts, stops), since, until)
        found = cls._cut(np.arange(len(low)), (cuts, stops), since, until)
        # Designs that reach over many secrets would be looked at again in each piece.
        one, counts = np.cumsum(apart) - 1, np.diff(begins, append=len(low))
        many = np.bincount(one[found.own], found.after - found.first) > _OVERLAPS * counts
        if not many.any():
            return found
        return cls._cut(np.flatnonzero(apart | ~many[one]), (cuts, stops), since, until)

    @classmethod
    def _cut(
        cls, own: Integers, ends: tuple[Integers, Integers], since: Integers, until: Integers
    ) -> _Pieces:
        """Pieces that begin with some designs. ends: where a piece begins that does so with each,
        and where one ends that ends before the next.
        """
        last = np.append(own[1:], len(since))[: len(own)] - 1
        begin, end = ends[0][own], ends[1][last]
        kept = end > begin
        if not kept.all():
            own, begin, end = (one[kept] for one in (own, begin, end))
        first = np.searchsorted(until, begin, side="right")
        after = np.searchsorted(since, end, side="left")
        return cls(own, begin, end, first, after, since[first], until[after - 1])

    def part(self, kept: Integers | slice) -> _Pieces:
        """Some of them."""
        return _Pieces(*(one[kept] for one in self))

    @property
    def designs(self) -> tuple[Integers, Integers]:
        """The numbers of all designs of each, and to which of them these belong."""
        counts = self.after - self.first
        which = np.repeat(np.arange(len(counts)), counts)
        return np.arange(len(which)) - (np.cumsum(counts) - counts - self.first)[which], which


class _Laid(NamedTuple):
    """Secrets and clusters, sorted, with their designs. at, members: the first secret of each, and
    how many it has.
    """

    secrets: Secrets
    which: Integers
    at: Integers
    members: Integers

    def part(self, kept: Integers) -> _Laid:
        """Some of them."""
        own, at, members = (one[kept] for one in self[1:])
        return _Laid(self.secrets.joined(kept, kept + 1), own, at, members)


def _laid(secrets: Secrets, own: Integers, clusters: _Designed, asked: Mask) -> _Laid:
    """Clusters, and the secrets that are asked for and in none of them, with their own designs."""
    if len(clusters.begin):
        steps = np.zeros(secrets.count + 1, dtype=np.int8)
        steps[clusters.begin] += 1
        steps[clusters.end] -= 1  # where one ends another may begin
        asked = asked & (np.cumsum(steps[:-1], dtype=np.int8) == 0)
    begin = np.flatnonzero(asked)
    end, which = begin + 1, own[begin]
    if len(clusters.begin):
        begin = np.concatenate((begin, clusters.begin))
        order = np.argsort(begin, kind="stable")  # two sorted parts: far faster
        begin, end = begin[order], np.concatenate((end, clusters.end))[order]
        which = np.concatenate((which, clusters.number))[order]
    return _Laid(secrets.joined(begin, end), which, begin, end - begin)


def _looked_at(
    chains: Chains, laid: _Laid, pieces: _Pieces, model: Model, behind: Integers | None
) -> tuple[Integers, Integers]:
    """Pieces to look at for others: those that are the same in all that costs depend on have the
    same costs; and which of them stands for each. behind: what stands with each row.
    """
    alone = np.arange(1, len(pieces.own) + 1)
    if not model.is_stationary or len(alone) == 0:
        return alone - 1, alone - 1
    secrets, sizes = laid.secrets, pieces.end - pieces.begin
    chain = secrets.chain[pieces.own]
    origin, last = (_places(chains, chain, rows) for rows in (pieces.begin, pieces.end - 1))
    alike = (last - origin == sizes - 1) & (_missing(chains, pieces.begin, pieces.end) == 0)
    if behind is not None:
        alike &= summed(behind, pieces.begin, pieces.end) == 0
    alone[alike] = 0
    designs, which = pieces.designs
    numbers = mixed(laid.which, secrets.last - secrets.first)[designs]
    numbers = mixed(numbers, secrets.first[designs] - origin[which])
    starts = np.flatnonzero(np.diff(which, prepend=-1))
    numbers = mixed(np.add.reduceat(numbers, starts), sizes, alone)
    return _one_of_each(numbers)


def _one_of_each(numbers: NDArray[np.uint64]) -> tuple[Integers, Integers]:
    """Where some of the numbers are, every number among them, and which of these each is. Few are
    sorted if few are distinct: most meet themselves in a table by their first bits.
    """
    first = (numbers >> np.uint64(64 - _FIRST)).astype(np.int64)
    table = np.empty(1 << _FIRST, dtype=np.int64)
    every = np.arange(len(numbers))
    table[first] = every
    one = table[first]
    others = np.flatnonzero(numbers[one] != numbers)
    _, some, same = np.unique(numbers[others], return_index=True, return_inverse=True)
    one[others] = others[some[same]]
    found = np.flatnonzero(one == every)
    place = np.empty(len(numbers), dtype=np.int64)
    place[found] = np.arange(len(found))
    return found, place[one]


def _places(chains: Chains, chain: Integers, rows: Integers) -> Integers:
    """The places of some rows in their chains."""
    return rows - chains.starts[chain] if chains.steps is None else chains.steps[rows]


def _missing(chains: Chains, begin: Integers, end: Integers) -> Integers:
    """How many rows of each stretch begin … end − 1 have no value."""
    if chains.whole:
        return np.zeros(len(begin), dtype=np.int64)
    missing = np.flatnonzero(chains.codes == MISSING)
    return np.asarray(np.searchsorted(missing, end) - np.searchsorted(missing, begin))


def _expected(
    chains: Chains,
    laid: _Laid,
    pieces: _Pieces,
    decider: Decider,
    masses: Floats,
    behind: Integers | None,
) -> Integers:
    """How many records with a value are redacted by expectation, in small units, in each of some
    pieces; to what is laid there these are chains of their own.
    """
    found = [np.empty(0, dtype=np.int64)]
    ends, begin = np.cumsum(pieces.until - pieces.since), 0
    while begin < len(ends):
        done = ends[begin - 1] if begin else 0
        end = max(int(np.searchsorted(ends, done + BLOCK, side="right")), begin + 1)
        part = pieces.part(slice(begin, end))
        found.append(_looked_into(chains, laid, part, decider, masses, behind))
        begin = end
    return np.concatenate(found)


def _looked_into(
    chains: Chains,
    laid: _Laid,
    pieces: _Pieces,
    decider: Decider,
    masses: Floats,
    behind: Integers | None,
) -> Integers:
    sizes = pieces.until - pieces.since
    starts = np.concatenate(([0], np.cumsum(sizes)))
    shift = starts[:-1] - pieces.since
    rows = np.arange(int(starts[-1])) - np.repeat(shift, sizes)
    steps = None if chains.steps is None else chains.steps[rows]
    part = Chains(starts, chains.codes[rows], chains.order[rows], chains.timed, steps)
    designs, own = pieces.designs
    laid = laid.part(designs)
    low, high = (one + shift[own] for one in (laid.secrets.low, laid.secrets.high))
    secrets = replace(laid.secrets, chain=own, low=low, high=high)
    block = Block(part, slice(0, len(rows)), secrets, laid.which)
    weights = masses if masses.ndim == 1 else masses[rows]
    redacted = 1.0 - decider.expect(block, weights).released
    units = _units(np.where(part.codes == MISSING, 0.0, redacted))
    if behind is not None:
        units *= 1 + behind[rows]
    total = np.concatenate(([0], np.cumsum(units)))
    return np.asarray(total[pieces.end + shift] - total[pieces.begin + shift])


def _units(redacted: Floats | np.float64) -> Integers:
    """Records as whole numbers of small units."""
    return np.rint(redacted * _UNIT).astype(np.int64)


def _is_complete(chains: Chains) -> Mask:
    """(chains,) whether a chain misses no record and no value."""
    if chains.whole and chains.steps is None:
        return np.ones(chains.count, dtype=bool)
    last = chains.starts[1:] - 1
    rows = np.diff(chains.starts)
    missing = np.add.reduceat(chains.codes == MISSING, chains.starts[:-1], dtype=np.int64)
    gaps = 0 if chains.steps is None else chains.steps[last] - (rows - 1)
    return np.asarray((missing == 0) & (gaps == 0))


def _local(design: Design) -> LocalDesign:
    """No design but local ones has alternatives."""
    assert isinstance(design, LocalDesign)
    return design


def _rests(design: LocalDesign) -> tuple[bool, bool]:
    """Whether it redacts to the ends of the chain."""
    return design.left_rest, design.right_rest


def _is_sure(design: LocalDesign) -> bool:
    """Whether it always redacts all that it falls on."""
    return design.inside is None and all(bool(np.all(side.rows == 1)) for side in design.sides)


def _goes_on(design: LocalDesign, row: tuple[int, ...], cap: int) -> bool:
    """Whether it may redact beyond the rooms that surroundings of a secret name."""
    return any(rest and row[side] >= cap for side, rest in enumerate(_rests(design)))
