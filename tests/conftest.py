"""Randomised tests draw the same examples on every machine, and leave nothing behind."""

from itertools import count

import pytest
from hypothesis import settings

from offrecord import cli

settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.load_profile("fixed")
_numbers = count()


@pytest.fixture(autouse=True)
def _own_data_directory(tmp_path_factory, monkeypatch):
    """Keys that nobody names are made here, not in the data directory of whoever runs the tests:
    one for each test, as a ledger knows its tables again.
    """
    folder = tmp_path_factory.getbasetemp() / "data" / str(next(_numbers))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))


@pytest.fixture(autouse=True)
def _one_process(monkeypatch):
    """Tests run side by side: commands that take other cores as well would only be in their way."""
    monkeypatch.setenv("OFFRECORD_PROCESSES", "1")


@pytest.fixture
def run(capsys):
    """Runs the command: exit code, standard output, standard error."""

    def run(*arguments):
        code = cli.main(list(map(str, arguments)))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
