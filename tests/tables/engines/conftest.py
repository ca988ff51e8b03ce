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


def table_policy(folder, model, **options):
    """The options that redact by the rules of a file, as `offrecord design --table` makes it."""
    chain, file = folder / "chain.json", folder / "rules.json"
    model.save(chain)
    asked = {"model": chain, "epsilon": 1.5, "mechanism": "owner", "output": file} | options
    assert cli.main(["design", "--table", *flags(asked)]) == 0
    return {"model": model, "policy": file}


@pytest.fixture(scope="session")
def rules(tmp_path_factory):
    """Those that tests of standard options share."""
    return table_policy(tmp_path_factory.mktemp("rules"), CHAIN)


@pytest.fixture
def both(tmp_path, rules, monkeypatch):
    """A table redacted in memory and as a stream in small parts, both written: they must be the
    same to the last byte. Both take the standard rules unless options ask for others.
    """

    def redact(table, ending=".parquet", part=100, source=None, **options):
        monkeypatch.setattr(stream, "_PART", part)
        chosen = (
            COLUMNS
            | {"private": "hidden", "model": CHAIN, "epsilon": 1.5, "dataset": tmp_path.name}
            | ({} if options.keys() & {"model", "epsilon", "mechanism", "protect"} else rules)
            | options
        )
        chosen["accept"] = "model"  # of some order, some start: the table is that of one
        chosen["key_file"] = tmp_path / "key.json"
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        file = write(table, tmp_path / f"table{source or ending}")
        memory, streamed = out / f"memory{ending}", out / f"streamed{ending}"
        read = off.tables.io.formats.table_file(file).read()
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
