"""The records of one side as bounds over a set of models walk them: from far away to the secret."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offrecord.models.base import Floats, Integers

#: Once all that can be seen beyond a record differs between its values by less than this factor's
#: logarithm, it is taken to tell nothing, and this is added to what is returned instead.
FORGOTTEN = 1e-10


@dataclass(frozen=True)
class Walk:
    """Stretches of equal records, nearest first, as far as any of them matters."""

    rows: Floats
    """(m, S) redaction probabilities by state."""
    lengths: Integers
    """(m,) how many records each stretch has."""
    ends: bool
    """The chain ends beyond the last record; else that one always tells all that matters."""

    @classmethod
    def of(cls, rows: Floats, lengths: Integers, opens: bool) -> Walk:
        """The part that matters: up to the first record that may release each state (F1).

        An always-redacted record at the chain's end adds nothing: averages of 1 are 1.
        """
        rows = np.asarray(rows, dtype=np.float64)
        lengths = np.asarray(lengths, dtype=np.int64)
        rows, lengths = rows[lengths > 0], lengths[lengths > 0]
        telling = np.flatnonzero((rows < 1.0).all(axis=1))
        if len(telling):
            nearest = int(telling[0])
            return _opened(rows[:nearest], lengths[:nearest], np.ones(rows.shape[1], bool))
        if opens:
            return _opened(rows, lengths, np.ones(rows.shape[1], bool))
        partial = np.flatnonzero((rows < 1.0).any(axis=1))
        count = int(partial[-1]) + 1 if len(partial) else 0
        return cls(rows[:count], lengths[:count], True)

    @classmethod
    def window(cls, distance: int, released: NDArray[np.bool_]) -> Walk:
        """Always-redacted records, and at a distance one that releases these states."""
        ones = np.ones((min(distance - 1, 1), len(released)))
        return _opened(ones, np.full(len(ones), distance - 1), released)

    @property
    def records(self) -> int:
        """How many records it has."""
        return int(self.lengths.sum())

    def inward(self) -> Iterator[tuple[int, Floats]]:
        """Distance and row of each record, the farthest first."""
        distance = self.records
        for row, length in zip(self.rows[::-1], self.lengths[::-1], strict=True):
            for _ in range(length):
                yield distance, row
                distance -= 1

    def nearest(self, records: int) -> Walk:
        """A shorter walk that tells no less: all beyond these records is released (F3)."""
        if self.records <= records:
            return self
        before = np.concatenate(([0], np.cumsum(self.lengths)[:-1]))
        lengths = np.clip(records - 1 - before, 0, self.lengths)
        used = lengths > 0
        return _opened(self.rows[used], lengths[used], np.ones(self.rows.shape[1], bool))


def _opened(rows: Floats, lengths: Integers, released: NDArray[np.bool_]) -> Walk:
    """With one more record, of which only the release of one of these states is looked at."""
    last = np.where(released, 0.0, 1.0)
    return Walk(np.vstack((rows, last)), np.append(lengths, 1), False)


def at_step(low: Floats, high: Floats, distance: int) -> tuple[Floats, Floats]:
    """The box of the step that leads to the record at this distance; one box may serve for all."""
    step = 0 if low.shape[0] == 1 else distance - 1
    return low[step], high[step]
