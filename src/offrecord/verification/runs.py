"""Private runs, their cores and clusters: what positions alone decide (rules 1 and 4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from offrecord.models.base import Integers, Mask
from offrecord.models.records import Runs
from offrecord.tables.private import Private
from offrecord.verification.reading import Records
from offrecord.verification.rules import Rules, Side

_APART = np.iinfo(np.int64).max


def runs_of(records: Records, private: Private) -> tuple[Runs, Mask]:
    """The runs of private records: those with nothing but missing records in between. And whether
    it is not known that a run goes on with the one before, as some empty rows may be missing.
    """
    chain, place = private.chain, private.place
    parts, unsure = np.ones(private.count, dtype=bool), np.zeros(private.count, dtype=bool)
    if records.said.claim.protect == "run" and private.count > 1:
        same = chain[1:] == chain[:-1]
        low = records.row_from(chain[:-1], place[:-1] + 1)
        high = np.where(same, records.row_from(chain[1:], place[1:]), low)
        valued = np.concatenate(([0], np.cumsum(records.known != -1)))
        nothing = same & (valued[high] == valued[low])
        # a row that is empty between them was redacted, or missing, which the original says
        sure = nothing if records.original is not None else nothing & (high == low)
        parts[1:] = ~sure
        unsure[1:] = nothing & ~sure & (high - low <= records.counts.missing)
    head = np.flatnonzero(parts)
    tail = np.append(head[1:], private.count)[: len(head)] - 1
    return Runs(chain[head], place[head], place[tail], private.order[head]), unsure[head]


@dataclass(frozen=True, eq=False)
class Clusters:
    """Cores, and under stopping rules what near ones become."""

    cores: Runs
    # the rules that act, by direction; None where the chain ends, or goes whole
    sides: dict[str, list[Side | None]]
    lacking: set[tuple[str, int]]  # settings and places for which the certificate has no rule

    @property
    def count(self) -> int:
        """How many there are."""
        return self.cores.count

    def by_rule(self, direction: str) -> list[tuple[Side, Integers]]:
        """Each rule of a direction, and the clusters it acts for."""
        sides = self.sides[direction]
        numbers = np.array([id(side) for side in sides], dtype=np.int64)
        acting = {id(side): side for side in sides if side is not None}
        return [(side, np.flatnonzero(numbers == one)) for one, side in acting.items()]

    def deadlines(self, direction: str, order: int) -> Integers:
        """(c,) L of each side; a window is a walk that stops at its deadline alone."""
        reaches = [0 if side is None else side.reach for side in self.sides[direction]]
        return np.array(reaches, dtype=np.int64) + order

    def edges(self, direction: str) -> Integers:
        """(c,) the outermost places on a side."""
        return self.cores.last if direction == "right" else self.cores.first

    def gaps(self) -> Integers:
        """(c - 1,) records strictly between neighbours; a large number between chains."""
        between = self.cores.first[1:] - self.cores.last[:-1] - 1
        return np.where(self.cores.chain[1:] == self.cores.chain[:-1], between, _APART)

    def margins(self, records: Records, direction: str) -> tuple[Integers, Mask]:
        """(c,) records up to the next cluster on a side, or the chain's end; whether it is one."""
        between, end = np.append(self.gaps(), _APART), self.cores.first
        if direction == "left":
            between = np.roll(between, 1)
        else:
            end = records.ends[self.cores.chain] - self.cores.last
        return np.minimum(between, end), between < _APART


def clusters_of(records: Records, runs: Runs, rules: Rules) -> Clusters:
    """The clusters of some runs."""
    order, end = rules.kind.order, records.ends[runs.chain]
    # a core holds a whole context: what a shorter run lacks is taken from its left (rule 1)
    first = np.maximum(np.minimum(runs.first, runs.last - order + 1), 0)
    last = np.minimum(np.maximum(runs.last, order - 1), end)
    single, begin = runs.first == runs.last, np.arange(runs.count)
    while True:
        tail = np.append(begin[1:], runs.count)[: len(begin)] - 1
        cores = replace(runs.part(begin), first=first[begin], last=last[tail])
        found = _ruled(records, cores, single[begin] & (tail == begin), rules)
        if not rules.walks:
            return found
        facing = found.deadlines("right", order)[:-1], found.deadlines("left", order)[1:]
        near = found.gaps() < np.maximum(*facing)
        if not near.any():
            return found
        # merging two may make their rules reach further, so that they are near to a third (rule 4)
        begin = begin[np.concatenate(([True], ~near))]


def _ruled(records: Records, cores: Runs, lone: Mask, rules: Rules) -> Clusters:
    """Clusters with the rules that act."""
    end, kind = records.ends[cores.chain], rules.kind
    opens, closes = cores.first == 0, cores.last == end
    inside = np.where(lone, "record", "run")
    settings = np.where(opens, "first", np.where(closes, "last", inside)).tolist()
    near = np.minimum(cores.first + kind.order - 1, end)
    lacking = set[tuple[str, int]]()
    sides: dict[str, list[Side | None]] = {}
    for direction, at, none in (("left", near, opens), ("right", cores.last, closes)):
        places = records.placed(kind, cores.chain, at).tolist()
        acting = (~none & ~(opens & closes)).tolist()  # a chain that is one core goes whole
        sides[direction] = []
        for setting, place, acts in zip(settings, places, acting, strict=True):
            side = rules.sides.get((setting, place, direction)) if acts else None
            if acts and side is None:
                lacking.add((setting, place))
            sides[direction].append(side)
    return Clusters(cores, sides, lacking)


def covered(records: Records, chain: Integers, low: Integers, high: Integers) -> Mask:
    """(n,) the rows at places low … high of chains."""
    # how many ranges begin and end before each row, as ranges may overlap
    edges = np.zeros(len(records.codes) + 1, dtype=np.int64)
    np.add.at(edges, records.row_from(chain, np.maximum(low, 0)), 1)
    np.add.at(edges, records.row_from(chain, np.minimum(high, records.ends[chain]) + 1), -1)
    return np.asarray(np.cumsum(edges[:-1]) > 0)
