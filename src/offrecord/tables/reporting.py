"""Where all that is wrong with a table goes, if a person wants to see it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from offrecord.errors import InputError
from offrecord.files import check_path, check_writable
from offrecord.tables.formats import written_format
from offrecord.tables.problems import LocatedError
from offrecord.tables.writing import write_table


def check_report(path: str | Path | None, *, force: bool = False) -> None:
    """InputError unless such a file could be written, if there is to be one."""
    check_path("problems", path)
    if path is not None:
        check_writable(path, force=force)
        written_format(Path(path))


@contextmanager
def reporting(path: str | Path | None, *, force: bool = False) -> Iterator[None]:
    """Have all rows and opt-outs that are wrong in a file, if there is to be one, beside the error
    that names the first of them.
    """
    check_report(path, force=force)
    try:
        yield
    except LocatedError as error:
        if path is None:
            raise
        where = Path(path)
        write_table(iter([error.wrong.frame]), where, written_format(where), force=force)
        raise InputError(f"{error}; all of them are in {where}") from None
