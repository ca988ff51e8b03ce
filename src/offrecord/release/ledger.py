"""The ledger of what left under a key: releases of tables, and answers of owners."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Field

from offrecord.errors import InputError
from offrecord.files import read_json, write_bytes
from offrecord.models.base import Section

if TYPE_CHECKING:  # a key makes its ledger
    from offrecord.release.keys import Key

LEDGER_VERSION = 2
#: What an entry calls the time at which it was made, and a digest of its private records, whatever
#: the name of their data set; all else in it distinguishes releases.
ENTERED, RECORDS = UNCOMPARED = "entered", "records"
#: What the owner of a record was asked (for each label as JSON, the probability of silence), and a
#: digest of what they said.
Answer: TypeAlias = dict[str, Any]


@contextmanager
def ledger(key: Key) -> Iterator[Ledger]:
    """The ledger of a key, locked while it is read and changed."""
    # two releases at once must see each other
    with locked(key):
        yield Ledger.read(key)


@contextmanager
def locked(key: Key) -> Iterator[None]:
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


@dataclass(frozen=True)
class Ledger:
    """What left under a key, in digests that reveal nothing without it."""

    key: Key
    # by data set: what decided each release, what left, and when it was entered
    releases: dict[str, list[dict[str, str]]]
    answers: dict[str, dict[str, Answer]]  # by protocol and record
    complete: bool = True  # it was made with its key, so it knows of everything
    announced: bool = True  # that the key must be kept
    # releases that were never published, as a person has said
    forgotten: dict[str, list[dict[str, str]]] = field(default_factory=dict)

    @classmethod
    def read(cls, key: Key) -> Ledger:
        """The ledger of a key as it stands; to change it, see `ledger`."""
        file = key.ledger_file
        # a key from elsewhere: what left under it there is not known
        if not file.exists():
            return cls(key, {}, {}, complete=False)
        content = _Content.of(read_json(file), f"{file}: ledger")
        if content.key != key.id:
            raise InputError(
                f"{file} is the ledger of another key, not of {key.file}: bring back the one that"
                " belongs to it"
            )
        return cls(key, **content.model_dump(exclude={"format", "version", "key"}))

    def differences(self, dataset: str, decided: Mapping[str, str]) -> list[str] | None:
        """In what a new release differs from the closest earlier one; None if there is none."""
        names = [name for name in decided if name not in UNCOMPARED]
        earlier = self.releases.get(dataset, [])
        found = ([name for name in names if decided[name] != one.get(name)] for one in earlier)
        return min(found, key=len, default=None)

    def elsewhere(self, dataset: str, decided: Mapping[str, str]) -> list[str]:
        """Other data sets with the very same private records, one name for each release."""
        if (records := decided.get(RECORDS)) is None:
            return []
        others = ((name, one) for name, entries in self.releases.items() for one in entries)
        return [name for name, one in others if name != dataset and one.get(RECORDS) == records]

    def others(self, dataset: str, decided: Mapping[str, str]) -> int:
        """How many different releases this data set has had."""
        return len(_unlike(self.releases.get(dataset, []), decided))

    def others_forgotten(self, dataset: str, decided: Mapping[str, str]) -> int:
        """How many different releases of this data set are said to have never been published."""
        return len(_unlike(self.forgotten.get(dataset, []), decided))

    def add(self, dataset: str, decided: Mapping[str, str]) -> None:
        """Remember a release; written before the output is, so that none is ever forgotten."""
        entries = self.releases.setdefault(dataset, [])
        # the same release may be made again: it is no second observation
        if len(_unlike(entries, decided)) == len(entries):
            now = datetime.now(UTC).isoformat(timespec="seconds")
            entries.append({**decided, ENTERED: now})
            if dataset in self.forgotten:
                self.forgotten[dataset] = _unlike(self.forgotten[dataset], decided)
            self.save()

    def forget(self, dataset: str, which: Collection[int]) -> None:
        """Put aside releases that were never published, by number: they refuse no others then."""
        entries = self.releases[dataset]
        self.releases[dataset] = [one for at, one in enumerate(entries) if at not in which]
        gone = self.forgotten.setdefault(dataset, [])
        gone += [one for at, one in enumerate(entries) if at in which]
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
        written = (json.dumps(content, indent=1) + "\n").encode()
        write_bytes(self.key.ledger_file, written, force=True, mode=0o600)


def _unlike(entries: list[dict[str, str]], decided: Mapping[str, str]) -> list[dict[str, str]]:
    """The entries of other releases than this one."""
    apart = dict.fromkeys(UNCOMPARED, "")
    return [one for one in entries if {**one, **apart} != {**decided, **apart}]
