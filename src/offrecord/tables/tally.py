"""What was decided, in numbers that add up over the batches of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from offrecord.fitting.counting import Counts
from offrecord.mechanisms.blocks import PRIVATE, REGIONS
from offrecord.models.base import Integers
from offrecord.tables.choice import Choice
from offrecord.tables.telling import Sample


@dataclass(frozen=True, repr=False)
class Tally:
    """Counts of what was decided: rows by region (S, M, L with private ones), and records that
    leave, also by the window.

    moves: transitions among records that are never redacted, as the model counts them. choice:
    which values private records have. Both None where nothing was decided. kept: released rows with
    their kept cells, a sample of them. content: a digest of what leaves of the chains that hold a
    secret, record by record, for the key's owner alone. uses: how many secrets each design of the
    rule serves.
    """

    regions: tuple[int, ...] = (0, 0, 0)
    released: float = 0
    window: int = 0
    moves: Counts | None = None
    choice: Choice | None = None
    kept: Sample | None = None
    content: int = 0
    uses: Integers | None = None

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            tuple(a + b for a, b in zip(self.regions, other.regions, strict=True)),
            self.released + other.released,
            self.window + other.window,
            _sum(self.moves, other.moves),
            _sum(self.choice, other.choice),
            _sum(self.kept, other.kept),
            self.content ^ other.content,
            _sum(self.uses, other.uses),
        )

    @property
    def rows(self) -> int:
        """How many were decided."""
        return sum(self.regions)

    def named_regions(self, private: int) -> dict[str, int]:
        """Rows by region; private ones, which are always redacted, named apart."""
        small, middle, large = self.regions
        counts = (small, middle, large - private, private)
        return dict(zip((*REGIONS, PRIVATE), counts, strict=True))


def _sum(one: Any, other: Any) -> Any:
    """The sum of what is there."""
    return other if one is None else one if other is None else one + other
