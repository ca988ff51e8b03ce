"""Which design of a certificate serves a secret, by its rooms, its length and phases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from offrecord.errors import InputError
from offrecord.release.certificate import Certificate, Design, Model, spelled_phases
from offrecord.verify.table.cells import Integers, Mask
from offrecord.verify.table.found import Found
from offrecord.verify.table.listed import Private, gap_times
from offrecord.verify.table.rows import Table
from offrecord.verify.table.secrets import Secrets
from offrecord.verify.table.steps import phases_of

_LONGEST = 1 << 16  # records of a secret whose ends are looked at one by one
_MOST = 10**7  # records of a design with phases
NONE = -1  #: the number of no design


@dataclass(frozen=True, eq=False)
class Serving:
    """The designs of a certificate that are for one secret each, by their numbers."""

    certificate: Certificate
    numbers: Sequence[int]

    @cached_property
    def _by_key(self) -> dict[tuple[Any, ...], int]:
        designs = self.certificate.designs
        found = {}
        for number in self.numbers:
            one: Design = designs.designs[number]
            phases = None
            if one.phases is not None:
                modulus = self.certificate.model.phase_count or 1
                if designs.records(one, 1) > _MOST:
                    raise InputError("the certificate's phases are too many to be laid out")
                phases = bytes(spelled_phases(designs.phases[one.phases], modulus))
            found[one.left, one.right, one.length, phases] = number
        return found

    def serving(self, table: Table, private: Private, secrets: Secrets) -> Integers:
        """(s,) the design of each secret, NONE where there is none."""
        if secrets.count == 0:
            return np.zeros(0, dtype=np.int64)
        left, right = secrets.rooms(table)
        length = secrets.last - secrets.first + 1
        designs, model = self.certificate.designs, self.certificate.model
        if model.stationary:
            if designs.grids is None:
                return np.full(secrets.count, NONE)
            left, right = rounded(left, designs.grids.left), rounded(right, designs.grids.right)
            return self._looked_up(left, right, length_classes(model, length))
        if designs.left_limit is not None:
            left = np.minimum(left, designs.left_limit)
        if designs.right_limit is not None:
            right = np.minimum(right, designs.right_limit)
        if model.phase is None:
            return self._looked_up(left, right, length)
        return self._by_phases(table, private, secrets, (left, right, length))

    def _looked_up(self, *columns: Integers) -> Integers:
        rows, used = np.unique(_as_one(columns), return_inverse=True)
        first = np.zeros(len(rows), dtype=np.int64)
        first[used] = np.arange(len(used))
        keys = zip(*(column[first].tolist() for column in columns), strict=True)
        found = [self._by_key.get((*key, None), NONE) for key in keys]
        return np.array(found, dtype=np.int64)[used]

    def _by_phases(
        self,
        table: Table,
        private: Private,
        secrets: Secrets,
        around: tuple[Integers, Integers, Integers],
    ) -> Integers:
        told = _Phases(table, private, self.certificate.model)
        found = []
        columns = (secrets.chain, secrets.first, *around)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for chain, first, left, right, length in rows:
            along = told.along(chain, first - left, left + length, right)
            found.append(self._by_key.get((left, right, length, along), NONE))
        return np.array(found, dtype=np.int64)


def check_uses(certificate: Certificate, counted: Integers, found: Found) -> None:
    """Each design serves as many secrets as it says. counted: (designs,) how many it does."""
    designs = certificate.designs.designs
    pairs = enumerate(zip(designs, counted.tolist(), strict=True))
    others = [
        f"designs[{at}].uses, {one.uses:,}" for at, (one, there) in pairs if one.uses != there
    ]
    found.wrong_at(others, len(others), "it serves another number of secrets")


def _as_one(columns: Sequence[Integers]) -> Integers:
    """A number for each row of some columns."""
    found = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        _, used = np.unique(column, return_inverse=True)
        found = found * (int(used.max()) + 1) + used
    return found


def rounded(rooms: Integers, grid: Sequence[int]) -> Integers:
    """No more than the last entry of a grid, and up to the next one."""
    nodes = np.array(grid)
    return np.asarray(nodes[np.searchsorted(nodes, np.minimum(rooms, nodes[-1]))])


# ---- lengths


def length_classes(model: Model, lengths: Integers) -> Integers:
    """The least length with the same possible ends as each."""
    longest = int(lengths.max())
    if longest == 1:
        return lengths
    possible = possible_steps(model)
    if model.order == 1 and possible.all():
        return np.minimum(lengths, 2)
    begin = max(2, model.order)
    classes = np.arange(min(longest, _LONGEST) + 1)
    seen: dict[bytes, int] = {}
    reached = np.linalg.matrix_power(possible.astype(np.int64), begin - model.order) > 0
    for length in range(begin, len(classes)):
        classes[length] = seen.setdefault(reached.tobytes(), length)
        reached = (reached.astype(np.float32) @ possible.astype(np.float32)) > 0
    return classes[np.minimum(lengths, len(classes) - 1)]


def possible_steps(model: Model) -> Mask:
    """Which states may follow each other: hidden ones, or tuples of as many records as the order;
    in a set of models, in any of them.
    """
    kernel: Mask = np.array(model.transition) > 0
    if model.set is not None:
        kernel = np.array(_cut(model.set.forward[0], model.set.forward[1])) > 0
    if kernel.ndim > model.order + 1:
        kernel = np.asarray(kernel.any(axis=0))
    size, k = kernel.shape[0] ** model.order, kernel.shape[-1]
    found = np.zeros((size, size), dtype=bool)
    flat = kernel.reshape(size, k)
    for state in range(size):
        for value in np.flatnonzero(flat[state]).tolist():
            found[state, (state * k + value) % size] = True
    return found


def _cut(low: Any, high: Any) -> Any:
    """The largest probabilities that others of their row leave."""
    if isinstance(low[0], tuple):
        return [_cut(a, b) for a, b in zip(low, high, strict=True)]
    least = [Fraction(repr(p)) for p in low]
    return [
        float(min(Fraction(repr(most)), 1 - sum(least) + own))
        for most, own in zip(high, least, strict=True)
    ]


# ---- phases


@dataclass(frozen=True, eq=False)
class _Phases:
    """The phases of records, by their own clocks; of a missing one at the time at which it would
    stand.
    """

    table: Table
    private: Private
    model: Model

    @cached_property
    def _rows(self) -> Integers:
        assert self.model.phase is not None
        return phases_of(self.table.order, self.model.phase, self.model.zone)

    def along(self, chain: int, first: int, before: int, right: int) -> bytes:
        """From a place on, so many, and those to the right of the secret; of a secret that ends its
        chain one more, where a step tells when it would stand.
        """
        table = self.table
        rows = slice(int(table.starts[chain]), int(table.starts[chain + 1]))
        if table.steps is None:
            told = self._rows[rows][first : first + before + max(right, 1)]
            return bytes((told if len(told) > 1 else np.repeat(told, 2)).tolist())
        count = before + max(right, 1)
        found = np.full(count, -1, dtype=np.int64)
        places = table.steps[rows] - first
        here = (places >= 0) & (places < count)
        found[places[here]] = self._rows[rows][here]
        gaps = np.flatnonzero(found < 0)
        if len(gaps):
            found[gaps] = self._at(gap_times(table, chain, gaps + first))
            self._as_listed(chain, first, found, gaps)
        return bytes(found.tolist())

    def _at(self, times: Integers) -> Integers:
        assert self.model.phase is not None
        return phases_of(times, self.model.phase, self.model.zone)

    def _as_listed(self, chain: int, first: int, found: Integers, gaps: Integers) -> None:
        """A private record in a gap has the time by which it is listed."""
        private = self.private
        mine = slice(*np.searchsorted(private.chain, (chain, chain + 1)))
        at = private.place[mine] - first
        told = np.isin(at, gaps)
        if told.any():
            found[at[told]] = self._at(private.order[mine][told])
