"""The secret key behind the coins, and the file it lives in."""

from __future__ import annotations

import json
import os
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from offrecord.errors import InputError
from offrecord.files import beside, read_json, sync, sync_folder
from offrecord.models.base import Section
from offrecord.release.coins import KEY_BYTES, subkey
from offrecord.release.ledger import Ledger, locked


class _KeyForm(Section):
    """A key file."""

    format: Literal["offrecord-key"] = "offrecord-key"
    version: Literal[1] = 1
    key: Annotated[str, Field(pattern=f"^[0-9a-f]{{{2 * KEY_BYTES}}}$")]


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
    """A 256-bit secret and its file. With it, redacted values can be inferred: keep it."""

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
        key = cls._made(file, announced=True)
        if key is None:
            raise InputError(f"{file} exists; a key is never overwritten: give another --key-file")
        return key

    @classmethod
    def load_or_new(cls, file: Path) -> Key:
        """The key of a file, made where there is none."""
        # of several who make it at once, all get the one that came first
        made = None if file.exists() else cls._made(file, announced=False)
        return cls.load(file) if made is None else made

    @classmethod
    def _made(cls, file: Path, *, announced: bool) -> Key | None:
        """A new key, with its ledger; None if there is one already."""
        if file.is_dir():
            raise InputError(f"{file} is a folder, expected a file name for a key")
        key = cls(secrets.token_bytes(KEY_BYTES), file)
        content = json.dumps(_KeyForm(key=key.secret.hex()).to_dict()) + "\n"
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise InputError(f"{file} cannot be made: {error.strerror}") from None
        # a name that is linked is complete; of two processes the second one finds it
        with locked(key), beside(file) as (complete,):
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
            secret = bytes.fromhex(_KeyForm.of(content).key)
        except InputError:
            raise InputError(f"{file} is not a key file; make one with offrecord key new") from None
        # elsewhere the mode of a file does not say who may read it
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

    @property
    def releases_folder(self) -> Path:
        """Where it is remembered which records were private in what left: beside it."""
        return self.file.with_name(f"{self.file.stem}.releases")

    @property
    def fits_folder(self) -> Path:
        """Where it is remembered which records models were learned from: beside it."""
        return self.file.with_name(f"{self.file.stem}.fits")
