"""The one exception for wrong input, and the one warning of our own."""


class InputError(ValueError):
    """A value from outside that Offrecord does not take.

    The message is one line that says what is accepted.
    """


class ChosenByValue(UserWarning):
    """Private records seem to have been chosen by their values, which tells them.

    It is for whoever runs a release alone.
    """
