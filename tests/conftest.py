"""Randomised tests draw the same examples on every machine, and leave nothing behind."""

import os
from itertools import count

import pytest
from hypothesis import Phase, settings

from offrecord import cli

# as the command does: threads of a product of small matrices wait for each other's cores
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# explaining a failure runs it again and again under a tracer, for minutes
_PHASES = tuple(phase for phase in Phase if phase is not Phase.explain)
settings.register_profile("fixed", derandomize=True, database=None, deadline=None, phases=_PHASES)
settings.load_profile("fixed")
_numbers = count()


@pytest.fixture(autouse=True)
def _own_data_directory(tmp_path_factory, monkeypatch):
    """Keys that nobody names are made here, not in the data directory of whoever runs the tests:
    one for each test, as a ledger knows its tables again.
    """
    folder = tmp_path_factory.getbasetemp() / "data" / str(next(_numbers))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))


@pytest.fixture
def run(capsys):
    """Runs the command: exit code, standard output, standard error."""

    def run(*arguments):
        code = cli.main(list(map(str, arguments)))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
