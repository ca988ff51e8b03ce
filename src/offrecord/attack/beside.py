"""Beside clusters: of each side, or gap, all that its likelihood depends on, and which of them look
alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from offrecord.attack.roles import IDLE, Roles, roles_of
from offrecord.attack.sides import ODD, Between, Laws, Side
from offrecord.attack.sights import PAST, Seen, Sights, numbered
from offrecord.mechanisms.blocks import Mask
from offrecord.mechanisms.owner.deciding.clusters import LEFT, RIGHT, SIGNS
from offrecord.mechanisms.owner.deciding.decider import Plan
from offrecord.models.base import Floats, Integers


@dataclass(frozen=True, eq=False)
class Found:
    """laws: of sides or gaps, the different ones, or why they are not known. which: (c,) which of
    them each cluster has, −1 for none.
    """

    laws: list[Floats | str]
    which: Integers

    def add(self, some: Integers, which: Integers, laws: list[Floats | str]) -> None:
        """Note those of some clusters."""
        self.which[some] = len(self.laws) + which
        self.laws.extend(laws)


@dataclass(frozen=True, eq=False)
class Beside:
    """What lies beside the clusters of a block. chain: (c,) theirs, as the table numbers them."""

    sights: Sights
    laws: Laws
    plan: Plan
    chain: Integers

    @cached_property
    def roles(self) -> Roles:
        """What stands on either side."""
        return roles_of(self.laws.walkers.decider, self.plan)

    @cached_property
    def _counts(self) -> Integers:
        """(c, 2) how many records lie on either side, up to the chain's end or the next cluster."""
        clusters = self.plan.clusters
        return clusters.gaps - np.where(clusters.faces, self.laws.size - 1, 0)

    def _ends(self, column: int) -> Integers:
        """(c,) the place of the first or last record of each cluster."""
        ends = self.plan.clusters.ends
        return ends.first if column == LEFT else ends.last + self.laws.size - 1

    # ---- sides

    def sides(self, column: int) -> Found:
        """Of one side of each cluster; none where nothing parts it from the next cluster."""
        found = Found([], np.full(self.plan.clusters.count, -1))
        walked = np.flatnonzero(~self.plan.clusters.bridged[:, column])
        role, number = (one[walked, column] for one in self.roles)
        different, which = numbered([role, number])
        for kind, at in enumerate(different.tolist()):
            some = walked[which == kind]
            if role[at] == IDLE:
                self._idle(column, some, found)
            else:
                self._walked(column, int(role[at]), int(number[at]), some, found)
        return found

    def _idle(self, column: int, some: Integers, found: Found) -> None:
        """Where everything is redacted to the chain's end, or nothing is there."""
        none = np.zeros(len(some), dtype=np.int64)
        seen = self._seen(column, some, 1, none, none)
        shown = np.any(seen.symbols >= 0, axis=1).astype(np.int64)
        found.add(some, shown, [np.ones((1, self.laws.opened.states)), ODD])

    def _walked(self, column: int, role: int, number: int, some: Integers, found: Found) -> None:
        """Where the same walks lead away from all of some clusters."""
        clusters, order, size = self.plan.clusters, self.laws.opened.order, self.laws.size
        chain, gap = self.chain[some], clusters.gaps[some, column]
        # to the left a stretch is walked from its outer end, which must be released
        further = 0 if column == RIGHT else order - size
        deadlines = self.laws.walkers.deadlines(role, number, column)
        reach = max(deadlines, default=0)
        at = self._ends(column)[some] - (size - 1 if column == RIGHT else 0)
        need = np.zeros(len(some), dtype=np.int64)
        fars = []
        for deadline in deadlines:
            far = np.full(len(some), -1)
            within = np.flatnonzero(deadline <= gap)
            place = at[within] + SIGNS[column] * deadline
            far[within] = self.sights.tuples(chain[within], place, size)
            unknown = within[far[within] < 0]
            need[unknown] = np.maximum(need[unknown], deadline + further)
            fars.append(far)
        end = np.full(len(some), -1)
        past = np.flatnonzero(gap < reach)
        end[past] = self.sights.tuples(chain[past], at[past] + SIGNS[column] * gap[past], size)
        need[past[end[past] < 0]] = np.iinfo(np.int64).max
        after = self._after(role, number, column) + further
        seen = self._seen(column, some, order, need, after)
        kept = np.flatnonzero(seen.anchored | ~clusters.faces[some, column])
        room, begin = np.minimum(gap, reach), self._begins(column, some, seen)
        columns = [*seen.symbols.T, seen.anchored, room, end, *fars]
        columns += self._kernel_columns(column, some, begin, seen)
        different, which = numbered([one[kept].astype(np.int64) for one in columns])
        laws = []
        for one in kept[different].tolist():
            length = int(seen.length[one])
            laws.append(
                self.laws.side(
                    Side(
                        column,
                        role,
                        number,
                        tuple(seen.symbols[one, :length].tolist()),
                        int(room[one]),
                        tuple(int(far[one]) for far in fars),
                        int(end[one]),
                        bool(seen.anchored[one]),
                        self._kernels(column, some[one], int(begin[one]), length),
                    )
                )
            )
        found.add(some[kept], which, laws)

    def _seen(
        self, column: int, some: Integers, memory: int, need: Integers, after: Integers
    ) -> Seen:
        count, place = self._counts[some, column], self._ends(column)[some]
        chain = self.chain[some]
        return self.sights.beside(chain, place, count, SIGNS[column], memory, need, after)

    def _after(self, role: int, number: int, column: int) -> Integers:
        """(d,) by distance, how far those who look ahead look if releasing begins there."""
        walkers = [one for one in self.laws.walkers.of(role, number, column) if one is not None]
        ahead = [one for one in walkers if one.looks_ahead]
        reach = max((one.deadline for one in ahead), default=0)
        more = self.laws.size - 1
        return np.array(
            [max((one.after(d + more) for one in ahead), default=0) for d in range(reach + 1)]
        )

    # ---- steps

    def _begins(self, column: int, some: Integers, seen: Seen) -> Integers:
        """(n,) the place that the first step of each stretch leads into."""
        place = self._ends(column)[some]
        if column == RIGHT:
            return place + 1
        return np.where(seen.anchored, place - seen.length + self.laws.opened.order, 0)

    def _kernels(self, column: int, cluster: int, begin: int, length: int) -> tuple[int, ...]:
        """The kernels of the steps of one stretch."""
        end = begin + length
        if column == LEFT:
            end = int(self._ends(LEFT)[cluster]) + self.laws.size
        return self._numbers(int(self.chain[cluster]), begin, end)

    def _numbers(self, chain: int, begin: int, end: int) -> tuple[int, ...]:
        places = np.arange(begin, end)
        return tuple(self.laws.opened.numbers(np.full(len(places), chain), places).tolist())

    def _kernel_columns(
        self, column: int, some: Integers, begin: Integers, seen: Seen
    ) -> list[Integers]:
        """What tells stretches apart whose kernels are different."""
        opened = self.laws.opened
        if opened.is_even:
            return [np.minimum(begin, opened.opening)]
        end = begin + seen.length
        if column == LEFT:
            end = self._ends(LEFT)[some] + self.laws.size
        return list(self._number_columns(self.chain[some], begin, end))

    def _number_columns(self, chain: Integers, begin: Integers, end: Integers) -> list[Integers]:
        columns = []
        for step in range(int((end - begin).max(initial=0))):
            inside = np.flatnonzero(begin + step < end)
            column = np.full(len(begin), -1)
            column[inside] = self.laws.opened.numbers(chain[inside], begin[inside] + step)
            columns.append(column)
        return columns

    # ---- gaps

    def gaps(self, some: Integers) -> Found:
        """Of the gaps to the right of some clusters that do not part them from the next ones."""
        found = Found([], np.full(self.plan.clusters.count, -1))
        count, place = self._counts[some, RIGHT], self._ends(RIGHT)[some]
        none = np.zeros(len(some), dtype=np.int64)
        seen = self._seen(RIGHT, some, np.iinfo(np.int64).max, none, none[:1])
        bridged = self.plan.clusters.bridged[some, RIGHT]
        kinds = [
            one[rows, column]
            for rows, column in ((some, RIGHT), (some + 1, LEFT))
            for one in self.roles
        ]
        end = place + count + self.laws.size + 1
        begin, chain = place + 1, self.chain[some]
        columns = [
            *_essential(seen.symbols, bridged, self.laws.opened.order).T,
            *kinds,
            bridged,
            count,
        ]
        if self.laws.opened.is_even:
            columns.append(np.minimum(begin, self.laws.opened.opening))
        else:
            columns += self._number_columns(chain, begin, end)
        different, which = numbered([one.astype(np.int64) for one in columns])
        laws = []
        for at in different.tolist():
            kernels = self._numbers(int(chain[at]), int(begin[at]), int(end[at]))
            symbols = tuple(seen.symbols[at, : count[at]].tolist())
            room = int(self.plan.clusters.gaps[some[at], RIGHT])
            if bridged[at]:
                laws.append(self.laws.held_out(symbols, kernels))
                continue
            right, left = ((int(kinds[i][at]), int(kinds[i + 1][at])) for i in (0, 2))
            laws.append(self.laws.between(Between(right, left, room, symbols, kernels)))
        found.add(some, which, laws)
        return found


def _essential(symbols: NDArray[np.int8], bridged: Mask, memory: int) -> NDArray[np.int8]:
    """(n, w) symbols, but what is released in gaps that were held out only as far as somebody who
    remembers so much sees beyond it from either end.
    """
    shown = symbols >= 0
    before = np.cumsum(shown, axis=1)
    inner = shown & (before > memory) & (before[:, -1:] - before >= memory)
    return np.where(inner & bridged[:, np.newaxis], np.int8(PAST), symbols)
