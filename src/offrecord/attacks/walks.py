"""Bayes against stopping rules: the likelihood of where each walk stopped, by its law.

What lies beyond a stop is released, so the likelihood of a side is that of its stop. Only where
nothing between two cores left do both walks, and what lies between them, have to be summed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from offrecord.attacks.paths import Core, Inferred, Paths, scaled
from offrecord.mechanisms.deciding.layout import LEFT, RIGHT
from offrecord.mechanisms.deciding.rule_book import NO_SIDE, RuleBook
from offrecord.mechanisms.deciding.stopping import Clusters
from offrecord.mechanisms.owner.law import steps, unstopped
from offrecord.mechanisms.rules import Direction, StoppingRule
from offrecord.models.base import Floats, Integers
from offrecord.models.records import Runs

_SIDES: tuple[Direction, Direction] = ("left", "right")


@dataclass(frozen=True, eq=False, repr=False)
class Walks:
    """The walks of a released table, and an attacker's chain on it."""

    paths: Paths
    clusters: Clusters
    book: RuleBook
    _masses: dict[tuple[int, int, int], list[Floats]] = field(default_factory=dict, init=False)
    _empty: dict[tuple[int, ...], Floats] = field(default_factory=dict, init=False)

    def inferred(self, runs: Runs) -> Inferred:
        """What is inferred about each run; runs that became one cluster have the same ratio."""
        return Inferred.of(self.paths, runs, self._cores(runs))

    def _cores(self, runs: Runs) -> Iterator[tuple[slice, Core, Floats, Floats]]:
        clusters = self.clusters
        begins = np.flatnonzero(np.diff(clusters.chain, prepend=-1)).tolist()
        for low, high in zip(begins, [*begins[1:], clusters.count], strict=True):
            if np.all(clusters.rules[low] == NO_SIDE):  # a core that is the whole chain
                continue
            for one, left, right in zip(range(low, high), *self._messages(low, high), strict=True):
                some = slice(int(clusters.begin[one]), int(clusters.begin[one + 1]))
                yield some, self._core(one, runs.first[some], runs.last[some]), left, right

    def _core(self, one: int, first: Integers, last: Integers) -> Core:
        chain, near, end = self._ends(one)
        # what is said of joined runs is said of the whole core
        run = (int(first[0]), int(last[0])) if len(first) == 1 else None
        return Core(chain, near - self.clusters.order + 1, end, run)

    def _ends(self, one: int) -> tuple[int, int, int]:
        """Chain of a cluster, and where its first and its last context end."""
        clusters = self.clusters
        first, last = int(clusters.first[one]), int(clusters.last[one])
        return int(clusters.chain[one]), first + clusters.order - 1, last

    def _at(self, one: int, side: int, distance: int) -> tuple[int, int]:
        """Chain of a cluster, and where a context at a distance from it ends."""
        chain, near, last = self._ends(one)
        return chain, last + distance if side == RIGHT else near - distance

    # ---- messages along the clusters of a chain

    def _messages(self, low: int, high: int) -> tuple[list[Floats], list[Floats]]:
        """Of each cluster of a chain the evidence before, with its first context, and behind it."""
        inner = [self._across(one) for one in range(low, high)]
        lefts, rights = [self._side(low, LEFT)], [self._side(high - 1, RIGHT)]
        links = [self._link(one) for one in range(low, high - 1)]
        for at, link in enumerate(links):
            found = self._side(low + at + 1, LEFT) if link is None else lefts[at] @ inner[at] @ link
            lefts.append(scaled(found))  # a common factor changes no ratio
        for at, link in reversed([*enumerate(links)]):
            beyond = inner[at + 1] @ rights[0]
            found = self._side(low + at, RIGHT) if link is None else link @ beyond
            rights.insert(0, scaled(found))
        return lefts, rights

    def _across(self, one: int) -> Floats:
        """(S, S) from a cluster's first context to its last one."""
        chain, near, last = self._ends(one)
        return self.paths.ahead(chain, near, last - near)

    def _link(self, one: int) -> Floats | None:
        """(S, S) probability of what is shown up to the next cluster, with its first context, given
        this one's last; None where a context was released.
        """
        (chain, _, far), (_, near, _) = self._ends(one), self._ends(one + 1)
        first = near - self.clusters.order + 1
        if self.paths.is_cut(chain, far, first):
            return None
        looks = self.clusters.looks[one, RIGHT] and self.clusters.looks[one + 1, LEFT]
        return self._gone(one) if looks else self.paths.across(chain, far, near, first)

    # ---- one side

    def _side(self, one: int, side: int) -> Floats:
        """(S,) likelihood of what is shown given the last context; on the left with the first."""
        chain, near, last = self._ends(one)
        if self.clusters.looks[one, side]:
            likely = self._stopped(one, side)
            return likely if side == RIGHT else likely * self.paths.law(chain, near)
        if side == RIGHT:
            return self.paths.right(chain, last)
        return self.paths.left(chain, near, near - self.clusters.order + 1)

    def _stopped(self, one: int, side: int) -> Floats:
        """(S,) likelihood of the stop that the table shows, given the start context."""
        rule, distance = self._rule(one, side), self._distance(one, side)
        nowhere = np.zeros(self.paths.mean.contexts)
        if distance not in rule.levels:  # another table than the certificate's
            return nowhere
        # a stop shows its context and, as what lies beyond is released, the far one (S1)
        here, far = self._context(one, side, distance), self._context(one, side, rule.deadline)
        if here is None or far is None:
            return nowhere
        level, group = int(np.searchsorted(rule.levels, distance)), rule.far[far]
        mass = self._unstopped(one, side)[level][group, :, here]
        return mass if level == len(rule.stop) else mass * rule.stop[level, group, :, here]

    def _context(self, one: int, side: int, distance: int) -> int | None:
        """The released context at a distance; None unless all of it is released."""
        chain, end = self._at(one, side, distance)
        return self.paths.shown.context(chain, end, self.clusters.order)

    def _distance(self, one: int, side: int) -> int:
        """The distance t at which a walk stopped: what is redacted beyond the core, and m."""
        chain, near, last = self._ends(one)
        order, shown, released = self.clusters.order, self.paths.shown, self._released
        edge = last + 1 if side == RIGHT else near - order + 1
        at = int(np.searchsorted(released, shown.row(chain, edge))) - (side == LEFT)
        place = int(shown.chains.places[released[np.clip(at, 0, len(released) - 1)]])
        return place - edge + order if side == RIGHT else near - place

    @cached_property
    def _released(self) -> Integers:
        return np.flatnonzero(self.paths.shown.released)

    def _rule(self, one: int, side: int) -> StoppingRule:
        """The rule of a side that looks."""
        rule = self.book.rules[int(self.clusters.rules[one, side])]
        assert isinstance(rule, StoppingRule)
        return rule

    def _unstopped(self, one: int, side: int) -> list[Floats]:
        """(C, S, S) at each level: mass that has not stopped, by far class and start context."""
        place = self.paths.place(*self._at(one, side, 0))
        key = (int(self.clusters.rules[one, side]), place, side)
        if key not in self._masses:
            rule, mean = self._rule(one, side), self.paths.mean
            walk = steps(mean, place, _SIDES[side], rule.levels.tolist(), rule.far)
            self._masses[key] = [mass[0] for mass in unstopped(walk, rule.stop)]
        return self._masses[key]

    # ---- gaps of which nothing left

    def _gone(self, one: int) -> Floats:
        """(S, S) the same as `_link` where two walks leave nothing of the gap between them."""
        (chain, _, far), (_, near, _) = self._ends(one), self._ends(one + 1)
        numbers = (self.clusters.rules[one, RIGHT], self.clusters.rules[one + 1, LEFT])
        key = (near - far, *map(int, numbers), self.paths.place(chain, far))
        if key not in self._empty:
            every = self.paths.ahead(chain, far, near - far)
            # what is left of a difference may be rounding alone
            self._empty[key] = np.maximum(every - self._both(one, chain, far, near), 0.0)
        return self._empty[key]

    def _both(self, one: int, chain: int, far: int, near: int) -> Floats:
        """(S, S) the mass of pairs of stops that leave something of the gap."""
        first, second, total = self._rule(one, RIGHT), self._rule(one + 1, LEFT), near - far
        every = self.paths.ahead(chain, far, total)
        if total >= first.deadline + second.deadline:  # two such walks never lose the gap
            return every
        # Each stops no further than where the other's far context ends. So along the gap there
        # are: the first stop, the second far context, the first far context, the second stop.
        ends = total - second.deadline, total - first.deadline
        before = self._arrived(one, RIGHT, ends[0])
        behind = self._turned(chain, near, ends[1], self._arrived(one + 1, LEFT, ends[1]))
        between = self.paths.ahead(chain, far + ends[0], total - sum(ends))
        found = np.zeros(between.shape)
        for a, stopped in enumerate(before):
            for b, other in enumerate(behind):
                middle = between * np.outer(second.far == b, first.far == a)
                found += stopped @ middle @ other
        return found

    def _turned(self, chain: int, near: int, distance: int, arrived: Floats) -> Floats:
        """(C, S, S) Bayes: from the context out there to the core's own."""
        there = self.paths.law(chain, near - distance)
        joint = arrived * self.paths.law(chain, near)[:, np.newaxis]
        return np.asarray(joint.swapaxes(1, 2) / np.where(there > 0, there, 1.0)[:, np.newaxis])

    def _arrived(self, one: int, side: int, end: int) -> Floats:
        """(C, S, S) by far class and start: the mass of walks that stopped up to a distance, and
        the context there.
        """
        rule, mean = self._rule(one, side), self.paths.mean
        found = np.zeros((rule.stop.shape[1], mean.contexts, mean.contexts))
        acting = zip(rule.levels.tolist(), self._unstopped(one, side), rule.stop, strict=False)
        for distance, mass, stop in acting:  # without the deadline, which leaves nothing
            if distance > end:
                break
            found += (mass * stop) @ self._outward(one, side, distance, end - distance)
        return found

    def _outward(self, one: int, side: int, distance: int, count: int) -> Floats:
        """(S, S) from a walk's context at a distance to the one `count` steps further out."""
        chain, end = self._at(one, side, distance)
        if side == RIGHT:
            return self.paths.ahead(chain, end, count)
        return np.asarray(self.paths.mean.back(self.paths.place(chain, end), count)[0])
