"""What walks away from a secret meet: kernels by distance, and the values that its end can have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import Any

import flint

from offrecord.release.certificate import Design, Designs, Model, spelled_phases
from offrecord.verify.balls import Exact, Matrix, is_zero, matrix
from offrecord.verify.chain import Chain, chain_of, completed


@dataclass(eq=False)
class Way:
    """One side of a secret, in a chain of order 1 (of order m, on tuples of m records).

    origin: the secret's record at that end, from 0. step: 1 to the right, −1 to the left. nearest:
    the least level, at which nothing that is released belongs to the secret.
    Beyond the chain's ends the values are drawn by the kernel of its first or last step, forwards
    in time on both sides (O9).
    """

    chain: Chain
    origin: int
    step: int
    nearest: int = 1
    _jumps: dict[int, Matrix] = field(default_factory=dict)

    @property
    def k(self) -> int:
        """Number of values; of order m, of tuples."""
        return self.chain.k

    @property
    def possible(self) -> list[int]:
        """The values that the secret's end can have."""
        return [x for x, often in enumerate(self.chain.marginal(self.origin)) if not is_zero(often)]

    def jumps(self, levels: Sequence[int]) -> list[Matrix]:
        """From the secret's end to the first level, and from each level to the next."""
        return [self._jump(a, b) for a, b in pairwise((0, *levels))]

    def _jump(self, near: int, far: int) -> Matrix:
        if not self.chain.is_even:
            return reduce(lambda a, b: a * b, map(self._kernel, range(near, far)))
        if far - near not in self._jumps:
            self._jumps[far - near] = self._kernel(0) ** (far - near)
        return self._jumps[far - near]

    def _kernel(self, distance: int) -> Matrix:
        """Of the step from one distance to the next."""
        chain, record = self.chain, self.origin + self.step * distance
        if chain.is_even:
            return chain.forward(0) if self.step > 0 else chain.backward(1)
        if self.step > 0:
            return chain.forward(min(record, chain.n - 2))
        return chain.backward(record) if record > 0 else chain.forward(0)


@dataclass(frozen=True, eq=False)
class Ways:
    """Both sides of a secret."""

    left: Way
    right: Way

    def towards(self, side: str) -> Way:
        """That of a side by its name."""
        return self.left if side == "left" else self.right


def ways_far(model: Model) -> Ways:
    """In a stationary model: every place is like any other, and room is no matter."""
    chain = Chain(2, [_kernel_on_tuples(model)], None)
    return Ways(Way(chain, 1, -1, model.order), Way(chain, 0, 1, model.order))


def ways_around(designs: Designs, design: Design, model: Model) -> Ways:
    """Around the secret of a design, where places differ."""
    phases = None
    if design.phases is not None:
        assert model.phase_count is not None
        phases = spelled_phases(designs.phases[design.phases], model.phase_count)
    chain = chain_of(model, designs.records(design, model.order), phases)
    last = design.left + design.length - 1
    return Ways(Way(chain, design.left, -1), Way(chain, last, 1))


def _kernel_on_tuples(model: Model) -> Matrix:
    """The kernel of a stationary model; of order m, from each tuple of m records, its values digits
    of which the oldest comes first, to the one that begins a record later.
    """
    rows: list[Any] = [model.transition]
    for _ in range(model.order):
        rows = [row for several in rows for row in several]
    k, size = model.k, len(rows)
    kernel: list[list[Exact]] = [[flint.fmpq(0)] * size for _ in range(size)]
    for number, row in enumerate(rows):
        for value, share in enumerate(completed(row)):
            kernel[number][number * k % size + value] = share
    return matrix(kernel)
