"""Clusters: near secrets of a chain that one design is made for together (F3, F14).

Which secrets these are follows from their places alone, chain by chain, so that a table has the
same clusters however its chains are brought.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from offrecord.designs.library import Designs, Setting
from offrecord.mechanisms.base import Design
from offrecord.mechanisms.blocks import Secrets
from offrecord.mechanisms.surroundings import Nearness, Surrounding
from offrecord.models.base import Integers
from offrecord.models.records import Chains
from offrecord.text import Progress, followed, unwatched

_DESIGNING = "designing near secrets"
#: How much designing for clusters a table may take. Not a time, so that a table is released alike on
#: every machine: of each design the secrets times the records times half the squared number of
#: values, of which a few hundred take a second.
WORK = 16_000


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
        begin, end = _cut(secrets, nearness) if nearness else ([], [])
        numbers: dict[tuple[int, int, bytes], int] = {}
        used = np.zeros(len(begin), dtype=np.int64)
        if nearness:
            left, right = (_rounded(rooms, nearness.rooms) for rooms in secrets.rooms(chains))
            ends = np.stack((secrets.first, secrets.last), axis=1)
            for i, (first, stop) in enumerate(zip(begin, end, strict=True)):
                places = (ends[first:stop] - ends[first, 0]).tobytes()
                key = (int(left[first]), int(right[stop - 1]), places)
                used[i] = numbers.setdefault(key, len(numbers))
        around = tuple(_surrounding(*key) for key in numbers)
        return cls(np.array(begin, dtype=np.int64), np.array(end, dtype=np.int64), around, used)

    @property
    def secrets(self) -> dict[Surrounding, int]:
        """How many secrets there are in clusters with each surrounding."""
        counts = np.bincount(self.used, self.end - self.begin, minlength=len(self.around))
        return dict(zip(self.around, counts.astype(np.int64).tolist(), strict=True))


def _cut(secrets: Secrets, nearness: Nearness) -> tuple[list[int], list[int]]:
    """Where clusters begin and end: from the left as many secrets as a cluster may have."""
    between = secrets.first[1:] - secrets.last[:-1] - 1
    joins = (secrets.chain[1:] == secrets.chain[:-1]) & (between <= nearness.gap)
    first, last = secrets.first, secrets.last
    found: list[tuple[int, int]] = []
    begin, end = 0, 1  # of the cluster that is being gathered
    for at in np.flatnonzero(joins).tolist():  # secrets that are near the next one
        if at >= end:
            found.append((begin, end))
            begin, end = at, at + 1
        if end - begin < nearness.secrets and last[at + 1] - first[begin] < nearness.span:
            end = at + 2
        else:
            found.append((begin, end))
            begin, end = at + 1, at + 2
    found.append((begin, end))
    kept = [(begin, end) for begin, end in found if end - begin > 1]
    return [begin for begin, _ in kept], [end for _, end in kept]


def _rounded(rooms: Integers, grid: tuple[int, ...]) -> Integers:
    nodes = np.array(grid)
    return nodes[np.searchsorted(nodes, np.minimum(rooms, grid[-1]))]


def _surrounding(left: int, right: int, places: bytes) -> Surrounding:
    """From the rooms of a cluster, and the places of its secrets from its first record on."""
    ends = np.frombuffer(places, dtype=np.int64).reshape(-1, 2)
    inside = bytearray(int(ends[-1, 1]) + 1)
    for first, last in ends.tolist():
        inside[first : last + 1] = b"\1" * (last - first + 1)
    return Surrounding(left, right, len(inside), inside=bytes(inside))


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
    for surrounding in followed(_affordable(secrets, setting.model.k), _DESIGNING, progress):
        design = standing.get(surrounding)
        if design is None and known is not None and surrounding in known.candidates:
            problem = surrounding.problem(setting.model, setting.epsilon, setting.protect)
            design = known.candidates[surrounding].judged(problem)
            refused += design is None
        design = design or _made(setting, surrounding)
        if design is not None:
            found.append(design)
    return replace(designs, designs=(*designs.designs, *found), refused=refused)


def _affordable(secrets: Mapping[Surrounding, int], k: int) -> list[Surrounding]:
    """Those that are designed, of the surroundings of clusters: by how many secrets they serve for
    the work they take.
    """
    works = {one: len(one.private) * one.records(1) * k**2 // 2 for one in secrets}
    kept, spent = [], 0
    for around in sorted(secrets, key=lambda one: (-secrets[one] / works[one], one)):
        spent += works[around]
        if spent > WORK:
            break
        kept.append(around)
    return kept


def _made(setting: Setting, surrounding: Surrounding) -> Design | None:
    problem = surrounding.problem(setting.model, setting.epsilon, setting.protect)
    return setting.mechanism.together(problem, surrounding)
