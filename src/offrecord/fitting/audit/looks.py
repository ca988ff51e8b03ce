"""Looks: what an attacker sees around a pretended secret, and how it is counted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from offrecord.fitting.audit.odds import Table
from offrecord.fitting.audit.records import Records
from offrecord.fitting.counting import Counts
from offrecord.models.base import Integers
from offrecord.models.records import Codes

NEIGHBOURS = "neighbours"  #: the kind of look at what is released nearest
PERIOD = "period"  #: at what lies a period away
CHAINS = "chains"  #: at another chain
STOPS = "stops"  #: at where the owner's mechanism begins to release
DEPTH = 3  #: nearest released records that are looked at on a side, at most
_CASES = 4  # records for each cell of a table, at least
_CELLS = 1 << 20  # of a table, at most
_JOINT = 1 << 16  # cells of the deepest table, up to which it is counted and summed


class Depth(NamedTuple):
    """How many records are seen on the left and on the right."""

    left: int
    right: int


@dataclass(frozen=True, eq=False, repr=False)
class Look:
    """Records that are seen with each of some secrets.

    kind: one of those above, or the name of phases. epsilon: what the designs promise. secrets:
    (m,) records. left, right: (m, depth) records seen on either side, nearest first, −1 where there
    is none. span: secrets no further apart see much the same. groups: (m,) from 0, −1 for secrets
    left out; one for each of `names`.
    """

    kind: str
    epsilon: float
    secrets: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    span: int
    groups: NDArray[np.int32]
    names: tuple[str, ...] = ("",)

    @property
    def promised(self) -> float:
        """The largest odds that the designs allow."""
        return math.exp(self.epsilon)

    @property
    def depths(self) -> list[Depth]:
        """What is counted: the left alone, the right alone, both; each from the nearest record."""
        left, right = self.left.shape[1], self.right.shape[1]
        return [
            *(Depth(j, 0) for j in range(1, left + 1)),
            *(Depth(0, j) for j in range(1, right + 1)),
            *(Depth(j, j) for j in range(1, min(left, right) + 1)),
        ]

    def tables(self, codes: Codes, at: Integers, k: int) -> Iterator[tuple[Depth, Table]]:
        """What was seen with which value of a secret, for every depth that the data can carry."""
        sizes = self._sizes(k)
        counts, separate = self._counted(codes, at, k, sizes)
        for depth, cells in zip(self.depths, _slices(sizes), strict=True):
            if cells.stop > cells.start:
                shape = (len(self.names), -1, k)
                yield depth, Table(counts[cells].reshape(shape), separate[cells].reshape(shape))

    def _sizes(self, k: int) -> Integers:
        """How many cells the table of each depth has; 0 where the data cannot carry it."""
        sizes = np.array([len(self.names) * k ** (sum(depth) + 1) for depth in self.depths])
        most = max(most_cells(len(self.secrets)), min(len(self.names) * k * k, _CELLS))
        return np.where(sizes <= most, sizes, 0)

    def _counted(
        self, codes: Codes, at: Integers, k: int, sizes: Integers
    ) -> tuple[Counts, Counts]:
        """The cells of all tables, one after the other: all cases, and those that are separate."""
        from offrecord.fitting.audit._tables import SHORT, seen_together

        begins = np.where(sizes > 0, np.cumsum(sizes) - sizes, -1)
        patterns = [k ** sum(depth) for depth in self.depths]
        counts, separate = seen_together.over(
            len(self.secrets),
            codes.astype(np.int64),
            at,
            self.secrets,
            self.left,
            self.right,
            self.groups,
            np.array([begins, patterns]),
            (k, self.span, int(sizes.sum())),
            short=SHORT,
        )
        return counts, separate

    # ---- faster, where it does not matter which cases are separate

    def bounds(self, codes: Codes, at: Integers, k: int) -> Iterator[Table]:
        """The same tables as if every case were separate; for a look with one group.

        Of secrets with all their records the deepest table alone is counted: the others are sums.
        """
        from offrecord.fitting.audit._tables import seen_deepest

        sizes = self._sizes(k)
        left, right = self.left.shape[1], self.right.shape[1]
        cells = k ** (left + right + 1)
        if cells > _JOINT:
            counts, _ = self._counted(codes, at, k, sizes)
        else:
            full, rest = self._by_room
            deepest = seen_deepest(codes, full.secrets, full.left, full.right, (k, cells))
            joint = deepest.reshape((k,) * (left + right + 1))
            counts, _ = rest._counted(codes, at, k, sizes)
            for depth, place in zip(self.depths, _slices(sizes), strict=True):
                if place.stop > place.start:
                    unseen = (*range(depth.left, left), *range(left + depth.right, left + right))
                    counts[place] += joint.sum(axis=unseen).ravel()
        for place in _slices(sizes):
            if place.stop > place.start:
                table = counts[place].reshape(1, -1, k)
                yield Table(table, table)

    @cached_property
    def _by_room(self) -> tuple[Look, Look]:
        """The secrets that have all their records, and the others."""
        full = (self.left[:, -1] >= 0) & (self.right[:, -1] >= 0) & (self.groups >= 0)
        return self._only(full), self._only(~full)

    def _only(self, kept: NDArray[np.bool_]) -> Look:
        own = (self.secrets, self.left, self.right, self.groups)
        secrets, left, right, groups = (array[kept] for array in own)
        return replace(self, secrets=secrets, left=left, right=right, groups=groups)


def most_cells(cases: int) -> int:
    """How many cells of a table so many cases can carry."""
    return min(cases // _CASES, _CELLS)


def _slices(sizes: Integers) -> list[slice]:
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for size, end in zip(sizes.tolist(), ends, strict=True)]


def neighbours(records: Records, windows: Integers, epsilon: float) -> Look:
    """The nearest released records around every record; windows: (2, n), −1 where all is redacted.

    Nothing is seen around a record whose design redacts everything.
    """
    open_ = windows.min(axis=0) >= 0
    secrets = np.arange(len(records), dtype=np.int32)
    left, right = records.nearest(windows[0], windows[1], DEPTH)
    groups = np.where(open_, 0, -1).astype(np.int32)
    span = int(windows.sum(axis=0).max(initial=0)) + 1
    return Look(NEIGHBOURS, epsilon, secrets, left, right, span, groups)
