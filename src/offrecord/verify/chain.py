"""The model of a certificate as exact numbers: kernels forwards and back in time.

A probability of the model means its decimals; one of each row is what the others leave of 1, to the
precision of a double, and is taken as just that. What follows from them (the stationary
distribution, kernels back in time) is computed, not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import flint

from offrecord.release.certificate import Model
from offrecord.verify.balls import Ball, Exact, Matrix, ball, decimal, is_zero, matrix


def completed(numbers: Sequence[float]) -> list[Exact]:
    """A distribution whose decimals sum to 1: the number with the most digits is what the others
    leave.
    """
    exact = [decimal(number) for number in numbers]
    longest = max(range(len(numbers)), key=lambda i: (len(repr(numbers[i])), numbers[i]))
    exact[longest] += 1 - sum(exact)
    return exact


@dataclass(frozen=True, eq=False)
class Chain:
    """Records 0 … n − 1 of a chain of order 1 on states, each with a kernel to the next.

    kernels: one for all steps, or n − 1. start: of the first record; None: stationary.
    independent: no record depends on another.
    """

    n: int
    kernels: Sequence[Matrix]
    start: Sequence[Ball] | None
    independent: bool = False

    @property
    def k(self) -> int:
        """Number of states."""
        return int(self.kernels[0].nrows())

    def forward(self, record: int) -> Matrix:
        """From a record to the next."""
        return self.kernels[0 if len(self.kernels) == 1 else record]

    @cached_property
    def _marginals(self) -> list[Sequence[Ball]]:
        if self.start is None:
            return [stationary(self.kernels[0])]
        found: list[Sequence[Ball]] = [list(self.start)]
        for record in range(self.n - 1):
            found.append(_times(found[-1], self.forward(record)))
        return found

    def marginal(self, record: int) -> Sequence[Ball]:
        """How likely each state is at a record."""
        return self._marginals[0 if self.start is None else record]

    def backward(self, record: int) -> Matrix:
        """From a record to the one before it: row i is given that the record is i, empty where it
        never is.
        """
        if self.start is None and self._back is not None:
            return self._back
        return _reversed(self.marginal(record - 1), self.forward(record - 1), self.marginal(record))

    @cached_property
    def _back(self) -> Matrix | None:
        if self.start is not None:
            return None
        often = self.marginal(0)
        return _reversed(often, self.kernels[0], often)

    @property
    def is_even(self) -> bool:
        """Every step forwards, and every step back, is like any other."""
        return self.start is None


def _times(row: Sequence[Ball], kernel: Matrix) -> list[Ball]:
    k = len(row)
    return [sum((row[i] * kernel[i, j] for i in range(k)), flint.arb(0)) for j in range(k)]


def _reversed(before: Sequence[Ball], kernel: Matrix, after: Sequence[Ball]) -> Matrix:
    k = len(before)
    nothing = flint.arb(0)
    return flint.arb_mat(
        [
            [
                nothing if is_zero(after[i]) else before[j] * kernel[j, i] / after[i]
                for j in range(k)
            ]
            for i in range(k)
        ]
    )


def stationary(kernel: Matrix) -> list[Ball]:
    """The distribution that a kernel keeps; a state that none leads back to has exactly 0."""
    k = kernel.nrows()
    kept = _recurrent(kernel)
    size = len(kept)
    # the last equation says that they sum to 1
    rows: list[list[Any]] = [[kernel[i, j] - (1 if i == j else 0) for i in kept] for j in kept[:-1]]
    rows.append([flint.arb(1)] * size)
    right = flint.arb_mat([[flint.arb(0)] for _ in range(size - 1)] + [[flint.arb(1)]])
    solved = flint.arb_mat(rows).solve(right)
    found = [flint.arb(0)] * k
    for at, state in enumerate(kept):
        found[state] = solved[at, 0]
    return found


def _recurrent(kernel: Matrix) -> list[int]:
    """The states that are reached for ever, where these all reach each other."""
    k = kernel.nrows()
    reach = [{j for j in range(k) if not is_zero(kernel[i, j])} for i in range(k)]
    for middle in range(k):
        for i in range(k):
            if middle in reach[i]:
                reach[i] |= reach[middle]
    return [i for i in range(k) if all(i in reach[j] for j in reach[i])]


def chain_of(model: Model, n: int, phases: Sequence[int] | None = None) -> Chain:
    """The n records of a model of order 1 (its states, where they are hidden), in these phases."""
    kernels: Any = model.transition
    start: Any = model.start
    if phases is not None:
        by_phase = [matrix([completed(row) for row in kernel]) for kernel in kernels]
        chosen = [by_phase[phase] for phase in phases[:-1]]
        return Chain(n, chosen, [ball(one) for one in completed(start[phases[0]])])
    each = kernels if model.length is not None else [kernels]
    exact = [[completed(row) for row in kernel] for kernel in each]
    begun = None if model.stationary else [ball(one) for one in completed(start)]
    independent = all(row == kernel[0] for kernel in exact for row in kernel)
    return Chain(n, [matrix(kernel) for kernel in exact], begun, independent)
