"""What a gap between two secrets tells of their ends beside it (O15): one kernel, order 1.

held[x, b, i, j] is the likelihood of having come to hold out just some records with i and j at
their ends, and of b at the right secret, given x at the left one; without what lies between i and
j, which is as likely under every x and b. Losing a record goes on by one step of the kernel.
Whatever lies beyond the other secret tells no more about its end than a budget: extremes tell a set
of values from the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

import flint

from offrecord.release.certificate import GapStopping
from offrecord.verify.balls import Ball, Matrix, ball, double, is_zero, largest
from offrecord.verify.chain import Chain
from offrecord.verify.stopping.outcomes import WHOLE, in_units, widest

#: For x and b, by the values at the ends of what is held out.
_Held = list[list[Matrix]]
#: Likelihoods of an outcome by x and b.
_Outcome = list[list[Ball]]
#: Thresholds by x, b, i and j.
_Limits = list[list[list[list[tuple[int, int]]]]]


def told_between(chain: Chain, gap: GapStopping) -> tuple[Ball, Ball]:
    """The largest log-ratios of an outcome under two values of the left secret's last record, and
    of the right one's first.
    """
    often = chain.marginal(0)
    values = [x for x in range(chain.k) if not is_zero(often[x])]
    found = _Between(chain, values, gap).outcomes()
    # by x, given what tells of b beyond; then by b, of x weighted by how often it is
    weights = [often[x] for x in values]
    left = _told(found, double(gap.budgets[0]))
    turned = [
        [
            [row[b] * weight for row, weight in zip(one, weights, strict=True)]
            for b in range(len(values))
        ]
        for one in found
    ]
    scaled = [
        [[each / weight for each in row] for row, weight in zip(one, weights, strict=True)]
        for one in turned
    ]
    return left, _told(scaled, double(gap.budgets[1]))


def _told(found: Sequence[_Outcome], budget: object) -> Ball:
    """The largest log-ratio over the first value, of sums over the second with all that may be told
    of it elsewhere.
    """
    if not found:
        return flint.arb(0)
    size = len(found[0])
    factor = ball(budget).exp()
    one = flint.arb(1)
    beyond = flint.arb_mat(
        [[factor if far else one for far in apart] for apart in product((0, 1), repeat=size)][:-1]
    )
    # a column for each outcome and first value
    columns = flint.arb_mat([[row[b] for one in found for row in one] for b in range(size)])
    sums = (beyond * columns).table()
    return (
        largest(widest(row[at : at + size]) for row in sums for at in range(0, len(row), size))
        .max(1)
        .log()
    )


@dataclass(eq=False)
class _Between:
    """Follows all that may be held out, the longest first."""

    chain: Chain
    values: Sequence[int]
    gap: GapStopping
    held: dict[tuple[int, int], _Held] = field(default_factory=dict)

    def outcomes(self) -> list[_Outcome]:
        """Of every stretch that may be released, with the values at its ends, and of nothing."""
        n, k, kernel = self.gap.length, self.chain.k, self.chain.forward(0)
        units = in_units(self.gap.stop)
        self.held[1, n] = [
            [
                flint.arb_mat([[kernel[x, i] * kernel[j, b] for j in range(k)] for i in range(k)])
                for b in self.values
            ]
            for x in self.values
        ]
        states = [(first, first + n - 1 - d) for d in range(n) for first in range(1, d + 2)]
        apart = _reached(kernel, n)
        found: list[_Outcome] = []
        nothing = [[flint.arb(0) for _ in self.values] for _ in self.values]
        for number, (first, last) in enumerate(states):
            contexts = apart[last - first]
            limits = self._limits(units, number)
            here = self.held.pop((first, last))
            found += self._released(here, limits, contexts)
            if first == last:
                self._lose_all(here, limits, contexts, nothing)
            else:
                self._lose_one(here, limits, (first, last))
        return [*found, nothing]

    def _limits(self, units: Sequence[int], state: int) -> _Limits:
        """By x, b, i and j: a draw below the first releases, one below the second drops the first
        record.
        """
        k = self.chain.k

        def both(x: int, b: int, i: int, j: int) -> tuple[int, int]:
            at = ((((state * k + x) * k + b) * k + i) * k + j) * 2
            return units[at], max(units[at], units[at + 1])

        return [
            [[[both(x, b, i, j) for j in range(k)] for i in range(k)] for b in self.values]
            for x in self.values
        ]

    def _released(
        self,
        here: _Held,
        limits: _Limits,
        contexts: Iterable[tuple[int, int]],
    ) -> list[_Outcome]:
        size = range(len(self.values))
        return [
            [[here[x][b][i, j] * limits[x][b][i][j][0] for b in size] for x in size]
            for i, j in contexts
        ]

    def _lose_all(
        self,
        here: _Held,
        limits: _Limits,
        contexts: Sequence[tuple[int, int]],
        nothing: _Outcome,
    ) -> None:
        size = range(len(self.values))
        for x, b in product(size, size):
            for i, j in contexts:
                nothing[x][b] += here[x][b][i, j] * (WHOLE - limits[x][b][i][j][0])

    def _lose_one(
        self,
        here: _Held,
        limits: _Limits,
        state: tuple[int, int],
    ) -> None:
        first, last = state
        kernel, each = self.chain.forward(0), range(self.chain.k)
        turned = kernel.transpose()
        for x, b in product(range(len(self.values)), repeat=2):
            now, limit = here[x][b], limits[x][b]
            of_first = flint.arb_mat(
                [[now[i, j] * (limit[i][j][1] - limit[i][j][0]) for j in each] for i in each]
            )
            of_last = flint.arb_mat(
                [[now[i, j] * (WHOLE - limit[i][j][1]) for j in each] for i in each]
            )
            self._add((first + 1, last), x, b, turned * of_first)
            self._add((first, last - 1), x, b, of_last * turned)

    def _add(self, state: tuple[int, int], x: int, b: int, mass: Matrix) -> None:
        size, k = len(self.values), self.chain.k
        if state not in self.held:
            self.held[state] = [[flint.arb_mat(k, k) for _ in range(size)] for _ in range(size)]
        self.held[state][x][b] = self.held[state][x][b] + mass


def _reached(kernel: Matrix, length: int) -> list[list[tuple[int, int]]]:
    """Which values can stand so many records apart, from 0."""
    k = kernel.nrows()
    onward = [[j for j in range(k) if not is_zero(kernel[i, j])] for i in range(k)]
    pairs = {(i, i) for i in range(k)}
    found = []
    for _ in range(length):
        found.append(sorted(pairs))
        pairs = {(i, b) for i, a in pairs for b in onward[a]}
    return found
