"""The secret key behind the coins, and the ledger of what was released under it."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offrecord.draws import KEY_BYTES, subkey
from offrecord.errors import InputError
from offrecord.files import checked_content, read_json, write_bytes

KEY_VERSION = 1
LEDGER_VERSION = 1


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
    """A 256-bit secret and the file it came from. Whoever has it can tell redacted values from released ones: keep it."""

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
        """Make a key file that only its owner can read; InputError if there is one."""
        key = cls(secrets.token_bytes(KEY_BYTES), file)
        key.save()
        return key

    def save(self) -> None:
        """Write the key file; never over another one."""
        content = json.dumps({"format": "offrecord-key", "version": KEY_VERSION, "key": self.secret.hex()}) + "\n"
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(handle, "wb") as out:
                    out.write(content.encode())
                    out.flush()
                    os.fsync(out.fileno())
            except BaseException:
                self.file.unlink(missing_ok=True)
                raise
        except FileExistsError:
            raise InputError(f"{self.file} exists; a key is never overwritten: give another --key-file") from None
        except OSError as error:
            raise InputError(f"{self.file} cannot be made: {error.strerror}") from None

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
            raise InputError(f"{file} can be read by others; make it yours alone with chmod 600, or make a new key")
        return cls(secret, file)

    @property
    def ledger_file(self) -> Path:
        """Where the releases under this key are remembered: beside it."""
        return self.file.with_name(f"{self.file.stem}.ledger.json")


@contextmanager
def ledger(key: Key) -> Iterator[Ledger]:
    """The ledger of a key, locked while it is read and changed, so that two releases at once see each other."""
    lock = key.ledger_file.with_suffix(".lock")
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"{lock} cannot be made: {error.strerror}; the ledger of releases is kept beside the key") from None
    try:
        if os.name == "posix":
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield Ledger.read(key)
    finally:
        os.close(handle)


@dataclass(frozen=True)
class Ledger:
    """What decided each release so far, by data set name, as digests that tell nothing without the key."""

    key: Key
    releases: dict[str, list[dict[str, str]]]

    @classmethod
    def read(cls, key: Key) -> Ledger:
        """The ledger of a key as it stands; to change it, see `ledger`."""
        return cls(key, _releases(key.ledger_file))

    def differences(self, dataset: str, decided: Mapping[str, str]) -> list[str] | None:
        """In what a new release differs from the closest earlier one: None if there is none, empty if it is the same."""
        earlier = self.releases.get(dataset)
        if not earlier:
            return None
        return min(([name for name in decided if decided[name] != one.get(name)] for one in earlier), key=len)

    def others(self, dataset: str, decided: Mapping[str, str]) -> int:
        """How many different releases this data set has had."""
        return sum(one != dict(decided) for one in self.releases.get(dataset, []))

    def add(self, dataset: str, decided: Mapping[str, str]) -> None:
        """Remember a release; written before the output is, so that none is ever forgotten."""
        entries = self.releases.setdefault(dataset, [])
        if dict(decided) in entries:
            return
        entries.append(dict(decided))
        content = {"format": "offrecord-ledger", "version": LEDGER_VERSION, "key": self.key.id, "releases": self.releases}
        write_bytes(self.key.ledger_file, (json.dumps(content, indent=1) + "\n").encode(), force=True, mode=0o600)


def _releases(file: Path) -> dict[str, list[dict[str, str]]]:
    if not file.exists():
        return {}
    content: Any = read_json(file)
    try:
        releases = checked_content(content, "ledger", LEDGER_VERSION, ("releases",))["releases"]
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    named = releases.values() if isinstance(releases, dict) else [None]
    entries = [one for each in named for one in (each if isinstance(each, list) else [None])]
    if not all(isinstance(one, dict) and all(isinstance(text, str) for text in one.values()) for one in entries):
        raise InputError(f'{file}: "releases" must hold a list of digests for each data set')
    known: dict[str, list[dict[str, str]]] = releases
    return known
