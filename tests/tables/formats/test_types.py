"""Values, chain names and times of every type."""

import json
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest

import offrecord as off
from hours import LENGTH, MODEL, NOON, TIMES, frame, text
from table_files import ENDINGS, read, write


@pytest.mark.parametrize(
    ("states", "kind", "labels", "out"),
    [
        ((0, 1), pl.Int8, (0, 1), pl.Int8),
        ((0, 1), pl.UInt64, (0, 1), pl.UInt64),
        ((0, 1), pl.Int128, (0, 1), pl.Int64),
        ((-3, 10**12), pl.Int64, (-3, 10**12), pl.Int64),
        ((2**53, 2**53 + 1), pl.Int64, (2**53, 2**53 + 1), pl.Int64),
        ((0, 1), pl.Float64, (0, 1), pl.Int64),
        ((0.25, 1.0), pl.Float64, (0.25, 1.0), pl.Float64),
        ((0.25, 1.0), pl.Float32, (0.25, 1.0), pl.Float32),
        (("dry", "wet, very"), pl.String, ("dry", "wet, very"), pl.String),
        (("dry", 'w"et'), pl.Categorical, ("dry", 'w"et'), pl.String),
        (("dry", "wet"), pl.Enum(["wet", "dry", "snow"]), ("dry", "wet"), pl.String),
        ((False, True), pl.Boolean, (False, True), pl.Boolean),
        (("0", "1"), pl.String, (0, 1), pl.Int64),
        (("false", "true"), pl.String, (False, True), pl.Boolean),
        # labels that the column's own width cannot hold
        ((0,), pl.Int8, (0, 300), pl.Int64),
        ((1,), pl.UInt8, (-1, 1), pl.Int64),
    ],
    ids=str,
)
def test_values_of_every_type(run, states, kind, labels, out):
    off.MarkovChain(MODEL.transition, labels=labels).save("labels.json")
    table = frame(states).with_columns(pl.col("state").cast(kind))
    outputs = {}
    for ending in (".parquet", ".arrow", ".csv"):
        run(
            "redact",
            write(table, f"table{ending}"),
            model="labels.json",
            output=f"out{ending}",
            accept="model" if len(states) == 1 else None,
        )
        outputs[ending] = read(f"out{ending}")
    assert outputs[".parquet"].schema["state"] == outputs[".arrow"].schema["state"] == out
    assert outputs[".parquet"].equals(outputs[".arrow"])
    assert pl.read_csv("out.csv", infer_schema=False).equals(text(outputs[".parquet"]))
    released = outputs[".parquet"]["state"]
    source = table.sort("room", "hour")["state"].cast(
        pl.String if kind in (pl.Categorical, pl.Enum) else kind
    )
    as_labels = pl.Series(
        [labels[[str(one) for one in map(_label, labels)].index(_label(cell))] for cell in source],
        dtype=out,
    )
    kept = released.is_not_null()
    assert 0 < kept.sum() < table.height
    assert released.filter(kept).equals(as_labels.filter(kept), check_names=False)


def _label(cell):
    """Whole numbers, however they are typed, and truth values as one text."""
    if isinstance(cell, str):
        return cell.capitalize() if cell in ("true", "false") else cell
    return str(int(cell)) if not isinstance(cell, bool) and cell == int(cell) else str(cell)


@pytest.mark.parametrize(
    "kind", [pl.Int8, pl.UInt16, pl.Int64, pl.UInt64, pl.String, pl.Categorical]
)
def test_whole_numbers_as_chain_names_have_the_same_coins_in_any_type(run, kind):
    table = frame(rooms=(7, 12, 100))
    run("redact", write(table, "numbers.parquet"), output="numbers.csv")
    named = table.with_columns(pl.col("room").cast(pl.String).cast(kind))
    run("redact", write(named, "named.parquet"), output="named.csv")
    assert pl.read_csv("named.csv").equals(pl.read_csv("numbers.csv"))
    run("redact", write(named, "named.csv.csv"), output="text.csv")
    assert Path("text.csv").read_bytes() == Path("numbers.csv").read_bytes()


def test_chain_names_keep_their_type_and_text(run):
    table = frame(rooms=("007", "08", "100"))
    for ending in ENDINGS:
        run("redact", write(table, f"table{ending}"), output=f"out{ending}")
        names = (
            pl.read_csv(f"out{ending}", infer_schema=False)
            if ending in (".csv", ".csv.gz")
            else read(f"out{ending}")
        )
        assert names["room"].unique().sort().to_list() == ["007", "08", "100"]
    run(
        "redact",
        write(frame(rooms=("7", "8", "100")), "text.parquet"),
        output="text.out.parquet",
        dataset="text",
    )
    assert pl.read_parquet("text.out.parquet").schema["room"] == pl.String


def test_the_coins_of_a_chain_are_its_own(run):
    """Whatever other chains are called, and in whichever part of the table a chain is: the same
    coins.
    """
    table = frame(rooms=("7", "8", "x"))
    run("redact", write(table, "all.csv"), output="all.out.csv")
    run(
        "redact",
        write(table.filter(pl.col("room") != "x"), "part.csv"),
        output="part.out.csv",
        accept="another-release",
    )
    whole = pl.read_csv("all.out.csv", infer_schema=False).filter(pl.col("room") != "x")
    assert whole.equals(pl.read_csv("part.out.csv", infer_schema=False))


def test_several_columns_name_a_chain(run):
    table = frame(rooms=("a", "b", "c")).with_columns(
        floor=pl.col("hour") % 2, wing=pl.col("room") == "a"
    )
    run("redact", write(table, "table.parquet"), by="wing,room,floor", output="out.parquet")
    released = pl.read_parquet("out.parquet")
    assert released.columns == ["wing", "room", "floor", "hour", "state"]
    assert released.drop("state").equals(
        table.sort("wing", "room", "floor", "hour").select(released.columns[:-1])
    )
    assert json.loads(Path("out.parquet.certificate.json").read_text())["counts"]["chains"] == 6
    joined = table.with_columns(chain=pl.format("{} {} {}", "wing", "room", "floor"))
    out, _ = run(
        "redact",
        write(joined, "joined.parquet"),
        by="chain",
        output="joined.out.parquet",
        dataset="other",
        json=True,
    )
    counts = json.loads(Path("out.parquet.certificate.json").read_text())["counts"]
    assert (counts.pop("released"), counts.pop("dropped_chains")) == (released["state"].count(), 0)
    assert {name: json.loads(out)[name] for name in counts} == counts


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        (pl.Date, "1d"),
        (pl.Datetime("ms"), "1h"),
        (pl.Datetime("us"), "1h"),
        (pl.Datetime("ns"), "60m"),
        (pl.Datetime("us", "UTC"), "1h"),
        (pl.Datetime("us", "Europe/Berlin"), "1h"),
    ],
    ids=str,
)
def test_times_as_order(run, kind, step):
    hours = pl.Series(
        [date(2013, 1, 1) + timedelta(days=i) for i in range(LENGTH)] if kind == pl.Date else TIMES
    )
    if getattr(kind, "time_zone", None):
        hours = hours.dt.replace_time_zone("UTC").dt.convert_time_zone(kind.time_zone)
    table = frame(hours=hours).with_columns(pl.col("hour").cast(kind))
    run(
        "redact",
        write(table, "table.parquet"),
        step=step,
        output="out.parquet",
    )
    released = pl.read_parquet("out.parquet")
    assert released.schema["hour"] == kind
    assert released["hour"].equals(table.sort("room", "hour")["hour"])
    run("redact", write(table, "table.csv"), step=step, output="out.csv")
    assert pl.read_csv("out.csv")["state"].equals(released["state"])
    # a regular table gives the same rule without steps, and as whole numbers
    run(
        "redact",
        "table.parquet",
        output="plain.parquet",
        accept="another-release",
    )
    assert pl.read_parquet("plain.parquet").equals(released)


def test_one_moment_has_one_coin_in_any_time_zone(run):
    utc = frame(hours=pl.Series(TIMES).dt.replace_time_zone("UTC"))
    run("redact", write(utc, "utc.parquet"), step="1h", output="utc.csv")
    berlin = utc.with_columns(pl.col("hour").dt.convert_time_zone("Europe/Berlin"))
    run("redact", write(berlin, "berlin.parquet"), step="1h", output="berlin.csv")
    spelled = berlin.with_columns(pl.col("hour").dt.strftime("%Y-%m-%d %H:%M:%S%:z"))
    run("redact", write(spelled, "spelled.csv"), step="1h", output="out.csv")
    states = [pl.read_csv(name)["state"].to_list() for name in ("utc.csv", "berlin.csv", "out.csv")]
    assert states[0] == states[1] == states[2]


def test_irregular_times_are_warned_of(run):
    write(
        frame(hours=[NOON + timedelta(hours=hour * (1 + (hour > 9))) for hour in range(LENGTH)]),
        "table.parquet",
    )
    said = "irregular; neighbours count as one step apart, give --step"
    assert said in run("redact", "table.parquet", output="out.csv")[1]
    assert (
        said
        not in run(
            "redact",
            "table.parquet",
            output="out.csv",
            step="1h",
            force=True,
            accept="another-release",
        )[1]
    )
    fit = {"output": "fit.json"}
    assert said in run("fit", "table.parquet", **fit)[1]
    assert said not in run("fit", "table.parquet", **fit, step="1h", force=True)[1]


def test_times_beside_the_grid_are_warned_of(run):
    write(frame(hours=[*TIMES[:-1], TIMES[-1] + timedelta(minutes=1)]), "table.parquet")
    assert (
        "3 rows lie beside the grid of --step 1h"
        in run("redact", "table.parquet", output="out.csv", step="1h")[1]
    )
    assert (
        "3 rows lie beside the grid of --step 1h"
        in run("fit", "table.parquet", output="fit.json", step="1h")[1]
    )
