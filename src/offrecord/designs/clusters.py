"""Clusters: near secrets of a chain that one design is made for together (F3, F14).

Which secrets these are follows from their places alone, chain by chain, so that a table has the
same clusters however its chains are brought.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from heapq import heapify, heappop

import numpy as np

from offrecord.designs.library import Designs, Setting
from offrecord.designs.needs import distinct
from offrecord.mechanisms.base import Design
from offrecord.mechanisms.blocks import Mask, Secrets
from offrecord.mechanisms.surroundings import Nearness, Surrounding
from offrecord.models.base import Integers
from offrecord.models.records import Chains
from offrecord.processes import crew
from offrecord.text import Progress, followed, unwatched

_DESIGNING = "designing near secrets"
#: How much designing for clusters a table may take. Not a time, so that a table is released alike
#: on every machine: of each design the secrets times the records times half the squared number of
#: values, of which a few hundred take a second.
WORK = 10_000
#: So few stretches of near secrets are cut one by one.
_FEW = 64


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of some secrets, at least two each.

    begin, end: (c,) cluster i has the secrets begin[i] … end[i] − 1. around: the distinct
    surroundings. used: (c,) which of them each cluster has.
    """

    begin: Integers
    end: Integers
    around: tuple[Surrounding, ...]
    used: Integers

    @classmethod
    def of(cls, chains: Chains, secrets: Secrets, nearness: Nearness | None) -> Clusters:
        """The clusters of whole chains, sorted as their secrets are."""
        if nearness is None:
            none = np.empty(0, dtype=np.int64)
            return cls(none, none, (), none)
        begin, end = _cut(secrets, nearness)
        left, right = secrets.joined(begin, end).rooms(chains)
        rooms = _rounded(left, nearness.rooms), _rounded(right, nearness.rooms)
        return cls(begin, end, *_patterns(secrets, begin, end, rooms))

    @property
    def secrets(self) -> dict[Surrounding, int]:
        """How many secrets there are in clusters with each surrounding."""
        counts = np.bincount(self.used, self.end - self.begin, minlength=len(self.around))
        return dict(zip(self.around, counts.astype(np.int64).tolist(), strict=True))


def _cut(secrets: Secrets, nearness: Nearness) -> tuple[Integers, Integers]:
    """Where clusters begin and end: from the left as many secrets as a cluster may have."""
    first, last, count = secrets.first, secrets.last, secrets.count
    joins = np.zeros(count, dtype=bool)  # which secrets are near the next one
    joins[:-1] = secrets.chain[1:] == secrets.chain[:-1]
    joins[:-1] &= first[1:] - last[:-1] - 1 <= nearness.gap
    after = np.arange(1, count + 1)  # the secret after the cluster that each would begin
    more = np.flatnonzero(joins)
    for _ in range(nearness.secrets - 1):
        more = more[last[after[more]] - first[more] < nearness.span]
        after[more] += 1
        more = more[joins[after[more] - 1]]
    begin = _begun(after, joins)
    return begin, after[begin]


def _begun(after: Integers, joins: Mask) -> Integers:
    """The secrets that begin clusters. after: the secret after the cluster that each would begin.
    joins: which are near the next one. All stretches of near secrets at once, one cluster of each
    at a time; where few of them go on, these one by one.
    """
    is_near = np.concatenate(([False], joins))  # to the one before; the last joins nothing
    at = np.flatnonzero(joins & ~is_near[:-1])
    found = []
    while len(at) > _FEW:
        found.append(at)
        at = after[at]
        at = at[is_near[at]]
    rest = list(_one_by_one(at, after, is_near)) if len(at) else []
    begin = np.concatenate((*found, np.array(rest, dtype=np.int64)))
    begin = np.sort(begin, kind="stable")  # a few sorted parts: far faster
    return np.asarray(begin[after[begin] - begin > 1])


def _one_by_one(at: Integers, after: Integers, is_near: Mask) -> Iterator[int]:
    following, near = after.tolist(), is_near.tolist()
    for one in at.tolist():
        yield one
        while near[one := following[one]]:
            yield one


def _patterns(
    secrets: Secrets, begin: Integers, end: Integers, rooms: tuple[Integers, Integers]
) -> tuple[tuple[Surrounding, ...], Integers]:
    """The distinct surroundings of clusters, and which of them each has. Clusters of as many
    secrets at a time: of most of them few small numbers tell all.
    """
    sizes = end - begin
    around: list[Surrounding] = []
    used = np.empty(len(begin), dtype=np.int64)
    for size in np.flatnonzero(np.bincount(sizes)).tolist():
        alike = np.flatnonzero(sizes == size)
        columns = [room[alike] for room in rooms]
        for member in (begin[alike] + at for at in range(size)):
            if len(columns) > len(rooms):
                columns.append(secrets.first[member] - secrets.last[member - 1] - 1)
            columns.append(secrets.last[member] - secrets.first[member] + 1)
        rows, which, _ = distinct(*columns)
        used[alike] = len(around) + which
        around += _surroundings(rows[:, 0], rows[:, 1], rows[:, 2::2], rows[:, 3::2])
    return tuple(around), used


def _rounded(rooms: Integers, grid: tuple[int, ...]) -> Integers:
    nodes = np.array(grid)
    return nodes[np.searchsorted(nodes, np.minimum(rooms, grid[-1]))]


def _surroundings(
    left: Integers, right: Integers, private: Integers, between: Integers
) -> Iterator[Surrounding]:
    """From the rooms of clusters, (c, m) the lengths of their secrets and (c, m − 1) how many
    records lie between these.
    """
    ends = np.cumsum(private, axis=1)
    ends[:, 1:] += np.cumsum(between, axis=1)
    lengths = ends[:, -1]
    width = int(lengths.max()) + 1
    starts = np.arange(len(lengths)) * width
    edges = np.zeros(len(lengths) * width, dtype=np.int8)
    for end, length in zip(ends.T, private.T, strict=True):
        edges[starts + end - length] += 1
        edges[starts + end] -= 1
    inside = np.cumsum(edges, dtype=np.int8).tobytes()
    columns = (one.tolist() for one in (left, right, lengths, starts))
    for near, far, length, start in zip(*columns, strict=True):
        yield Surrounding(near, far, length, inside=inside[start : start + length])


def with_clusters(
    designs: Designs,
    secrets: Mapping[Surrounding, int],
    *,
    known: Designs | None = None,
    progress: Progress = unwatched,
) -> Designs:
    """Designs of single secrets, and those of clusters that are worth one. secrets: how many are in
    clusters with each surrounding. known: as for `designs_for`.
    """
    setting = designs.setting
    standing = {} if known is None else {one.surrounding: one for one in known.designs}
    found, refused = [], designs.refused
    wanted = _affordable(secrets, setting.model.k)
    apart = set(() if known is None else known.apart.intersection(wanted))
    missing = [one for one in wanted if one not in apart]
    for surrounding in missing:
        if surrounding not in standing and known is not None and surrounding in known.candidates:
            problem = surrounding.problem(setting.model, setting.epsilon, setting.protect)
            design = known.candidates[surrounding].judged(problem)
            if design is None:
                refused += 1
            else:
                standing[surrounding] = design
    works = [(_made, (setting, one)) for one in missing if one not in standing]
    with closing(crew.each(works)) as made:
        for surrounding in followed(missing, _DESIGNING, progress):
            design = standing[surrounding] if surrounding in standing else next(made)
            if design is not None:
                found.append(design)
            else:
                apart.add(surrounding)
    every = (*designs.designs, *found)
    return replace(designs, designs=every, refused=refused, apart=frozenset(apart))


def _affordable(secrets: Mapping[Surrounding, int], k: int) -> list[Surrounding]:
    """Those that are designed, of the surroundings of clusters: by how many secrets they serve for
    the work they take.
    """
    works = {one: one.inside.count(1) * one.records(1) * k**2 // 2 for one in secrets}
    best = [(-count / works[one], one) for one, count in secrets.items()]
    heapify(best)  # of many, few are kept
    kept, spent = [], 0
    while best:
        _, around = heappop(best)
        spent += works[around]
        if spent > WORK:
            break
        kept.append(around)
    return kept


def _made(setting: Setting, surrounding: Surrounding) -> Design | None:
    problem = surrounding.problem(setting.model, setting.epsilon, setting.protect)
    return setting.mechanism.together(problem, surrounding)
