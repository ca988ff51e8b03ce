"""Stretches: the redaction of one side of a secret by distance, equal neighbours together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from offrecord.files import read_count, read_list
from offrecord.mechanisms.base import Shared
from offrecord.models.base import Floats, Integers
from offrecord.theory.side import Side

#: Rows that one stretch of a file may stand for.
_MOST_ALIKE = 10**7


@dataclass(frozen=True, eq=False)
class Stretches:
    """`lengths` records each with redaction probabilities `rows`, from the secret outwards; beyond
    them all is released.

    rows: (m, k). lengths: (m,). Spelled out only where they are needed one by one: a file may ask
    for more than there is room for.
    """

    rows: Floats
    lengths: Integers

    @classmethod
    def always(cls, k: int, count: int) -> Stretches:
        """The nearest `count` records always redacted."""
        size = 1 if count > 0 else 0
        return cls(np.ones((size, k)), np.full(size, count, dtype=np.int64))

    @classmethod
    def of(cls, rows: Floats) -> Stretches:
        """From a row for each record, (a, k)."""
        return cls(rows, np.ones(len(rows), dtype=np.int64))

    @property
    def size(self) -> int:
        """How many records have a row."""
        return int(self.lengths.sum())

    @cached_property
    def spelled_out(self) -> Floats:
        """(size, k) a row for each record, by distance."""
        return np.ascontiguousarray(np.repeat(self.rows, self.lengths, axis=0))

    def after(self, nearer: Stretches) -> Stretches:
        """These stretches beyond others."""
        if len(nearer.lengths) == 0:
            return self
        return Stretches(
            np.concatenate((nearer.rows, self.rows)),
            np.concatenate((nearer.lengths, self.lengths)),
        )

    def trimmed(self) -> Stretches:
        """Up to the last record of which anything is redacted."""
        kept = np.flatnonzero(self.rows.any(axis=1) & (self.lengths > 0))
        end = int(kept[-1]) + 1 if len(kept) else 0
        return Stretches(self.rows[:end], self.lengths[:end])

    def cost(self, side: Side) -> float:
        """Expected number of redacted records."""
        if side.chain.is_stationary:
            return float(self.lengths @ (self.rows @ side.record_chain.marginal(1)))
        if self.size == 0:
            return 0.0
        return float((self.spelled_out * side.masses(self.size)).sum())

    # ---- files

    def number(self, shared: Shared) -> int:
        """Its number among the sides of a file, as [count, probabilities] each."""
        rows = self.spelled_out
        return shared.number((rows.shape, rows.tobytes()), self._joined())

    def _joined(self) -> list[list[Any]]:
        """As [count, probabilities], equal neighbours together."""
        out: list[list[Any]] = []
        for row, length in zip(self.rows.tolist(), self.lengths.tolist(), strict=True):
            if out and out[-1][1] == row:
                out[-1][0] += length
            else:
                out.append([length, row])
        return out

    @classmethod
    def read(cls, content: Any, k: int) -> Stretches:
        """From the content of a file; ValueError for anything else."""
        pairs = [read_list(pair) for pair in read_list(content)]
        lengths = [read_count(count, 1, _MOST_ALIKE) for count, _ in pairs]
        listed = [read_list(row) for _, row in pairs]
        if not {type(q) for row in listed for q in row} <= {int, float}:
            raise ValueError("not numbers")
        rows = np.array(listed, dtype=np.float64).reshape(len(pairs), k)
        if not np.all((rows >= 0) & (rows <= 1)):
            raise ValueError("not a redaction")
        return cls(rows, np.array(lengths, dtype=np.int64))


#: To the left and to the right of a secret, from its first and last record outwards.
Sides: TypeAlias = tuple[Stretches, Stretches]
