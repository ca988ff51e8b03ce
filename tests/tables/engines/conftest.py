"""A table both in memory and as a stream, and the command line in a folder of its own."""

import hashlib
import json
from pathlib import Path

import pytest

import offrecord as off
from command_line import flags
from offrecord import cli
from offrecord.release.keys import Key, default_key_file
from offrecord.tables.engines import stream
from streams import CHAIN, COLUMNS
from table_files import write


@pytest.fixture(scope="session")
def drawer(tmp_path_factory):
    """Where the designs that are shared lie."""
    return tmp_path_factory.mktemp("drawer")


@pytest.fixture
def both(tmp_path, drawer, monkeypatch):
    """A table redacted in memory and as a stream in small parts, both written: they must be the
    same to the last byte.

    Each makes its own designs unless those of other tests are shared, for which options must be
    the standard ones.
    """

    def redact(table, ending=".parquet", part=100, source=None, shared=False, **options):
        monkeypatch.setattr(stream, "_PART", part)
        chosen = (
            COLUMNS
            | {"private": "hidden", "model": CHAIN, "epsilon": 1.5, "dataset": tmp_path.name}
            | options
        )
        chosen["accept_model"] = True  # of some order, some start: the table is that of one
        chosen["design_minutes"] = 1000  # a machine may be busy
        chosen["key_file"] = tmp_path / "key.json"
        if shared:
            chosen["designs"] = drawer / "designs.json"
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        file = write(table, tmp_path / f"table{source or ending}")
        memory, streamed = out / f"memory{ending}", out / f"streamed{ending}"
        read = off.tables.formats.read_frame(file)
        release = off.redact(read, **chosen)
        release.write(memory, force=True)
        found = off.redact_file(file, streamed, force=True, **chosen)
        assert streamed.read_bytes() == memory.read_bytes()
        proofs = [Path(f"{path}.certificate.json").read_bytes() for path in (memory, streamed)]
        assert proofs[0] == proofs[1]
        assert (
            json.loads(proofs[1])["output"]["sha256"]
            == hashlib.sha256(streamed.read_bytes()).hexdigest()
        )
        for name, value in release.summary.to_dict().items():
            if name not in ("seconds", "warnings"):
                assert found.summary.to_dict()[name] == value, name
        assert {*out.iterdir()} == {
            memory,
            streamed,
            *(Path(f"{path}.certificate.json") for path in (memory, streamed)),
        }
        assert 0 < release.summary.redacted < table.height
        return found

    return redact


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a model and a key, to work in."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    CHAIN.save("model.json")
    Key.new(default_key_file())
    return tmp_path


@pytest.fixture
def desk(folder, capsys):
    """The command line in a folder of its own."""

    def run(*arguments, **options):
        chosen = (
            COLUMNS
            | {"private": "hidden", "model": "model.json", "epsilon": 1.5, "dataset": "rooms"}
            | options
        )
        command = ["redact", *map(str, arguments)]
        command += flags(chosen)
        code = cli.main(command)
        return code, *capsys.readouterr()

    return run
