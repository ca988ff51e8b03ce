"""Designs that were made for something else, damaged, or would take too long."""

import json
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

import offrecord as off
from good_command import MODEL


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"epsilon": 2}, ["epsilon 1.0, not 2.0"]),
        ({"mechanism": "window"}, ["mechanism 'owner', not 'window'"]),
        ({"protect": "each"}, ["protect 'run', not 'each'"]),
        ({"model": "other.json"}, ["another model"]),
    ],
    ids=str,
)
def test_designs_for_something_else(desk, changed, said):
    off.MarkovChain([[0.8, 0.2], [0.2, 0.8]]).save("other.json")
    desk.works(*desk.redact(designs="designs.json"))
    arguments = desk.redact(designs="designs.json", output="b.csv", dataset="b", **changed)
    desk.fails(arguments, "designs.json", *said, "give another file to --designs")


def _with(path, new):
    """A change of a designs file at a path of keys."""

    def change(content):
        place = content
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = new
        return content

    return change


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda _: "[]",
        _with(["version"], 9),
        _with(["sides"], 5),
        _with(["sides"], []),
        _with(["sides", 0], [[1, [2.0, 0.5]]]),
        _with(["sides", 0], [[10**12, [1.0, 1.0]]]),
        _with(["designs"], "x"),
        _with(["designs", 0], 1),
        _with(["designs", 0, "left"], -4),
        _with(["designs", 0, "left"], None),
        _with(["designs", 0, "left"], float("1e999")),
        _with(["designs", 0, "window"], []),
        _with(["designs", 0, "redaction_left"], 99),
        _with(["designs", 0, "redaction_left"], -1.5),
        _with(["grids"], {}),
        _with(["grids"], [[], []]),
        _with(["grids"], [[5, 3], [0, 1]]),
        _with(["loss"], "much"),
        _with(["loss"], float("1e999")),
        _with(["model"], 5),
        _with(["model", "transition"], [[0.5, 0.5], [0.5, 0.4]]),
    ],
)
def test_damaged_designs(desk, damage):
    check_damage(desk, damage, "best-local")


def check_damage(desk, damage, mechanism):
    asked = {"designs": "designs.json", "mechanism": mechanism}
    desk.works(*desk.redact(output="first.csv", **asked))
    text = Path("designs.json").read_text()
    try:
        Path("designs.json").write_text(damage(text))
    except TypeError:
        Path("designs.json").write_text(
            json.dumps(damage(json.loads(text))).replace("Infinity", "1e999")
        )
    desk.fails(desk.redact(**asked), "designs.json")


SIDE = ["stoppings", 0, "sides", 0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        _with(["stoppings"], []),
        _with(["stoppings", 0], 5),
        _with(["stoppings", 0, "options"], []),
        _with(["stoppings", 0, "options", 0], [0, 99]),
        _with(["stoppings", 0, "epsilon"], "much"),
        _with([*SIDE, "levels"], [3, 2, 1]),
        _with([*SIDE, "levels"], [0, 1, 2]),
        _with([*SIDE, "levels"], [1.5]),
        _with([*SIDE, "stop"], "AAAA"),
        _with([*SIDE, "stop"], "not base64!"),
        _with([*SIDE, "budget"], "half"),
        _with([*SIDE, "side"], "right"),
        _with(["designs", 0, "stopping"], 9),
        _with(["designs", 0, "stopping"], -1),
        _with(["designs", 0, "left"], None),
    ],
)
def test_damaged_designs_of_the_owner(desk, damage):
    check_damage(desk, damage, "owner")


def test_designs_from_elsewhere_are_checked_in_the_room_they_are_used_in(desk):
    """A file without a seal that claims nothing lies beyond the room it was made for must not
    release what does.
    """
    rows = {
        "room": ["a"] * 60,
        "hour": list(range(60)),
        "state": [0] * 60,
        "hidden": [i == 30 for i in range(60)],
    }
    table = desk.write("long.parquet", rows)
    asked = {"designs": "designs.json", "mechanism": "best-local"}
    desk.works(*desk.redact(table, output="first.csv", **asked))
    content = json.loads(Path("designs.json").read_text())
    del content["seal"]
    content["grids"] = [[0, 1], [0, 1]]
    content["sides"] = [[[1, [1.0, 1.0]]]]
    content["designs"] = [
        content["designs"][0]
        | {
            "left": 1,
            "right": 1,
            "redaction_left": 0,
            "redaction_right": 0,
            "left_rest": False,
            "right_rest": False,
        }
    ]
    Path("designs.json").write_text(json.dumps(content))
    code, _, _ = desk.run(*desk.redact(table, explain="e.csv", another_release=True, **asked))
    if code == 0:
        rule = pl.read_csv("e.csv").select(pl.col("^Pr.*$")).to_numpy()
        assert off.leakage(off.Problem(MODEL, 60, [31], 1.0), rule) <= 1.0
    else:
        assert not Path("out.csv").exists()


def test_designs_that_would_take_too_long(desk):
    kernels = [
        [[0.9, 0.1], [0.2, 0.8]] if hour % 2 else [[0.7, 0.3], [0.4, 0.6]] for hour in range(24)
    ]
    content = {
        "format": "offrecord-model",
        "version": 1,
        "order": 1,
        "phase": "hour",
        "zone": None,
        "labels": [0, 1],
    }
    Path("phased.json").write_text(
        json.dumps(content | {"transition": kernels, "start": [[0.5, 0.5]] * 24})
    )
    hours = [datetime(2013, 1, 1, hour) for hour in range(8)]
    rows = {
        "room": ["a"] * 8,
        "hour": hours,
        "state": [0] * 8,
        "hidden": [hour % 2 == 1 for hour in range(8)],
    }
    table = desk.write("phased.parquet", rows)
    desk.run("key", "new")
    said = ["not stationary", "4 of them", "--design-minutes", "--mechanism"]
    desk.fails(desk.redact(table, model="phased.json", step="1h", design_minutes=0), *said)
    desk.fails(desk.redact(model="phased.json"), "kernel for each hour", "times")
    desk.fails(desk.redact(table, model="phased.json", design_minutes="nan"), "--design-minutes")
    desk.fails(desk.redact(table, model="phased.json", design_minutes="-1"), "--design-minutes")
    desk.works(*desk.redact(table, model="phased.json", step="1h", mechanism="window"))
