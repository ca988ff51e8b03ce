"""Reading model files of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from offrecord.errors import InputError
from offrecord.files import read_json
from offrecord.models.chain import MarkovChain
from offrecord.models.phased import PhasedChain


def load_model(path: str | Path) -> MarkovChain | PhasedChain:
    """Read a model file, with or without phases."""
    content = read_json(path)
    try:
        return model_from_dict(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def model_from_dict(content: Any) -> MarkovChain | PhasedChain:
    """The model of a model file's content, with or without phases."""
    phased = isinstance(content, dict) and content.get("phase") is not None
    return PhasedChain.from_dict(content) if phased else MarkovChain.from_dict(content)
