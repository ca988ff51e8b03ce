"""Files in and out: an output is complete or absent, and never overwrites another by accident."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

from offrecord.errors import InputError

#: Model and policy files larger than this are refused before they are parsed.
MAX_JSON_BYTES = 1 << 30


def check_path(option: str, given: object) -> None:
    """InputError for what an option gives instead of a path."""
    if given is not None and not isinstance(given, (str, os.PathLike)):
        raise InputError(f"--{option} must be the path of a file, got {type(given).__name__}")


def check_writable(path: str | Path, *, force: bool) -> Path:
    """The path, if something may be written there; InputError otherwise."""
    path = Path(path)
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder, expected a file name")
        if path.exists() and not path.is_file():  # a file in its place would end a device
            raise InputError(f"{path} is no file that could be overwritten")
        if path.exists() and not force:
            raise InputError(f"{path} exists; add --force to overwrite it")
        if not path.parent.is_dir():
            raise InputError(f"{path.parent} is not a folder")
        if not os.access(path.parent, os.W_OK):
            raise InputError(f"{path.parent} cannot be written to")
    except OSError as error:
        raise InputError(f"{path.name[:60]} cannot be written: {error.strerror}") from None
    return path


def check_outputs(path: Path, certificate: str | Path | None, key: Path, *, force: bool) -> Path:
    """The certificate's path: beside the output, unless one is given.

    InputError unless both may be written and the key lies elsewhere.
    """
    certificate = certificate_beside(path) if certificate is None else Path(certificate)
    for output in (path, certificate):
        check_writable(output, force=force)
        check_apart(key, output)
    if path.resolve() == certificate.resolve():
        raise InputError(f"--certificate must be another file than --output, got {path} for both")
    return certificate


def check_apart(key: Path, output: Path) -> None:
    """InputError if a key lies in the folder of what will be published."""
    # whoever publishes the folder would publish the key, which gives all coins away
    if key.resolve().parent == output.resolve().parent:
        raise InputError(
            f"the key {key} must not lie beside the output; give --key-file in another folder"
        )


#: What every page of a report has near its beginning.
PAGE_MARK = '<meta name="generator" content="Offrecord report">'


def remove_page(path: Path) -> None:
    """Remove the page of a report, if there is one and it can be; never anything else."""
    with suppress(OSError):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                is_page = PAGE_MARK.encode() in file.read(1024)
            if is_page:
                path.unlink()


def certificate_beside(path: Path) -> Path:
    """Where the certificate of an output goes, unless it is named."""
    return path.with_name(f"{path.name}.certificate.json")


def report_beside(path: Path) -> Path:
    """Where the report of an output goes, unless it is named."""
    return path.with_name(f"{path.name}.report.html")


@contextmanager
def folder_made(path: Path) -> Iterator[None]:
    """A folder for outputs, made if there is none; if all fails, it goes again unless something is
    in it. InputError for what is no folder.
    """
    try:
        is_new = not path.exists()
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"--output must be a folder, got the file {path}") from None
    except OSError as error:
        raise InputError(f"--output cannot be used: {error.strerror}") from None
    try:
        yield
    except BaseException:
        if is_new and not any(path.iterdir()):
            path.rmdir()
        raise


@contextmanager
def beside(*paths: Path) -> Iterator[list[Path]]:
    """A new empty file beside each path, to be renamed to it when complete.

    Whatever is left of them in the end goes.
    """
    # Their names are known before they are there, so that none is left behind.
    made = [path.with_name(f".{path.name}.{token_urlsafe(6)}.partial") for path in paths]
    try:
        for file in made:
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield made
    except OSError as error:
        raise InputError(f"{paths[0]} cannot be written: {error.strerror}") from None
    finally:
        for leftover in made:
            leftover.unlink(missing_ok=True)


def sync(path: Path, mode: int = 0o666) -> None:
    """Have a file on disk, and give it its mode, less what the umask withholds."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
    mask = os.umask(0)  # it can only be read by setting it
    os.umask(mask)
    path.chmod(mode & ~mask)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Have renames in a folder on disk."""
    if os.name == "posix":  # elsewhere folders cannot be opened
        with _opened(folder) as handle:
            os.fsync(handle)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Nobody else who asks for it has this folder, where its file system knows of locks."""
    if os.name != "posix":
        yield
        return
    import fcntl

    with _opened(folder) as handle:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def write_bytes(
    path: str | Path, content: bytes | memoryview, *, force: bool = False, mode: int = 0o666
) -> None:
    """Write a file through a temporary one beside it and a rename.

    mode: who may read it, less what the umask withholds.
    """
    path = check_writable(path, force=force)
    # a rename in one folder is atomic: readers see the old file or the new one
    with beside(path) as (temporary,):
        temporary.write_bytes(content)
        sync(temporary, mode)
        os.replace(temporary, path)


def write_private(path: Path, content: bytes) -> None:
    """Write a file for its owner alone into a folder that is made if it is not there."""
    try:
        path.parent.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise InputError(f"{path.parent} cannot be made: {error.strerror}") from None
    write_bytes(path, content, force=True, mode=0o600)


def write_text(path: str | Path, content: str, *, force: bool = False) -> None:
    """Write a UTF-8 text file through a temporary one beside it and a rename."""
    write_bytes(path, content.encode(), force=force)


def read_json(path: str | Path) -> Any:
    """The content of a JSON file.

    InputError if it is missing, too large, truncated, or holds NaN or infinity.
    """
    path = Path(path)
    try:
        if not path.is_file():
            raise InputError(f"{path} is not a file" if path.exists() else f"{path} does not exist")
        if path.stat().st_size > MAX_JSON_BYTES:
            raise InputError(f"{path} is larger than {MAX_JSON_BYTES >> 20} MiB")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not JSON (not UTF-8 text)") from None
    try:
        # Python takes NaN and Infinity for numbers, JSON does not
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not JSON, or is truncated") from None


def checked_content(content: Any, kind: str, version: int, keys: tuple[str, ...]) -> dict[str, Any]:
    """The content of an offrecord file of this kind.

    InputError for another format or version, or a missing key.
    """
    if not isinstance(content, dict) or content.get("format") != f"offrecord-{kind}":
        raise InputError(f'not a {kind} file: "format" must be "offrecord-{kind}"')
    if content.get("version") != version or content["version"] is True:
        raise InputError(
            f"{kind} file version must be {version}, got {content.get('version')!r:.60}"
        )
    missing = [key for key in keys if key not in content]
    if missing:
        raise InputError(f'{kind} file lacks "{missing[0]}"')
    return content


def _no_constant(name: str) -> Any:
    raise ValueError(name)
