"""Chains that are dropped leave no trace: what is released is what it would be without them."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord import cli
from offrecord.errors import InputError
from table_files import write

CHAIN = off.MarkovChain([[0.9, 0.1], [0.3, 0.7]])
LONG = 30


def rooms(names, seed=3):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "room": [name for name in names for _ in range(LONG)],
            "hour": [*range(LONG)] * len(names),
            "state": rng.integers(0, 2, LONG * len(names)),
            "note": [f"note {i % 7}" for i in range(LONG * len(names))],
        }
    )
    return frame.with_columns(hidden=(pl.col("room") == names[0]) & (pl.col("hour") == 11))


#: "attic" makes all names text, and the order of chains that of text.
ALL = ["2", "10", "attic", "1", "7"]
LISTED = pl.DataFrame({"room": ["attic", "7"]})
OPTIONS = {
    "value": "state",
    "order": "hour",
    "by": "room",
    "private": "hidden",
    "epsilon": 1.0,
    "dataset": "rooms",
    "model": CHAIN,
    "accept_model": True,
    "publish_positions": True,
    "keep": "note",
}


class Desk:
    """Releases of a table, each with a ledger of its own and the same key."""

    def __init__(self, folder):
        self.folder = folder
        off.release.keys.Key.new(folder / "key" / "key.json")

    def release(self, name, frame, streamed=False, ending=".csv", **options):
        """All that is written of a release, and its summary."""
        drawer, out = self.folder / f"key {name}", self.folder / name
        for made in (drawer, out):
            made.mkdir()
        for file in (self.folder / "key").iterdir():
            (drawer / file.name).write_bytes(file.read_bytes())
            (drawer / file.name).chmod(0o600)
        chosen = OPTIONS | {"key_file": drawer / "key.json"} | options
        path = out / f"out{ending}"
        if streamed:
            file = write(frame, self.folder / f"{name}{ending}")
            summary = off.redact_file(file, path, explain=out / "e.csv", **chosen).summary
        else:
            release = off.redact(frame, **chosen)
            release.write(path)
            release.explain().write_csv(out / "e.csv")
            summary = release.summary
        told = summary.to_dict() | {"seconds": None}
        return {file.name: file.read_bytes() for file in out.iterdir()}, told


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.setattr("offrecord.tables.engines.stream._PART", 70)
    return Desk(tmp_path)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_what_is_dropped_might_as_well_not_have_been_there(desk, ending):
    frame = rooms(ALL)
    rest = frame.filter(~pl.col("room").is_in(LISTED["room"].implode()))
    expected = desk.release("without", rest, ending=ending)
    for streamed in (False, True):
        found = desk.release(
            f"dropped {streamed}", frame, streamed, ending, private_list=LISTED, drop=True
        )
        assert found == expected
        assert expected[1]["rows"] == 3 * LONG


def test_nor_does_a_model_that_is_learned_know_of_it(desk):
    fit = {"model": None, "fit": True, "no_audit": True}
    frame = rooms(ALL, seed=5)
    rest = frame.filter(~pl.col("room").is_in(LISTED["room"].implode()))
    assert desk.release("dropped", frame, private_list=LISTED, drop=True, **fit) == desk.release(
        "without", rest, **fit
    )


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
def test_twins_in_the_values_of_whole_chains(desk, drop, streamed):
    """Whatever these hold: another value, one the model does not know, or none."""
    frame = rooms(ALL).drop("note")
    whole = pl.col("room").is_in(LISTED["room"].implode())
    seen = []
    for name, value in (("as is", pl.col("state")), ("flipped", 1 - pl.col("state")), ("odd", 77)):
        changed = pl.when(whole).then(value).otherwise("state").alias("state")
        seen.append(
            desk.release(
                name,
                frame.with_columns(changed),
                streamed,
                private_list=LISTED,
                drop=drop,
                keep=None,
            )
        )
    assert seen[0] == seen[1] == seen[2]


def test_the_ledger_knows_which_records_were_private(desk, tmp_path):
    """Dropped ones among them: the certificate tells of those that are left, the ledger of all."""
    frame = rooms(ALL)
    drawer = tmp_path / "ledger" / "key.json"
    off.release.keys.Key.new(drawer)
    options = OPTIONS | {"key_file": drawer, "private_list": LISTED}
    dropped = off.redact(frame, **options, drop=True)
    off.redact(frame, **options, drop=True)  # the same again
    assert dropped.certificate["private"]["count"] == 1
    assert dropped.certificate["private"]["digest"].endswith(":1")
    assert dropped.certificate["private"]["positions"]["keys"] == [[2, 11]]
    other = off.redact(frame, **options, another_release=True)
    assert other.certificate["private"]["digest"].endswith(f":{2 * LONG + 1}")
    releases = json.loads(drawer.with_name("key.ledger.json").read_text())["releases"]["rooms"]
    first, second = (one["private list"] for one in releases)
    assert first == second == other.certificate["private"]["digest"]
    with pytest.raises(InputError, match="another private list"):
        off.redact(frame, **(options | {"private_list": LISTED[:1]}), drop=True)


def test_only_chains_that_are_private_as_a_whole_are_dropped(desk):
    keys = pl.DataFrame({"room": ["7"] * LONG + ["1"], "hour": [*range(LONG), 4]})
    written, summary = desk.release("keys", rooms(ALL), private_list=keys, drop=True)
    assert summary["chains"] == 4
    left = pl.read_csv(written["out.csv"], infer_schema=False)["room"].unique().to_list()
    assert sorted(left) == ["1", "10", "2", "attic"]


def test_what_cannot_be_dropped(desk):
    with pytest.raises(InputError, match="private as a whole, and none is"):
        off.redact(rooms(ALL), **OPTIONS, drop=True)
    everyone = pl.DataFrame({"room": ALL})
    for streamed in (False, True):
        with pytest.raises(InputError, match="--drop leaves nothing to release"):
            desk.release(f"all {streamed}", rooms(ALL), streamed, private_list=everyone, drop=True)


def test_a_chain_in_pieces_is_not_dropped_piece_by_piece(desk):
    """The first piece of chain 7 is private as a whole; the chain is not."""
    frame = rooms(ALL)
    first = (pl.col("room") == "7") & (pl.col("hour") < 10)
    frame = pl.concat([frame.filter(first), frame.filter(~first)])
    keys = pl.DataFrame({"room": ["7"] * 10, "hour": [*range(10)]})
    with pytest.raises(InputError, match="do not stand together"):
        desk.release("pieces", frame, True, private_list=keys, drop=True)


def test_the_command_says_how_many(desk, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    CHAIN.save("model.json")
    write(rooms(ALL), "t.csv")
    LISTED.write_csv("list.csv")
    command = "redact t.csv --value state --order hour --by room --private-list list.csv --drop"
    command += " --model model.json --epsilon 1 --dataset d --accept-model -o out.csv"
    assert cli.main(command.split()) == 0
    said = capsys.readouterr()
    assert "note: --drop leaves out 2 chains, 60 rows; no file that is written says so" in said.err
    assert "attic" not in said.out + said.err
    assert "protected      0 private records" in said.out
    certificate = Path("out.csv.certificate.json").read_text()
    assert json.loads(certificate)["counts"]["rows"] == 3 * LONG
    assert "attic" not in certificate


@pytest.mark.parametrize("streamed", [False, True])
def test_a_model_that_has_seen_what_is_dropped_is_refused(desk, streamed):
    frame = rooms(ALL)
    key = desk.folder / "key" / "key.json"
    found = off.fit(frame, value="state", order="hour", by="room", no_audit=True, key_file=key)
    options = {"private": None, "private_list": LISTED, "drop": True, "model": found.model}
    (desk.folder / "o").mkdir()
    chosen = OPTIONS | {"key_file": key, "accept_model": False} | options
    file = write(frame, desk.folder / "t.csv")

    def redact():
        if streamed:
            return off.redact_file(file, desk.folder / "o" / "out.csv", **chosen)
        return off.redact(frame, **chosen)

    with pytest.raises(InputError, match=r"not released for certain here \(60 records\)"):
        redact()
