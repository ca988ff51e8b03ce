"""Reading model files of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from offrecord.errors import InputError
from offrecord.files import read_json
from offrecord.models.base import Model
from offrecord.models.chain import MarkovChain
from offrecord.models.phased import PhasedChain

#: Models whose files hold more than those of chains, by the entry that tells them.
_TOLD_BY = {"phase": PhasedChain}


def load_model(path: str | Path) -> Model:
    """Read a model file of any kind."""
    content = read_json(path)
    try:
        return model_from_dict(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def model_from_dict(content: Any) -> Model:
    """The model of a model file's content; a chain, unless it says otherwise."""
    for entry, kind in _TOLD_BY.items():
        if isinstance(content, dict) and content.get(entry) is not None:
            return kind.from_dict(content)
    return MarkovChain.from_dict(content)
