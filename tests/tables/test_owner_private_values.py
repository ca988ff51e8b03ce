"""What leaves when the owner's mechanism decides. Where holes begin and end depends on private
values, within ε; all else follows from the released table alone, and the rule from positions.
"""

import json
import shutil

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import samples
from offrecord import cli
from offrecord.release.keys import Key
from offrecord.tables.engines import stream

CHAIN = off.MarkovChain([[0.8, 0.2], [0.4, 0.6]])
NEEDLE = "NEEDLE-IN-HAYSTACK-0123"
LONG = 14
#: A lone record, one at the end, two so near that one choice serves the gap, a run of three.
PRIVATE = {("a", 6), ("b", 0), ("c", 4), ("c", 7), ("d", 5), ("d", 6), ("d", 7)}
KEYS = [(room, t) for room in "abcd" for t in range(LONG)]
VALUES = samples(CHAIN, 4, LONG, np.random.default_rng(3)).ravel()


def table(changed=None):
    """changed: cells by room and hour."""
    cells = [str(value) for value in VALUES]
    for key, cell in (changed or {}).items():
        cells[KEYS.index(key)] = cell
    return pl.DataFrame(
        {
            "room": [room for room, _ in KEYS],
            "t": [t for _, t in KEYS],
            "v": pl.Series(cells, dtype=pl.String),
            "p": [key in PRIVATE for key in KEYS],
            "note": [f"note of {room} {t}." for room, t in KEYS],
        }
    )


ASKED = {
    "value": "v",
    "order": "t",
    "by": "room",
    "private": "p",
    "model": CHAIN,
    "epsilon": 1.0,
    "dataset": "d",
}


@pytest.fixture(scope="module")
def drawer(tmp_path_factory):
    """A key under which nothing has left yet, a model, and designs that are known."""
    folder = tmp_path_factory.mktemp("drawer")
    Key.new(folder / "keys" / "key.json")
    CHAIN.save(folder / "model.json")
    elsewhere = shutil.copytree(folder / "keys", tmp_path_factory.mktemp("elsewhere") / "keys")
    designs, key = folder / "designs.json", elsewhere / "key.json"
    off.redact(table(), **ASKED, designs=designs, key_file=key)
    return folder


@pytest.fixture
def left(drawer, tmp_path, monkeypatch, capsys):
    """All that is there after a run whose key had released nothing before: files, the ledger and
    the designs among them, and what was printed, times apart.
    """

    def run(frame, *options):
        folder = tmp_path / "run"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(drawer, folder)
        monkeypatch.chdir(folder)
        frame.write_csv("t.csv")
        asked = "redact t.csv --value v --order t --by room --private p --model model.json"
        asked += " --epsilon 1 --dataset d --key-file keys/key.json --designs designs.json --json"
        asked += "" if "--dry-run" in options else " -o out.csv --explain explain.csv"
        code = cli.main([*asked.split(), *options])
        said = capsys.readouterr()
        assert code == 0, said.err
        (folder / "t.csv").unlink()
        found = [one for one in folder.rglob("*") if one.is_file() and one.suffix != ".lock"]
        files = {one.name: one.read_bytes() for one in found}
        ledger = json.loads(files["key.ledger.json"])
        for entry in (one for each in ledger["releases"].values() for one in each):
            del entry["entered"]  # a time
        files["key.ledger.json"] = json.dumps(ledger)
        return files | {"out": json.dumps(json.loads(said.out) | {"seconds": 0}), "err": said.err}

    return run


def neighbourhoods(count, seed):
    """Tables that differ in private values and in those beside them."""
    rng = np.random.default_rng(seed)
    near = [("a", 5), ("a", 6), ("b", 0), ("c", 4), ("c", 5), ("c", 7), ("d", 7), ("d", 8)]
    for _ in range(count):
        yield {key: str(value) for key, value in zip(near, rng.integers(2, size=8), strict=True)}


@pytest.mark.parametrize("how", ["--in-memory", "--stream"])
def test_equal_released_tables_have_equal_artefacts(left, how, monkeypatch):
    monkeypatch.setattr(stream, "_PART", 20)
    found = {}
    for changed in neighbourhoods(30, seed=4):
        run = left(table(changed), how)
        found.setdefault(run["out.csv"], []).append(run)
    assert 1 < len(found) < 25  # values decide, and different ones come to the same
    rules = set()
    for runs in found.values():
        assert all(run == runs[0] for run in runs)
        rules.add((runs[0]["explain.csv"], runs[0]["designs.json"]))
    assert len(rules) == 1


def test_a_dry_run_and_the_rule_do_not_depend_on_values(left):
    first = left(table(), "--dry-run")
    for changed in neighbourhoods(4, seed=5):
        assert left(table(changed), "--dry-run") == first


#: Cells that no walk can go by: their walks go straight to the deadline, all in the same way.
UNREADABLE = ("7", "NA", NEEDLE, None)


@pytest.mark.parametrize("key", [("a", 6), ("b", 0), ("c", 4), ("d", 7)], ids=str)
def test_a_private_end_without_a_value_tells_nothing_of_what_it_holds(left, key):
    runs = [left(table({key: cell})) for cell in UNREADABLE]
    assert all(run == runs[0] for run in runs)
    known = [left(table({key: cell})) for cell in ("0", "1")]
    for name in ("explain.csv", "designs.json"):
        assert {run[name] for run in known} == {runs[0][name]}
    told = [json.loads(run["out"]) for run in (*known, runs[0])]
    for name in ("missing", "private", "rows", "regions", "leakage"):
        assert told[0][name] == told[1][name] == told[2][name]


def test_what_no_walk_looks_at_may_be_anything(left):
    """Inside a run."""
    runs = [left(table({("d", 6): cell})) for cell in ("0", "1", *UNREADABLE)]
    assert all(run == runs[0] for run in runs)


def test_no_redacted_value_is_anywhere(left):
    """Nor what was kept beside it."""
    changed = dict.fromkeys(PRIVATE, NEEDLE)
    run = left(table(changed), "--keep", "note")
    released = pl.read_csv(run["out.csv"], infer_schema=False)
    gone = released.filter(pl.col("v").is_null()).select("room", "t").rows()
    assert len(gone) > len(PRIVATE)
    everything = "".join(
        content.decode() if isinstance(content, bytes) else content for content in run.values()
    )
    assert NEEDLE not in everything
    for room, t in gone:
        assert f"note of {room} {t}." not in everything
    kept = released.filter(pl.col("v").is_not_null())
    assert all(f"note of {room} {t}." in everything for room, t in kept.select("room", "t").rows())


def test_frames_too(drawer, tmp_path):
    """As they are in memory, for each released table one certificate and one summary."""
    found = {}
    for number, changed in enumerate(neighbourhoods(40, seed=6)):
        folder = shutil.copytree(drawer, tmp_path / str(number))
        release = off.redact(
            table(changed),
            **ASKED,
            designs=folder / "designs.json",
            key_file=folder / "keys" / "key.json",
        )
        summary = release.summary.to_dict() | {"seconds": 0}
        told = json.dumps([release.certificate, summary], default=str), release.explain()
        first = found.setdefault(release.frame.write_csv(), told)
        assert first[0] == told[0]
        assert first[1].equals(told[1])
    assert 1 < len(found) < 40
