"""Tables that go through part by part, and standard streams: the same bytes as in memory, or one
line that says why not.
"""

import hashlib
import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import samples
from offrecord import cli
from offrecord.tables.engines import stream
from offrecord.tables.job import Job

CHAIN = off.MarkovChain([[0.8, 0.2], [0.4, 0.6]])
ORDER2 = off.MarkovChain([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]], order=2)
ENDINGS = (".csv", ".parquet", ".arrow", ".ndjson")
COLUMNS = {"value": "state", "order": "hour", "by": "room"}


def frame(rooms, length=17, seed=1, gaps=0.0, empty=0.0):
    """Rooms of `length` hours, one after the other as named; some records private, some rows or
    values missing.
    """
    rng = np.random.default_rng(seed)
    rows = len(rooms) * length
    table = pl.DataFrame(
        {
            "room": pl.Series(rooms).gather(np.repeat(np.arange(len(rooms)), length)),
            "hour": np.tile(np.arange(length), len(rooms)),
            "state": samples(CHAIN, len(rooms), length, rng).ravel().astype(np.int8),
            "hidden": rng.random(rows) < 0.1,
            "note": [f"note {i}" for i in range(rows)],
        }
    )
    table = table.with_columns(
        pl.when(pl.Series(rng.random(rows) >= empty)).then("state").alias("state")
    )
    return table.filter(rng.random(rows) >= gaps)


def write(table, path):
    writers = dict(
        zip(
            ENDINGS,
            (table.write_csv, table.write_parquet, table.write_ipc, table.write_ndjson),
            strict=True,
        )
    )
    writers[Path(path).suffix](path)
    return path


@pytest.fixture
def both(tmp_path, monkeypatch):
    """A table redacted in memory and as a stream in small parts, both written: they must be the
    same to the last byte.
    """

    def redact(table, ending=".parquet", part=100, source=None, **options):
        monkeypatch.setattr(stream, "_PART", part)
        chosen = (
            COLUMNS
            | {"private": "hidden", "model": CHAIN, "epsilon": 1.5, "dataset": "rooms"}
            | options
        )
        chosen["accept_model"] = True  # of some order, some start: the table is that of one
        chosen["key_file"] = tmp_path / "keys" / "key.json"
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        file = write(table, tmp_path / f"table{source or ending}")
        memory, streamed = out / f"memory{ending}", out / f"streamed{ending}"
        read = off.tables.formats.read_frame(file)
        release = off.redact(read, **chosen)
        release.write(memory, force=True)
        found = off.redact_file(file, streamed, force=True, **chosen)
        assert streamed.read_bytes() == memory.read_bytes()
        proofs = [Path(f"{path}.certificate.json").read_bytes() for path in (memory, streamed)]
        assert proofs[0] == proofs[1]
        assert (
            json.loads(proofs[1])["output"]["sha256"]
            == hashlib.sha256(streamed.read_bytes()).hexdigest()
        )
        for name, value in release.summary.to_dict().items():
            if name not in ("seconds", "warnings"):
                assert getattr(found.summary, name) == value, name
        assert {*out.iterdir()} == {
            memory,
            streamed,
            *(Path(f"{path}.certificate.json") for path in (memory, streamed)),
        }
        assert 0 < release.summary.redacted < table.height
        return found

    return redact


ROOMS = {
    "in order": [*range(40)],
    "another order": [7, 3, 12, 1, 40, 2, 39, 5, 0, 11, 23, 8, 31],
    "text": [f"room {i}" for i in range(1, 30)],
    "numbers as text, not in order": [str(i) for i in range(5, 30)],
    "text among numbers": ["10", "9", *map(str, range(11, 25)), "attic", "cellar", "8", "7"],
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("rooms", ROOMS.values(), ids=ROOMS)
def test_a_stream_gives_the_bytes_of_memory(both, rooms, ending):
    both(frame(rooms, empty=0.1), ending)


@pytest.mark.parametrize("part", [1, 17, 18, 64, 10**6])
@pytest.mark.parametrize("rooms", ["in order", "another order"])
def test_parts_of_any_size(both, rooms, part):
    both(frame(ROOMS[rooms]), part=part)


@pytest.mark.parametrize(
    "options",
    [
        {"step": 1},
        {"keep": ["note"]},
        {"protect": "each", "publish_positions": True},
        {"mechanism": "window"},
        {"mechanism": "3r-constant"},
        {"model": ORDER2},
        {"model": off.MarkovChain([[0.8, 0.2], [0.4, 0.6]], start=[0.5, 0.5])},
        {"epsilon": 0.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("rooms", ["in order", "another order", "text among numbers"])
def test_options(both, options, rooms):
    both(frame(ROOMS[rooms], gaps=0.15 if "step" in options else 0.0, empty=0.1), ".csv", **options)


def test_private_lists_whose_keys_lie_in_any_part(both):
    table = frame(ROOMS["text among numbers"], gaps=0.2).filter(
        ~pl.col("hour").is_in([0, 16]) | (pl.col("hour") % 16 == 0)
    )
    full = pl.concat(
        [table, frame(ROOMS["text among numbers"]).filter(pl.col("hour").is_in([0, 16]))]
    )
    full = full.unique(["room", "hour"], maintain_order=True).sort("hour")
    full = pl.concat([full.filter(pl.col("room") == room) for room in ROOMS["text among numbers"]])
    keys = pl.DataFrame({"room": ["8", "10", "attic", "9", "8"], "hour": [3, 5, 8, 9, 3]})
    both(full, ".csv", private=None, private_list=keys, step=1)


def test_times_and_phases(both):
    start = datetime(2026, 1, 1)
    table = frame(["b", "a", "c"], length=30).with_columns(
        pl.Series("hour", [start + timedelta(hours=h) for h in range(30)] * 3).dt.strftime(
            "%Y-%m-%dT%H:%M:%S"
        )
    )
    kernel = np.array([[0.8, 0.2], [0.4, 0.6]])
    hours = off.PhasedChain("hour", np.stack([kernel] * 24), np.tile([2 / 3, 1 / 3], (24, 1)))
    both(table, ".csv", part=30, model=hours, step="1h", mechanism="window")


def test_several_chain_columns(both):
    table = frame(ROOMS["another order"]).with_columns(pl.lit("west").alias("wing"))
    table = pl.concat(
        [
            table,
            table.with_columns(
                pl.lit("east").alias("wing"), ~pl.col("hidden") & (pl.col("hour") == 4)
            ),
        ]
    )
    both(table, by=["wing", "room"])


def test_rows_in_their_own_order(both):
    both(frame(ROOMS["another order"]), order="row")


@settings(max_examples=25)
@given(data=st.data())
def test_any_table_in_any_parts(data, tmp_path_factory):
    """Chains of any lengths, whose rows stand in any order within a chain."""
    folder = tmp_path_factory.mktemp("any")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    count = data.draw(st.integers(1, 12))
    lengths = rng.integers(1, 12, size=count)
    rooms = rng.permutation(count) if data.draw(st.booleans()) else np.arange(count)
    table = pl.DataFrame(
        {
            "room": np.repeat(rooms, lengths),
            "hour": np.concatenate([rng.permutation(length) for length in lengths]),
            "state": rng.integers(2, size=lengths.sum()),
            "hidden": rng.random(lengths.sum()) < 0.2,
        }
    )
    options = COLUMNS | {
        "private": "hidden",
        "model": CHAIN,
        "epsilon": 1.0,
        "dataset": "any",
        "allow_none": True,
    }
    options["key_file"] = folder / "keys" / "key.json"
    table.write_parquet(folder / "table.parquet")
    (folder / "out").mkdir()
    off.redact(table, **options).write(folder / "out" / "memory.csv")
    before, stream._PART = stream._PART, data.draw(st.integers(1, 40))
    try:
        off.redact_file(folder / "table.parquet", folder / "out" / "streamed.csv", **options)
    finally:
        stream._PART = before
    assert (folder / "out" / "streamed.csv").read_bytes() == (
        folder / "out" / "memory.csv"
    ).read_bytes()


def test_every_engine_takes_the_options_of_redact():
    named = inspect.signature(off.redact).parameters
    own = {name: one.default for name, one in named.items() if name not in ("frame", "remember")}
    assert own == {name: one.default for name, one in inspect.signature(Job).parameters.items()}


def test_whole_chains_cuts_nowhere_else():
    table = frame([3, 1, 2, 9], length=5)
    for size in range(1, 21):
        batches = (table[i : i + size] for i in range(0, table.height, size))
        parts = [*stream.whole_chains(batches, ["room"])]
        assert pl.concat(parts).equals(table)
        rooms = [set(part["room"]) for part in parts]
        assert sum(map(len, rooms)) == len(set().union(*rooms)) == 4


def chains_of_times(stretches, kind):
    """Chains named by times, given as counts of their unit, with the hours that each stretch of
    rows has.
    """
    rows = [(name, hour) for name, hours in stretches for hour in hours]
    table = pl.DataFrame(
        {
            "room": pl.Series([name for name, _ in rows]).cast(kind),
            "hour": [hour for _, hour in rows],
        }
    )
    return table.with_columns(pl.lit(0).alias("state"), (pl.col("hour") == 5).alias("hidden"))


def test_a_chain_named_by_a_time_that_comes_twice_is_noticed(tmp_path, monkeypatch):
    """An hour that the clock shows twice, and nanoseconds: chains that look alike to Python are
    not.
    """
    monkeypatch.setattr(stream, "_PART", 6)
    first, second = (
        int(datetime(2023, 10, 29, h, m, tzinfo=UTC).timestamp()) * 10**6
        for h, m in ((0, 50), (1, 10))
    )
    options = COLUMNS | {"private": "hidden", "model": CHAIN, "epsilon": 1.5, "dataset": "d"}
    options["key_file"] = tmp_path / "k" / "key.json"
    file, out = tmp_path / "t.parquet", tmp_path / "out"
    out.mkdir()
    for one, other, kind in (
        (first, second, pl.Datetime("us", "Europe/Berlin")),
        (1, 2, pl.Datetime("ns")),
    ):
        chains_of_times(
            [(one, range(6)), (other, range(12)), (one, range(6, 12))], kind
        ).write_parquet(file)
        with pytest.raises(off.InputError, match="do not stand together"):
            off.redact_file(file, out / "o.csv", **options)
    table = chains_of_times(
        [(second, range(12)), (first, range(12))], pl.Datetime("us", "Europe/Berlin")
    )
    table.write_parquet(file)
    off.redact_file(file, out / "o.csv", **options)
    off.redact(table, **options).write(out / "m.csv")
    assert (out / "o.csv").read_bytes() == (out / "m.csv").read_bytes()


@pytest.mark.parametrize(
    "kind",
    [
        pl.Int64,
        pl.Date,
        pl.String,
        pl.Duration("us"),
        pl.Float64,
        pl.Boolean,
        pl.Datetime("ms", "UTC"),
    ],
)
def test_what_lies_under_kept_nulls_does_not_tell_how_many_rows_were_read_at_once(both, kind):
    table = frame([*range(30)])
    cells = pl.Series(
        "kept", np.arange(table.height) % 2 if kind == pl.Boolean else np.arange(table.height)
    ).cast(kind)
    table = table.with_columns(pl.when(pl.int_range(pl.len()) % 6 > 0).then(cells).alias("kept"))
    both(table, ".arrow", part=17, keep=["kept"], source=".parquet")


def test_published_names_are_text_where_the_table_has_text(both):
    table = frame([*map(str, range(5, 12)), "attic", "cellar"]).with_columns(
        pl.col("hidden") & (pl.col("room") < "6")
    )
    both(table, ".csv", part=17, publish_positions=True)


# ---- what cannot be streamed


@pytest.fixture
def desk(tmp_path, monkeypatch, capsys):
    """The command line in a folder of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    CHAIN.save("model.json")
    assert cli.main(["key", "new"]) == 0
    capsys.readouterr()

    def run(*arguments, **options):
        chosen = (
            COLUMNS
            | {"private": "hidden", "model": "model.json", "epsilon": 1.5, "dataset": "rooms"}
            | options
        )
        command = ["redact", *map(str, arguments)]
        for name, value in chosen.items():
            command += (
                []
                if value is None
                else ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
            )
        code = cli.main(command)
        return code, *capsys.readouterr()

    return run


def refused(desk, *said, **options):
    before = {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()}
    code, out, err = desk(*options.pop("arguments"), **options)
    lines = [line for line in err.splitlines() if "warning" not in line]
    assert (code, out, len(lines)) == (2, "", 1), err
    assert [text for text in said if text not in lines[0]] == [], lines[0]
    assert {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()} == before
    return lines[0]


@pytest.mark.parametrize("ending", ENDINGS)
def test_chains_in_pieces_are_refused_with_the_command_that_sorts_them(desk, monkeypatch, ending):
    monkeypatch.setattr(stream, "_PART", 40)
    table = frame(ROOMS["text"])
    table = pl.concat([table[::2], table[1::2]])
    write(table, f"table{ending}")
    line = refused(
        desk,
        "do not stand together",
        arguments=[f"table{ending}", "--stream"],
        output=f"out{ending}",
    )
    command = shlex.split(line[line.index("python -c") :])
    subprocess.run([sys.executable, *command[1:]], check=True, timeout=60)
    assert desk(f"table-sorted{ending}", "--stream", output=f"out{ending}")[0] == 0
    assert desk(f"table{ending}", "--in-memory", output=f"memory{ending}")[0] == 0
    assert Path(f"out{ending}").read_bytes() == Path(f"memory{ending}").read_bytes()


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
    refused(
        desk, "--stream is for files", arguments=["-", "--stream"], output="o.csv", format="csv"
    )


def test_bad_rows_say_where(desk, monkeypatch):
    monkeypatch.setattr(stream, "_PART", 40)
    table = frame([*range(20)])
    write(
        table.with_columns(pl.when(pl.int_range(pl.len()) != 200).then("hidden").alias("hidden")),
        "t.parquet",
    )
    refused(
        desk, "'hidden'", "rows 171 to 204", arguments=["t.parquet", "--stream"], output="o.csv"
    )
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
        "names 1 records of chains",
        "no opt-out may be lost",
        arguments=["t.csv", "--stream"],
        **options,
    )


def test_a_table_that_changes_between_the_looks_is_not_released(tmp_path, monkeypatch):
    table = frame([*range(10)])
    file = tmp_path / "t.parquet"
    table.write_parquet(file)
    (tmp_path / "out").mkdir()

    def swap(items):
        table.with_columns(pl.lit(False).alias("hidden")).write_parquet(file)
        return list(items)

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

    def swap_unseen(items):
        """Other records private, with the same surroundings."""
        table.with_columns(
            (pl.col("hour") == 8 - pl.col("room") % 2).alias("hidden")
        ).write_parquet(file)
        return list(items)

    table.with_columns((pl.col("hour") == 7 + pl.col("room") % 2).alias("hidden")).write_parquet(
        file
    )
    monkeypatch.setattr(
        stream._Looks, "_state", lambda self: (0,)
    )  # as if the file's times and size were the same
    options["progress"] = swap_unseen
    with pytest.raises(off.InputError, match="changed while it was read"):
        off.redact_file(
            file, tmp_path / "out" / "o.csv", key_file=tmp_path / "k" / "key.json", **options
        )
    assert not [*(tmp_path / "out").iterdir()]
    assert json.loads((tmp_path / "k" / "key.ledger.json").read_text())["releases"] == {}


def test_dry_run_and_explanation_are_those_of_memory(desk, monkeypatch):
    monkeypatch.setattr(stream, "_PART", 40)
    write(frame(ROOMS["another order"]), "t.csv")
    figures = []
    for how in ("--stream", "--in-memory"):
        assert desk("t.csv", how, output=f"o{how}.csv", explain=f"e{how}.csv")[0] == 0
        figures.append(json.loads(desk("t.csv", how, "--dry-run", "--json")[1]))
    assert Path("e--stream.csv").read_bytes() == Path("e--in-memory.csv").read_bytes()
    for one in figures:
        del one["seconds"]
    assert figures[0].pop("released") == pytest.approx(figures[1].pop("released"), rel=1e-12)
    assert figures[0] == figures[1]


def test_rows_wait_where_nothing_is_left_of_them(tmp_path, monkeypatch):
    """Whoever wants the rows may stop asking, and hold on to what gives them: an engine's thread,
    the trace of an error.
    """
    monkeypatch.setattr(stream, "_PART", 30)
    pieces = frame([3, 1, 2]).partition_by("room", maintain_order=True)
    waiting = stream._Order(np.full(3, 17), np.array([2, 0, 1])).sorted(
        iter(pieces), tmp_path / "o.csv"
    )
    assert next(waiting)["room"].unique().to_list() == [1, 2]
    assert not [*tmp_path.iterdir()]


@pytest.mark.filterwarnings("ignore::offrecord.errors.ChosenByValue")
def test_rows_that_wait_hold_nothing_that_was_redacted(tmp_path, monkeypatch):
    """Twins that differ in private values alone leave the same bytes in every file on the way,
    while it is there.
    """
    monkeypatch.setattr(stream, "_PART", 60)
    (tmp_path / "out").mkdir()
    waited = []
    for twin in range(2):
        table = frame(ROOMS["another order"])
        table = table.with_columns(
            pl.when("hidden").then(pl.lit(twin)).otherwise("state").cast(pl.Int8).alias("state")
        )
        table.write_parquet(tmp_path / f"t{twin}.parquet")
        seen, temporary = [], stream.TemporaryFile

        @contextmanager
        def look(*, seen=seen, temporary=temporary, **where):
            with temporary(**where) as file:
                yield file
                file.seek(0)
                seen.append(file.read())

        monkeypatch.setattr(stream, "TemporaryFile", look)
        options = COLUMNS | {"private": "hidden", "model": CHAIN, "epsilon": 1.5, "dataset": "d"}
        file = tmp_path / "out" / "o.parquet"
        off.redact_file(
            tmp_path / f"t{twin}.parquet",
            file,
            force=True,
            key_file=tmp_path / "k" / "key.json",
            **options,
        )
        monkeypatch.setattr(stream, "TemporaryFile", temporary)
        waited.append([*seen, file.read_bytes()])
    assert any(len(content) > 1000 for content in waited[0][:-1])
    assert waited[0] == waited[1]


def test_memory_is_bounded(tmp_path):
    """Eight times the rows take little more memory; in memory they would take several times as
    much.
    """
    CHAIN.save(tmp_path / "model.json")
    (tmp_path / "out").mkdir()
    peaks = []
    for millions in (1, 8):
        rows = millions * 10**6
        rng = np.random.default_rng(0)
        chains = np.repeat(np.arange(rows // 50, dtype=np.int32), 50)
        pl.DataFrame(
            {
                "room": chains,
                "hour": np.tile(np.arange(50, dtype=np.int16), rows // 50),
                "state": samples(CHAIN, rows // 50, 50, rng).ravel().astype(np.int8),
                "hidden": rng.random(rows) < 0.01,
            }
        ).write_parquet(tmp_path / "t.parquet", row_group_size=1 << 18)
        program = [
            "import resource, offrecord as off",
            (
                "off.redact_file('t.parquet', 'out/o.parquet', value='state', order='hour',"
                " by='room', private='hidden', epsilon=1, model='model.json', dataset='d',"
                " key_file='k/key.json', force=True, another_release=True, mechanism='window')"
            ),
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)",
        ]
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(program)],
            cwd=tmp_path,
            capture_output=True,
            timeout=120,
            check=True,
        )
        peaks.append(int(done.stdout))
    assert peaks[1] < 1.5 * peaks[0], peaks


def test_a_large_file_is_streamed_without_being_asked(desk, monkeypatch):
    write(frame([1, 2, 3]), "t.parquet")
    used = []
    redact_file = stream.redact_file
    monkeypatch.setattr(
        stream, "redact_file", lambda *a, **o: used.append(a) or redact_file(*a, **o)
    )
    assert desk("t.parquet", output="a.csv")[0] == 0
    assert not used
    monkeypatch.setattr(os, "sysconf", lambda name: 100 if name == "SC_PAGE_SIZE" else 10)
    assert desk("t.parquet", output="b.csv")[0] == 0
    assert len(used) == 1
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


# ---- standard streams


COMMAND = [sys.executable, "-c", "from offrecord.cli import run; run()", "redact"]


@pytest.fixture
def piped(desk, tmp_path):
    """The command as a process, with bytes on standard input."""

    def run(content, *arguments, stdout=subprocess.PIPE, **options):
        standard = {
            "private": "hidden",
            "model": "model.json",
            "epsilon": 1.5,
            "dataset": "rooms",
            "certificate": "c.json",
        }
        command = [*COMMAND, *arguments]
        for name, value in (COLUMNS | standard | options).items():
            command += (
                []
                if value is None
                else ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
            )
        return subprocess.run(
            command, input=content, stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=False
        )

    return run


def as_bytes(table, kind):
    content = io.BytesIO()
    {"csv": table.write_csv, "ndjson": table.write_ndjson, "ipc": table.write_ipc_stream}[kind](
        content
    )
    return content.getvalue()


READERS = {"csv": pl.read_csv, "ndjson": pl.read_ndjson, "ipc": pl.read_ipc_stream}


@pytest.mark.parametrize("kind", READERS)
def test_from_standard_input_to_standard_output(desk, piped, kind):
    table = frame([3, 1, 2], empty=0.1)
    ended = piped(as_bytes(table, kind), "-", output="-", format=kind)
    assert ended.returncode == 0, ended.stderr
    assert b"released" in ended.stderr
    write(table, "t.parquet")
    assert desk("t.parquet", output="o.parquet")[0] == 0
    expected = pl.read_parquet("o.parquet")
    assert READERS[kind](io.BytesIO(ended.stdout)).cast(expected.schema).equals(expected)
    proof = json.loads(Path("c.json").read_text())
    assert proof["output"]["sha256"] == hashlib.sha256(ended.stdout).hexdigest()
    assert proof["output"]["format"] == kind
    del proof["output"]
    other = json.loads(Path("o.parquet.certificate.json").read_text())
    del other["output"]
    assert proof == other
    again = piped(as_bytes(table, kind), "-", output="-", format=kind, force=True)
    assert again.stdout == ended.stdout


def test_a_stream_on_one_side_only(desk, piped):
    table = frame([3, 1, 2])
    assert (
        piped(
            as_bytes(table, "ndjson"), "-", output="o.ndjson", certificate=None, format="ndjson"
        ).returncode
        == 0
    )
    write(table, "t.ndjson")
    ended = piped(b"", "t.ndjson", output="-")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == Path("o.ndjson").read_bytes()


@pytest.mark.parametrize("kind", READERS)
def test_input_that_was_cut_short_leaves_no_certificate(piped, kind):
    content = as_bytes(frame([1]), kind)
    cuts = {1, 2, 7, 8, 9, 16, 40, len(content) // 2, len(content) - 20, len(content)}
    for cut in cuts:
        cut_short = content[:-cut]
        if kind != "ipc" and (
            cut_short.endswith(b"\n") or (kind == "ndjson" and cut_short.endswith(b"}"))
        ):
            continue  # a shorter table, but a whole one
        ended = piped(cut_short, "-", output="-", format=kind)
        assert (ended.returncode, ended.stdout) == (2, b""), cut
        assert re.fullmatch(r"offrecord: .+\n", ended.stderr.decode()), ended.stderr
        assert not Path("c.json").exists()


@pytest.mark.parametrize("kind", READERS)
def test_a_broken_pipe_leaves_no_certificate(desk, kind):
    content = as_bytes(frame([*range(3000)], length=40), kind)
    with subprocess.Popen(
        arguments(kind), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(content)
        process.stdin.close()
        process.stdout.read(100)
        process.stdout.close()
        said = process.stderr.read().decode()
        assert process.wait(60) == 2
    assert re.fullmatch(r"offrecord: .+\n", said), said
    assert not Path("c.json").exists()
    ledger = json.loads(Path("share/offrecord/key.ledger.json").read_text())
    assert "rooms" in ledger["releases"]  # somebody may have kept what they read


def arguments(kind, table="-"):
    options = COLUMNS | {
        "private": "hidden",
        "model": "model.json",
        "epsilon": 1.5,
        "dataset": "rooms",
        "certificate": "c.json",
    }
    pairs = (text for pair in options.items() for text in (f"--{pair[0]}", str(pair[1])))
    return [*COMMAND, table, "-o", "-", "--format", kind, *pairs]


def test_a_reader_that_takes_its_time_gets_everything(desk):
    """Also where the parent has made the pipe one that does not wait."""
    read, end = os.pipe()
    os.set_blocking(end, False)
    with subprocess.Popen(
        arguments("csv"), stdin=subprocess.PIPE, stdout=end, stderr=subprocess.PIPE
    ) as process:
        os.close(end)
        process.stdin.write(as_bytes(frame([*range(3000)], length=40), "csv"))
        process.stdin.close()
        time.sleep(3)
        with os.fdopen(read, "rb") as slow:
            got = slow.read()
        assert process.wait(60) == 0
    assert (
        json.loads(Path("c.json").read_text())["output"]["sha256"]
        == hashlib.sha256(got).hexdigest()
    )


def test_two_streams_one_after_the_other_are_not_taken_for_one(piped):
    content = as_bytes(frame([1]), "ipc")
    ended = piped(content + content, "-", output="-", format="ipc")
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert b"several Arrow IPC streams" in ended.stderr


def test_closed_standard_output(desk):
    write(frame([1]), "t.csv")
    ended = subprocess.run(
        ["sh", "-c", f"{shlex.join(arguments('csv', 't.csv'))} >&-"], timeout=60, check=False
    )
    assert ended.returncode == 2
    assert not Path("c.json").exists()


def test_wrong_use_of_streams(desk):
    write(frame([1]), "t.csv")
    refused(desk, "--certificate FILE", arguments=["t.csv"], output="-")
    refused(desk, "--json", arguments=["t.csv", "--json"], output="-", certificate="c.json")
    refused(desk, "--format csv, ndjson or ipc", arguments=["-"], output="o.csv")
    refused(
        desk,
        "--format csv, ndjson or ipc",
        arguments=["t.csv"],
        output="-",
        certificate="c.json",
        format="parquet",
    )
    refused(desk, "another file", arguments=["t.csv"], output="o.csv", certificate="t.csv")
    Path("c.json").write_text("mine")
    refused(desk, "exists", arguments=["t.csv"], output="o.csv", certificate="c.json")
    refused(
        desk,
        "must not lie beside",
        arguments=["t.csv"],
        output="-",
        certificate="share/offrecord/c.json",
    )
