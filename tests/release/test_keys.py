"""Keys are their owner's alone, and the ledger forgets nothing."""

import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import time

import pytest

import offrecord as off
from offrecord.release.keys import Key, default_key_file
from offrecord.release.ledger import ledger


@pytest.fixture
def key(tmp_path):
    return Key.new(tmp_path / "data" / "key.json")


def test_a_new_key_is_readable_by_its_owner_alone(key):
    assert len(key.secret) == 32
    assert stat.S_IMODE(key.file.stat().st_mode) == 0o600
    assert Key.load(key.file) == key
    assert key.secret.hex() not in repr(key)
    assert key.id not in key.secret.hex()


def test_a_key_is_never_overwritten(key):
    with pytest.raises(off.InputError, match="never overwritten"):
        Key.new(key.file)


@pytest.mark.parametrize("folder", [".", "/", "..", "somewhere"])
def test_a_folder_is_no_place_for_a_key(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "somewhere").mkdir()
    with pytest.raises(off.InputError, match="is a folder, expected a file name"):
        Key.new(pathlib.Path(folder))
    assert [file.name for file in tmp_path.rglob("*")] == ["somewhere"]


def test_a_new_key_has_an_empty_ledger(key):
    content = json.loads(key.ledger_file.read_text())
    assert (content["key"], content["complete"], content["releases"]) == (key.id, True, {})


@pytest.mark.parametrize("links", [True, False], ids=["hard links", "no hard links"])
def test_whoever_is_second_to_make_a_key_gets_the_first_ones(key, tmp_path, monkeypatch, links):
    link, file = os.link, tmp_path / "other" / "key.json"

    def late(source, target):
        if target == file:
            shutil.copy2(key.file, file)  # somebody else was quicker, just now
        if not links:
            raise PermissionError(1, "Operation not permitted")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    assert Key.load_or_new(file).id == key.id
    assert {one.name for one in file.parent.iterdir()} == {"key.json", "key.ledger.lock"}
    new = Key.load_or_new(tmp_path / "third" / "key.json")
    assert new.id != key.id
    assert Key.load_or_new(new.file) == Key.load(new.file) == new
    assert stat.S_IMODE(new.file.stat().st_mode) == 0o600
    with pytest.raises(off.InputError, match="never overwritten"):
        Key.new(new.file)


PATIENCE = 600  # seconds for what takes two: a machine may be busy
TOGETHER = """
import os, sys, time
import polars as pl
import offrecord as off
frame = pl.DataFrame({"t": range(9), "v": [0, 1, 1] * 3, "p": [t == 4 for t in range(9)]})
off.design(off.Problem(off.MarkovChain.binary(0.1, 0.3), 9, [5], 1.0), "window")
open(f"{sys.argv[1]}.ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.001)
release = off.redact(frame, value="v", order="t", single_chain=True, private="p",
    model=off.MarkovChain.binary(0.1, 0.3),
    mechanism="window", epsilon=float(sys.argv[1]), dataset="d", key_file="keys/key.json",
    accept="another-release", remember=False)
release.write(f"{sys.argv[1]}.csv")
"""


def test_releases_that_start_together_have_one_key_and_see_each_other(tmp_path):
    names = [f"{1 + i / 10}" for i in range(4)]
    running = [
        subprocess.Popen([sys.executable, "-c", TOGETHER, name], cwd=tmp_path) for name in names
    ]
    try:
        until = time.monotonic() + PATIENCE
        while (
            not all((tmp_path / f"{name}.ready").exists() for name in names)
            and time.monotonic() < until
        ):
            time.sleep(0.01)
        (tmp_path / "go").touch()
        assert [process.wait(PATIENCE) for process in running] == [0] * len(names)
    finally:
        for process in running:
            process.kill()
            process.wait()
    proofs = [json.loads((tmp_path / f"{name}.csv.certificate.json").read_text()) for name in names]
    assert {proof["key_id"] for proof in proofs} == {Key.load(tmp_path / "keys" / "key.json").id}
    assert sorted(proof["release"]["others"] for proof in proofs) == [0, 1, 2, 3]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_key_that_others_can_read_is_refused(key):
    key.file.chmod(0o644)
    with pytest.raises(off.InputError, match="chmod 600"):
        Key.load(key.file)


@pytest.mark.parametrize(
    "content", ["", "{}", '{"format": "offrecord-key", "version": 1, "key": "zz"}', "[1]", "\x00"]
)
def test_what_is_no_key_is_refused_without_quoting_it(tmp_path, content):
    file = tmp_path / "key.json"
    file.write_text(content)
    with pytest.raises(off.InputError) as caught:
        Key.load(file)
    assert "zz" not in str(caught.value)


def test_the_default_key_lives_in_the_users_data_directory(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_key_file() == tmp_path / "offrecord" / "key.json"


def test_the_ledger_remembers_what_decided_each_release(key):
    first, other = {"epsilon": "1.0", "model": "a"}, {"epsilon": "2.0", "model": "a"}
    with ledger(key) as book:
        assert book.differences("d", first) is None
        book.add("d", first)
    with ledger(key) as book:
        assert book.differences("d", first) == []
        assert book.differences("d", other) == ["epsilon"]
        assert book.differences("e", other) is None
        assert book.others("d", first) == 0
        book.add("d", first)
        (entry,) = book.releases["d"]
        assert {name: entry[name] for name in first} == first
        book.add("d", other)
        assert book.others("d", first) == 1
    assert stat.S_IMODE(key.ledger_file.stat().st_mode) == 0o600
    assert key.secret.hex() not in key.ledger_file.read_text()


def test_a_damaged_ledger_stops_a_release(key):
    key.ledger_file.write_text("{")
    with pytest.raises(off.InputError), ledger(key):
        pass
