"""What tests of the verifier share."""

import pytest

from offrecord.release import keys


@pytest.fixture
def known_keys(monkeypatch):
    """Keys that are the same each time, so that what draws do is."""
    numbers = iter(range(1, 100))
    monkeypatch.setattr(keys.secrets, "token_bytes", lambda size: bytes([next(numbers)]) * size)
