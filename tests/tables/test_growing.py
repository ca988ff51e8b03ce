"""Tables that grow: a release repeats what left before, and continues it or is refused."""

import json

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import samples

CHAIN = off.MarkovChain([[0.8, 0.2], [0.4, 0.6]])
NEW = 60  # steps that the first release has not seen


def table(hours):
    """Ten rooms of some hours; each has a private record in the middle of the first release."""
    states = samples(CHAIN, 10, 200, np.random.default_rng(3))
    rows = [
        (room, hour, int(states[room, hour]), hour == 40 + 3 * room)
        for room in range(10)
        for hour in range(hours)
    ]
    return pl.DataFrame(rows, schema=["room", "hour", "state", "hidden"], orient="row")


@pytest.fixture
def redact(tmp_path):
    def release(frame, **options):
        asked = {"value": "state", "order": "hour", "by": "room", "private": "hidden", "step": 1}
        asked |= {"model": CHAIN, "epsilon": 1.5, "dataset": "grows", "mechanism": "window"}
        asked |= {"growing": True, "lag": 30, "key_file": tmp_path / "keys" / "key.json"}
        return off.redact(frame, **asked | options)

    return release


def test_what_left_stays_and_what_waits_is_empty(redact):
    early, late = redact(table(140)).frame, redact(table(140 + NEW)).frame
    assert early.filter(pl.col("hour") > 139 - 20)["state"].null_count() == 200
    both = early.join(late, on=["room", "hour"]).drop_nulls("state")
    assert len(both) > 700
    assert both["state"].equals(both["state_right"], check_names=False)


def test_late_opt_outs_are_taken_as_long_as_they_wait(redact):
    redact(table(140))
    late = pl.col("hidden") | (pl.col("hour") == 139 - 2)
    frame = redact(table(140 + NEW).with_columns(hidden=late)).frame
    assert frame.filter(pl.col("hour") == 137)["state"].null_count() == 10


CHANGED = {
    "a corrected value": (
        {"state": pl.when(pl.col("hour") == 60).then(1 - pl.col("state")).otherwise("state")},
        "what left before would leave otherwise",
    ),
    "an opt-out of what has left": (
        {"hidden": pl.col("hidden") | (pl.col("hour") == 70)},
        "records of which it was known whether they are private have become so since",
    ),
    "an opt-out that is taken back": (
        {"hidden": pl.col("hidden") & (pl.col("room") > 0)},
        "or are so no more, or have gone",
    ),
}


@pytest.mark.parametrize(("change", "said"), CHANGED.values(), ids=CHANGED)
def test_what_does_not_continue_the_last_release_is_refused(redact, tmp_path, change, said):
    redact(table(140))
    ledger = tmp_path / "keys" / "key.ledger.json"
    before = ledger.read_bytes()
    with pytest.raises(off.InputError, match="does not continue the last release") as caught:
        redact(table(140 + NEW).with_columns(**change))
    assert said in str(caught.value)
    assert ledger.read_bytes() == before


def test_other_options_and_shorter_tables_do_not_continue_it(redact):
    redact(table(140))
    with pytest.raises(off.InputError, match="another epsilon than the releases before"):
        redact(table(140 + NEW), epsilon=1.0)
    with pytest.raises(off.InputError, match="ends before the one that was released last"):
        redact(table(130))


def test_a_table_that_was_released_without_growing_cannot_begin_to(redact):
    redact(table(140), growing=False, lag=None)
    with pytest.raises(off.InputError, match="was released before without growing"):
        redact(table(140 + NEW))


@pytest.mark.parametrize("state", ["", "{", "[]", '{"until": 3}', '{"until": "3"}'])
def test_a_damaged_entry_of_the_ledger_is_said_in_one_line(redact, tmp_path, state):
    redact(table(140))
    ledger = tmp_path / "keys" / "key.ledger.json"
    book = json.loads(ledger.read_text())
    (entry,) = book["releases"]["grows"]
    entry["state of the growing table"] = state
    ledger.write_text(json.dumps(book))
    with pytest.raises(off.InputError, match="data set 'grows' is damaged: bring the ledger back"):
        redact(table(140 + NEW))


def test_a_lag_that_is_too_short_says_how_long_it_must_be(redact):
    with pytest.raises(off.InputError, match=r"lag=0 is too short: \d+ steps before"):
        redact(table(140), lag=0)
