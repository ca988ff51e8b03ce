"""One side of a secret as a walk towards it: redaction by state, and a box for each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from offrecord.verify.problem import Stretch
from offrecord.verify.sets.boxes import Box

Row = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Walk:
    """Stretches by state, nearest first, as far as they matter.

    ends: the chain ends beyond them; else a record follows of which any state may be released, and
    nothing beyond it matters (F1). boxes: of the steps outwards, the nearest first; one for all, or
    as many as there are records, that last one included.
    """

    stretches: tuple[Stretch, ...]
    ends: bool
    boxes: Sequence[Box]

    @classmethod
    def of(cls, stretches: Sequence[Stretch], boxes: Sequence[Box]) -> Walk:
        """Up to the first record that may release every state."""
        found: list[Stretch] = []
        for stretch in stretches:
            if max(stretch.row) < 1:
                return cls(tuple(found), False, boxes)
            found.append(stretch)
        while found and min(found[-1].row) == 1:
            found.pop()  # averages of 1 are 1
        return cls(tuple(found), True, boxes)

    @property
    def records(self) -> int:
        """How many there are, the one that may release every state included."""
        return sum(count for count, _ in self.stretches) + (not self.ends)

    def nearest(self, records: int) -> Walk:
        """A shorter one that tells no less: all beyond these records is released (F3)."""
        if self.records <= records:
            return self
        left, found = records - 1, []
        for count, row in self.stretches:
            if left > 0:
                found.append(Stretch(min(count, left), row))
            left -= count
        return Walk(tuple(found), False, self.boxes)

    def box(self, distance: int) -> Box:
        """Of the step that leads to the record at a distance."""
        return self.boxes[0 if len(self.boxes) == 1 else distance - 1]

    def inward(self, states: int) -> Iterator[tuple[int, Row]]:
        """Distance and row of each record, the farthest first."""
        distance = self.records
        if not self.ends:
            yield distance, (0.0,) * states
            distance -= 1
        for count, row in self.stretches[::-1]:
            for _ in islice(iter(int, 1), count):
                yield distance, row
                distance -= 1
