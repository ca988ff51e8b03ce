"""The one exception for wrong input."""


class InputError(ValueError):
    """A value from outside that Offrecord does not take; the message is one line that says what is accepted."""
