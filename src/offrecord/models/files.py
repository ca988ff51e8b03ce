"""Model files: what those of every kind of model hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from offrecord.errors import InputError
from offrecord.files import checked_content, write_text
from offrecord.models.base import Model
from offrecord.models.box import Box
from offrecord.models.learned import Learned

MODEL_VERSION = 1
#: What every model file begins with.
HEAD = {"format": "offrecord-model", "version": MODEL_VERSION}


def save_model(model: Model, path: str | Path, *, force: bool) -> None:
    """Write a model file: what the model is, and what it was learned from."""
    content, learned = model.to_dict(), model.learned
    whole = content if learned is None else {**content, "learned": learned.to_dict()}
    write_text(path, json.dumps(whole, indent=1, allow_nan=False) + "\n", force=force)


def model_content(content: Any, *keys: str) -> dict[str, Any]:
    """The content of a model file that must hold these keys; InputError for anything else."""
    return checked_content(content, "model", MODEL_VERSION, keys)


def labels_of(content: dict[str, Any]) -> list[Any]:
    """The labels in a model file's content."""
    labels = content["labels"]
    if not isinstance(labels, list):
        raise InputError('model file: "labels" must be a list')
    return labels


def learned_of(content: dict[str, Any]) -> Learned | None:
    """What the model of a file was learned from, where the file says so."""
    return None if content.get("learned") is None else Learned.from_dict(content["learned"])


def set_content(box: Box | None) -> dict[str, Any]:
    """The entry of a model file that holds a set of models, where there is one."""
    return {} if box is None else {"set": box.to_dict()}


def box_of(content: dict[str, Any]) -> Box | None:
    """The set of models of a file, where it has one."""
    if content.get("set") is None:
        return None
    try:
        return Box.from_dict(content["set"], content.get("order", 1))
    except InputError as error:
        raise InputError(f"model file: {error}") from None
