"""Bayes against stopping rules: the likelihood of where each walk stopped, by its law.

What lies beyond a stop is released, so the likelihood of a side is that of its stop. Only where
nothing between two cores left do both walks, and what lies between them, have to be summed over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from offrecord.attacks.paths import Core, Inferred, Paths, read, scaled
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
    """The walks of a released table, and an attacker's chain.

    paths: the chain on the table. clusters: cores that joined, with their rules. book: the rules.
    """

    paths: Paths
    clusters: Clusters
    book: RuleBook
    _masses: dict[tuple[int, int, int], list[Floats]] = field(default_factory=dict, init=False)
    _empty: dict[tuple[int, ...], Floats] = field(default_factory=dict, init=False)

    @property
    def order(self) -> int:
        """m, of the model."""
        return self.paths.mean.order

    def _rule(self, one: int, side: int) -> StoppingRule:
        """The rule of a side that looks."""
        rule = self.book.rules[int(self.clusters.rules[one, side])]
        assert isinstance(rule, StoppingRule)
        return rule

    def inferred(self, runs: Runs) -> Inferred:
        """What is inferred about each run; runs that became one cluster have the same ratio."""
        clusters, k = self.clusters, self.paths.mean.k
        ratio = np.zeros(runs.count)
        prior, posterior = np.full((2, runs.count, k), np.nan)
        whole = np.all(clusters.rules == NO_SIDE, axis=1)
        begins = np.flatnonzero(np.diff(clusters.chain, prepend=-1))
        for low, high in zip(begins, [*begins[1:], clusters.count], strict=True):
            if whole[low]:
                continue
            lefts, rights = self._messages(int(low), int(high))
            for one, left, right in zip(range(low, high), lefts, rights, strict=True):
                cores = slice(int(clusters.begin[one]), int(clusters.begin[one + 1]))
                core = self._core(one, runs.part(cores))
                found = read(self.paths, core, left, right)
                ratio[cores], prior[cores], posterior[cores] = found
        return Inferred(ratio, prior, posterior)

    def _core(self, one: int, runs: Runs) -> Core:
        run = (int(runs.first[0]), int(runs.last[0])) if runs.count == 1 else None
        chain, near, last = self._ends(one)
        return Core(chain, near - self.order + 1, last, run)

    def _ends(self, one: int) -> tuple[int, int, int]:
        """Chain of a cluster, and where its first and its last context end."""
        clusters = self.clusters
        first, last = int(clusters.first[one]), int(clusters.last[one])
        return int(clusters.chain[one]), first + self.order - 1, last

    # ---- messages along the clusters of a chain

    def _messages(self, low: int, high: int) -> tuple[list[Floats], list[Floats]]:
        """For each cluster of a chain the evidence before it, with its first context, and behind
        it, given its last one.
        """
        links = [self._link(one) for one in range(low, high - 1)]
        ends = [self._ends(one) for one in range(low, high)]
        inner = [self.paths.ahead(chain, near, last - near) for chain, near, last in ends]
        lefts = [self._side(low, LEFT)]
        for at, link in enumerate(links):
            found = self._side(low + at + 1, LEFT) if link is None else lefts[at] @ inner[at] @ link
            lefts.append(scaled(found))  # a common factor changes no ratio
        rights = [self._side(high - 1, RIGHT)]
        for at in range(len(links) - 1, -1, -1):
            link = links[at]
            found = (
                self._side(low + at, RIGHT) if link is None else link @ inner[at + 1] @ rights[0]
            )
            rights.insert(0, scaled(found))
        return lefts, rights

    def _link(self, one: int) -> Floats | None:
        """(S, S) probability of what is shown between a cluster and the next one, with the next
        one's first context, given this one's last context; None where a context was released.
        """
        chain, _, far = self._ends(one)
        _, near, _ = self._ends(one + 1)
        first = near - self.order + 1
        if self.paths.is_cut(chain, far, first):
            return None
        looks = self.clusters.looks[one, RIGHT] and self.clusters.looks[one + 1, LEFT]
        return self._gone(one) if looks else self.paths.across(chain, far, near, first)

    # ---- one side

    def _side(self, one: int, side: int) -> Floats:
        """(S,) what is shown on a side: likelihood given the last context; on the left together
        with the first one.
        """
        chain, near, last = self._ends(one)
        if not self.clusters.looks[one, side]:
            if side == RIGHT:
                return self.paths.right(chain, last)
            return self.paths.left(chain, near, near - self.order + 1)
        likely = self._stopped(one, side)
        return likely if side == RIGHT else likely * self.paths.law(chain, near)

    def _stopped(self, one: int, side: int) -> Floats:
        """(S,) likelihood of the stop that the table shows, given the start context; 0 where no
        walk can have stopped there.
        """
        chain, near, last = self._ends(one)
        rule = self._rule(one, side)
        start, sign = (last, 1) if side == RIGHT else (near, -1)
        level = int(np.searchsorted(rule.levels, self._distance(one, side)))
        nowhere = np.zeros(self.paths.mean.contexts)
        if level == len(rule.levels) or rule.levels[level] != self._distance(one, side):
            return nowhere
        here = self._context(chain, start + sign * int(rule.levels[level]))
        far = self._context(chain, start + sign * rule.deadline)
        if here is None or far is None:
            return nowhere
        mass = self._unstopped(one, side)[level][rule.far[far], :, here]
        if level == len(rule.stop):
            return mass
        return np.asarray(mass * rule.stop[level, rule.far[far], :, here])

    def _distance(self, one: int, side: int) -> int:
        """The distance t at which a walk stopped: what is redacted beyond the core, and m."""
        chain, near, last = self._ends(one)
        released, shown = self._released, self.paths.shown
        if side == RIGHT:
            row = shown.row(np.array([chain]), np.array([last + 1]))
            at = int(released[min(np.searchsorted(released, row[0]), len(released) - 1)])
            return int(shown.chains.places[at]) - last - 1 + self.order
        row = shown.row(np.array([chain]), np.array([near - self.order + 1]))
        at = int(released[max(np.searchsorted(released, row[0]) - 1, 0)])
        return near - int(shown.chains.places[at])

    @cached_property
    def _released(self) -> Integers:
        return np.flatnonzero(self.paths.shown.released)

    def _context(self, chain: int, end: int) -> int | None:
        """The released context that ends at a place; None unless all of it is released."""
        shown = self.paths.shown
        places = np.arange(end - self.order + 1, end + 1)
        if places[0] < 0:
            return None
        rows = shown.row(np.full(self.order, chain), places)
        rows = np.minimum(rows, len(shown.symbols) - 1)
        if not (np.array_equal(shown.chains.places[rows], places) and shown.released[rows].all()):
            return None
        digits = shown.symbols[rows] - 1
        return int(digits @ self.paths.mean.k ** np.arange(self.order - 1, -1, -1))

    def _unstopped(self, one: int, side: int) -> list[Floats]:
        """(C, S, S) at each level: mass that has not stopped, by far class and start context."""
        chain, near, last = self._ends(one)
        number = int(self.clusters.rules[one, side])
        place = self.paths.place(chain, last if side == RIGHT else near)
        key = (number, place, side)
        if key not in self._masses:
            rule, mean = self._rule(one, side), self.paths.mean
            walk = steps(mean, place, _SIDES[side], rule.levels.tolist(), rule.far)
            self._masses[key] = [mass[0] for mass in unstopped(walk, rule.stop)]
        return self._masses[key]

    # ---- gaps of which nothing left

    def _gone(self, one: int) -> Floats:
        """(S, S) probability that two walks leave nothing of the gap between them, with the second
        cluster's first context, given the first one's last context: all that may happen there, less
        the pairs of stops that release something.
        """
        chain, _, far = self._ends(one)
        _, near, _ = self._ends(one + 1)
        numbers = int(self.clusters.rules[one, RIGHT]), int(self.clusters.rules[one + 1, LEFT])
        key = (near - far, *numbers, self.paths.place(chain, far))
        rules = self._rule(one, RIGHT), self._rule(one + 1, LEFT)
        if key not in self._empty:
            every = self.paths.ahead(chain, far, near - far)
            if near - far >= rules[0].deadline + rules[1].deadline:  # never loses the gap
                return np.zeros(every.shape)
            # what is left of a difference may be rounding alone
            self._empty[key] = np.maximum(every - self._both(one, far, near), 0.0)
        return self._empty[key]

    def _both(self, one: int, far: int, near: int) -> Floats:
        """(S, S) the mass of pairs of stops of which both far contexts lie between.

        The first walk stops no further than where the second one's far context ends, and the other
        way round; so along the gap there are: the first stop, the second far context, the first far
        context, the second stop. Walks that may reach their own deadline never lose the gap.
        """
        chain = self._ends(one)[0]
        first, second = self._rule(one, RIGHT), self._rule(one + 1, LEFT)
        total = near - far
        ends = total - second.deadline, first.deadline  # where the far contexts end, from `far`
        before = self._arrived(one, chain, far, ends[0])
        behind = self._departed(one + 1, chain, far, near, ends[1])
        between = self.paths.ahead(chain, far + ends[0], ends[1] - ends[0])
        found = np.zeros(between.shape)
        for a in range(int(first.far.max()) + 1):
            for b in range(int(second.far.max()) + 1):
                middle = between * np.outer(second.far == b, first.far == a)
                found += before[a] @ middle @ behind[b]
        return found

    def _arrived(self, one: int, chain: int, far: int, end: int) -> Floats:
        """(C, S, S) by far class: the mass of first walks that stopped up to a distance, and their
        context there, given the start context.
        """
        rule = self._rule(one, RIGHT)
        found = np.zeros((rule.stop.shape[1], *(self.paths.mean.contexts,) * 2))
        for level, (mass, stop) in enumerate(
            zip(self._unstopped(one, RIGHT), rule.stop, strict=False)
        ):
            distance = int(rule.levels[level])
            if distance <= end:
                onward = self.paths.ahead(chain, far + distance, end - distance)
                found += (mass * stop) @ onward
        return found

    def _departed(self, other: int, chain: int, far: int, near: int, begin: int) -> Floats:
        """(C, S, S) by far class: the probability of the second cluster's first context, its walk
        having stopped behind a distance, given the context there.
        """
        rule = self._rule(other, LEFT)
        found = np.zeros((rule.stop.shape[1], *(self.paths.mean.contexts,) * 2))
        start = self.paths.law(chain, near)
        for level, (mass, stop) in enumerate(
            zip(self._unstopped(other, LEFT), rule.stop, strict=False)
        ):
            at = near - int(rule.levels[level])
            if at >= far + begin:
                law = self.paths.law(chain, at)
                joint = (mass * stop * start[:, np.newaxis]).swapaxes(1, 2)
                safe = np.where(law > 0, law, 1.0)[:, np.newaxis]
                found += self.paths.ahead(chain, far + begin, at - far - begin) @ (joint / safe)
        return found
