"""Files that a person names: which may be read or written, and in which format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from offrecord.errors import InputError


def check_all_apart(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """InputError if an output would overwrite an input or another output."""
    named = [(name, path) for name, path in outputs.items() if path is not None]
    for at, (name, path) in enumerate(named):
        for other, taken in [*inputs.items(), *named[:at]]:
            if taken is not None and is_same(path, taken):
                raise InputError(f"{name} must be another file than {other}, got {path} for both")


def check_outside(outputs: Mapping[str, Path | None], table: Path) -> None:
    """InputError if an output would be one of the files of a table that consists of several."""
    from offrecord.tables.folders import is_several, would_hold

    for name, path in outputs.items() if is_several(table) else ():
        if path is not None and would_hold(table, path):
            raise InputError(f"{name} must not be one of the input's files, got {path}")


def is_same(one: Path, other: Path) -> bool:
    """Two paths lead to the same file."""
    return one.resolve() == other.resolve()


def output_format(path: Path, named: str | None) -> str:
    """The format of an output: by the ending of its name, else the one that is named."""
    from offrecord.tables.formats import written_format

    try:
        return written_format(path)
    except InputError:
        if named is None:
            raise
        return written_format(path, named)


def check_folder(path: Path) -> None:
    """InputError if there is something at a path that is no folder."""
    try:
        if path.exists() and not path.is_dir():
            raise InputError(f"--output must be a folder, got the file {path}")
    except OSError as error:
        raise InputError(f"--output cannot be used: {error.strerror}") from None
