"""Laying local designs onto the records around secrets: the rule `maximum`.

Of each record it is kept which values are always redacted and which may be, as bits; the redaction
probabilities themselves only where coins are to be checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offrecord.errors import InputError
from offrecord.release.certificate import (
    ClusteredDesign,
    LocalDesign,
    LocalDesigns,
    Model,
    spelled_rows,
)
from offrecord.verify.table.cells import Integers, Mask
from offrecord.verify.table.rows import Table, expand
from offrecord.verify.table.secrets import Secrets

Bits: TypeAlias = NDArray[Any]
_Lay = Callable[[Integers, Integers], None]
_MOST = 10**8  # probabilities in the sides of a certificate


@dataclass(frozen=True, eq=False)
class Layout:
    """What stands where: secrets, or clusters of them, and the design of each."""

    spans: Secrets
    which: Integers

    @cached_property
    def is_apart(self) -> bool:
        """No two have the same row next to them, so that none comes twice when all go outwards
        together; secrets in one gap do.
        """
        low, high = self.spans.low, self.spans.high
        return bool(np.all(low[1:] > low[:-1]) and np.all(high[1:] > high[:-1]))


@dataclass(frozen=True, eq=False)
class Stamps:
    """(n,) bits of the values that are always redacted, and of those that may be."""

    sure: Bits
    some: Bits


class Sheet:
    """The designs of a certificate in arrays.

    rows: (r, k) the rows of all sides. begins, sizes: (sides,) where a side's rows begin, and how
    many they are. sides, rests: (designs, 2). inside: (designs,) the side that stands inside, −1
    for one secret.
    """

    def __init__(self, designs: LocalDesigns, model: Model) -> None:
        if sum(count for side in designs.sides for count, _ in side) * model.k > _MOST:
            raise InputError("the certificate's sides have too many rows to be laid out")
        spelled = [spelled_rows(side) for side in designs.sides]
        self.k = model.k
        self.rows = np.array([row for side in spelled for row in side]).reshape(-1, model.k)
        self.sizes = np.array([len(side) for side in spelled], dtype=np.int64)
        self.begins = np.cumsum(self.sizes) - self.sizes
        listed: list[LocalDesign] = list(designs.designs)
        self.sides = np.array(
            [(one.redaction_left, one.redaction_right) for one in listed], dtype=np.int64
        ).reshape(-1, 2)
        self.rests = np.array(
            [(one.left_rest, one.right_rest) for one in listed], dtype=bool
        ).reshape(-1, 2)
        self.inside = np.array([_inside(one) for one in listed], dtype=np.int64)

    @cached_property
    def every(self) -> Any:
        """The bits of all values."""
        return self._type((1 << self.k) - 1)

    @cached_property
    def _type(self) -> Any:
        return next(
            kind
            for kind in (np.uint8, np.uint16, np.uint32, np.uint64)
            if np.dtype(kind).itemsize * 8 >= self.k
        )

    def _bits(self, chosen: Mask) -> Bits:
        bits = np.array([1 << value for value in range(self.k)], dtype=self._type)
        of_each = np.where(chosen, bits, self._type(0))
        return np.asarray(np.bitwise_or.reduce(of_each, axis=1, dtype=self._type))

    @cached_property
    def sure(self) -> Bits:
        """(r,) the values that a row always redacts."""
        return self._bits(self.rows == 1)

    @cached_property
    def some(self) -> Bits:
        """(r,) the values that a row may redact."""
        return self._bits(self.rows > 0)

    @cached_property
    def reaches(self) -> Integers:
        """(designs, 2) how far its rows redact something."""
        last = np.zeros(len(self.sizes), dtype=np.int64)
        for side, (begin, size) in enumerate(zip(self.begins, self.sizes, strict=True)):
            acts = np.flatnonzero(self.some[begin : begin + size])
            last[side] = acts[-1] + 1 if len(acts) else 0
        return last[self.sides]

    @cached_property
    def resting(self) -> Mask:
        """(designs,) whether it redacts to an end of the chain."""
        return np.asarray(self.rests.any(axis=1))

    def bit(self, codes: NDArray[np.int8]) -> Bits:
        """(n,) the bit of each value, 0 for none."""
        table = np.zeros(256, dtype=self._type)
        table[: self.k] = [1 << value for value in range(self.k)]
        return table[codes.view(np.uint8)]

    # ---- laying

    def stamps(self, table: Table, layout: Layout) -> Stamps:
        """What designs do to each record."""
        found = Stamps(
            np.zeros(table.rows, dtype=self._type), np.zeros(table.rows, dtype=self._type)
        )

        def lay(rows: Integers, at: Integers) -> None:
            found.sure[rows] |= self.sure[at]
            found.some[rows] |= self.some[at]

        def lay_again(rows: Integers, at: Integers) -> None:
            np.bitwise_or.at(found.sure, rows, self.sure[at])
            np.bitwise_or.at(found.some, rows, self.some[at])

        self.walk(table, layout, lay if layout.is_apart else lay_again)
        whole = self.always(table, layout)
        found.sure[whole] = self.every
        found.some[whole] = self.every
        return found

    def probabilities(self, table: Table, layout: Layout, rows: Integers) -> NDArray[np.float64]:
        """(r, k) the redaction probabilities of some rows, which are sorted; of rows that are
        always redacted, those of their sides alone.
        """
        number = np.full(table.rows, -1, dtype=np.int64)
        number[rows] = np.arange(len(rows))
        found = np.zeros((len(rows), self.k))

        def lay(laid: Integers, at: Integers) -> None:
            own = number[laid]
            kept = own >= 0
            np.maximum.at(found, own[kept], self.rows[at[kept]])

        self.walk(table, layout, lay)
        return found

    def always(self, table: Table, layout: Layout) -> Integers | Mask:
        """The rows of secrets, and those beyond the sides of designs that rest."""
        spans, which = layout.spans, layout.which
        alone = self.inside[which] < 0
        begin = [spans.low[alone]]
        end = [spans.high[alone]]
        for side in (0, 1):
            rests = self.rests[which, side]
            if not rests.any():
                continue
            chain = spans.chain[rests]
            size = self.sizes[self.sides[which[rests], side]]
            if side == 0:
                begin.append(table.starts[chain])
                end.append(table.row_from(chain, np.maximum(spans.first[rests] - size, 0)))
            else:
                begin.append(table.row_from(chain, spans.last[rests] + size + 1))
                end.append(table.starts[chain + 1])
        if len(begin) == 1:
            return expand(begin[0], end[0])
        return covered(np.concatenate(begin), np.concatenate(end), table.rows)

    def walk(self, table: Table, layout: Layout, lay: _Lay) -> None:
        """Lay the rows of all sides."""
        spans, which = layout.spans, layout.which
        if spans.count == 0:
            return
        for side, sign in ((0, -1), (1, 1)):
            nearest = spans.low - 1 if side == 0 else spans.high
            place = spans.first if side == 0 else spans.last
            end = table.starts[spans.chain + side] - (side == 0)
            reach = self.reaches[which, side]
            begins = self.begins[self.sides[which, side]] - 1
            _walk(table, (nearest, end, place), sign, reach, begins, lay)
        inside = self.inside[which]
        joined = inside >= 0
        if joined.any():
            low, high, first = spans.low[joined], spans.high[joined], spans.first[joined]
            begins = self.begins[inside[joined]] - 1
            size = self.sizes[inside[joined]]
            _walk(table, (low, high, first - 1), 1, size, begins, lay)


def _inside(design: LocalDesign) -> int:
    if isinstance(design, ClusteredDesign) and design.redaction_inside is not None:
        return design.redaction_inside
    return -1


def _walk(
    table: Table,
    ends: tuple[Integers, Integers, Integers],
    sign: int,
    reach: Integers,
    begins: Integers,
    lay: _Lay,
) -> None:
    """Row by row outwards: of each secret from one row to before another, as far as its design
    reaches from its place.
    """
    nearest, end, place = ends
    active = np.flatnonzero(((end - nearest) * sign > 0) & (reach > 0))
    out = 0
    while len(active):
        rows = nearest[active] + sign * out
        if table.steps is None:
            distance = np.full(len(active), out + 1)
        else:
            distance = sign * (table.steps[rows] - place[active])
        near = distance <= reach[active]
        if not near.all():
            active, rows, distance = active[near], rows[near], distance[near]
        lay(rows, begins[active] + distance)
        out += 1
        there = (end[active] - nearest[active]) * sign > out
        active = active[there]


def covered(begin: Integers, end: Integers, rows: int) -> Mask:
    """(rows,) which of them lie in one of some stretches begin … end − 1."""
    kept = end > begin
    change = np.bincount(begin[kept], minlength=rows + 1).astype(np.int64)
    change -= np.bincount(end[kept], minlength=rows + 1)
    return np.asarray(np.cumsum(change)[:rows] > 0)
