"""What was decided, in numbers that add up over the batches of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from offrecord.fitting.counting import Counts
from offrecord.mechanisms.blocks import PRIVATE, REGIONS
from offrecord.tables.choice import Choice
from offrecord.tables.seen import Sighting
from offrecord.tables.telling import Sample


@dataclass(frozen=True, repr=False)
class Tally:
    """Counts of what was decided: rows by region (S, M, L with private ones), and records that
    leave, also by the window.

    moves: transitions among records that are never redacted, as the model counts them. firsts: the
    values of first records that are never redacted. choice: which values private records have. All
    None where nothing was decided. kept: released rows with
    their kept cells, a sample of them. content: a digest of what leaves of the chains that hold a
    secret, record by record, for the key's owner alone. seen: records that may be redacted, and
    that the model was learned from.
    """

    regions: tuple[int, ...] = (0, 0, 0)
    released: float = 0
    window: int = 0
    moves: Counts | None = None
    firsts: Counts | None = None
    choice: Choice | None = None
    kept: Sample | None = None
    content: int = 0
    seen: Sighting = field(default_factory=Sighting)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            tuple(a + b for a, b in zip(self.regions, other.regions, strict=True)),
            self.released + other.released,
            self.window + other.window,
            _sum(self.moves, other.moves),
            _sum(self.firsts, other.firsts),
            _sum(self.choice, other.choice),
            _sum(self.kept, other.kept),
            self.content ^ other.content,
            self.seen + other.seen,
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
