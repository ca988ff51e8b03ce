"""What a report says, as data: from a run and from files alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from offrecord.release.certificate import Certificate
from offrecord.reports.around import Around, Cost
from offrecord.tables.budgets import Point
from offrecord.tables.meaning import Meaning


@dataclass(frozen=True)
class Left:
    """What left of a table. None: not known from what the report was made of.

    records: those with a value that do not wait. released: share of them. kept_back: how many did
    not leave. waiting: leave later, as the table grows. touched: chains that hold a secret, their
    records, the share of these that left, and how many of these chains lost everything. window: the
    share that the best data-independent mechanism would release. private: rows that are private
    themselves. regions: records by region. erasure: what erasing private records alone would have
    told, a log-ratio; at least, if erasure_is_least.
    """

    records: int | None = None
    released: float | None = None
    kept_back: int | None = None
    waiting: int | None = None
    touched: int | None = None
    touched_records: int | None = None
    touched_released: float | None = None
    lost: int | None = None
    closed: int | None = None
    window: float | None = None
    private: int | None = None
    regions: dict[str, int] | None = None
    erasure: float | None = None
    erasure_is_least: bool = False

    @property
    def erased(self) -> float | None:
        """The share that would leave if private records alone were erased."""
        if self.private is None or not self.records:
            return None
        return 1.0 - self.private / self.records


@dataclass(frozen=True)
class Checked:
    """What the verifier said. told: the most that a design tells. problems: why it does not hold,
    none if it does. what: was checked; None: the designs, before the release left.
    """

    told: float
    problems: tuple[str, ...] = ()
    what: str | None = None

    @property
    def holds(self) -> bool:
        """Nothing speaks against it."""
        return not self.problems


@dataclass(frozen=True)
class Curve:
    """What other budgets would release. points: none, and why, where it is not drawn. every: chains
    of which one was taken.
    """

    points: tuple[Point, ...] = ()
    why: str | None = None
    every: int = 1

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(dict.fromkeys(point.mechanism for point in self.points))


@dataclass(frozen=True)
class Named:
    """What one opt-out costs whose position is published: its name, and the records beside it that
    are expected to be redacted if it stood alone.
    """

    name: tuple[str, ...]
    records: int
    expected: float


@dataclass(frozen=True)
class Names:
    """What files are called. digest: the SHA-256 of the released table, where it is a file."""

    certificate: str
    released: str | None = None
    digest: str | None = None


@dataclass(frozen=True, eq=False)
class Content:
    """All that a report says. certificate: of the release. meaning: of the promise, None without
    secrets. most_told: the largest leakage of a design, rounding included. models: which models
    that is promised for. unserved: why it is another mechanism than was asked for.
    """

    certificate: Certificate
    names: Names
    left: Left
    warnings: tuple[str, ...]
    checked: Checked
    models: str
    meaning: Meaning | None
    around: Around | None
    costs: tuple[Cost, ...]
    curve: Curve
    unserved: str | None = None
    named: Sequence[Named] = ()

    def to_dict(self) -> dict[str, Any]:
        """Its figures, for machines."""
        claim = self.certificate.claim
        return {
            "dataset": self.certificate.dataset,
            "epsilon": claim.epsilon,
            "mechanism": claim.mechanism,
            "leakage": claim.leakage,
            "verified": self.checked.holds,
            "problems": list(self.checked.problems),
            "warnings": list(self.warnings),
            "meaning": None if self.meaning is None else self.meaning.to_dict(),
            "left": {
                name: "inf" if value == float("inf") else value
                for name, value in vars(self.left).items()
            },
            "curve": [point._asdict() for point in self.curve.points],
        }
