"""What is said to whoever uses Offrecord wrongly, at a risk, or by an old name."""

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
    """What a person should know about a release or a fit, which says it under warnings, too."""


class ChosenByValue(OffrecordWarning):
    """Private records seem to have been chosen by their values, which tells them.

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
