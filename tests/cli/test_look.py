"""`look` on drawn tables of each kind: what it guesses, and that the commands it prints run."""

import json
import re
import shlex
import subprocess
import sys
from contextlib import chdir
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord import cli

#: What stands for the words in capitals.
GIVEN = {"EPSILON": "2", "PRIVATE_LIST": "private.csv", "DATASET": "drawn"}


def walks(rng, chains, length, stay=0.8, k=2):
    """(chains, length) values that mostly stay as they are."""
    values = np.empty((chains, length), dtype=int)
    values[:, 0] = rng.integers(0, k, chains)
    for step in range(1, length):
        moved = (values[:, step - 1] + rng.integers(1, k, chains)) % k
        values[:, step] = np.where(rng.random(chains) < stay, values[:, step - 1], moved)
    return values


def long_form(values, chain="person", order="wave", value="health"):
    chains, length = values.shape
    return pl.DataFrame(
        {
            chain: np.repeat(np.arange(1, chains + 1), length),
            order: np.tile(np.arange(1, length + 1), chains),
            value: values.ravel(),
        }
    )


def panel_with_age_effect(rng):
    """People who become ill more often the older they are, all of them at the same ages."""
    chains, length = 300, 12
    values = np.zeros((chains, length), dtype=int)
    for step in range(1, length):
        ill = rng.random(chains) < np.where(values[:, step - 1] == 1, 0.7, 0.02 + 0.03 * step)
        values[:, step] = ill
    return long_form(values)


def panel_sorted_by_answers(rng):
    values = walks(rng, 300, 8)
    return long_form(values[np.lexsort(values.T)])


def half_empty_genotypes(rng):
    values = walks(rng, 60, 80, stay=0.9)
    table = long_form(values, "sample_id", "position", "genotype")
    empty = pl.Series(rng.random(len(table)) < 0.5)
    return table.with_columns(genotype=pl.when(~empty).then(pl.col("genotype")))


def short_table(rng):
    return long_form(walks(rng, 10, 15), "person", "day", "mood")


def sensor_with_gaps(rng):
    """A room by the minute, in which a few minutes are missing."""
    begin = datetime(2026, 3, 2)
    times = [begin + timedelta(minutes=minute) for minute in range(4000)]
    state = walks(rng, 1, 4000, stay=0.9)[0]
    return pl.DataFrame({"time": times, "state": state}).filter(pl.Series(rng.random(4000) > 0.02))


def letters(rng):
    text = walks(rng, 1, 3000, stay=0.3, k=3)[0]
    return pl.DataFrame({"letter": np.array(["vowel", "consonant", "blank"])[text]})


def event_log(rng):
    """Cases as pm4py names their columns, at times that are no steps."""
    values = walks(rng, 120, 10, stay=0.4, k=3)
    table = long_form(values, "case:concept:name", "step", "concept:name")
    minutes = np.cumsum(rng.integers(0, 500, len(table)))
    times = [datetime(2026, 1, 1) + timedelta(minutes=int(minute)) for minute in minutes]
    names = np.array(["register", "check", "decide"])[table["concept:name"]]
    return table.with_columns(
        pl.Series("concept:name", names), pl.Series("time:timestamp", times)
    ).drop("step")


def labels_in_two_cases(rng):
    table = long_form(walks(rng, 100, 12))
    names = np.array(["well", "ill"])[table["health"]]
    names[rng.random(len(names)) < 0.03] = "Ill"
    return table.with_columns(health=pl.Series(names))


def codes_for_missing(rng):
    table = long_form(walks(rng, 100, 12))
    return table.with_columns(
        health=pl.when(pl.Series(rng.random(len(table)) < 0.05)).then(-9).otherwise("health")
    )


def wide(rng):
    values = walks(rng, 100, 12)
    columns = {f"w{step + 1}": values[:, step] for step in range(12)}
    return pl.DataFrame({"person": np.arange(100), **columns})


def days_with_slashes(rng):
    table = long_form(walks(rng, 40, 60), order="date")
    day = pl.lit(date(2024, 11, 1)) + pl.duration(days="date")
    return table.with_columns(date=day.dt.strftime("%d/%m/%Y"))


def sensor_in_local_time(rng):
    """Clocks are put back, so that an hour comes twice."""
    times = pl.datetime_range(
        datetime(2024, 10, 1), datetime(2024, 11, 20), "10m", time_zone="UTC", eager=True
    )
    local = times.dt.convert_time_zone("Europe/Berlin").dt.replace_time_zone(None)
    return pl.DataFrame({"time": local, "state": walks(rng, 1, len(times), stay=0.9)[0]})


def array_of_rows(rng):
    return long_form(walks(rng, 100, 12))


#: How each table is drawn, in which file it stands, what kind it is, and its step.
TABLES = {
    panel_with_age_effect: ("panel.csv", "panel", "1"),
    panel_sorted_by_answers: ("panel.csv", "panel", "1"),
    half_empty_genotypes: ("genotypes.csv", "panel", "1"),
    short_table: ("diary.csv", "panel", "1"),
    sensor_with_gaps: ("room.parquet", "sensor", "1m"),
    letters: ("text.csv", "one sequence", None),
    event_log: ("log.csv", "event log", None),
    labels_in_two_cases: ("panel.csv", "panel", "1"),
    codes_for_missing: ("panel.parquet", "panel", "1"),
}


def drawn(draw, name):
    """Write a drawn table; private are a few records of it, chosen without a look at values."""
    rng = np.random.default_rng(7)
    frame = draw(rng)
    writers = {".csv": frame.write_csv, ".parquet": frame.write_parquet, ".json": frame.write_json}
    writers[Path(name).suffix](name)
    return frame


def list_private(table):
    """A list of a few records, as `look` says that it must be."""
    seen = off.look(table)
    roles = {column.role: column.name for column in seen.columns}
    reader = {".csv": pl.read_csv, ".parquet": pl.read_parquet, ".ndjson": pl.read_ndjson}
    frame = reader[Path(table).suffix](table)
    rows = np.sort(np.random.default_rng(5).choice(len(frame), 5, replace=False))
    by = [roles["by"]] if "by" in roles else []
    row = pl.int_range(1, pl.len() + 1)
    frame = frame.with_columns(row=row.over(by) if by else row)
    frame[rows].select(*by, roles.get("order", "row")).write_csv("private.csv")


def run(command, capsys):
    """Run a printed command with its capitals replaced; exit code, output and errors."""
    words = [GIVEN.get(word, word) for word in shlex.split(command)]
    assert words[0] == "offrecord"
    code = cli.main(words[1:])
    return code, *capsys.readouterr()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    with chdir(tmp_path):
        yield tmp_path


def released(name, capsys):
    """Run both commands that `look` prints for a table; the certificate of the release."""
    list_private(name)
    seen = off.look(name)
    for command in (seen.fit, seen.redact):
        code, _, said = run(command, capsys)
        assert code == 0, (command, said)
    return json.loads(next(Path().glob("*.certificate.json")).read_text())


@pytest.mark.parametrize("draw", TABLES, ids=lambda draw: draw.__name__)
def test_its_commands_release_a_table(draw, capsys):
    name, kind, step = TABLES[draw]
    drawn(draw, name)
    seen = off.look(name)
    assert (seen.kind, seen.step) == (kind, step)
    assert released(name, capsys)["claim"]["epsilon"] == 2


def refused(name, capsys):
    """The error about a table, and the name of the one that the line in it makes."""
    assert cli.main(["look", name]) == 2
    said = capsys.readouterr().err.strip()
    line = re.search(r": (python -c .*)$", said)[1]
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (line, done.stderr)
    return said, shlex.split(line)[-1]


#: How each table is drawn that is refused, in which file it stands, what of it is shown, and what
#: kind it is in the end.
REFUSED = {
    wide: ("wide.csv", "'w1'", "panel"),
    days_with_slashes: ("diary.csv", "/11/2024' in column 'date'", "panel"),
    array_of_rows: ("rows.json", "is one JSON value", "panel"),
    sensor_in_local_time: ("local.csv", "time 2024-10-27T02:00", "sensor"),
}


@pytest.mark.parametrize("draw", REFUSED, ids=lambda draw: draw.__name__)
def test_a_refused_table_is_released_once_its_line_has_run(draw, capsys):
    name, shown, kind = REFUSED[draw]
    drawn(draw, name)
    said, mended = refused(name, capsys)
    assert shown in said
    assert off.look(mended).kind == kind
    assert released(mended, capsys)["claim"]["epsilon"] == 2


#: What is said of them by `fit` and `redact`, by the columns that a person names.
POINTED = [
    (wide, "wide.csv", {"value": "health", "order": "wave"}, "if each is a step"),
    (wide, "wide.csv", {"value": "w1", "order": "row"}, "if each column is a step"),
    (days_with_slashes, "diary.csv", {"value": "health", "order": "date"}, "not in ISO form"),
    (array_of_rows, "rows.json", {"value": "health", "order": "wave"}, "one row a line"),
    (sensor_in_local_time, "local.csv", {"value": "state", "order": "time"}, "second hour"),
]


@pytest.mark.parametrize(("draw", "name", "columns", "said"), POINTED)
def test_fit_and_redact_point_to_look(draw, name, columns, said, capsys):
    frame = drawn(draw, name)
    frame.head(1).write_csv("private.csv")
    by = ["--by", "person"] if "person" in frame.columns else ["--single-chain"]
    words = [name, *(f"--{role}={column}" for role, column in columns.items()), *by]
    budget = ["--fit", "--epsilon", "1", "--dataset", "d", "--private-list", "private.csv"]
    fit, redact = ["fit", *words, "-o", "m.json"], ["redact", *words, *budget, "-o", "out.csv"]
    # a list is read before anything is learned: each has but one row here, whatever it names
    for command in (fit,) if "row" in columns.values() else (fit, redact):
        assert cli.main(command) == 2
        message = capsys.readouterr().err
        assert said in message
        assert "see offrecord look" in message


def small_panel():
    return long_form(walks(np.random.default_rng(3), 30, 6))


def test_blanks_around_names_of_chains_and_of_columns(capsys):
    small_panel().with_columns(person=pl.format(" p{}", "person")).write_csv("names.csv")
    mended = refused("names.csv", capsys)[1]
    assert pl.read_csv(mended)["person"].str.starts_with("p").all()
    small_panel().rename({"wave": "wave "}).write_csv("header.csv")
    said, mended = refused("header.csv", capsys)
    assert "'wave '" in said
    assert off.look(mended).columns[1].role == "order"


def test_rows_without_a_key_and_cases_out_of_order(capsys):
    panel = small_panel()
    panel.with_columns(wave=pl.when(pl.col("wave") > 1).then("wave")).write_csv("empty.csv")
    assert off.look(refused("empty.csv", capsys)[1]).rows == 30 * 5
    log = event_log(np.random.default_rng(3)).sample(fraction=1, shuffle=True, seed=1)
    log.write_csv("log.csv")
    said, mended = refused("log.csv", capsys)
    assert "'time:timestamp'" in said
    assert off.look(mended).kind == "event log"


def test_a_header_in_one_piece_names_the_separator(capsys):
    small_panel().write_csv("semicolons.csv", separator=";")
    assert cli.main(["look", "semicolons.csv"]) == 2
    words = shlex.split(capsys.readouterr().err.rpartition("give ")[2])
    assert run(shlex.join(["offrecord", "look", "semicolons.csv", *words]), capsys)[0] == 0
    with pytest.raises(off.InputError, match="give separator=';'"):
        off.look("semicolons.csv")
    seen = off.look("semicolons.csv", separator=";")
    assert "--separator ';'" in seen.fit
    assert "--separator ';'" in seen.redact


@pytest.mark.parametrize(
    ("draw", "name", "values"),
    [
        (labels_in_two_cases, "panel.csv", {"well", "ill"}),
        (codes_for_missing, "panel.parquet", {"0", "1"}),
    ],
)
def test_values_that_need_a_hand_come_with_a_line(draw, name, values):
    drawn(draw, name)
    (note,) = [note for note in off.look(name).notes if "python -c" in note]
    line = note[note.index("python -c") :]
    subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert set(off.look(shlex.split(line)[-1]).values) == values


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([0, 1, 2, -9], "-9"),
        ([1, 2, 3, 99], "99"),
        (["a", "b", "n/a"], "n/a"),
        (["1", "2", "-"], "-"),
        (list(range(-20, 20)), None),
        (list(range(120)), None),
        (["a", "b"], None),
    ],
)
def test_codes_that_look_as_if_they_meant_missing(values, found):
    frame = pl.DataFrame({"t": range(240), "x": (values * 240)[:240]})
    notes = [note for note in off.look(frame).notes if "may mean that a value is missing" in note]
    assert bool(notes) == (found is not None)
    assert all(found in note for note in notes)


def test_numbers_of_many_values_are_cut(capsys):
    rng = np.random.default_rng(2)
    walk = np.cumsum(rng.normal(size=2000)).round(2)
    pl.DataFrame({"t": range(2000), "temperature": walk}).write_csv("walk.csv")
    seen = off.look("walk.csv")
    assert "--bins" in seen.fit
    list_private("walk.csv")
    assert run(seen.fit, capsys)[0] == 0


def test_numbers_that_are_codes_are_not_cut():
    """Pages change to any other, however near their numbers are."""
    rng = np.random.default_rng(2)
    likely = rng.dirichlet(np.ones(70))
    stations = rng.choice(np.arange(2, 72), 20_000, p=likely).reshape(200, 100)
    pages = rng.choice(np.arange(1, 18), 6000, p=rng.dirichlet(np.ones(17))).reshape(300, 20)
    for codes in (stations, pages):
        seen = off.look(long_form(codes, value="page"))
        assert "merge='rare'" in seen.fit
        assert "bins" not in seen.fit
    counts = rng.poisson(20, 6000).reshape(300, 20)
    ages = rng.integers(20, 60, (300, 1)) + np.arange(20)
    for quantity in (counts, ages):
        assert "bins=[" in off.look(long_form(quantity)).fit


def test_roles_that_a_person_names_are_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    panel = small_panel().with_columns(mood=pl.col("health") + 1, private=pl.col("person") == 1)
    seen = off.look(panel, value="mood", epsilon=1.5, dataset="diary")
    assert [column.role for column in seen.columns] == ["by", "order", None, "value", "private"]
    assert "value='mood'" in seen.fit
    assert "epsilon=1.5, dataset='diary'" in seen.redact
    assert "PRIVATE_LIST" not in seen.redact
    panel.select("person", row=1).head(1).write_csv("keys.csv")
    seen = off.look(panel, by="person", order="row", private_list="keys.csv")
    assert "order='row'" in seen.redact
    assert "private_list='keys.csv'" in seen.redact
    with pytest.raises(off.InputError, match="did you mean 'health'"):
        off.look(panel, value="healt")


def test_the_only_truth_column_may_say_what_is_private(capsys):
    panel = small_panel().with_columns(withdrawn=pl.col("person") == 3)
    panel.write_csv("panel.csv")
    seen = off.look("panel.csv", epsilon=2, dataset="d")
    assert "--private withdrawn" in seen.fit
    assert cli.main(["look", "panel.csv"]) == 0
    assert "replace --private withdrawn by --private-list FILE" in capsys.readouterr().out
    for command in (seen.fit, seen.redact):
        assert run(command, capsys)[0] == 0
    two = panel.with_columns(moved=pl.col("wave") == 3, health=pl.col("health").cast(pl.String))
    assert "PRIVATE_LIST" in off.look(two).redact
    assert "PRIVATE_LIST" in off.look(panel, value="withdrawn").redact


def test_a_list_of_times_orders_a_log_by_time(capsys):
    log = drawn(event_log, "log.csv").unique(["case:concept:name", "time:timestamp"])
    log.sort("time:timestamp").write_csv("log.csv")
    log[[5, 17]].select("case:concept:name", "time:timestamp").write_csv("keys.csv")
    seen = off.look("log.csv", dataset="d", epsilon=1)
    words = [word if word != "PRIVATE_LIST" else "keys.csv" for word in shlex.split(seen.fit)]
    assert cli.main(words[1:]) == 2
    assert "has no column 'row'" in (said := capsys.readouterr().err)
    assert "give --order time:timestamp" in said
    seen = off.look("log.csv", private_list="keys.csv", dataset="d", epsilon=2)
    assert "--order time:timestamp" in seen.fit
    code, _, said = run(seen.fit, capsys)
    assert code == 0
    assert "irregular" in said
    assert "give --step" not in said


def test_columns_that_stay_the_same_in_a_chain_are_no_values():
    panel = small_panel()
    sex = panel.with_columns(sex=pl.col("person") % 2).select("person", "wave", "sex", "health")
    assert [column.role for column in off.look(sex).columns] == ["by", "order", None, "value"]


@pytest.mark.parametrize(
    ("every", "step"),
    [
        ("1m", "1m"),
        ("15m", "15m"),
        ("1h", "1h"),
        ("1d", "1d"),
        ("1w", "1w"),
        ("1mo", "1mo"),
        ("1y", "1y"),
    ],
)
def test_steps_of_clocks_and_calendars(every, step):
    begin = datetime(2000, 1, 1)
    end = begin + timedelta(days=12_000)
    times = pl.datetime_range(begin, end, every, eager=True)[:30]
    frame = pl.DataFrame({"time": times, "state": [0, 1] * 15})
    assert (off.look(frame).step, off.look(frame).gaps) == (step, 0)
    assert off.look(frame[[*range(10), *range(12, 30)]]).gaps == 2


def test_event_logs_need_no_step():
    log = event_log(np.random.default_rng(1))
    seen = off.look(log)
    roles = {column.role: column.name for column in seen.columns}
    assert roles == {"by": "case:concept:name", "value": "concept:name", "time": "time:timestamp"}
    assert seen.step is None


def test_it_prints_what_json_holds(capsys):
    small_panel().write_csv("panel.csv")
    assert cli.main(["look", "panel.csv", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kind"] == "panel"
    assert told["columns"][0]["role"] == "by"
    assert cli.main(["look", "panel.csv"]) == 0
    printed = capsys.readouterr().out
    assert told["fit"] in printed
    assert told["redact"] in printed


def test_in_python_the_calls_run():
    panel = panel_with_age_effect(np.random.default_rng(4))
    private = pl.Series(np.random.default_rng(5).random(len(panel)) < 0.002)
    table = panel.with_columns(private=private)
    seen = off.look(table, epsilon=2.0, dataset="drawn")
    names = {"off": off, "table": table}
    exec(seen.fit, names)
    exec(seen.redact, names)
    assert names["release"].frame.height == table.height


def test_a_few_sensors_at_the_same_times_are_chains(tmp_path):
    """A column of few values beside one that is called state; what a list has is what names it."""
    begin = datetime(2025, 5, 5)
    times = [begin + timedelta(minutes=5 * step) for step in range(200)]
    rows = [(time, door, "open") for time in times for door in ("front", "side")]
    doors = pl.DataFrame(rows, schema=["timestamp", "door", "state"], orient="row")
    doors = doors.with_columns(state=pl.Series(["open", "closed", "closed", "open"] * 100))
    roles = {one.name: one.role for one in off.look(doors).columns}
    assert roles == {"timestamp": "order", "door": "by", "state": "value"}
    plain = doors.rename({"door": "north", "state": "south"})  # names that say nothing
    plain.select("timestamp", "north").head(2).write_csv(tmp_path / "private.csv")
    known = off.look(plain, private_list=tmp_path / "private.csv")
    assert {one.name: one.role for one in known.columns} == {
        "timestamp": "order",
        "north": "by",
        "south": "value",
    }


def test_an_order_that_a_person_names_is_not_changed():
    twice = pl.DataFrame({"day": [1, 1, 2, 2], "seat": [1, 2, 3, 4], "v": [0, 1, 1, 0]})
    with pytest.raises(off.InputError, match="must order the records of a chain"):
        off.look(twice, order="day", value="v")
