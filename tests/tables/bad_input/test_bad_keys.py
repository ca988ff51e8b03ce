"""Keys and ledgers that are missing, damaged, or know of another release."""

import json
from pathlib import Path

import pytest

import offrecord as off
from good_command import ROWS


def test_keys(desk):
    code, made, err = desk.run("key", "new")
    assert (code, len(made.strip())) == (0, 16)
    assert err.startswith(f"offrecord: warning: made {desk.key}")
    desk.fails(["key", "new"], str(desk.key), "never overwritten", "--key-file")
    assert desk.works("key", "show-id") == made
    desk.fails(["key", "make"], "new or show-id", "'make'")
    desk.fails(["key", "show-id", "--key-file", "no.json"], "no.json", "does not exist")
    desk.key.chmod(0o644)
    desk.fails(["key", "show-id"], str(desk.key), "chmod 600")
    desk.fails(desk.redact(), str(desk.key), "chmod 600")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '"key"',
        '{"format": "offrecord-key", "version": 1}',
        '{"format": "offrecord-key", "version": 1, "key": 5}',
        '{"format": "offrecord-key", "version": 1, "key": "00ff"}',
        '{"format": "offrecord-key", "version": 2, "key": "' + "00" * 32 + '"}',
        '{"format": "offrecord-key", "version": 1, "key": "' + "zz" * 32 + '"}',
    ],
)
def test_files_that_are_no_key(desk, content):
    Path("sub").mkdir()
    key = Path("sub/key.json")
    key.write_text(content)
    key.chmod(0o600)
    desk.fails(desk.redact(key_file=key), "sub/key.json", never=["zzzz", "00ff"])


def test_the_key_lies_not_beside_the_output(desk):
    desk.fails(desk.redact(key_file="key.json"), "key.json", "beside the output", "--key-file")
    desk.fails(desk.redact(output=desk.key.parent / "out.csv"), "is not a folder")
    desk.run("key", "new")
    desk.fails(desk.redact(output=desk.key.parent / "out.csv"), "beside the output")


def test_a_run_that_fails_before_it_needs_a_key_makes_none(desk):
    desk.fails(desk.redact(value="no such"), "'no such'")
    desk.fails(
        desk.redact(desk.write("none.parquet", hidden=[False] * ROWS)), "no record is private"
    )
    desk.works(*desk.redact(dry_run=True))
    assert not desk.key.exists()


def test_the_first_release_under_a_key_says_keep_it(desk):
    """Also where a run that was refused has made it; and once."""
    desk.fails(desk.redact(policy="model.json"), "model.json")
    assert desk.key.exists()
    said = f"made a new key, {desk.key} (id {desk.works('key', 'show-id').strip()}): keep it secret"
    assert said in desk.run(*desk.redact())[2]
    assert said not in desk.run(*desk.redact(force=True))[2]


@pytest.mark.parametrize("lost", ["deleted", "copied"])
def test_a_key_without_its_ledger_does_not_know_of_other_releases(desk, lost):
    desk.works(*desk.redact())
    key = desk.key
    if lost == "deleted":
        key.with_name("key.ledger.json").unlink()
    else:
        key = desk.folder / "copies" / "key.json"
        key.parent.mkdir()
        key.write_bytes(desk.key.read_bytes())
        key.chmod(0o600)
    for output in ("b.csv", "c.csv"):  # what the ledger learns now does not tell what was before
        code, _, err = desk.run(*desk.redact(output=output, key_file=key))
        assert code == 0
        assert f"the key {key} was there without its ledger" in err
        assert "earlier releases of data set 'rooms' are not known" in err
        release = json.loads(Path(f"{output}.certificate.json").read_text())["release"]
        assert (release["others"], release["accepted"]) == (None, False)
        assert "without its ledger" in release["why"]
        assert str(key) not in release["why"]  # a certificate names no file of this machine
    desk.works(*desk.redact(output="d.csv", key_file=key, epsilon=2, accept="another-release"))
    assert json.loads(Path("d.csv.certificate.json").read_text())["release"] == {
        "others": 1,
        "accepted": True,
        "why": None,
    }


def test_a_ledger_without_its_key_gets_no_other_key(desk):
    desk.works(*desk.redact())
    secret = desk.key.read_bytes()
    desk.key.unlink()
    desk.fails(desk.redact(output="b.csv"), "key.ledger.json", "without its key")
    desk.fails(["key", "new"], "key.ledger.json", "without its key")
    desk.run("key", "new", "--key-file", "other.json")
    desk.key.write_bytes(Path("other.json").read_bytes())
    desk.key.chmod(0o600)
    desk.fails(desk.redact(output="b.csv"), "key.ledger.json", "the ledger of another key")
    desk.key.write_bytes(secret)
    desk.works(*desk.redact(output="b.csv"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda _: "{}",
        lambda _: "[]",
        lambda text: json.dumps(json.loads(text) | {"version": 9}),
        lambda text: json.dumps(json.loads(text) | {"releases": []}),
        lambda text: json.dumps(json.loads(text) | {"releases": {"rooms": {}}}),
        lambda text: json.dumps(json.loads(text) | {"releases": {"rooms": ["x"]}}),
        lambda text: json.dumps(json.loads(text) | {"releases": {"rooms": [None]}}),
    ],
)
def test_a_damaged_ledger(desk, damage):
    desk.works(*desk.redact(output="first.csv"))
    ledger = desk.key.with_name("key.ledger.json")
    ledger.write_text(damage(ledger.read_text()))
    desk.fails(desk.redact(), "ledger")
    desk.fails(desk.redact(), str(ledger))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"epsilon": 2}, "epsilon"),
        ({"protect": "each"}, "set of rules"),
        ({"model": "other.json"}, "model"),
        ({"private": "more"}, "private list"),
        ({"keep": "note"}, "choice of columns"),
        ({"step": "1"}, "choice of columns"),
    ],
    ids=str,
)
def test_a_second_different_release(desk, changed, reason):
    off.MarkovChain([[0.8, 0.2], [0.2, 0.8]]).save("other.json")
    table = desk.write("two.parquet", more=[True, *[False] * 7], note=["x"] * 8)
    desk.works(*desk.redact(table))
    desk.fails(
        desk.redact(table, output="b.csv", **changed),
        "'rooms'",
        f"another {reason}",
        "--dataset",
        "--accept",
        "another-release",
    )
    desk.works(*desk.redact(table, output="b.csv", **changed, accept="another-release"))
    assert json.loads(Path("b.csv.certificate.json").read_text())["release"] == {
        "others": 1,
        "accepted": True,
        "why": None,
    }
    desk.works(*desk.redact(table, output="c.csv"))
    assert Path("c.csv").read_bytes() == Path("out.csv").read_bytes()


def test_what_was_refused_is_no_release(desk):
    table = desk.write("formula.parquet", room=["=a"] * 4 + ["b"] * 4)
    desk.run("key", "new")
    desk.fails(desk.redact(table), "spreadsheet")
    desk.works(*desk.redact(table, output="out.parquet", epsilon=2))
