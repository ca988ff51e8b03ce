"""Columns that are asked for and not there: what there is instead, so that a person sees why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from offrecord.errors import InputError
from offrecord.text import nearest

SEPARATORS = {";": "';'", "\t": "tab", "|": "'|'", ",": "','"}
_WIDE = 3  # columns called by numbers: steps of a wide table; fewer are something else
_LINE = 200  # characters of a list of columns, at most


def check_columns(
    wanted: Sequence[str], names: Sequence[str], where: str, *, cells: bool = False
) -> None:
    """InputError for the first column that is not there, with the nearest name.

    cells: where a header is missing, names are cells: none is shown if no column is there.
    """
    lacking = [name for name in wanted if name not in names]
    if not lacking:
        return
    if separator := _found_separator(wanted, names):
        raise InputError(
            f"{where} has no column {lacking[0]!r}: its cells seem to be separated by"
            f" {SEPARATORS[separator]}; give --separator {SEPARATORS[separator]}"
        )
    hidden = cells and not set(wanted) & {*names, *(one.strip() for one in names)}
    # where no column is there, one that is there but for capitals shows that names are no cells
    for name in lacking if hidden else lacking[:1]:
        if hint := _spelt_otherwise(name, names):
            raise InputError(f"{where} has no column {name!r} but one called {hint}")
    if hidden:
        raise InputError(
            f"{where} has no column of these: {', '.join(wanted)}; its first line must hold the"
            " names of columns (it is not shown, as it may hold cells)"
        )
    near = nearest(lacking[0], names)
    hint = f"did you mean {near!r}? " if near is not None else ""
    wide = "; if each is a step, see offrecord look" if not near and step_columns(names) else ""
    raise InputError(f"{where} has no column {lacking[0]!r}; {hint}it has {listed(names)}{wide}")


def _spelt_otherwise(name: str, names: Sequence[str]) -> str | None:
    """A column that is there but for blanks or capitals, and what to do about it."""
    for there in names:
        if there.strip() == name.strip():
            return f"{there!r}: remove the blanks around its name"
    for there in names:
        if there.casefold() == name.casefold():
            return f"{there!r}: capitals count"
    return None


def step_columns(names: Iterable[str]) -> list[str]:
    """The columns of a wide table that each hold a step, as w1, w2 and w3 do; none of a few."""
    groups: dict[str, list[str]] = {}
    for name in names:
        if numbered := re.fullmatch(r"(.*?)[\d-]+", name):  # also 2024-12-31
            groups.setdefault(numbered[1], []).append(name)
    steps = max(groups.values(), key=len, default=[])
    return steps if len(steps) >= _WIDE else []


def listed(names: Sequence[str]) -> str:
    """Names of columns, as many as fit a line."""
    shown: list[str] = []
    for name in names:
        if sum(map(len, shown)) + 2 * len(shown) + min(len(name), 40) > _LINE:
            break
        shown.append(name[:40])
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _found_separator(wanted: Sequence[str], names: Sequence[str]) -> str | None:
    # of what stands in the first line nothing else is looked at: it may be cells
    there = len(set(wanted) & {*names})
    for separator in SEPARATORS:
        parts = {part.strip('" ') for name in names for part in name.split(separator)}
        if len(names) < len(parts) and len(set(wanted) & parts) > there:
            return separator
    return None
