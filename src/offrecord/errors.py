"""Errors and warnings that users see."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from itertools import count


class InputError(ValueError):
    """A value from outside that Offrecord does not take.

    The message is one line that says what is accepted.
    """


class OffrecordWarning(UserWarning):
    """A warning about a release or a fit, also listed in its `warnings`."""


class ChosenByValue(OffrecordWarning):
    """Private records seem to have been chosen by their values, so that the choice leaks them.

    It is for whoever runs a release alone.
    """


def advise(messages: Iterable[str], kind: type[OffrecordWarning] = OffrecordWarning) -> None:
    """A Python warning for each message, at the line outside of this package that led here."""
    own = __name__.partition(".")[0]
    for level in count(1):
        try:
            name = sys._getframe(level).f_globals.get("__name__", "")
        except ValueError:  # the command line: there is nothing outside
            break
        if name.partition(".")[0] != own:
            break
    for message in messages:
        warnings.warn(message, kind, stacklevel=level + 1)
