"""The ledger of what left under a key: releases of tables, and answers of owners."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeAlias

from pydantic import Field

from offrecord.errors import InputError
from offrecord.files import read_json, write_bytes
from offrecord.models.base import Section

LEDGER_VERSION = 2
#: What an entry calls the time at which it was made, and a digest of its private records, whatever
#: the name of their data set; all else in it distinguishes releases.
ENTERED, RECORDS = UNCOMPARED = "entered", "records"
#: What the owner of a record was asked (for each label as JSON, the probability of silence), and a
#: digest of what they said.
Answer: TypeAlias = dict[str, Any]


class Keyed(Protocol):
    """As much of a key as its ledger knows: never the secret. A key makes its ledger, so that a
    ledger cannot import keys.
    """

    @property
    def id(self) -> str:
        """What may be shown of the key."""

    @property
    def file(self) -> Path:
        """Where the key is."""

    @property
    def ledger_file(self) -> Path:
        """Where its ledger is."""


@contextmanager
def ledger(key: Keyed) -> Iterator[Ledger]:
    """The ledger of a key, locked while it is read and changed, so that two releases at once see
    each other.
    """
    with locked(key):
        yield Ledger.read(key)


@contextmanager
def locked(key: Keyed) -> Iterator[None]:
    """Nobody else makes this key, or changes its ledger."""
    from filelock import FileLock

    lock = key.ledger_file.with_suffix(".lock")
    try:
        with FileLock(lock, mode=0o600):
            yield
    except OSError as error:
        raise InputError(
            f"{lock} cannot be made: {error.strerror}; the ledger of releases is kept beside"
            " the key"
        ) from None


@dataclass(frozen=True)
class Ledger:
    """What left under a key, in digests that reveal nothing without it.

    releases: for each data set name, what decided each release, what left, and when it was
    entered. answers: for each protocol, those by record.
    complete: it was made with its key, so it knows of everything. announced: it has been announced
    to keep the key. forgotten: releases that were never published, as a person has said.
    """

    key: Keyed
    releases: dict[str, list[dict[str, str]]]
    answers: dict[str, dict[str, Answer]]
    complete: bool = True
    announced: bool = True
    forgotten: dict[str, list[dict[str, str]]] = field(default_factory=dict)

    @classmethod
    def read(cls, key: Keyed) -> Ledger:
        """The ledger of a key as it stands; to change it, see `ledger`."""
        if not key.ledger_file.exists():
            return cls(key, {}, {}, complete=False)
        return _ledger(key)

    def differences(self, dataset: str, decided: Mapping[str, str]) -> list[str] | None:
        """In what a new release differs from the closest earlier one: None if there is none, empty
        if it is the same.
        """
        earlier = self.releases.get(dataset)
        if not earlier:
            return None
        names = [name for name in decided if name not in UNCOMPARED]
        return min(
            ([name for name in names if decided[name] != one.get(name)] for one in earlier),
            key=len,
        )

    def elsewhere(self, dataset: str, decided: Mapping[str, str]) -> list[str]:
        """The names of other data sets that were released with the very same private records, one
        for each release.
        """
        records = decided.get(RECORDS)
        return [
            name
            for name, entries in self.releases.items()
            for one in entries
            if name != dataset and records is not None and one.get(RECORDS) == records
        ]

    def others(self, dataset: str, decided: Mapping[str, str]) -> int:
        """How many different releases this data set has had."""
        return len(_unlike(self.releases.get(dataset, []), decided))

    def others_forgotten(self, dataset: str, decided: Mapping[str, str]) -> int:
        """How many different releases of this data set are said to have never been published."""
        return len(_unlike(self.forgotten.get(dataset, []), decided))

    def add(self, dataset: str, decided: Mapping[str, str]) -> None:
        """Remember a release; written before the output is, so that none is ever forgotten."""
        entries = self.releases.setdefault(dataset, [])
        if len(_unlike(entries, decided)) == len(entries):
            now = datetime.now(UTC).isoformat(timespec="seconds")
            entries.append({**decided, ENTERED: now})
            if dataset in self.forgotten:
                self.forgotten[dataset] = _unlike(self.forgotten[dataset], decided)
            self.save()

    def forget(self, dataset: str, which: Collection[int]) -> None:
        """Put aside releases that were never published, counted from 0: others of the data set are
        no longer refused because of them.
        """
        entries = self.releases[dataset]
        left = [one for number, one in enumerate(entries) if number not in which]
        gone = [one for number, one in enumerate(entries) if number in which]
        self.releases[dataset] = left
        self.forgotten.setdefault(dataset, []).extend(gone)
        self.save(announced=self.announced)

    def save(self, *, announced: bool = True) -> None:
        """Write it; the first entry also announces the key."""
        content = {
            "format": "offrecord-ledger",
            "version": LEDGER_VERSION,
            "key": self.key.id,
            "complete": self.complete,
            "announced": announced,
            "releases": self.releases,
            "answers": self.answers,
            "forgotten": self.forgotten,
        }
        write_bytes(
            self.key.ledger_file,
            (json.dumps(content, indent=1) + "\n").encode(),
            force=True,
            mode=0o600,
        )


def _unlike(entries: list[dict[str, str]], decided: Mapping[str, str]) -> list[dict[str, str]]:
    """The entries of other releases than this one."""
    apart = dict.fromkeys(UNCOMPARED, "")
    return [one for one in entries if {**one, **apart} != {**decided, **apart}]


class _Answered(Section):
    """What the owner of one record was asked and said."""

    rule: dict[str, Annotated[float, Field(ge=0, le=1)]]
    answer: str


class _Content(Section):
    """A ledger file."""

    format: Literal["offrecord-ledger"]
    version: Literal[2]
    key: str
    complete: bool
    announced: bool
    releases: dict[str, list[dict[str, str]]]
    answers: dict[str, dict[Annotated[str, Field(pattern="^[1-9][0-9]{0,17}$")], _Answered]]
    forgotten: dict[str, list[dict[str, str]]]


def _ledger(key: Keyed) -> Ledger:
    """The ledger in a key's ledger file."""
    file = key.ledger_file
    content = _Content.of(read_json(file), f"{file}: ledger")
    if content.key != key.id:
        raise InputError(
            f"{file} is the ledger of another key, not of {key.file}: bring back the one that"
            " belongs to it"
        )
    answers = content.model_dump()["answers"]
    state = content.complete, content.announced
    return Ledger(key, content.releases, answers, *state, content.forgotten)
