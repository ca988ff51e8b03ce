"""The secret key behind the coins, and the ledger of what left under it: releases of tables, and
answers of owners.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from offrecord.errors import InputError
from offrecord.files import beside, checked_content, read_json, sync, sync_folder, write_bytes
from offrecord.release.coins import KEY_BYTES, subkey

KEY_VERSION = 1
LEDGER_VERSION = 1
#: What the owner of a record was asked (for each label as JSON, the probability of silence), and a
#: digest of what they said.
Answer: TypeAlias = dict[str, Any]


def default_key_file() -> Path:
    """Where a person's key lives: in the user's data directory, never beside an output."""
    if sys.platform == "win32":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "offrecord" / "key.json"


@dataclass(frozen=True, repr=False)
class Key:
    """A 256-bit secret and the file it came from. Whoever has it can tell redacted values from
    released ones: keep it.
    """

    secret: bytes
    file: Path

    @property
    def id(self) -> str:
        """What may be shown of it: the same for the same key, and nothing about it otherwise."""
        return subkey(self.secret, b"offrecord/keyid", 8).hex()

    def __repr__(self) -> str:
        return f"<Key {self.id}>"

    @classmethod
    def new(cls, file: Path) -> Key:
        """Make a key file that only its owner can read, and its empty ledger; InputError if there
        is one.
        """
        key = cls._made(file, announced=True)
        if key is None:
            raise InputError(f"{file} exists; a key is never overwritten: give another --key-file")
        return key

    @classmethod
    def load_or_new(cls, file: Path) -> Key:
        """The key of a file, made where there is none; of several who make it at once, all get the
        one that came first.
        """
        made = None if file.exists() else cls._made(file, announced=False)
        return cls.load(file) if made is None else made

    @classmethod
    def _made(cls, file: Path, *, announced: bool) -> Key | None:
        """A new key, with its ledger; None if there is one already. The file is complete from the
        moment it is there.
        """
        key = cls(secrets.token_bytes(KEY_BYTES), file)
        content = (
            json.dumps({"format": "offrecord-key", "version": KEY_VERSION, "key": key.secret.hex()})
            + "\n"
        )
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise InputError(f"{file} cannot be made: {error.strerror}") from None
        with _locked(key), beside(file) as (complete,):
            complete.write_bytes(content.encode())
            sync(complete, 0o600)
            if key.ledger_file.exists() and not file.exists():  # a key comes before its ledger
                raise InputError(
                    f"{key.ledger_file} is there without its key: bring that back, or give another"
                    " --key-file"
                )
            try:
                os.link(complete, file)
            except FileExistsError:
                return None
            except OSError:  # no hard links here: then the lock alone keeps others away
                if file.exists():
                    return None
                os.rename(complete, file)
            Ledger(key, {}, {}).save(announced=announced)
            sync_folder(file.parent)
        return key

    @classmethod
    def load(cls, file: Path) -> Key:
        """Read a key file; InputError if others can read it too, as it then is no secret."""
        content = read_json(file)
        try:
            content = checked_content(content, "key", KEY_VERSION, ("key",))
            secret = bytes.fromhex(content["key"])
        except (InputError, TypeError, ValueError):
            raise InputError(f"{file} is not a key file; make one with offrecord key new") from None
        if len(secret) != KEY_BYTES:
            raise InputError(f"{file} must hold a key of {KEY_BYTES} bytes, got {len(secret)}")
        if os.name == "posix" and file.stat().st_mode & 0o077:
            raise InputError(
                f"{file} can be read by others; make it yours alone with chmod 600, or make a"
                " new key"
            )
        return cls(secret, file)

    @property
    def ledger_file(self) -> Path:
        """Where what left under this key is remembered: beside it."""
        return self.file.with_name(f"{self.file.stem}.ledger.json")


@contextmanager
def ledger(key: Key) -> Iterator[Ledger]:
    """The ledger of a key, locked while it is read and changed, so that two releases at once see
    each other.
    """
    with _locked(key):
        yield Ledger.read(key)


@contextmanager
def _locked(key: Key) -> Iterator[None]:
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

    releases: for each data set name, what decided each release, and what left. answers: for each
    protocol, those by record.
    complete: it was made with its key, so it knows of everything. announced: somebody has been told
    to keep the key.
    """

    key: Key
    releases: dict[str, list[dict[str, str]]]
    answers: dict[str, dict[str, Answer]]
    complete: bool = True
    announced: bool = True

    @classmethod
    def read(cls, key: Key) -> Ledger:
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
        return min(
            ([name for name in decided if decided[name] != one.get(name)] for one in earlier),
            key=len,
        )

    def others(self, dataset: str, decided: Mapping[str, str]) -> int:
        """How many different releases this data set has had."""
        return sum(one != dict(decided) for one in self.releases.get(dataset, []))

    def add(self, dataset: str, decided: Mapping[str, str]) -> None:
        """Remember a release; written before the output is, so that none is ever forgotten."""
        entries = self.releases.setdefault(dataset, [])
        if dict(decided) not in entries:
            entries.append(dict(decided))
            self.save()

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
        }
        write_bytes(
            self.key.ledger_file,
            (json.dumps(content, indent=1) + "\n").encode(),
            force=True,
            mode=0o600,
        )


def _ledger(key: Key) -> Ledger:
    """The ledger in a key's ledger file; one that does not say so is complete and announced."""
    file = key.ledger_file
    content: Any = read_json(file)
    try:
        content = {"complete": True, "announced": True, "answers": {}} | checked_content(
            content, "ledger", LEDGER_VERSION, ("key", "releases")
        )
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    if content["key"] != key.id:
        raise InputError(
            f"{file} is the ledger of another key, not of {key.file}: bring back the one that"
            " belongs to it"
        )
    if not _holds(
        content["releases"], list, lambda one: all(isinstance(text, str) for text in one.values())
    ):
        raise InputError(f'{file}: "releases" must hold a list of digests for each data set')
    if not _holds(content["answers"], dict, _is_answer):
        raise InputError(f'{file}: "answers" must hold a rule and a digest for each record')
    told = content["complete"], content["announced"]
    if not all(isinstance(one, bool) for one in told):
        raise InputError(f'{file}: "complete" and "announced" must be true or false')
    return Ledger(key, content["releases"], content["answers"], *told)


def _is_answer(one: dict[str, Any]) -> bool:
    rule = one.get("rule")
    chances = rule.values() if isinstance(rule, dict) else [None]
    return isinstance(one.get("answer"), str) and all(
        isinstance(chance, float) for chance in chances
    )


def _holds(held: Any, kind: type, fits: Callable[[dict[str, Any]], bool]) -> bool:
    """By name, lists or dictionaries (the kind) of dictionaries that fit."""
    if not (isinstance(held, dict) and all(isinstance(each, kind) for each in held.values())):
        return False
    entries = [one for each in held.values() for one in (each.values() if kind is dict else each)]
    return all(isinstance(one, dict) and fits(one) for one in entries)
