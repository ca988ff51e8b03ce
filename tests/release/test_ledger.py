"""The ledger: what it remembers, forgets on a person's word, and still knows then."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from offrecord.release.ledger import Ledger, ledger

NAMES = ("epsilon", "model")
RELEASES = [
    dict(zip(NAMES, each, strict=True)) for each in (("1.0", "a"), ("2.0", "a"), ("1.0", "b"))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("keys")


@settings(max_examples=40, deadline=None)
@given(done=st.lists(st.one_of(st.integers(0, 2), st.sets(st.integers(0, 2))), max_size=7))
def test_every_release_is_known_or_said_to_be_unpublished(folder, done):
    """Numbers are releases that are entered, sets those that are forgotten."""
    file = folder / "key.json"
    key = off.Key.load_or_new(file)
    Ledger(key, {}, {}).save()
    known, unpublished = [], set()
    for step in done:
        with ledger(key) as book:
            if isinstance(step, int):
                book.add("d", RELEASES[step])
                known += [] if step in known else [step]
                unpublished -= {step}
            elif known:
                book.forget("d", step)
                gone = {one for place, one in enumerate(known) if place in step}
                known = [one for one in known if one not in gone]
                unpublished |= gone
    book = Ledger.read(key)
    for which, release in enumerate(RELEASES):
        assert book.others("d", release) == len({*known} - {which})
        assert book.others_forgotten("d", release) == len(unpublished - {which})
        is_refused = bool(book.differences("d", release))
        assert is_refused == (bool(known) and which not in known)
    assert book.others("another", RELEASES[0]) == book.others_forgotten("another", RELEASES[0]) == 0


def test_when_a_release_was_entered_is_remembered(tmp_path):
    key = off.Key.new(tmp_path / "key.json")
    with ledger(key) as book:
        book.add("d", RELEASES[0])
        book.add("d", RELEASES[0])
    (entry,) = Ledger.read(key).releases["d"]
    assert entry["entered"].endswith("+00:00")


@pytest.mark.parametrize("damage", [[], {"d": [1]}, {"d": [{"epsilon": 1}]}, {"d": {}}], ids=str)
def test_what_is_forgotten_must_have_a_form(tmp_path, damage):
    key = off.Key.new(tmp_path / "key.json")
    content = json.loads(key.ledger_file.read_text()) | {"forgotten": damage}
    key.ledger_file.write_text(json.dumps(content))
    with pytest.raises(off.InputError, match="forgotten"):
        Ledger.read(key)


@pytest.mark.parametrize("record", ["Infinity", "0", "-1", "1.0", "01", "9" * 5000, ""])
@pytest.mark.parametrize("chance", [0.5, -0.5, 1.5])
def test_answers_must_have_a_form(tmp_path, record, chance):
    key = off.Key.new(tmp_path / "key.json")
    content = json.loads(key.ledger_file.read_text())
    answer = {"rule": {"0": 0.5, "1": 0.5}, "answer": "ab"}
    for named, rule in ((record, answer), ("1", answer | {"rule": {"0": chance, "1": 0.5}})):
        key.ledger_file.write_text(json.dumps(content | {"answers": {"p": {named: rule}}}))
        if named == "1" and chance == 0.5:
            assert Ledger.read(key).answers == {"p": {"1": answer}}
            continue
        with pytest.raises(off.InputError, match="answers"):
            Ledger.read(key)
