"""What a check came to, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

_NAMED = 10  # cells that are named for one reason


@dataclass
class Found:
    """problems: what is wrong, a line each. checked, not_checked: sentences."""

    problems: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)

    def wrong(self, says: str) -> None:
        """One more problem, in one line."""
        self.problems.append(" ".join(says.split()))

    def unequal(self, what: str, said: object, there: object) -> bool:
        """A problem if the certificate says something else than is there; whether it does."""
        if said == there:
            return False
        self.wrong(f"{what}: the certificate says {said}, there is {there}")
        return True

    def wrong_at(self, names: Iterable[str], count: int, says: str) -> None:
        """The same problem with several cells, of which the first are named."""
        for name in islice(names, min(count, _NAMED)):
            self.wrong(f"{name}: {says}")
        if count > _NAMED:
            self.wrong(f"{count - _NAMED:,} more: {says}")
