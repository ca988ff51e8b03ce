"""The command line, run in process."""

import pytest

from offrecord import cli


@pytest.fixture
def run(capsys):
    """Runs the command: exit code, standard output, standard error."""

    def run(*arguments):
        code = cli.main(list(map(str, arguments)))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
