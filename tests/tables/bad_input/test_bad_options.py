"""Options that are wrong."""

import polars as pl
import pytest


def test_the_good_command_is_good(desk):
    desk.works(*desk.redact())
    assert pl.read_csv("out.csv").columns == ["room", "hour", "state"]
    assert desk.key.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"value": "stat"}, ["'stat'", "did you mean 'state'?"]),
        ({"order": "hours"}, ["'hours'", "did you mean 'hour'?"]),
        ({"by": "rooms"}, ["'rooms'", "did you mean 'room'?"]),
        ({"by": "room,floor"}, ["'floor'", "it has room, hour"]),
        ({"by": "qqqq"}, ["'qqqq'", "it has room, hour, state, hidden"]),
        ({"private": "hiden"}, ["'hiden'", "did you mean 'hidden'?"]),
        ({"keep": "hidde"}, ["'hidde'", "did you mean 'hidden'?"]),
        ({"by": ""}, ["column ''"]),
        ({"value": "hour"}, ["'hour'", "twice"]),
        ({"keep": "state"}, ["'state'", "twice"]),
        ({"keep": "hidden"}, ["private column 'hidden'", "cannot be released"]),
        ({"private": "state"}, ["private column 'state'", "cannot be released"]),
        ({"by": None}, ["single"]),
        ({"single_chain": True}, ["by", "single"]),
        ({"private": None}, ["private", "list"]),
        ({"model": None}, ["--model", "--fit"]),
        ({"fit": True}, ["--model", "--fit"]),
        ({"epsilon": None}, ["--epsilon"]),
        ({"epsilon": -1}, ["epsilon", "at least 0", "-1"]),
        ({"epsilon": "nan"}, ["epsilon", "finite", "nan"]),
        ({"epsilon": "inf"}, ["epsilon", "finite", "inf"]),
        ({"epsilon": "one"}, ["--epsilon", "number", "'one'"]),
        ({"dataset": None}, ["--dataset"]),
        ({"dataset": ""}, ["dataset", "1 to 200 printable characters"]),
        ({"dataset": " "}, ["dataset", "1 to 200 printable characters"]),
        ({"dataset": "a\nb"}, ["dataset", "printable"]),
        ({"value": None}, ["--value"]),
        ({"order": None}, ["--order"]),
        ({"output": None}, ["--output", "--dry-run"]),
        ({"mechanism": "best_local"}, ["mechanism", "did you mean best-local?"]),
        ({"protect": "all"}, ["protect", "each", "'all'"]),
        ({"step": "1h"}, ["--step 1h", "a time", "'hour' holds whole numbers"]),
        ({"step": "2"}, ["--step 2", "does not fit column 'hour'", "4 rows"]),
        ({"step": "9"}, ["--step 9", "'hour'"]),
        ({"step": "0"}, ["step", "at least 1", "'0'"]),
        ({"step": "-1"}, ["step", "at least 1", "'-1'"]),
        ({"step": "1.5"}, ["step", "whole number", "'1.5'"]),
        ({"step": "1q"}, ["step", "1h", "units", "'1q'"]),
        ({"step": "1", "order": "row"}, ["--step", "--order row"]),
        ({"format": "ods"}, ["--format", "csv, parquet, ipc, ndjson", "'ods'"]),
        ({"separator": ";"}, ["--separator is for CSV", "table.parquet is parquet"]),
        ({"encoding": "latin-1"}, ["--encoding is for CSV", "table.parquet is parquet"]),
        ({"limit": "rows=7"}, ["table.parquet", "8 rows", "--limit rows=7"]),
        ({"limit": "rows=7.5"}, ["--limit", "whole number", "'7.5'"]),
        ({"limit": "cells=7"}, ["--limit takes rows", "'cells'"]),
        ({"accept": "anything"}, ["--accept takes model, none, another-release", "'anything'"]),
        ({"colour": "red"}, ["--colour"]),
        ({"model": "no.json"}, ["no.json", "does not exist"]),
        ({"model": "table.parquet"}, ["table.parquet", "not JSON"]),
        ({"model": None, "fit": True, "chain_order": 9}, ["order", "from 1 to 7", "9"]),
        ({"model": None, "fit": True, "coverage": 0.5}, ["--coverage", "0.99 or 0.95", "0.5"]),
        ({"coverage": 0.95}, ["--coverage", "fitted"]),
        ({"policy": "no.json"}, ["no.json", "does not exist"]),
        ({"policy": "model.json"}, ["model.json", "not a table policy"]),
        ({"policy": "model.json", "mechanism": "window"}, ["--policy or --mechanism"]),
        (
            {"model": None, "fit": True, "chain_order": "one"},
            ["--chain-order", "auto or a whole number", "'one'"],
        ),
        ({"model": None, "fit": True, "phase": "hour"}, ["kernel for each hour", "times"]),
        (
            {"model": None, "fit": True, "phase": "minute"},
            ["phase", "hour, weekday, month", "'minute'"],
        ),
        ({"phase": "hour"}, ["--phase", "--fit"]),
        ({"chain_order": 2}, ["--chain-order", "--fit"]),
    ],
    ids=str,
)
def test_options(desk, changed, said):
    desk.fails(desk.redact(**changed), *said)
