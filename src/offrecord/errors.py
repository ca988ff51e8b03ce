"""What is said to whoever uses Offrecord wrongly, at a risk, or by an old name."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from itertools import count
from typing import Any


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


class renamed:  # noqa: N801 - used like property
    """The old name of an attribute, which keeps working and warns: `old = renamed("new")`."""

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.old = owner.__name__, name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        warnings.warn(
            f"{self.owner}.{self.old} is now called {self.new}", DeprecationWarning, stacklevel=2
        )
        return getattr(instance, self.new)
