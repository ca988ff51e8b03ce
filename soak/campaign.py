"""What a campaign is: kinds of random cases, each drawn anew from its name and numbers alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

#: What a case comes to, in words that are counted.
Notes = Counter[str]


class ViolationError(Exception):
    """What must not be, in one line."""


class Case(NamedTuple):
    """Which case: enough to draw it again."""

    campaign: str
    kind: str
    batch: int
    number: int

    def random(self) -> random.Random:
        """The same numbers each time."""
        return random.Random("/".join(map(str, self)))

    def __str__(self) -> str:
        return f"{self.campaign} {self.kind!r} {self.batch} {self.number}"


class Campaign(Protocol):
    """name: on the command line. least: cases that a full run has. kinds: the share of the
    campaign's time that each kind of case gets. limit: seconds after which a case hangs. memory:
    bytes that a case may take, None: as many as there are.
    """

    name: str
    least: int
    kinds: Mapping[str, float]
    limit: float
    memory: int | None

    def prepared(self, folder: Path) -> None:
        """Make what cases need and is not there yet; in a process of its own."""

    def ready(self, folder: Path, kind: str) -> None:
        """Have ready what every batch of a kind needs, before it is forked; nothing that starts
        threads.
        """

    def run(self, case: Case, folder: Path, store: Path) -> Notes:
        """One case, in a folder that all of its batch have; ViolationError if there is one."""


@dataclass
class Outcome:
    """What became of a batch. found: (number of the case, what)."""

    cases: int = 0
    notes: Notes = field(default_factory=Counter)
    found: list[tuple[int, str]] = field(default_factory=list)
    seconds: float = 0.0
    cpu: float = 0.0
