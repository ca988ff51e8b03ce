"""Rules kept beside the key: a release that is made again takes the rules of the one before.

Random streams and solvers differ between versions and machines, so designing anew could give other
rules, and the ledger would call that a second, different release. A file holds rules alone, which
certificates publish.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from secrets import token_bytes
from typing import Any

from offrecord.errors import InputError
from offrecord.files import read_json, write_private
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.promise import Promise
from offrecord.tables.given import Given

FORMAT = "offrecord-policy"


def own_seed() -> bytes:
    """A seed of the machine's randomness, for draws that nobody can foresee."""
    return token_bytes(32)


def save(given: Given, promise: Promise, policy: TablePolicy, compared: dict[str, Any]) -> None:
    """Keep the rules of a release beside the key. compared: what they were chosen before."""
    content = {"format": FORMAT, "policy": policy.to_dict(), "compared": compared}
    write_private(_file(given, promise), f"{json.dumps(content)}\n".encode())


def load(given: Given, promise: Promise) -> tuple[TablePolicy, dict[str, Any]] | None:
    """The rules of the release before under the same name, model and promise, and what they were
    chosen before; None if there were none.
    """
    file = _file(given, promise)
    if not given.key_path.exists() or not file.exists():
        return None
    try:
        content = read_json(file)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InputError("not a policy")
        return TablePolicy.from_dict(content["policy"]), dict(content["compared"])
    except (InputError, KeyError, TypeError, ValueError):
        raise InputError(f"{file} is damaged: bring it back from a copy, or delete it") from None


def _file(given: Given, promise: Promise) -> Path:
    """Where the rules of a release are kept."""
    options = given.options
    # All that rules are designed by: under other options they are not those of the release before.
    said = [
        options.dataset,
        options.value,
        promise.to_dict(),
        given.epsilon,
        options.protect,
        promise.coverage,
        None if given.mechanism is None else repr(given.mechanism),
        options.growing,
    ]
    digest = hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()
    return given.key.releases_folder / f"{digest[:32]}.json"
