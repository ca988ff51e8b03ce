"""Private runs, their cores and clusters: what positions alone decide (rules 1 and 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from offrecord.tables.private import Private
from offrecord.verification.coins import Coins
from offrecord.verification.members import Integers, Mask
from offrecord.verification.reading import Records
from offrecord.verification.rules import Rules, Side

_APART = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Runs:
    """Private runs, sorted: their chain, first and last place, and the order value of the first
    record. open: whether it is not known that a run goes on with the one before: nothing but empty
    rows lies between, some of which may have been missing.
    """

    chain: Integers
    first: Integers
    last: Integers
    order: Integers
    open: Mask

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.chain)

    def without(self, chains: Integers) -> Runs:
        """The runs of other chains."""
        kept = ~np.isin(self.chain, chains)
        places = self.chain[kept], self.first[kept], self.last[kept]
        return Runs(*places, self.order[kept], self.open[kept])


def runs_of(records: Records, private: Private, protect: str, missing: int) -> Runs:
    """The runs of private records: those with nothing but missing records in between.

    missing: how many rows had no value, where the original is not known.
    """
    chain, place = private.chain, private.place
    parts = np.ones(private.count, dtype=bool)
    unsure = np.zeros(private.count, dtype=bool)
    if protect == "run" and private.count > 1:
        same = chain[1:] == chain[:-1]
        low = records.row_from(chain[:-1], place[:-1] + 1)
        high = np.where(same, records.row_from(chain[1:], place[1:]), low)
        codes = records.codes if records.original is None else records.original
        valued = np.concatenate(([0], np.cumsum(codes != -1)))
        nothing = same & (valued[high] == valued[low])
        sure = nothing & (high == low)
        if records.original is not None:
            sure = nothing
        parts[1:] = ~sure
        unsure[1:] = nothing & ~sure & (high - low <= missing)
    head = np.flatnonzero(parts)
    tail = np.append(head[1:], private.count)[: len(head)] - 1
    return Runs(chain[head], place[head], place[tail], private.order[head], unsure[head])


@dataclass(frozen=True, eq=False)
class Clusters:
    """Cores, and under stopping rules what near ones become.

    chain, first, last: where they are. order: the order value of each one's first private record.
    setting: "record", "run", "first", "last" or "whole". sides: the rules that act, by direction;
    None where the chain ends, or goes whole.
    """

    chain: Integers
    first: Integers
    last: Integers
    order: Integers
    setting: list[str]
    sides: dict[str, list[Side | None]]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.chain)

    def by_rule(self, direction: str) -> list[tuple[Side, Integers]]:
        """Each rule of a direction, and the clusters it acts for."""
        groups: dict[int, list[int]] = {}
        acting = self.sides[direction]
        for at, side in enumerate(acting):
            if side is not None:
                groups.setdefault(id(side), []).append(at)
        found = []
        for each in groups.values():
            side = acting[each[0]]
            assert side is not None
            found.append((side, np.array(each, dtype=np.int64)))
        return found

    def gaps(self) -> Integers:
        """(c - 1,) records strictly between neighbours; a large number between chains."""
        between = self.first[1:] - self.last[:-1] - 1
        return np.where(self.chain[1:] == self.chain[:-1], between, _APART)

    def margins(self, records: Records, *, right: bool) -> tuple[Integers, Mask]:
        """(c,) records up to the next cluster on a side, or the chain's end; whether it is one."""
        between = np.append(self.gaps(), _APART)
        if not right:
            between = np.roll(between, 1)
        end = records.ends[self.chain] - self.last if right else self.first
        return np.minimum(between, end), between < _APART


def clusters_of(
    records: Records, runs: Runs, rules: Rules
) -> tuple[Clusters, set[tuple[str, int]]]:
    """The clusters of some runs, and settings for which the certificate has no rules."""
    order = rules.kind.order
    end = records.ends[runs.chain]
    # a core holds a whole context: what a shorter run lacks is taken from its left (rule 1)
    first = np.where(runs.last - runs.first + 1 < order, runs.last - order + 1, runs.first)
    last = np.where(first < 0, order - 1, runs.last)
    first = np.maximum(np.minimum(first, runs.first), 0)
    last = np.minimum(np.maximum(last, runs.last), end)
    single = runs.first == runs.last
    # merging two may make their rules reach further, so that they are near to a third (rule 4)
    begin = np.arange(runs.count)
    while True:
        stop = np.append(begin[1:], runs.count)[: len(begin)]
        lone = single[begin] & (stop - begin == 1)
        merged = runs.chain[begin], first[begin], last[stop - 1], runs.order[begin]
        found, lacking = _ruled(records, merged, lone, rules)
        if not rules.walks:
            return found, lacking
        reach = {
            name: np.array([_deadline(one, order) for one in found.sides[name]] or [0])
            for name in ("left", "right")
        }
        near = found.gaps() < np.maximum(reach["right"][:-1], reach["left"][1:])
        if not near.any():
            return found, lacking
        begin = begin[np.concatenate(([True], ~near))]


def _deadline(side: Side | None, order: int) -> int:
    """L; a window is a walk that stops at its deadline alone."""
    return order + (0 if side is None else side.reach)


def _ruled(
    records: Records,
    merged: tuple[Integers, Integers, Integers, Integers],
    lone: Mask,
    rules: Rules,
) -> tuple[Clusters, set[tuple[str, int]]]:
    """Clusters with the rules that act."""
    chain, first, last, key = merged
    kind, lacking = rules.kind, set[tuple[str, int]]()
    opens, closes = first == 0, last == records.ends[chain]
    at_left = records.placed(kind, chain, np.minimum(first + kind.order - 1, records.ends[chain]))
    at_right = records.placed(kind, chain, last)
    settings: list[str] = []
    sides: dict[str, list[Side | None]] = {"left": [], "right": []}
    each = zip(opens.tolist(), closes.tolist(), lone.tolist(), strict=True)
    for at, (begins, ends, single) in enumerate(each):
        name = "first" if begins else "last" if ends else "record" if single else "run"
        name = "whole" if begins and ends else name
        settings.append(name)
        for direction, places, none in (("left", at_left, begins), ("right", at_right, ends)):
            side = None
            if not none and name != "whole":
                place = int(places[at])
                side = rules.side(name, place, direction)
                if side is None:
                    lacking.add((name, place))
            sides[direction].append(side)
    return Clusters(chain, first, last, key, settings, sides), lacking


def covered(records: Records, chain: Integers, low: Integers, high: Integers) -> Mask:
    """(n,) the rows at places low … high of chains."""
    edges = np.zeros(len(records.codes) + 1, dtype=np.int64)
    np.add.at(edges, records.row_from(chain, np.maximum(low, 0)), 1)
    np.add.at(edges, records.row_from(chain, np.minimum(high, records.ends[chain]) + 1), -1)
    return np.asarray(np.cumsum(edges[:-1]) > 0)


@dataclass(frozen=True, eq=False)
class Case:
    """What cells are checked by. coins: None without the key. waits: (n,) rows of a growing table
    that leave later. missing: how many rows had no value.
    """

    records: Records
    clusters: Clusters
    rules: Rules
    coins: Coins | None
    waits: Mask
    missing: int
