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

from offrecord.designs.needs import SurroundingCounts, fingerprints
from offrecord.mechanisms.base import Decider, Design
from offrecord.mechanisms.blocks import Mask, Secrets, blocks
from offrecord.mechanisms.local.design import LocalDesign
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.models.base import Integers, Model
from offrecord.models.records import MISSING, Chains
from offrecord.tables.batch import ChainBatch

#: Rows that are decided at a time: so many that what is done once for each block counts little.
BLOCK = 1 << 20
_SURELY = 1e-6  # of a record: so much less is less in whatever order costs are summed
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
    than its window where nothing else is near. rests: (designs,) whether a design redacts to an end
    of the chain; reach: how far any does that does not.
    """

    together: Mapping[Surrounding, int]
    windows: Mapping[tuple[int, ...], int]
    plain: Mapping[tuple[int, ...], int]
    rests: Mask
    reach: int

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
            pair = designs[i], windows[j]
            is_plain = masses is not None and not any(_goes_on(one, row, cap) for one in pair)
            if masses is not None and is_plain:
                own, window = (one.cost(masses, row[0], row[1]) for one in pair)
                is_plain = own == window or own < window - _SURELY
            plain.append(int(is_plain))
            numbers.append(len(designs) + j)
        every = [*designs, *windows]
        return cls(
            {one.surrounding: i for i, one in enumerate(designs) if one.surrounding.inside},
            dict(zip(needs.rows, numbers, strict=True)),
            dict(zip(needs.rows, plain, strict=True)),
            np.array([_rests(one) != (False, False) for one in every], dtype=bool),
            max((one.reach for one in every), default=0),
        )

    def acting(self, batch: ChainBatch, which: Integers, decider: Decider, model: Model) -> Acting:
        """What acts in a batch, whose secrets have the designs `which` by their surroundings."""
        secrets, windows = batch.secrets, batch.looked_up(self.windows)
        clusters = self._clusters(batch)
        groups = self._groups(batch, (which, windows), clusters)
        unsure = np.bincount(groups.of, minlength=len(groups.begin)) > 1
        unsure |= ~_is_complete(batch.arranged.chains)[groups.chain]
        unsure[groups.of[batch.looked_up(self.plain) == 0]] = True
        none = clusters.where(np.zeros(secrets.count, dtype=bool))
        options = [(which, clusters), (which, none), (windows, none)]
        together, single, window = range(3)
        choice = np.full(len(unsure), single)
        if unsure.any():
            looked, used = _looked_at(batch, groups, np.flatnonzero(unsure), options, model)
            asked = np.zeros(len(unsure), dtype=bool)
            asked[looked] = True
            asked = asked[groups.of]
            costs = []
            for own, joined in options:
                laid = _laid(secrets, own, joined.where(asked), asked)
                costs.append(_costs(batch, laid, groups, looked, decider, model))
            choice[unsure] = np.argmin(np.stack(costs), axis=0)[used]
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
        secrets, chains = batch.secrets, batch.arranged.chains
        rests = np.zeros(chains.count, dtype=bool)
        for which in singles:
            rests[secrets.chain[self.rests[which]]] = True
        rests[secrets.chain[clusters.begin[self.rests[clusters.number]]]] = True
        between = secrets.first[1:] - secrets.last[:-1] - 1
        meets = secrets.chain[1:] == secrets.chain[:-1]
        meets &= (between <= 2 * self.reach) | rests[secrets.chain[1:]]
        begins = np.concatenate(([True], ~meets))[: secrets.count]
        first = np.flatnonzero(begins)
        last = np.append(first[1:], secrets.count)[: len(first)] - 1
        whole = secrets.joined(first, last + 1)
        sizes = np.full((len(first), 2), self.reach)
        ends = whole.bounds(chains, sizes, np.repeat(rests[whole.chain, None], 2, axis=1))
        return _Groups(np.cumsum(begins) - 1, (first, last + 1), whole.chain, *ends)


class _Designed(NamedTuple):
    """Clusters that have a design: secrets begin … end − 1, and the number of the design."""

    begin: Integers
    end: Integers
    number: Integers

    def where(self, kept: Mask) -> _Designed:
        """Those of which the first secret is kept, as then the others are."""
        return _Designed(*(one[kept[self.begin]] for one in self))


class _Groups(NamedTuple):
    """of: (s,) the group of each secret. secrets: the first of each group, and the one after its
    last. chain, begin, end: of each group, and the rows that its designs may fall on.
    """

    of: Integers
    secrets: tuple[Integers, Integers]
    chain: Integers
    begin: Integers
    end: Integers


class _Laid(NamedTuple):
    """Secrets and clusters, sorted, with their designs. at, members: the first secret of each, and
    how many it has.
    """

    secrets: Secrets
    which: Integers
    at: Integers
    members: Integers


def _laid(secrets: Secrets, own: Integers, clusters: _Designed, asked: Mask) -> _Laid:
    """Clusters, and the secrets that are asked for and in none of them, with their own designs."""
    steps = np.zeros(secrets.count + 1, dtype=np.int64)
    steps[clusters.begin] += 1
    np.subtract.at(steps, clusters.end, 1)  # where one ends another may begin
    alone = np.flatnonzero((np.cumsum(steps)[:-1] == 0) & asked)
    begin = np.concatenate((alone, clusters.begin))
    end = np.concatenate((alone + 1, clusters.end))
    which = np.concatenate((own[alone], clusters.number))
    order = np.argsort(begin)
    begin, end = begin[order], end[order]
    return _Laid(secrets.joined(begin, end), which[order], begin, end - begin)


def _looked_at(
    batch: ChainBatch,
    groups: _Groups,
    unsure: Integers,
    options: list[tuple[Integers, _Designed]],
    model: Model,
) -> tuple[Integers, Integers]:
    """Groups to look at for others: those that are the same in all that costs depend on have the
    same costs. Sorted; and which of them stands for each that is unsure.
    """
    chains, secrets = batch.arranged.chains, batch.secrets
    if not model.is_stationary:
        return unsure, np.arange(len(unsure))
    begin, end = groups.secrets
    numbers = np.zeros(secrets.count, dtype=np.int64)
    numbers[options[0][1].begin] = options[0][1].number + 1
    lone = np.where(_is_complete(chains)[groups.chain], 0, np.arange(1, len(begin) + 1))
    before = np.where(lone > 0, 0, secrets.low[begin] - groups.begin)
    beyond = np.where(lone > 0, 0, groups.end - secrets.high[end - 1])
    origin = np.repeat(secrets.first[begin], end - begin)
    places = [one - origin for one in (secrets.first, secrets.last)]
    columns = [*places, numbers, *(own for own, _ in options[1:])]
    mixed = fingerprints(begin, end, *columns).view(np.int64)
    rows = np.stack((mixed, lone, before, beyond, end - begin), axis=1)[unsure]
    _, one, used = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(one)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return unsure[one[order]], place[used.ravel()]


def _costs(
    batch: ChainBatch,
    laid: _Laid,
    groups: _Groups,
    looked: Integers,
    decider: Decider,
    model: Model,
) -> Integers:
    """How many records with a value are redacted by expectation, in small units, in each of the
    groups that are looked at; to what is laid there these are chains of their own.
    """
    chains, masses = batch.arranged.chains, batch.masses(model)
    begin, sizes = groups.begin[looked], groups.end[looked] - groups.begin[looked]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    rows = np.repeat(begin - starts[:-1], sizes) + np.arange(int(starts[-1]))
    steps = None if chains.steps is None else chains.steps[rows]
    part = Chains(starts, chains.codes[rows], chains.order[rows], chains.timed, steps)
    own = np.searchsorted(looked, groups.of[laid.at])
    shift = starts[own] - begin[own]
    secrets = replace(
        laid.secrets, chain=own, low=laid.secrets.low + shift, high=laid.secrets.high + shift
    )
    weights = masses if masses.ndim == 1 else masses[rows]
    total = np.zeros(1, dtype=np.int64)
    for block in blocks(part, secrets, laid.which, BLOCK):
        likely = weights if weights.ndim == 1 else weights[block.rows]
        redacted = 1.0 - decider.expect(block, likely).released
        units = np.rint(np.where(block.codes == MISSING, 0.0, redacted) * _UNIT).astype(np.int64)
        total = np.concatenate((total, total[-1] + np.cumsum(units)))
    return np.asarray(total[starts[1:]] - total[starts[:-1]])


def _is_complete(chains: Chains) -> Mask:
    """(chains,) whether a chain misses no record and no value."""
    if chains.whole and chains.steps is None:
        return np.ones(chains.count, dtype=bool)
    last = chains.starts[1:] - 1
    rows = np.diff(chains.starts)
    missing = np.add.reduceat(chains.codes == MISSING, chains.starts[:-1], dtype=np.int64)
    gaps = 0 if chains.steps is None else chains.steps[last] - (rows - 1)
    return np.asarray((missing == 0) & (gaps == 0))


def _rests(design: Design) -> tuple[bool, bool]:
    """Whether it redacts to the ends of the chain; no design but local ones has alternatives."""
    assert isinstance(design, LocalDesign)
    return design.left_rest, design.right_rest


def _goes_on(design: Design, row: tuple[int, ...], cap: int) -> bool:
    """Whether it may redact beyond the rooms that surroundings of a secret name."""
    return any(rest and row[side] >= cap for side, rest in enumerate(_rests(design)))
