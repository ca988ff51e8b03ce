"""Errors and warnings that users see.

Messages are written with the flags of the command line. A Python caller reads arguments instead:
`--private-list` is `private_list`, and `--accept model` is `accept="model"`.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count

from offrecord.text import plain

#: Options that are true or false: flags without a value on the command line.
SWITCHES = {
    *("fit", "force", "growing", "dry_run", "exact_model", "publish_positions"),
    *("single_chain", "keep_all", "keep_rows"),
}
#: Words that are the value of the option before them; other words go on with the sentence.
_CHOICES = (
    "model none another-release row rare run each auto hour weekday month step tab"
    " utf-8 utf-16 utf-16-le utf-16-be utf-32 utf-32-le utf-32-be latin-1 cp1252"
)
_VALUE = rf"'[^']*'|-?\d+(?:\.\d+)?(?:,-?\d+(?:\.\d+)?)*[a-z]*|{_CHOICES.replace(' ', '|')}"
# what stands in backquotes is typed into a shell, as it is
_OPTION = re.compile(rf"`[^`]*`|(?<![^\s(])--([a-z][a-z-]*)(?: (\w+=\w+|{_VALUE})(?![\w-]))?")
#: What has no argument of its own name in Python.
_OTHERWISE = {
    "leave --stream out": "use redact instead of redact_file",
    "with --stream": "with redact_file",
    "offrecord fit,": "off.fit,",
    "see offrecord look": "see off.look",
}

_flags_shown = False


@contextmanager
def flags_shown() -> Iterator[None]:
    """Within it messages name flags: the caller is the command line."""
    # Not a context variable: threads of an engine raise errors as well.
    global _flags_shown  # noqa: PLW0603
    before, _flags_shown = _flags_shown, True
    try:
        yield
    finally:
        _flags_shown = before


def as_called(text: str) -> str:
    """A message on one line, whose options are named as the caller writes them."""
    return plain(text if _flags_shown else in_python(text))


def in_python(text: str) -> str:
    """A message with the arguments of Python in place of flags."""
    for flag, instead in _OTHERWISE.items():
        text = text.replace(flag, instead)
    return _OPTION.sub(_argument, text)


def _argument(option: re.Match[str]) -> str:
    if option[1] is None:
        return option[0]
    name, value = option[1].replace("-", "_"), option[2]
    if value is None:
        return f"{name}=True" if name in SWITCHES else "limits" if name == "limit" else name
    if name == "limit":
        key, _, most = value.partition("=")
        return f'limits={{"{key}": {most}}}'
    if re.fullmatch(r"[-\d.,]+", value):
        return f"{name}=[{value.replace(',', ', ')}]" if name == "bins" else f"{name}={value}"
    return f"{name}={value}" if value.startswith("'") else f'{name}="{value}"'


class InputError(ValueError):
    """A value from outside that Offrecord does not take.

    The message is one line that says what is accepted.
    """

    def __str__(self) -> str:
        return as_called(super().__str__())


class OffrecordWarning(UserWarning):
    """A warning about a release or a fit, also listed in its `warnings`."""

    def __str__(self) -> str:
        return as_called(super().__str__())


class ChosenByValue(OffrecordWarning):
    """Private records seem to have been chosen by their values, so that the choice leaks them.

    It is for whoever runs a release alone.
    """


def advise(messages: Iterable[str], kind: type[OffrecordWarning] = OffrecordWarning) -> None:
    """A Python warning for each message, at the line outside of this package that led here."""
    own = __name__.partition(".")[0]
    # up past all frames of this package, so that a warning names the caller's line
    for level in count(1):
        try:
            name = sys._getframe(level).f_globals.get("__name__", "")
        except ValueError:  # the command line: there is nothing outside
            break
        if name.partition(".")[0] != own:
            break
    for message in messages:
        warnings.warn(message, kind, stacklevel=level + 1)
