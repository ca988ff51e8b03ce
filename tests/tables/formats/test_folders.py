"""Several Parquet files as one table."""

import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

import offrecord as off
from hours import COLUMNS, EPSILON, MODEL, frame
from offrecord import cli
from offrecord.tables.engines import stream
from offrecord.tables.io.formats import table_file


def spread(table, folder="parts", size=70):
    """A table in files of so many rows: chains go on from one to the next."""
    Path(folder).mkdir(exist_ok=True)
    for at in range(0, table.height, size):
        table[at : at + size].write_parquet(Path(folder) / f"part-{at:04d}.parquet")
    return folder


@pytest.mark.parametrize("name", ["parts", "parts/", "parts/*.parquet", "p?rts/part-*"])
@pytest.mark.parametrize("how", ["--in-memory", "--stream"])
def test_a_folder_or_pattern_is_one_table(run, name, how):
    table = frame(shuffled=False)
    table.write_parquet("whole.parquet")
    run("redact", "whole.parquet", output="expected.parquet")
    spread(table)
    Path("parts/_SUCCESS").touch()
    Path("parts/.part-0000.parquet.crc").write_bytes(b"crc")
    option = {how[2:].replace("-", "_"): True}
    run("redact", name, output="o.parquet", **option)
    assert Path("o.parquet").read_bytes() == Path("expected.parquet").read_bytes()


def test_neither_names_of_files_nor_their_order_matter(run):
    table = frame()
    table.write_parquet("whole.parquet")
    run("redact", "whole.parquet", output="expected.parquet")
    spread(table)
    for at, file in enumerate(sorted(Path("parts").iterdir())):
        file.rename(f"parts/{9 - at}.pq")
    table.clear().write_parquet("parts/none.parquet")  # no rows
    table[:0].select(reversed(table.columns)).write_parquet("parts/other order.parquet")
    run("redact", "parts", output="o.parquet")
    assert Path("o.parquet").read_bytes() == Path("expected.parquet").read_bytes()
    run("fit", "whole.parquet", output="one.json")
    run("fit", "parts", output="two.json")
    one, two = (Path(name).read_text() for name in ("one.json", "two.json"))
    assert one.replace('"table": "whole.parquet"', '"table": "parts"') == two
    keys = table.filter("hidden").select("room", "hour")
    run("redact", "parts", private=None, private_list=spread(keys, "keys", 5), output="p.parquet")
    assert Path("p.parquet").read_bytes() == Path("expected.parquet").read_bytes()


@pytest.mark.parametrize(
    ("spoil", "said"),
    {
        "another file": (lambda: Path("parts/notes.csv").touch(), "holds 'notes.csv'"),
        "a folder": (lambda: Path("parts/room=a").mkdir(), "holds the folder 'room=a'.*room=a/"),
        "an empty file": (lambda: Path("parts/x.parquet").touch(), "x.parquet is empty"),
        "no Parquet": (
            lambda: Path("parts/x.parquet").write_bytes(b"secretcell"),
            "x.parquet cannot be read as parquet",
        ),
        "a column less": (
            lambda: frame().drop("hidden").write_parquet("parts/x.parquet"),
            "x.parquet has no column 'hidden', which part-0000.parquet has",
        ),
        "a column more": (
            lambda: frame().with_columns(more=1).write_parquet("parts/x.parquet"),
            "part-0000.parquet has no column 'more', which x.parquet has",
        ),
        "another type": (
            lambda: frame().cast({"state": pl.String}).write_parquet("parts/x.parquet"),
            "x.parquet holds String in column 'state', but part-0000.parquet Int64",
        ),
        "a nameless file": (lambda: Path("parts/x").touch(), "holds 'x'"),
    }.values(),
)
@pytest.mark.parametrize("name", ["parts", "parts/*"])
def test_files_that_do_not_go_together(run, name, spoil, said):
    spread(frame())
    spoil()
    with pytest.raises(off.InputError, match=said) as error:
        table_file(name).read(["state"])
    assert "secretcell" not in str(error.value)


def test_nothing_there(run):
    Path("none").mkdir()
    for name, said in (("none", "without Parquet files"), ("none/*.parquet", "names no file")):
        with pytest.raises(off.InputError, match=said):
            table_file(name)
    spread(frame())
    with pytest.raises(off.InputError, match="of Parquet alone"):
        table_file("parts", off.tables.io.formats.ReadOptions("csv"))


def test_a_file_with_the_name_of_a_pattern_is_that_file(run):
    frame(rooms=("a",)).write_parquet("t1.parquet")
    frame(rooms=("b",)).write_parquet("t[1].parquet")
    frame(rooms=("c",)).write_parquet("t*.parquet")
    for name, room in (("t[1].parquet", "b"), ("t*.parquet", "c")):
        assert table_file(name).read(["room"])["room"].unique().to_list() == [room]
    assert table_file("t[1]*").read(["room"])["room"].unique().to_list() == ["a"]


def test_chains_in_pieces_cannot_be_streamed_and_the_command_that_sorts_them_works(
    run, capsys, monkeypatch
):
    monkeypatch.setattr(stream, "_PART", 40)
    table = frame(shuffled=False)
    table.write_parquet("whole.parquet")
    run("redact", "whole.parquet", output="expected.parquet")
    spread(pl.concat([table[::2], table[1::2]]))
    Path("parts/_SUCCESS").touch()
    command = ["redact", "parts", "--stream", "--value", "state", "--order", "hour", "--by", "room"]
    command += ["--private", "hidden", "--model", "model.json", "--epsilon", str(EPSILON)]
    assert cli.main([*command, "--dataset", "rooms", "-o", "o.parquet"]) == 2
    said = capsys.readouterr().err
    assert "is not sorted by room" in said
    subprocess.run([sys.executable, *shlex.split(said[said.index("python -c") :])[1:]], check=True)
    run("redact", "sorted/table.parquet", output="o.parquet", stream=True)
    assert Path("o.parquet").read_bytes() == Path("expected.parquet").read_bytes()


@pytest.mark.parametrize("name", ["parts", "parts/*.parquet"])
@pytest.mark.parametrize("option", ["output", "certificate"])
def test_no_output_becomes_a_part_of_the_table(run, capsys, name, option):
    spread(frame())
    before = sorted(Path("parts").iterdir())
    places = {"output": "o.parquet"} | {option: "parts/o.parquet"}
    with pytest.raises(AssertionError, match=f"--{option} must not be one of the input's files"):
        run("redact", name, **places)
    assert sorted(Path("parts").iterdir()) == before


def test_a_file_that_comes_or_changes_between_the_looks_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = frame(shuffled=False)
    options = COLUMNS | {"private": "hidden", "model": MODEL, "epsilon": EPSILON}
    options |= {"dataset": "rooms", "key_file": tmp_path / "keys" / "key.json"}
    changes = {
        "one more": lambda: table[:0].write_parquet("parts/zz.parquet"),
        "one less": lambda: Path("parts/part-0070.parquet").unlink(missing_ok=True),
        "another": lambda: table[70:140].write_parquet("parts/part-0070.parquet"),
    }
    for change in changes.values():
        spread(table)
        Path("parts/zz.parquet").unlink(missing_ok=True)

        @contextmanager
        def swap(what, total, change=change):
            yield lambda done: None
            change()

        with pytest.raises(off.InputError, match=r"changed while it was read|cannot be read"):
            off.redact_file("parts", "o.parquet", progress=swap, **options)
        assert not Path("o.parquet").exists()
