"""The same data, however they come: formats, frames, types, and the rule that acts on them."""

import hashlib
import json
import tempfile
from datetime import date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from definition import samples
from offrecord import cli

MODEL = off.MarkovChain([[0.8, 0.2], [0.4, 0.6]])
EPSILON = 1.5  # leaves many records of that model to their coins
ENDINGS = (".csv", ".parquet", ".arrow", ".ndjson")
COLUMNS = {"value": "state", "order": "hour", "by": "room"}
LENGTH = 80


def frame(states=(0, 1), rooms=("a", "b", "c"), hours=range(LENGTH), seed=1, shuffled=True):
    """Rooms of LENGTH hours each, some private, away from the ends so that few designs do;
    shuffled, to be sorted.
    """
    rng = np.random.default_rng(seed)
    rows = len(rooms) * LENGTH
    codes = samples(MODEL, len(rooms), LENGTH, rng).ravel() % len(states)
    inside = np.tile(np.minimum(np.arange(LENGTH), np.arange(LENGTH)[::-1]) > 10, len(rooms))
    table = pl.DataFrame(
        {
            "room": pl.Series(rooms).gather(np.repeat(np.arange(len(rooms)), LENGTH)),
            "hour": pl.Series([*hours] * len(rooms)),
            "state": pl.Series(states).gather(codes),
            "hidden": inside & (rng.random(rows) < 0.13),
        }
    )
    return table[rng.permutation(rows)] if shuffled else table


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


def read(path):
    readers = dict(
        zip(ENDINGS, (pl.read_csv, pl.read_parquet, pl.read_ipc, pl.read_ndjson), strict=True)
    )
    return readers[Path(path).suffix](path)


def text(table):
    """Every cell as text, as CSV has it, to compare across formats."""
    return pl.read_csv(table.write_csv().encode(), infer_schema=False)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """The command line in a folder of its own, which must do what it is told: what it printed, and
    its warnings.
    """
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    MODEL.save("model.json")
    assert cli.main(["key", "new"]) == 0
    capsys.readouterr()

    def command(verb, table, **options):
        standard = {
            "private": "hidden",
            "model": "model.json",
            "epsilon": EPSILON,
            "dataset": "rooms",
        }
        chosen = COLUMNS | ({} if verb == "fit" else standard)
        arguments = [verb, str(table)]
        for name, value in (chosen | options).items():
            arguments += (
                []
                if value is None
                else ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
            )
        code = cli.main(arguments)
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out, captured.err

    return command


@pytest.fixture
def redact(tmp_path):
    """off.redact with a key of its own."""

    def call(table, **options):
        standard = COLUMNS | {
            "private": "hidden",
            "model": MODEL,
            "epsilon": EPSILON,
            "dataset": "rooms",
        }
        return off.redact(table, key_file=tmp_path / "keys" / "key.json", **(standard | options))

    return call


# ---- files


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_in_and_out(run, ending):
    table = frame()
    run("redact", write(table, "first.parquet"), output="expected.parquet")
    expected = pl.read_parquet("expected.parquet")
    released = expected["state"].is_not_null()
    assert 0 < released.sum() < table.height
    source = write(table, f"table{ending}")
    for out in ENDINGS:
        run("redact", source, output=f"out{out}", force=True)
        assert text(read(f"out{out}")).equals(text(expected))
        certificate = json.loads(Path(f"out{out}.certificate.json").read_text())
        assert (
            certificate["output"]["sha256"]
            == hashlib.sha256(Path(f"out{out}").read_bytes()).hexdigest()
        )
        assert certificate["output"]["columns"] == ["room", "hour", "state"]
        assert certificate["output"]["rows"] == certificate["counts"]["rows"] == table.height


def test_format_by_name(run):
    table = frame()
    table.write_csv("table.dat")
    run("redact", "table.dat", format="csv", output="out")
    run("redact", write(table, "table.parquet"), output="out.csv")
    assert Path("out").read_bytes() == Path("out.csv").read_bytes()


def test_coins_decide_about_many_records(redact):
    """Else the tests in this file could not tell one draw from another."""
    chances = rule_of(redact(frame()))
    assert ((chances > 0.1) & (chances < 0.9)).any(axis=1).sum() >= 30


def test_rows_leave_sorted_and_complete(run):
    table = frame()
    run("redact", write(table, "table.csv"), output="out.csv")
    released = pl.read_csv("out.csv")
    assert released.columns == ["room", "hour", "state"]
    expected = table.sort("room", "hour")
    assert released.drop("state").equals(expected.drop("state", "hidden"))
    kept = released["state"].is_not_null()
    assert released["state"].filter(kept).equals(expected["state"].filter(kept))
    assert not (kept & expected["hidden"]).any()


def test_the_same_command_gives_the_same_bytes(run):
    table = frame()
    run("redact", write(table, "table.parquet"), output="a.parquet")
    run("redact", write(table.reverse(), "reversed.parquet"), output="b.parquet")
    assert Path("a.parquet").read_bytes() == Path("b.parquet").read_bytes()
    one, other = (json.loads(Path(f"{name}.parquet.certificate.json").read_text()) for name in "ab")
    assert one == other


# ---- frames


def _frames(table):
    return {
        "polars": table,
        "polars lazy": table.lazy(),
        "pandas": table.to_pandas(),
        "pandas with arrow": table.to_pandas(use_pyarrow_extension_array=True),
        "pyarrow": table.to_arrow(),
        "duckdb": duckdb.from_arrow(table.to_arrow()),
    }


KINDS = ("polars", "polars lazy", "pandas", "pandas with arrow", "pyarrow", "duckdb")


def _rows(native):
    if isinstance(native, pl.LazyFrame):
        native = native.collect()
    if isinstance(native, duckdb.DuckDBPyRelation):
        native = native.pl()
    if isinstance(native, pd.DataFrame):
        return [
            [None if pd.isna(cell) else cell for cell in row]
            for row in native.itertuples(index=False)
        ]
    return [
        list(row)
        for row in (pl.from_arrow(native) if isinstance(native, pa.Table) else native).rows()
    ]


@pytest.mark.parametrize("states", [(0, 1), ("dry", "wet"), (False, True), (0.5, 2.0)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_frames_come_back_as_the_kind_they_came(redact, kind, states):
    table, model = frame(states), off.MarkovChain(MODEL.transition, labels=states)
    source = _frames(table)[kind]
    release = redact(source, model=model)
    assert type(release.frame) is type(source)
    expected = redact(table, model=model).frame
    assert _rows(release.frame) == _rows(expected)
    if kind.startswith("pandas") and not isinstance(states[0], str):  # nulls and all
        assert (
            str(release.frame["state"].dtype)
            == {bool: "boolean", int: "Int64", float: "float64"}[type(states[0])]
        )


@pytest.mark.parametrize("kind", KINDS)
def test_private_lists_of_any_kind(redact, kind):
    table = frame()
    listed = _frames(table.filter("hidden").select("room", "hour"))[kind]
    by_list = redact(table, private=None, private_list=listed)
    assert by_list.frame.equals(redact(table).frame)
    assert by_list.certificate["private"] == redact(table).certificate["private"]


def test_whole_numbers_stay_exact_in_pandas(redact):
    states = (2**53, 2**53 + 1)
    table = frame(states)
    release = redact(table.to_pandas(), model=off.MarkovChain(MODEL.transition, labels=states))
    assert _rows(release.frame) == _rows(
        redact(table, model=off.MarkovChain(MODEL.transition, labels=states)).frame
    )


# ---- types


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
            accept_model=len(states) == 1 or None,
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
            if ending == ".csv"
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
        another_release=True,
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
    assert {name: json.loads(out)[name] for name in counts} == counts


NOON = datetime(2013, 3, 30, 12)
TIMES = [NOON + timedelta(hours=i) for i in range(LENGTH)]


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
        explain="e.parquet",
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
        explain="plain.e.parquet",
        another_release=True,
    )
    assert pl.read_parquet("plain.parquet").equals(released)
    assert pl.read_parquet("plain.e.parquet").equals(pl.read_parquet("e.parquet"))


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
            "redact", "table.parquet", output="out.csv", step="1h", force=True, another_release=True
        )[1]
    )
    assert said in run("fit", "table.parquet", output="fit.json")[1]
    assert said not in run("fit", "table.parquet", output="fit.json", step="1h", force=True)[1]


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


# ---- the rule


def rule_of(release):
    """The redaction probabilities, a row for each row."""
    return release.explain().select(pl.col("^Pr\\(redacted.*$")).to_numpy()


def single(positions, private, states=None, gaps=()):
    """One chain with rows at some positions (from 0), without those in gaps."""
    rows = [i for i in positions if i not in gaps]
    return pl.DataFrame(
        {
            "hour": rows,
            "state": [0] * len(rows) if states is None else [states[i] for i in rows],
            "hidden": [i in private for i in rows],
        },
        schema={"hour": pl.Int64, "state": pl.Int64, "hidden": pl.Boolean},
    )


def expected(n, private, epsilon=EPSILON, model=MODEL):
    return off.design(off.Problem(model, n, [i + 1 for i in private], epsilon), off.BestLocal())


ALONE = {"accept_model": True, "by": None, "single_chain": True}


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize(
    ("n", "private"), [(1, 0), (2, 0), (2, 1), (9, 4), (30, 0), (30, 29), (30, 11), (200, 90)]
)
def test_one_private_record_gets_the_policy_of_design(redact, n, private, epsilon):
    release = redact(single(range(n), [private]), **ALONE, epsilon=epsilon)
    rule = release.explain()
    assert rule.columns == ["hour", "region", "Pr(redacted | 0)", "Pr(redacted | 1)"]
    if n == 1:
        assert rule_of(release).tolist() == [[1.0, 1.0]]
        return
    policy = expected(n, [private], epsilon)
    assert rule_of(release) == pytest.approx(policy.redaction, abs=1e-6)
    assert rule["region"].to_list() == list(policy.regions)
    counts = {name: list(policy.regions).count(name) for name in ("S", "M", "L", "private")}
    assert release.summary.regions == counts
    assert release.summary.leakage == pytest.approx(policy.leakage, abs=1e-6)
    assert release.summary.leakage <= epsilon


def test_the_explanation_keeps_a_column_called_region(redact):
    table = frame().rename({"room": "region"})
    rule = redact(table, by="region").explain()
    assert rule["region"].unique().sort().to_list() == ["a", "b", "c"]
    assert rule.width == 5


@pytest.mark.parametrize("step", ["1", "1h"])
def test_gaps_are_counted_in_steps(redact, step):
    n, private, gaps = 40, 17, {3, 4, 15, 16, 19, 20, 21, 30, 38}
    table = single(range(n), [private], gaps=gaps)
    if step == "1h":
        table = table.with_columns(hour=pl.lit(NOON) + pl.duration(hours=pl.col("hour")))
    release = redact(table, **ALONE, step=step)
    rows = [i for i in range(n) if i not in gaps]
    assert rule_of(release) == pytest.approx(expected(n, [private]).redaction[rows], abs=1e-6)
    without = redact(table, **ALONE, another_release=True)
    assert rule_of(without) != pytest.approx(rule_of(release), abs=1e-3)
    other = (
        redact(table.with_columns(hour=pl.col("hour") * 3), **ALONE, step=3, dataset="other")
        if step == "1"
        else release
    )
    assert rule_of(other) == pytest.approx(rule_of(release))


def test_nulls_are_records_already_missing(redact):
    n, private, missing = 40, 17, [3, 15, 16, 19, 20]
    table = single(range(n), [private], states=[None if i in missing else 0 for i in range(n)])
    release = redact(table, **ALONE)
    assert rule_of(release) == pytest.approx(expected(n, [private]).redaction, abs=1e-6)
    assert release.frame["state"][missing].null_count() == len(missing)
    assert (release.summary.missing, release.summary.rows, release.summary.private) == (
        len(missing),
        n,
        1,
    )
    kept = n - release.frame["state"].null_count()
    assert release.summary.released == pytest.approx(kept / (n - len(missing)))
    assert release.summary.redacted == n - len(missing) - kept


@pytest.mark.parametrize("how", ["gap", "null"])
def test_private_missing_private_is_one_run(redact, how):
    n, private, between = 40, [15, 18], [16, 17]
    states = [None if i in between and how == "null" else 0 for i in range(n)]
    table = single(range(n), private, states=states, gaps=between if how == "gap" else ())
    release = redact(table, **ALONE, step=1)
    rows = [i for i in range(n) if how == "null" or i not in between]
    assert release.summary.secrets == 1
    assert rule_of(release) == pytest.approx(
        expected(n, [15, 16, 17, 18]).redaction[rows], abs=1e-6
    )
    each = redact(table, **ALONE, step=1, protect="each", dataset="each")
    assert each.summary.secrets == 2
    near = redact(single(range(n), private, states=[0] * n), **ALONE, step=1, dataset="near")
    assert near.summary.secrets == 2


def test_a_long_memory(redact):
    """A chain that remembers far redacts over many records; designs and certificate hold
    them all.
    """
    model = off.MarkovChain.binary(0.001, 0.002)
    release = redact(single(range(3000), [1500]), **ALONE, model=model, mechanism="window")
    assert release.summary.regions["L"] > 512
    policy = off.design(off.Problem(model, 3000, [1501], EPSILON), off.BestWindow())
    assert rule_of(release).tolist() == policy.redaction.tolist()


def test_a_second_order_model_with_its_own_start(redact):
    transition = [[[0.9, 0.1], [0.5, 0.5]], [[0.7, 0.3], [0.2, 0.8]]]
    model = off.MarkovChain(transition, start=[[0.25, 0.25], [0.25, 0.25]], order=2)
    release = redact(single(range(12), [5]), **ALONE, model=model)
    assert release.summary.leakage <= EPSILON


# ---- options


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


def test_explain_lists_the_rule_and_never_the_draw(run):
    table = frame()
    run("redact", write(table, "table.parquet"), output="out.csv", explain="e.csv")
    rule, released = pl.read_csv("e.csv"), pl.read_csv("out.csv")
    assert rule.columns == ["room", "hour", "region", "Pr(redacted | 0)", "Pr(redacted | 1)"]
    assert rule.select("room", "hour").equals(released.select("room", "hour"))
    chances = rule.select(pl.col("^Pr.*$")).to_numpy()
    of_region = {"S": chances.max(axis=1) == 0, "L": chances.min(axis=1) == 1}
    regions = rule["region"].to_numpy()
    assert np.all(of_region["S"] == (regions == "S"))
    assert np.all(of_region["L"] == np.isin(regions, ["L", "private"]))
    assert np.all((regions == "private") == table.sort("room", "hour")["hidden"].to_numpy())
    # the same rule for other values, and for another key
    other = table.with_columns(state=1 - pl.col("state"))
    others = {"key_file": Path("keys/key.json"), "accept_model": True}
    run("redact", write(other, "other.parquet"), output="o.csv", explain="o.e.csv", **others)
    assert Path("o.e.csv").read_bytes() == Path("e.csv").read_bytes()


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
    assert (content["private"]["count"], "positions" in content["private"]) == (
        private.height,
        False,
    )
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
    run("redact", write(by_number, "numbers.parquet"), output="numbers.csv", another_release=True)
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
    out, _ = run("fit", write(reference, "reference.csv"), output="fit.json", chain_order=2)
    run("redact", write(table, "table.csv"), model="fit.json", output="out.csv")
    fitted = off.fit(reference, **COLUMNS, chain_order=2)
    assert str(fitted) in out
    content = fitted.model.to_dict() | {"learned": fitted.model.learned.to_dict()}
    assert content == json.loads(Path("fit.json").read_text())
    key_file = tmp_path / "share" / "offrecord" / "key.json"
    options = {"private": "hidden", "epsilon": EPSILON, "dataset": "rooms", "key_file": key_file}
    release = off.redact(table.to_pandas(), **COLUMNS, model=fitted.model, **options)
    assert _rows(release.frame) == _rows(pl.read_csv("out.csv"))
    certificate = json.loads(Path("out.csv.certificate.json").read_text())
    assert json.loads(json.dumps(release.certificate)) == {
        name: certificate[name] for name in certificate if name != "output"
    }


def test_fit_within_redact_learns_from_chains_without_a_private_record(run):
    table = frame().with_columns(hidden=pl.col("hidden") & (pl.col("room") == "a"))
    out, _ = run(
        "redact", write(table, "table.parquet"), model=None, fit=True, output="out.csv", json=True
    )
    learned = json.loads(Path("out.csv.certificate.json").read_text())["model"]
    expected = off.fit(table.filter(pl.col("room") != "a"), **COLUMNS).model
    assert learned == expected.to_dict()
    assert json.loads(out)["fit"]["chains_dropped"] == 1


def test_designs_are_kept_and_reused(run):
    write(frame(), "table.parquet")
    run("redact", "table.parquet", designs="designs.json", output="a.csv")
    kept = Path("designs.json").read_bytes()
    run("redact", "table.parquet", designs="designs.json", output="b.csv")
    assert Path("designs.json").read_bytes() == kept
    run("redact", "table.parquet", output="c.csv")
    for name in ("a.csv", "b.csv", "c.csv"):
        assert Path(name).read_bytes() == Path("a.csv").read_bytes()


def test_demo(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    released = []
    for force in ([], ["--force"]):
        assert cli.main(["demo", *force]) == 0
        assert "released" in capsys.readouterr().out
        released.append(Path("offrecord-demo/released.csv").read_bytes())
    assert released[0] == released[1]
    assert cli.main(["demo"]) == 2
    assert "exists; add --force" in capsys.readouterr().err
    certificate = json.loads(Path("offrecord-demo/released.csv.certificate.json").read_text())
    assert certificate["output"]["sha256"] == hashlib.sha256(released[0]).hexdigest()
    assert not (tmp_path / "share").exists()


# ---- whatever the table

KERNELS = {
    2: [[[0.85, 0.15], [0.3, 0.7]], [[0.5, 0.5], [0.02, 0.98]], [[0.1, 0.9], [0.8, 0.2]]],
    3: [[[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]],
}


@st.composite
def tables(draw):
    """Small tables with gaps and nulls, the model they come with, and how to protect them."""
    k = draw(st.sampled_from([2, 2, 2, 3]))
    model = off.MarkovChain(draw(st.sampled_from(KERNELS[k])))
    rows = []
    for chain in range(draw(st.integers(1, 3))):
        for hour in sorted(draw(st.sets(st.integers(0, 12), min_size=1))):
            state = draw(st.none() | st.integers(0, k - 1))
            rows.append((chain, hour, state, draw(st.sampled_from([False, False, False, True]))))
    rows = draw(st.permutations(rows))
    schema = {"room": pl.Int64, "hour": pl.Int64, "state": pl.Int64, "hidden": pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row"), model


@given(
    tables(),
    st.sampled_from([0.0, 0.5, 2.0]),
    st.sampled_from([None, 1]),
    st.sampled_from(["best-local", "window", "3r-relaxed"]),
    st.sampled_from(["run", "each"]),
)
@settings(max_examples=60)
def test_any_table(given_table, epsilon, step, mechanism, protect):
    table, model = given_table
    with tempfile.TemporaryDirectory() as folder:
        options = {
            "epsilon": epsilon,
            "dataset": "any",
            "mechanism": mechanism,
            "protect": protect,
            "step": step,
        }
        key_file = Path(folder) / "key.json"
        release = off.redact(
            table,
            **COLUMNS,
            private="hidden",
            model=model,
            key_file=key_file,
            allow_none=True,
            **options,
        )
    known, rule = table.sort("room", "hour"), rule_of(release)
    assert release.frame.drop("state").equals(known.select("room", "hour"))
    released, values = release.frame["state"].to_list(), known["state"].to_list()
    for out, value, private, chances in zip(released, values, known["hidden"], rule, strict=True):
        assert out in (None, value)
        if private:
            assert (out, chances.tolist()) == (None, [1.0] * model.k)
        if value is not None:
            assert chances[value] > 0 or out == value
            assert chances[value] < 1 or out is None
    assert release.summary.redacted + release.summary.missing == release.frame["state"].null_count()
    assert sum(release.summary.regions.values()) == table.height
    for (_,), chain in known.with_columns(row=pl.int_range(table.height)).group_by(
        "room", maintain_order=True
    ):
        _check_chain(chain, rule[chain["row"].to_numpy()], model, epsilon, step, protect)


def _check_chain(chain, rule, model, epsilon, step, protect):
    """By the exact leakage of the rule on one chain, gaps and nulls redacted, everything private
    keeps within ε.
    """
    places = chain["hour"] - chain["hour"].min() if step else pl.int_range(chain.height, eager=True)
    n = max(places.max() + 1, 2)
    matrix = np.ones((n, model.k))
    matrix[places.to_numpy()] = np.where(chain["state"].is_null().to_numpy()[:, None], 1.0, rule)
    private = {int(place) for place, hidden in zip(places, chain["hidden"], strict=True) if hidden}
    if not private:
        assert np.all(rule == 0)
        return
    if protect == "run":  # with whatever is missing between two private records
        valued = {
            int(place)
            for place, state in zip(places, chain["state"], strict=True)
            if state is not None
        }
        ordered = sorted(private)
        for one, other in pairwise(ordered):
            if not valued & set(range(one + 1, other)):
                private |= set(range(one, other))
    problem = off.Problem(model, n, [place + 1 for place in private], epsilon, protect)
    assert off.leakage(problem, matrix) <= epsilon + 1e-9
