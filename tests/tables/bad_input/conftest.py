"""A folder of its own for each test, with the good command in it."""

import pytest

from good_command import Desk


@pytest.fixture
def desk(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, capsys)
