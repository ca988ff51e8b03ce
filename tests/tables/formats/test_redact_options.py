"""What the options of redact do."""

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

import offrecord as off
from hours import COLUMNS, EPSILON, TIMES, frame, rows_of
from offrecord import cli
from offrecord.tables import choosing
from table_files import write


def test_a_list_of_keys_is_as_good_as_a_column(run):
    table = frame()
    run("redact", write(table, "table.parquet"), output="a.csv")
    table.filter("hidden").select("room", "hour").sample(
        fraction=1, shuffle=True, seed=5
    ).write_csv("keys.csv")
    run("redact", "table.parquet", private=None, private_list="keys.csv", output="b.csv")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    one, other = (json.loads(Path(f"{name}.csv.certificate.json").read_text()) for name in "ab")
    assert one == other


def test_kept_columns(run):
    table = frame().with_columns(note=pl.format("{}-{}", "room", "hour"), size=pl.col("hour") / 7)
    _, err = run("redact", write(table, "table.parquet"), keep="note,size", output="out.parquet")
    assert "the guarantee does not cover them: note, size" in err
    released = pl.read_parquet("out.parquet")
    assert released.columns == ["room", "hour", "state", "note", "size"]
    there, cells = (
        released["state"].is_not_null(),
        table.sort("room", "hour").select("note", "size"),
    )
    assert 0 < there.sum() < table.height
    assert released.select("note", "size").filter(there).equals(cells.filter(there))
    assert released.select(pl.col("note", "size").is_null()).equals(
        pl.DataFrame({"note": ~there, "size": ~there})
    )
    run(
        "redact",
        "table.parquet",
        keep="note,size",
        keep_all=True,
        output="all.parquet",
        dataset="another",
    )
    assert pl.read_parquet("all.parquet").select("note", "size").equals(cells)
    certificate = json.loads(Path("out.parquet.certificate.json").read_text())
    assert certificate["columns"]["keep"] == ["note", "size"]
    assert any("kept" in assumption for assumption in certificate["assumptions"])


def test_a_dry_run_writes_nothing(run, tmp_path):
    write(frame(), "table.parquet")
    before = {name: name.stat().st_mtime_ns for name in tmp_path.rglob("*")}
    out, _ = run("redact", "table.parquet", dry_run=True)
    assert "protected" in out
    run("redact", "table.parquet", dry_run=True, output="out.csv", json=True)
    assert {name: name.stat().st_mtime_ns for name in tmp_path.rglob("*")} == before
    run("redact", "table.parquet", output="out.csv", epsilon=2)  # nothing was remembered either


def test_json_is_one_object(run):
    write(frame(), "table.parquet")
    out, _ = run("redact", "table.parquet", output="out.csv", json=True)
    content = json.loads(out)
    released = pl.read_csv("out.csv")
    assert content["rows"] == released.height == sum(content["regions"].values())
    assert content["redacted"] == released["state"].null_count()
    assert content["released"] == pytest.approx(1 - content["redacted"] / content["rows"])
    assert (content["output"], content["certificate"]) == ("out.csv", "out.csv.certificate.json")
    assert content["leakage"] <= content["epsilon"] == EPSILON < content["erasure"]
    content = json.loads(run("redact", "table.parquet", dry_run=True, json=True)[0])
    assert "output" not in content
    content = json.loads(run("fit", "table.parquet", output="fit.json", json=True)[0])
    assert content["records"] == released.height
    people, _ = run("redact", "table.parquet", output="again.csv")
    assert (
        f"released       {1 - released['state'].null_count() / released.height:.2%} of"
        f" {released.height}" in people
    )


def test_published_positions(run):
    table = frame(hours=TIMES)
    run("redact", write(table, "table.parquet"), output="out.csv")
    content = json.loads(Path("out.csv.certificate.json").read_text())
    private = table.filter("hidden").sort("room", "hour")
    assert content["private"]["count"] == private.height
    assert content["private"]["positions"] is None
    run("redact", "table.parquet", output="out.csv", publish_positions=True, force=True)
    positions = json.loads(Path("out.csv.certificate.json").read_text())["private"]["positions"]
    assert positions["columns"] == ["room", "hour"]
    ticks = private.select("room", pl.col("hour").dt.epoch("ns"))
    assert [tuple(key) for key in positions["keys"]] == ticks.rows()


def test_order_by_row(run):
    table = frame(shuffled=False)
    write(table.drop("hour"), "table.csv")
    assert "coins go by row number" in run("redact", "table.csv", order="row", output="out.csv")[1]
    by_number = table.with_columns(hour=pl.col("hour") + 1)
    run(
        "redact",
        write(by_number, "numbers.parquet"),
        output="numbers.csv",
        accept="another-release",
    )
    assert pl.read_csv("out.csv").equals(pl.read_csv("numbers.csv").drop("hour"))
    keys = by_number.filter("hidden").select("room", row="hour")
    run(
        "redact",
        "table.csv",
        order="row",
        private=None,
        private_list=write(keys, "keys.csv"),
        output="list.csv",
    )
    assert Path("list.csv").read_bytes() == Path("out.csv").read_bytes()


def test_fit_then_redact_is_the_same_in_python(run, tmp_path):
    reference, table = frame(seed=2), frame(seed=3)
    asked = {"epsilon": EPSILON, "mechanism": "window"}
    out, _ = run("fit", write(reference, "reference.csv"), output="fit.json", chain_order=1)
    run("redact", write(table, "table.csv"), model="fit.json", output="out.csv", **asked)
    key = {"key_file": tmp_path / "share" / "offrecord" / "key.json"}
    fitted = off.fit(reference, **COLUMNS, **key, chain_order=1, table="reference.csv")
    assert str(fitted) in out
    written = json.loads(Path("fit.json").read_text())
    assert written["origin"]["seen"] is not None  # which records: a key remembers
    assert written == fitted.model.to_dict()
    options = asked | key | {"private": "hidden", "dataset": "rooms"}
    release = off.redact(table.to_pandas(), **COLUMNS, model=fitted, **options)
    assert rows_of(release.frame) == rows_of(pl.read_csv("out.csv"))
    certificate = json.loads(Path("out.csv.certificate.json").read_text())
    assert json.loads(json.dumps(release.certificate)) == {**certificate, "output": None}


def test_fit_within_redact_learns_from_chains_without_a_private_record(run):
    table = frame(rooms=("a", "b", "c", "d"))
    table = table.with_columns(hidden=pl.col("hidden") & (pl.col("room") == "a"))
    asked = {"model": None, "fit": True, "chain_order": 1, "mechanism": "window"}
    run("redact", write(table, "table.parquet"), output="out.csv", **asked)
    certificate = json.loads(Path("out.csv.certificate.json").read_text())
    expected = off.fit(table.filter(pl.col("room") != "a"), **COLUMNS, chain_order=1)
    assert certificate["model"] == expected.posterior.to_dict()
    assert (certificate["origin"]["chains"], certificate["evidence"]["unseen"]) == (3, True)
    assert [verdict["epsilon"] for verdict in certificate["verdicts"]] == [EPSILON]


def test_rules_are_kept_and_reused(run, monkeypatch):
    """A release that is made again takes the rules of the one before, and so may another table."""
    write(frame(), "table.parquet")
    run("redact", "table.parquet", output="a.csv", mechanism="window")
    monkeypatch.setattr(choosing, "design_table", None)
    run("redact", "table.parquet", output="b.csv", mechanism="window")
    rules = {"policy": "a.csv.certificate.json"}
    run("redact", "table.parquet", output="c.csv", **rules)
    for name in ("a.csv", "b.csv", "c.csv"):
        assert Path(name).read_bytes() == Path("a.csv").read_bytes()
    certificates = [json.loads(Path(f"{one}.csv.certificate.json").read_text()) for one in "ab"]
    assert certificates[0] == certificates[1]


def test_demo(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    released = []
    for options in ([], ["--force", "--json"]):
        assert cli.main(["demo", *options]) == 0
        said = capsys.readouterr().out
        released.append(Path("offrecord-demo/released.csv").read_bytes())
    assert released[0] == released[1]
    found = json.loads(said)
    assert found["fit"]["model"]["order"] == 5
    assert found["redact"]["private"] == 8
    assert all(Path(found[name]).is_file() for name in ("model", "output", "certificate", "report"))
    nulls = pl.read_csv(found["output"])["rain"].null_count()
    assert nulls == found["redact"]["redacted"]
    assert cli.main(["demo"]) == 2
    assert "exists; add --force" in capsys.readouterr().err
    certificate = json.loads(Path("offrecord-demo/released.csv.certificate.json").read_text())
    assert certificate["output"]["sha256"] == hashlib.sha256(released[0]).hexdigest()
    assert certificate["policy"]["mechanism"] == "owner"
    assert not (tmp_path / "share").exists()
