"""What cannot be streamed is said in one line, and nothing is written."""

import json
import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

import offrecord as off
from offrecord.tables.engines import stream
from offrecord.tables.io.format import Source
from streams import CHAIN, COLUMNS, ROOMS, frame, refused
from table_files import ENDINGS, write


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("rooms", ["text", "numbers as text"])
def test_chains_in_pieces_are_refused_with_the_command_that_sorts_them(
    desk, monkeypatch, ending, rooms
):
    monkeypatch.setattr(stream, "_PART", 40)
    table = frame(ROOMS[rooms])
    table = pl.concat([table[::2], table[1::2]])
    write(table, f"table{ending}")
    line = refused(
        desk,
        "is not sorted by room",
        arguments=[f"table{ending}", "--stream"],
        output=f"out{ending}",
    )
    command = shlex.split(line[line.index("python -c") :])
    subprocess.run([sys.executable, *command[1:]], check=True)
    plain = ending.removesuffix(".gz").removesuffix(".zst")
    assert desk(f"table-sorted{plain}", "--stream", output=f"out{ending}")[0] == 0
    assert desk(f"table{ending}", "--in-memory", output=f"memory{ending}")[0] == 0
    assert Path(f"out{ending}").read_bytes() == Path(f"memory{ending}").read_bytes()


def test_chains_in_another_order_are_refused(desk, monkeypatch):
    monkeypatch.setattr(stream, "_PART", 40)
    write(frame([7, 3, 12, 1, 40, 2]), "t.csv")
    refused(desk, "is not sorted by room", arguments=["t.csv", "--stream"], output="o.csv")


def test_whole_numbers_among_other_names_are_refused(desk, monkeypatch):
    """In memory all of them are text, which no part of them alone can tell."""
    monkeypatch.setattr(stream, "_PART", 40)
    write(frame([*map(str, range(10, 25)), "7", "8", "attic", "cellar"]), "t.csv")
    said = "column 'room' names some chains by whole numbers and some by other text"
    refused(desk, said, arguments=["t.csv", "--stream"], output="o.csv")


def test_what_a_stream_cannot_do(desk):
    write(frame([1, 2]), "t.csv")
    refused(
        desk,
        "--model instead of --fit",
        arguments=["t.csv", "--stream"],
        output="o.csv",
        model=None,
        fit=True,
    )
    refused(
        desk,
        "single chain",
        arguments=["t.csv", "--stream"],
        output="o.csv",
        by=None,
        single_chain=True,
    )


def test_bad_rows_say_where(desk, monkeypatch):
    monkeypatch.setattr(stream, "_PART", 40)
    table = frame([*range(20)])
    write(
        table.with_columns(pl.when(pl.int_range(pl.len()) != 200).then("hidden").alias("hidden")),
        "t.parquet",
    )
    said = "in 1 row: room 11, hour 13 (row 201)"
    refused(desk, "'hidden'", said, arguments=["t.parquet", "--stream"], output="o.csv")
    late = table.with_columns(
        pl.when(pl.int_range(pl.len()) < 300)
        .then("hour")
        .otherwise(None)
        .fill_null(99)
        .alias("hour")
    )
    write(late, "t.parquet")
    refused(desk, "must order the records", arguments=["t.parquet", "--stream"], output="o.csv")
    text = table.with_columns(pl.col("hour").cast(pl.String))
    text = text.with_columns(
        pl.when(pl.col("room") > 9)
        .then("2026-01-01T00:00:" + pl.col("hour").str.zfill(2))
        .otherwise("hour")
        .alias("hour")
    )
    write(text, "t.csv")
    refused(
        desk,
        "'hour'",
        "whole numbers, dates or times",
        arguments=["t.csv", "--stream"],
        output="o.csv",
    )
    pl.DataFrame({"room": [1, 99], "hour": [2, 2]}).write_csv("keys.csv")
    write(table, "t.csv")
    options = {"output": "o.csv", "private": None, "private_list": "keys.csv"}
    refused(
        desk,
        "names 1 record that",
        "room 99, hour 2 (row 2)",
        "no opt-out may be lost",
        arguments=["t.csv", "--stream"],
        **options,
    )


def test_lengths_that_the_model_does_not_serve_are_refused_in_the_same_words(desk):
    off.MarkovChain([CHAIN.transition] * 15, CHAIN.start).save("steps.json")
    write(frame([1, 2]), "t.csv")
    said = "the model knows chains of 16 steps, but 2 chains have more"
    lines = [
        refused(desk, said, arguments=["t.csv", how], output="o.csv", model="steps.json")
        for how in ("--stream", "--in-memory")
    ]
    assert lines[0] == lines[1]


def test_a_table_that_changes_between_the_looks_is_not_released(tmp_path, monkeypatch):
    table = frame([*range(10)])
    file = tmp_path / "t.parquet"
    table.write_parquet(file)
    (tmp_path / "out").mkdir()

    @contextmanager
    def swap(what, total):
        table.with_columns(pl.lit(False).alias("hidden")).write_parquet(file)
        yield lambda done: None

    options = COLUMNS | {
        "private": "hidden",
        "model": CHAIN,
        "epsilon": 1.5,
        "dataset": "d",
        "progress": swap,
    }
    with pytest.raises(off.InputError, match="changed while it was read"):
        off.redact_file(
            file, tmp_path / "out" / "o.csv", key_file=tmp_path / "k" / "key.json", **options
        )

    @contextmanager
    def swap_unseen(what, total):
        """Other records private, with the same surroundings."""
        yield lambda done: None
        if what == "reading":
            table.with_columns(
                (pl.col("hour") == 8 - pl.col("room") % 2).alias("hidden")
            ).write_parquet(file)

    table.with_columns((pl.col("hour") == 7 + pl.col("room") % 2).alias("hidden")).write_parquet(
        file
    )
    # as if the file's times and size were the same
    monkeypatch.setattr(Source, "state", (0,))
    options["progress"] = swap_unseen
    with pytest.raises(off.InputError, match="changed while it was read"):
        off.redact_file(
            file, tmp_path / "out" / "o.csv", key_file=tmp_path / "k" / "key.json", **options
        )
    assert not [*(tmp_path / "out").iterdir()]
    assert json.loads((tmp_path / "k" / "key.ledger.json").read_text())["releases"] == {}
