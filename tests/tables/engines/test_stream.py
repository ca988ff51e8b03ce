"""Tables that go through part by part: the same bytes as in memory."""

import inspect
import json
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from conftest import table_policy
from offrecord.models.members import Places
from offrecord.tables.engines import stream
from offrecord.tables.engines.engine import whole_chains
from offrecord.tables.engines.spark import redact as spark_redact
from offrecord.tables.options import FileOptions, Options
from streams import CHAIN, COLUMNS, ROOMS, frame
from table_files import ENDINGS, write

ORDER2 = off.MarkovChain([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]], order=2)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("rooms", ROOMS.values(), ids=ROOMS)
def test_a_stream_gives_the_bytes_of_memory(both, rooms, ending):
    both(frame(rooms, empty=0.1), ending)


@pytest.mark.parametrize("part", [1, 17, 18, 64, 10**6])
@pytest.mark.parametrize("rooms", ["in order", "numbers as text"])
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
        {"epsilon": 0.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("rooms", ["in order", "text", "numbers as text"])
def test_options(both, options, rooms):
    both(frame(ROOMS[rooms], gaps=0.15 if "step" in options else 0.0, empty=0.1), ".csv", **options)


@pytest.mark.parametrize(
    "model",
    [
        off.MarkovChain([[0.8, 0.2], [0.4, 0.6]], start=[0.5, 0.5]),
        off.Posterior([[800, 200], [400, 600]], 1),
    ],
    ids=["a start of its own", "plausible chains"],
)
def test_models(both, model):
    both(frame(ROOMS["some"], empty=0.1), ".csv", part=20, model=model, mechanism="window")


def test_rules_of_order_2_from_a_file(both, tmp_path):
    options = table_policy(tmp_path, ORDER2)
    found = both(frame(ROOMS["some"], gaps=0.1), ".csv", part=20, step=1, **options)
    assert found.summary.mechanism == "owner"


def test_a_growing_table_that_has_not_grown_has_the_same_certificate(both):
    found = both(frame(ROOMS["some"]), ".csv", growing=True, step=1, mechanism=None)
    assert found.summary.runner_up is not None


def test_private_lists_whose_keys_lie_in_any_part(both):
    table = frame(ROOMS["numbers as text"], gaps=0.2).filter(
        ~pl.col("hour").is_in([0, 16]) | (pl.col("hour") % 16 == 0)
    )
    full = pl.concat([table, frame(ROOMS["numbers as text"]).filter(pl.col("hour").is_in([0, 16]))])
    full = full.unique(["room", "hour"], maintain_order=True).sort("hour")
    full = pl.concat([full.filter(pl.col("room") == room) for room in ROOMS["numbers as text"]])
    keys = pl.DataFrame({"room": ["8", "10", "29", "9", "8"], "hour": [3, 5, 8, 9, 3]})
    both(full, ".csv", private=None, private_list=keys, step=1)


def test_times_and_phases(both):
    start = datetime(2026, 1, 1)
    table = frame(["a", "b", "c"], length=30).with_columns(
        pl.Series("hour", [start + timedelta(hours=h) for h in range(30)] * 3).dt.strftime(
            "%Y-%m-%dT%H:%M:%S"
        )
    )
    counts = np.tile([[400, 100], [200, 300]], (24, 1, 1))
    places = Places("hour", 24)
    hours = off.Posterior(counts.sum(axis=0), 1, places=places, place_counts=counts, place_kappa=50)
    both(table, ".csv", part=30, model=hours, step="1h", mechanism="window")


def test_several_chain_columns(both):
    table = frame(ROOMS["some"]).with_columns(pl.lit("east").alias("wing"))
    table = pl.concat(
        [
            table,
            table.with_columns(
                pl.lit("west").alias("wing"), ~pl.col("hidden") & (pl.col("hour") == 4)
            ),
        ]
    )
    both(table, by=["wing", "room"])


def test_rows_in_their_own_order(both):
    both(frame(ROOMS["some"]), order="row")


@settings(max_examples=25)
@given(data=st.data())
def test_any_table_in_any_parts(data, tmp_path_factory):
    """Chains of any lengths, whose rows stand in any order within a chain."""
    folder = tmp_path_factory.mktemp("any")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    count = data.draw(st.integers(1, 12))
    lengths = rng.integers(1, 12, size=count)
    table = pl.DataFrame(
        {
            "room": np.repeat(np.arange(count), lengths),
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
        "accept": "none",
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
    asked = {one.name: one.default for one in fields(Options)}
    files = {one.name for one in fields(FileOptions)} - set(asked)
    engines = {
        off.redact: ["frame", "remember"],
        off.redact_file: ["table", "output", *files],
        spark_redact: ["df", "partitions"],
    }
    for engine, own in engines.items():
        named = inspect.signature(engine).parameters
        assert {name for name in named if name not in own} == set(asked)
        for name, default in asked.items():
            required = default is MISSING
            assert named[name].default is (inspect.Parameter.empty if required else default)


def test_whole_chains_cuts_nowhere_else_whatever_the_batches():
    table, cuts = frame([3, 1, 2, 9], length=5), set()
    for size in range(1, 21):
        batches = (table[i : i + size] for i in range(0, table.height, size))
        parts = [*whole_chains(batches, ["room"], 6)]
        assert pl.concat(parts).equals(table)
        rooms = [set(part["room"]) for part in parts]
        assert sum(map(len, rooms)) == len(set().union(*rooms)) == 4
        cuts.add(tuple(part.height for part in parts))
    assert cuts == {(10, 10)}  # at least 6 rows, and no chain more than that takes


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
        with pytest.raises(off.InputError, match="not sorted by room"):
            off.redact_file(file, out / "o.csv", **options)
    table = chains_of_times(
        [(first, range(12)), (second, range(12))], pl.Datetime("us", "Europe/Berlin")
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
    table = frame([*(f"room {i}" for i in range(2, 10)), "room attic", "room cellar"]).with_columns(
        pl.col("hidden") & (pl.col("room") < "room 6")
    )
    both(table, ".csv", part=17, publish_positions=True)


def test_dry_run_and_explanation_are_those_of_memory(desk, monkeypatch):
    monkeypatch.setattr(stream, "_PART", 40)
    write(frame(ROOMS["some"]), "t.csv")
    figures = []
    for how in ("--stream", "--in-memory"):
        assert desk("t.csv", how, output=f"o{how}.csv")[0] == 0
        figures.append(json.loads(desk("t.csv", how, "--dry-run", "--json")[1]))
    for one in figures:
        del one["seconds"]
    assert figures[0].pop("released") == pytest.approx(figures[1].pop("released"), rel=1e-12)
    assert figures[0] == figures[1]
