"""Randomised tests draw the same examples on every machine, and leave nothing behind."""

import pytest
from hypothesis import settings

from offrecord import cli

settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.load_profile("fixed")


@pytest.fixture(autouse=True)
def _own_data_directory(tmp_path_factory, monkeypatch):
    """Keys that nobody names are made here, not in the data directory of whoever runs the tests."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "data"))


@pytest.fixture
def run(capsys):
    """Runs the command: exit code, standard output, standard error."""

    def run(*arguments):
        code = cli.main(list(map(str, arguments)))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
