"""Whatever the table, its release keeps to its rule, and the rule within ε."""

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offrecord as off
from explained import explained
from hours import COLUMNS, rule_of

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
            "keep_rows": True,
        }
        key_file = Path(folder) / "key.json"
        release = off.redact(
            table,
            **COLUMNS,
            private="hidden",
            model=model,
            key_file=key_file,
            accept="none",
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
    _check_counts(release, known)
    for (_,), chain in known.with_columns(row=pl.int_range(table.height)).group_by(
        "room", maintain_order=True
    ):
        _check_chain(chain, rule[chain["row"].to_numpy()], model, epsilon, step, protect)


def _check_counts(release, known):
    """Regions, records and chains count the same rows: those with a value, and all private ones."""
    summary = release.summary
    told = known.with_columns(
        region=explained(release)["region"],
        leaves=release.frame["state"].is_not_null(),
        counts=pl.col("hidden") | pl.col("state").is_not_null(),
    ).filter("counts")
    assert told.height == summary.rows - summary.missing
    for name, count in summary.regions.items():
        assert count == (told["region"] == name).sum()
    assert summary.released * max(told.height, 1) == pytest.approx(told["leaves"].sum())
    chains = told.filter(pl.col("hidden").any().over("room"))
    of_chain = chains.group_by("room").agg(left=pl.col("leaves").sum())
    assert (summary.touched, summary.touched_records) == (of_chain.height, chains.height)
    shown = summary.touched_released * max(chains.height, 1)
    assert shown == pytest.approx(chains["leaves"].sum())
    assert summary.lost == (of_chain["left"] == 0).sum()


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
