"""What no model can be learned from, and which values one is learned from."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import offrecord as off
from good_command import FIT, ROWS
from offrecord.tables.steps import Step


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"value": "stat"}, ["'stat'", "did you mean 'state'?"]),
        ({"by": "rooms"}, ["did you mean 'room'?"]),
        ({"by": None}, ["single"]),
        ({"single_chain": True}, ["single"]),
        ({"phase": "hour"}, ["kernel for each hour", "times"]),
        ({"phase": "minute"}, ["phase", "hour, weekday, month", "'minute'"]),
        ({"chain_order": 0}, ["order", "from 1 to 7 for 2 values, or auto", "0"]),
        ({"chain_order": 9}, ["order", "from 1 to 7 for 2 values, or auto", "9"]),
        ({"chain_order": "two"}, ["--chain-order", "auto or a whole number", "'two'"]),
        ({"chain_order": 2, "phase": "weekday"}, ["kernel for each weekday", "times"]),
        ({"coverage": 0.9}, ["coverage", "0.99 or 0.95", "0.9"]),
        ({"coverage": "sure"}, ["--coverage", "number", "'sure'"]),
        ({"epsilon": "one"}, ["--epsilon", "must be a number", "'one'"]),
        ({"fit_distance": 3}, ["--fit-distance", "give --private or --private-list"]),
        ({"step": "1h"}, ["--step 1h", "'hour' holds whole numbers"]),
        ({"private": "hiden"}, ["did you mean 'hidden'?"]),
        *(
            ({"private": one}, [f"{one!r}", "value, order or by"])
            for one in ("state", "hour", "room")
        ),
        ({"private_list": "no.csv"}, ["no.csv", "does not exist"]),
        ({"private": "all"}, ["every chain holds a private record"]),
        (
            {"private": "hidden"},
            ["2 to 64 distinct values in the records to learn from", "got 1"],
        ),
    ],
    ids=str,
)
def test_fit(desk, changed, said):
    desk.write("keys.csv", {"room": ["a"], "hour": [2]})
    desk.write("table.parquet", all=[True] * ROWS, state=[0, 0, 1, 1, 0, 0, 0, 0])
    desk.fails(desk.fit(**changed), *said)


def test_fit_needs_neighbours(desk):
    table = desk.write("apart.parquet", hour=[1, 3, 5, 7] * 2)
    desk.fails(desk.fit(table, step=1), "one step of --step 1 apart", "learn", "take --step 2")
    table = desk.write("alone.parquet", hour=[1, 3, 8, 20] * 2)
    desk.fails(desk.fit(table, step=1), "one step apart", "learn")


def test_rows_nearer_than_a_step_can_be_thinned(desk):
    """The line in the error leaves rows that the step fits."""
    times = [datetime(2026, 1, 1) + timedelta(minutes=5 * at) for at in range(96)]
    table = pl.DataFrame({"time": times, "state": [0, 0, 0, 1] * 24})
    table.write_parquet("fine.parquet")
    how = {"order": "time", "by": None, "single_chain": True}
    code, _, said = desk.run(*desk.fit("fine.parquet", step="1h", **how))
    assert code == 2
    line = 'table.filter(pl.col("time") == pl.col("time").dt.truncate("1h"))'
    assert f"to keep a row every 1h: {line}" in said
    code, _, said = desk.run(*desk.fit("fine.parquet", step="5m", phase="hour", **how))
    assert code == 2
    assert f"to keep a row every 1h: {line}" in said
    assert len(table.filter(pl.col("time") == pl.col("time").dt.truncate("1h"))) == 8
    assert Step.parsed("15min").thinning("t").endswith('truncate("15m"))')
    assert Step.parsed(10).thinning("t") == 'table.filter(pl.col("t") % 10 == 0)'


def test_fit_warns_of_listed_chains_that_the_table_lacks(desk):
    table = desk.write(
        "more.parquet", {"room": ["a"] * 40, "hour": range(40), "state": [0, 1] * 20}
    )
    desk.write("keys.csv", {"room": ["lobby", "b"], "hour": [2, 3]})
    code, _, said = desk.run(*desk.fit(table, private_list="keys.csv"))
    assert code == 0
    assert "names 2 records of chains that the table does not have: room 'lobby'" in said


def test_fit_warns_of_values_that_never_change(desk):
    said = "state never changes within a chain"
    table = desk.write("wards.parquet", state=[0] * 4 + [1] * 4)
    assert said in desk.run(*desk.fit(table))[2]
    assert said not in desk.run(*desk.fit(desk.table, output="other.json"))[2]


MANY = {
    "room": ["a"] * 4 + ["b"] * 4 + ["c"] * 4,
    "hour": [1, 2, 3, 4] * 3,
    "state": ["wet", "dry", "dry ", "NA", "dry", "wet", "wet", "wet", "wet", "secretcell", "x", ""],
    "hidden": [*[False] * 8, True, *[False] * 3],
}


def test_fit_says_which_values_there_are(desk):
    """Counted over the chains that are learned from; a text such as NA is named beside other texts,
    not refused.
    """
    desk.write("many.csv", MANY)
    given = {"private": "hidden"}
    said = "3 values: 'NA' (1), 'dry' (3), 'wet' (4)"
    assert said in desk.works(*desk.fit("many.csv", **given))
    summary = json.loads(desk.works(*desk.fit("many.csv", **given, json=True, force=True)))
    assert summary["values"] == {"NA": 1, "dry": 3, "wet": 4}
    found = off.fit(pl.DataFrame(MANY), value="state", order="hour", by="room", **given)
    assert found.values == {"NA": 1, "dry": 3, "wet": 4}


def test_redact_says_which_values_it_learns_from_before_it_does(desk):
    desk.write("many.csv", MANY | {"state": [*MANY["state"][:8], *["wet"] * 4]})
    asked = FIT | {"mechanism": "window"}
    code, out, err = desk.run(*desk.redact("many.csv", **asked, chain_order=1))
    assert code == 0, err
    assert err.startswith(
        "offrecord: note: learning from 3 values: 'NA' (1), 'dry' (3), 'wet' (4)\n"
    )
    assert "learning from" not in out
    code, _, err = desk.run(*desk.redact("many.csv", **asked, chain_order=6, force=True))
    assert code == 2
    assert "learning from 3 values" in err


@pytest.mark.parametrize("cell", ["NA", "0.5", "secret", "True", "7", " ", "1e400"])
def test_a_value_beside_private_records_decides_nothing_about_the_others(desk, cell):
    """Neither whether values are numbers, nor whether there is an error."""
    states = ["0", "1", "1", "1", "1", "0", "0", "1"]
    given = {"private": "hidden", "output": "learned.json", "force": True}
    results = []
    for odd in (cell, "1"):
        desk.write("odd.csv", MANY | {"state": [*states, odd, odd, "0", "1"]})
        out = desk.works(*desk.fit("odd.csv", **given))
        results.append((out, Path("learned.json").read_bytes()))
    assert results[0] == results[1]
    assert off.load_model("learned.json").promise.labels == (0, 1)
