"""Nothing that is said or written depends on what a private cell holds: a value, another one, one
nobody knows, or none.
"""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import offrecord as off
from definition import samples
from explained import explained
from offrecord import cli
from offrecord.tables.engines import spark, stream
from offrecord.tables.engines.engine import Reading

CHAIN = off.MarkovChain([[0.8, 0.2], [0.4, 0.6]])
NEVER = off.MarkovChain([[0.5, 0.5], [1.0, 0.0]])
STATES = [0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 0] * 2
REFERENCE = samples(CHAIN, 1, 300, np.random.default_rng(1))[0].tolist()  #: enough for an audit


def table(cell, kind=pl.String, place=9):
    """Two chains of 20 records; one record is private and holds the cell."""
    cells = [str(state) for state in STATES]
    cells[place] = cell
    cells = pl.Series(cells, dtype=pl.String).cast(kind, strict=False)
    return pl.DataFrame(
        {
            "room": ["a"] * 20 + ["b"] * 20,
            "t": [*range(20)] * 2,
            "v": cells,
            "p": [i == 9 for i in range(40)],
        }
    )


def with_reference(frame):
    """And a third chain, so long that what is learned can be audited."""
    more = pl.DataFrame(
        {
            "room": ["c"] * len(REFERENCE),
            "t": range(len(REFERENCE)),
            "v": map(str, REFERENCE),
            "p": [False] * len(REFERENCE),
        }
    )
    return pl.concat([frame, more])


@pytest.fixture
def released(tmp_path, capsys):
    """Everything that leaves a run, errors included; by a local mechanism unless one is named."""
    CHAIN.save(tmp_path / "model.json")
    NEVER.save(tmp_path / "never.json")

    def run(frame, *options, model="model.json", ending="csv"):
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        getattr(frame, f"write_{ending}")(tmp_path / f"t.{ending}")
        arguments = [
            "redact",
            str(tmp_path / f"t.{ending}"),
            "--value",
            "v",
            "--order",
            "t",
            "--by",
            "room",
            "--private",
            "p",
        ]
        arguments += [
            "--epsilon",
            "1",
            "--dataset",
            "d",
            "--key-file",
            str(tmp_path / "keys" / "key.json"),
            "--force",
            "--json",
        ]
        arguments += [] if "--mechanism" in options else ["--mechanism", "best-local"]
        arguments += [] if "--fit" in options else ["--model", str(tmp_path / model)]
        arguments += [] if "--dry-run" in options else ["-o", str(out / f"o.{ending}")]
        code = cli.main([*arguments, *options])
        said = capsys.readouterr()
        shown = {**json.loads(said.out), "seconds": 0, "warnings": 0} if said.out else {}
        files = {file.name: file.read_bytes() for file in out.iterdir()}
        for file in out.iterdir():
            file.unlink()
        err = "" if "made a new key" in said.err else said.err
        return code, json.dumps(shown), "" if code == 0 else err, files

    return run


CELLS = ("0", "1", "7", "NA", "wet", None)


@pytest.mark.parametrize(
    "options", [(), ("--dry-run",), ("--stream",), ("--fit",), ("--mechanism", "window")], ids=str
)
def test_a_private_cell_may_hold_anything(released, options):
    whole = with_reference if "--fit" in options else lambda frame: frame
    found = [released(whole(table(cell)), *options) for cell in CELLS]
    assert [one[0] for one in found] == [0] * len(CELLS)
    assert all(one == found[0] for one in found[1:])


def test_a_private_cell_may_hold_anything_in_a_typed_file(released):
    found = [released(table(cell, pl.Int64), ending="parquet") for cell in ("0", "1", "7", None)]
    assert [one[0] for one in found] == [0] * 4
    assert all(one == found[0] for one in found[1:])


JSON = ("0", "1", "7", '"NA"', '"x"', "null", "true", "0.5", '""')


@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--stream",), ("--fit",)], ids=str)
@pytest.mark.parametrize("kind", ["whole", "decimal", "truth"])
def test_a_private_cell_may_hold_anything_in_json(released, tmp_path, options, kind):
    """Types of others do not depend on it."""
    labels = {"whole": (0, 1), "decimal": (0.5, 1.5), "truth": (False, True)}[kind]
    off.MarkovChain(CHAIN.transition, labels=labels).save(tmp_path / "labels.json")

    class Table:
        def __init__(self, cell):
            self.cell = cell

        def write_ndjson(self, path):
            frame = with_reference(table("0")) if "--fit" in options else table("0")
            states = STATES + REFERENCE[: len(frame) - len(STATES)]
            rows = zip(frame["room"], frame["t"], states, range(len(frame)), strict=True)
            lines = [
                f'{{"room": "{room}", "t": {t}, "v":'
                f' {self.cell if i == 9 else json.dumps(labels[state])}, "p":'
                f" {json.dumps(i == 9)}}}\n"
                for room, t, state, i in rows
            ]
            path.write_text("".join(lines))

    found = [released(Table(cell), *options, model="labels.json", ending="ndjson") for cell in JSON]
    assert [one[0] for one in found] == [0] * len(JSON)
    assert all(one == found[0] for one in found[1:])
    if "--dry-run" not in options:
        first = json.loads(found[0][3]["o.ndjson"].splitlines()[0])
        assert first["v"] in labels
        assert isinstance(first["v"], type(labels[0]))


def test_a_private_cell_may_hold_anything_in_a_frame_of_pandas(tmp_path):
    """A column of objects; and another, which nobody asked for, may hold anything too."""
    found = []
    for cell in (0, 1, "x", True, [1], 2**70, b"x", None, 1.5, float("nan")):
        cells = [*STATES]
        cells[9] = cell
        frame = table("0", pl.Int64).to_pandas().assign(note=[1, "x"] * 20)
        frame["v"] = pd.Series(cells, dtype=object)
        release = off.redact(
            frame,
            value="v",
            order="t",
            by="room",
            private="p",
            model=CHAIN,
            epsilon=1.0,
            dataset="d",
            mechanism="best-local",
            key_file=tmp_path / "keys" / "key.json",
        )
        found.append((release.frame.to_csv(), json.dumps(release.certificate)))
    assert len(set(found)) == 1


def test_so_may_a_record_that_is_redacted_whatever_it_is(released, monkeypatch):
    """Right beside the private one; further out, an unknown value is an error, because it might be
    released.
    """
    assert released(table("0", place=10))[0] == 0
    rule = off.redact(
        table("0", pl.Int64),
        value="v",
        order="t",
        by="room",
        private="p",
        model=CHAIN,
        epsilon=1.0,
        dataset="e",
        mechanism="best-local",
        dry_run=True,
    )
    rule = explained(rule)
    certain = rule.filter(region="L")["t"].to_list()
    assert 10 in certain
    found = [released(table(cell, place=10)) for cell in CELLS]
    assert [one[0] for one in found] == [0] * len(CELLS)
    assert len({one[3]["o.csv"] for one in found}) == 1
    code, _, said, files = released(table("7", place=15))
    assert (code, files) == (2, {})
    named = "does not know in 1 row: room 'a', t 15 (row 16)"
    assert named in said
    for engine in ("--stream", "--dry-run"):
        assert named in released(table("7", place=15), engine)[2]
    monkeypatch.setattr(stream, "_PART", 20)
    said = released(table("7", place=35), "--stream")[2]
    assert "does not know in 1 row: room 'b', t 15 (row 36)" in said


def test_an_impossible_transition_beside_a_private_record_is_not_told(released):
    """1 is never followed by 1 under this model: between private or always redacted records nobody
    may say that it was.
    """
    states = [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0] * 2
    tables = []
    for pair in ((0, 1), (1, 1), (1, 0), (0, 0)):
        cells = [*states]
        cells[8], cells[9] = pair
        frame = table("0", pl.Int64).with_columns(pl.Series("v", cells))
        tables.append(
            released(frame, "--mechanism", "window", model="never.json", ending="parquet")
        )
    assert [one[0] for one in tables] == [0] * 4
    assert all(one == tables[0] for one in tables[1:])


def test_counts_do_not_tell_whether_a_private_cell_was_empty(released):
    full, empty, elsewhere = (
        released(table("1")),
        released(table(None)),
        released(table(None, place=15), "--accept", "another-release"),
    )
    assert json.loads(full[1])["missing"] == json.loads(empty[1])["missing"] == 0
    assert json.loads(elsewhere[1])["missing"] == 1


def test_what_holds_the_table_or_the_key_prints_neither(tmp_path):
    """As it may stand in a log, or in a traceback with its variables."""
    frame = table("1", kind=pl.Int64).with_columns(
        room=pl.col("room") + " NEEDLE", note=pl.Series([f"NEEDLE {i}" for i in range(40)])
    )
    release = off.redact(
        frame,
        by="room",
        order="t",
        value="v",
        private="p",
        model=CHAIN,
        epsilon=1.0,
        dataset="d",
        keep="note",
        key_file=tmp_path / "keys" / "key.json",
        accept="model",
        publish_positions=True,
    )
    made, outcome = release.table, release.outcome
    plan, given = outcome.plan, outcome.plan.given
    task = spark._Task(given.key.secret, None)
    reading = Reading.of(given, None)
    assert "NEEDLE" in repr(made.arranged.frame)
    assert plan.survey.positions
    hidden = (
        "NEEDLE",
        repr(made.chains.codes)[:30],
        repr(made.private.order),
        given.key.secret.hex(),
        repr(given.key.secret),
    )
    objects = (release, made, made.arranged, made.private, made.coins, given, given.key)
    for one in (*objects, plan, plan.rule, outcome, outcome.decision, task, reading):
        printed = repr(one)
        assert [text for text in hidden if text in printed] == [], type(one).__name__
