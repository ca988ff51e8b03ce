"""Randomised tests draw the same examples on every machine, and leave nothing behind."""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.load_profile("fixed")
