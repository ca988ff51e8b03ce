"""Chains of a table that begin otherwise than its model says: seen in what leaves, and said."""

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import samples

KERNEL = [[0.9, 0.1], [0.2, 0.8]]
MODEL = off.MarkovChain(KERNEL)
SET = off.Box.binary((0.09, 0.11), (0.18, 0.22))


THREE = [[0.8, 0.15, 0.05], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]


def table(start, chains=80, length=30, kernel=KERNEL):
    """Chains that begin with a distribution; in the first of them a record is private."""
    random = np.random.default_rng(8)
    values = samples(off.MarkovChain(kernel, start=start), chains, length, random)
    return pl.DataFrame(
        {
            "c": np.repeat(np.arange(chains), length),
            "t": np.tile(np.arange(length), chains),
            "v": values.ravel(),
            "p": np.arange(chains * length) == 20,
        }
    )


def redacted(frame, model, tmp_path, **options):
    given = {"value": "v", "order": "t", "by": "c", "private": "p", "epsilon": 2.0, "dataset": "d"}
    given |= {"key_file": tmp_path / "key.json", "mechanism": "window"} | options
    return off.redact(frame, **given, model=model).summary


def warned(frame, model, tmp_path, **options):
    warnings = redacted(frame, model, tmp_path, **options).warnings
    return [one for one in warnings if "chains begin otherwise" in one]


def test_chains_that_begin_as_the_model_says_are_no_matter(tmp_path):
    assert not warned(table(MODEL.start), MODEL, tmp_path)


def test_chains_that_all_begin_in_one_state_are(tmp_path):
    said = warned(table([0.0, 1.0]), MODEL, tmp_path)
    assert len(said) == 1
    assert "times the odds promised" in said[0]


def test_few_chains_say_nothing(tmp_path):
    assert not warned(table([0.0, 1.0], chains=15), MODEL, tmp_path)


def test_a_promise_for_any_beginning_needs_no_check(tmp_path):
    model = MODEL.with_box(SET)
    assert warned(table([0.0, 1.0]), model, tmp_path)
    assert not warned(table([0.0, 1.0]), model, tmp_path, start="any", dataset="e")


def test_a_set_that_holds_such_beginnings_needs_none(tmp_path):
    low, high = np.array([[0.6, 0.005], [0.005, 0.6]]), np.array([[0.995, 0.4], [0.4, 0.995]])
    wide = off.Box((SET.forward.low, SET.forward.high), (low, high))
    assert warned(table([0.3, 0.7]), MODEL.with_box(SET), tmp_path)
    assert not warned(table([0.3, 0.7]), MODEL.with_box(wide), tmp_path, dataset="e")


@pytest.mark.parametrize("value", [0, 1, None, 7])
def test_what_a_first_record_that_is_private_holds_changes_nothing(value, tmp_path):
    frame = table([0.0, 1.0])
    first = pl.int_range(pl.len()) == 0
    frame = frame.with_columns(
        v=pl.when(first).then(pl.lit(value, dtype=pl.Int64)).otherwise("v"), p=first
    )
    release = warned(frame, MODEL, tmp_path)
    assert release == warned(
        frame.with_columns(v=pl.when(first).then(0).otherwise("v")), MODEL, tmp_path
    )


# ---- what the set of a fit to such chains leaves out


def fitted(start, kernel, tmp_path, chains=400, length=12):
    """A model of chains that begin so, as a file keeps it."""
    frame = table(start, chains, length, kernel).drop("p")
    found = off.fit(frame, value="v", order="t", by="c", chain_order=1, no_audit=True)
    found.model.save(tmp_path / "model.json")
    return tmp_path / "model.json"


NOT_NEAR = "; not for secrets near where a chain begins, as first records are unlike the rest"


def test_a_promise_that_leaves_out_beginnings_says_so_and_what_helps(tmp_path):
    start = [0.0, 0.0, 1.0]  # and so few data that the set may never forget
    model, frame = fitted(start, THREE, tmp_path, 40, 3), table(start, kernel=THREE)
    summary = redacted(frame, model, tmp_path, accept_model=True)
    assert summary.models.endswith(NOT_NEAR)
    (said,) = (one for one in summary.warnings if "chains begin otherwise" in one)
    assert "fit the model to chains" not in said
    assert "--start any" not in said
    assert "a start of its own" in said
    own = off.MarkovChain(THREE, start=start)
    summary = redacted(frame, own, tmp_path, dataset="own")
    assert not any("chains begin otherwise" in one for one in summary.warnings)
    assert NOT_NEAR not in summary.models


@pytest.mark.parametrize(
    ("start", "options", "left_out"),
    [
        ([0.4, 0.6], {}, False),
        ([0.4, 0.6], {"exact_model": True}, False),
        ([0.4, 0.6], {"start": "settled"}, True),
        ([1.0, 0.0], {}, False),
        ([1.0, 0.0], {"start": "any"}, False),
        ([1.0, 0.0], {"start": "settled"}, True),
        (MODEL.start, {"exact_model": True}, False),
    ],
)
def test_for_which_chains_a_promise_holds(start, options, left_out, tmp_path):
    model = fitted(start, KERNEL, tmp_path)
    summary = redacted(table(start), model, tmp_path, **options, accept_model=True)
    assert (NOT_NEAR in summary.models) == left_out
