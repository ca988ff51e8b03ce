"""Outputs that must not be written, or cannot."""

import os
from pathlib import Path

import polars as pl
import pytest

from good_command import MODEL


def test_existing_outputs(desk):
    Path("out.csv").write_text("mine")
    desk.fails(desk.redact(), "out.csv", "exists", "--force")
    Path("out.csv").rename("out.csv.certificate.json")
    desk.fails(desk.redact(), "out.csv.certificate.json", "exists", "--force")
    desk.fails(desk.redact(output="notes.json"), "notes.json", "must end in")
    desk.fails(desk.fit(output="model.json"), "model.json", "exists")


@pytest.mark.parametrize("output", ["table.parquet", "link.parquet", "sub/../table.parquet"])
def test_the_output_is_not_the_input(desk, output):
    Path("sub").mkdir()
    Path("link.parquet").symlink_to("table.parquet")
    desk.fails(desk.redact(output=output, force=True), "--output", "the input", output)
    desk.fails(
        desk.redact("link.parquet", output=output, force=True), "--output", "the input", output
    )


def test_another_name_of_the_same_bytes_may_be_replaced(desk):
    os.link("table.parquet", "hard.parquet")
    before = Path("table.parquet").read_bytes()
    desk.works(*desk.redact(output="hard.parquet", force=True))
    assert Path("table.parquet").read_bytes() == before
    assert pl.read_parquet("hard.parquet").columns == ["room", "hour", "state"]


@pytest.mark.parametrize("option", ["private_list", "model"])
def test_no_other_input_is_overwritten(desk, option):
    keys = desk.write("keys.csv", {"room": ["a"], "hour": [2]})
    given = {
        "private_list": {"private": None, "private_list": keys},
        "model": {"model": "model.csv"},
    }
    MODEL.save("model.csv")
    file = {"private_list": keys, "model": "model.csv"}[option]
    desk.fails(desk.redact(output=file, force=True, **given[option]), file)


def test_no_input_becomes_a_model(desk):
    desk.fails(desk.fit(output=desk.table, force=True), "table.parquet")


def test_outputs_in_folders_that_are_not_there(desk):
    desk.fails(desk.redact(output="no/out.csv"), "no", "is not a folder")
    desk.fails(desk.fit(output="no/m.json"), "no", "is not a folder")
    Path("out.csv").mkdir()
    desk.fails(desk.redact(), "out.csv", "is a folder")


def test_formats_of_outputs(desk):
    desk.fails(desk.redact(output="out.dat"), "out.dat", "must end in", "--format")
    desk.works(*desk.redact(desk.write("table.csv"), output="out.dat", format="csv"))
    assert pl.read_csv("out.dat").columns == ["room", "hour", "state"]


@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write anywhere")
def test_outputs_in_folders_that_are_locked(desk):
    locked = desk.folder / "locked"
    locked.mkdir(mode=0o500)
    desk.fails(desk.redact(output="locked/out.csv"), "locked", "cannot be written")
    desk.fails(desk.fit(output="locked/m.json"), "locked", "cannot be written")


def test_a_full_disk(desk, monkeypatch):
    def full(_frame, out, *_, **__):
        if "output" in str(out.name):
            out.write(b"half of a tab")
            raise OSError(28, "No space left on device")
        return written(_frame, out, *_, **__)

    written = pl.LazyFrame.sink_csv
    monkeypatch.setattr(pl.LazyFrame, "sink_csv", full)
    desk.run("key", "new")
    code, _, err = desk.run(*desk.redact(output="output.csv"))
    assert code == 2
    assert "No space left on device" in err
    left = {name.name for name in desk.folder.iterdir()} - {"model.json", "table.parquet", "share"}
    assert left in (set(), {"output.csv", "output.csv.certificate.json"})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipes_and_devices_are_not_replaced_by_files(desk):
    os.mkfifo("pipe.csv")
    for given in ({"output": "pipe.csv"}, {"certificate": "pipe.csv"}):
        arguments = desk.redact(**given, force=True)
        code, out, err = desk.run(*arguments)
        assert (code, out) == (2, "")
        assert err == "offrecord: pipe.csv is no file that could be overwritten\n"
        assert Path("pipe.csv").is_fifo()
        assert not Path("out.csv").exists()
