"""The ledger of what left under a key: releases of tables, and answers of owners."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from offrecord.errors import InputError
from offrecord.files import checked_content, read_json, write_bytes

LEDGER_VERSION = 2
_OLD = 1  # knew of nothing that was forgotten, nor when releases were entered
#: What an entry calls the time at which it was made, and a digest of its private records, whatever
#: the name of their data set; all else in it tells releases apart.
ENTERED, RECORDS = NOT_TELLING = "entered", "records"
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
    lock = key.ledger_file.with_suffix(".lock")
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(
            f"{lock} cannot be made: {error.strerror}; the ledger of releases is kept beside"
            " the key"
        ) from None
    try:
        if os.name == "posix":
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@dataclass(frozen=True)
class Ledger:
    """What left under a key, in digests that tell nothing without it.

    releases: for each data set name, what decided each release, what left, and when it was
    entered. answers: for each protocol, those by record.
    complete: it was made with its key, so it knows of everything. announced: somebody has been told
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
        names = [name for name in decided if name not in NOT_TELLING]
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
        """Write it; whoever has something to remember tells of the key, too."""
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
    apart = dict.fromkeys(NOT_TELLING, "")
    return [one for one in entries if {**one, **apart} != {**decided, **apart}]


def _ledger(key: Keyed) -> Ledger:
    """The ledger in a key's ledger file; one that does not say so is complete and announced."""
    file = key.ledger_file
    content: Any = read_json(file)
    is_old = isinstance(content, dict) and content.get("version") == _OLD
    version = _OLD if is_old else LEDGER_VERSION
    unsaid = {"complete": True, "announced": True, "answers": {}, "forgotten": {}}
    try:
        content = unsaid | checked_content(content, "ledger", version, ("key", "releases"))
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    if content["key"] != key.id:
        raise InputError(
            f"{file} is the ledger of another key, not of {key.file}: bring back the one that"
            " belongs to it"
        )
    for name in ("releases", "forgotten"):
        if not _holds(content[name], list, _is_entry):
            raise InputError(f'{file}: "{name}" must hold a list of digests for each data set')
    answers = content["answers"]
    if not (_holds(answers, dict, _is_answer) and all(map(_are_records, answers.values()))):
        raise InputError(f'{file}: "answers" must hold a rule and a digest for each record')
    told = content["complete"], content["announced"]
    if not all(isinstance(one, bool) for one in told):
        raise InputError(f'{file}: "complete" and "announced" must be true or false')
    return Ledger(key, content["releases"], content["answers"], *told, content["forgotten"])


def _is_entry(one: dict[str, Any]) -> bool:
    return all(isinstance(text, str) for text in one.values())


def _is_answer(one: dict[str, Any]) -> bool:
    rule = one.get("rule")
    chances = rule.values() if isinstance(rule, dict) else [None]
    return isinstance(one.get("answer"), str) and all(
        isinstance(chance, float) and 0.0 <= chance <= 1.0 for chance in chances
    )


def _are_records(names: Iterable[str]) -> bool:
    """Counts from 1, as they are written."""
    return all(re.fullmatch("[1-9][0-9]{0,17}", name) for name in names)


def _holds(held: Any, kind: type, fits: Callable[[dict[str, Any]], bool]) -> bool:
    """By name, lists or dictionaries (the kind) of dictionaries that fit."""
    if not (isinstance(held, dict) and all(isinstance(each, kind) for each in held.values())):
        return False
    entries = [one for each in held.values() for one in (each.values() if kind is dict else each)]
    return all(isinstance(one, dict) and fits(one) for one in entries)
