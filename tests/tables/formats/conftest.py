"""The command line and the Python call, each with a key of its own."""

import pytest

import offrecord as off
from command_line import flags
from hours import COLUMNS, EPSILON, MODEL
from offrecord import cli


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """The command line in a folder of its own, which must do what it is told: what it printed, and
    its warnings.
    """
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    MODEL.save("model.json")
    assert cli.main(["key", "new"]) == 0
    capsys.readouterr()

    def command(verb, table, **options):
        standard = {
            "private": "hidden",
            "model": "model.json",
            "epsilon": EPSILON,
            "dataset": "rooms",
        }
        chosen = COLUMNS | ({} if verb == "fit" else standard)
        arguments = [verb, str(table)]
        arguments += flags(chosen | options)
        code = cli.main(arguments)
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out, captured.err

    return command


@pytest.fixture
def redact(tmp_path):
    """off.redact with a key of its own."""

    def call(table, **options):
        standard = COLUMNS | {
            "private": "hidden",
            "model": MODEL,
            "epsilon": EPSILON,
            "dataset": "rooms",
        }
        return off.redact(table, key_file=tmp_path / "keys" / "key.json", **(standard | options))

    return call
