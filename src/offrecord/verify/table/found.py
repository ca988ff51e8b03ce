"""What a check of a released table came to, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

_NAMED = 10  # cells that are named for one reason


@dataclass
class Found:
    """problems: what is wrong, a line each that names the cell or the reason. checked, not_checked:
    what was looked at, and what was not, in sentences.
    """

    problems: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)

    def wrong(self, says: str) -> None:
        """One more problem."""
        self.problems.append(_one_line(says))

    def unequal(self, what: str, said: object, there: object) -> bool:
        """A problem if what the certificate says is not what is there; whether it is."""
        if said == there:
            return False
        self.wrong(f"{what}: the certificate says {said}, there is {there}")
        return True

    def wrong_at(self, names: Iterable[str], count: int, says: str) -> None:
        """The same problem with several cells, of which some are named."""
        if count == 0:
            return
        for name in islice(names, _NAMED):
            self.wrong(f"{name}: {says}")
        if count > _NAMED:
            self.wrong(f"{count - _NAMED:,} more: {says}")


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return ", ".join(repr(name) for name in names) or "none"


def _one_line(text: str) -> str:
    """Without anything that would begin another line."""
    return " ".join(text.split())
