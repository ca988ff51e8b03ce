"""Keys are their owner's alone, and the ledger forgets nothing."""

import os
import stat

import pytest

import offrecord as off
from offrecord.keys import Key, default_key_file, ledger


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


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_key_that_others_can_read_is_refused(key):
    key.file.chmod(0o644)
    with pytest.raises(off.InputError, match="chmod 600"):
        Key.load(key.file)


@pytest.mark.parametrize("content", ["", "{}", '{"format": "offrecord-key", "version": 1, "key": "zz"}', "[1]", "\x00"])
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
        assert book.releases["d"] == [first]
        book.add("d", other)
        assert book.others("d", first) == 1
    assert stat.S_IMODE(key.ledger_file.stat().st_mode) == 0o600
    assert key.secret.hex() not in key.ledger_file.read_text()


def test_a_damaged_ledger_stops_a_release(key):
    key.ledger_file.write_text("{")
    with pytest.raises(off.InputError), ledger(key):
        pass
