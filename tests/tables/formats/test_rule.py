"""The rule that acts on a table is the policy of design."""

import numpy as np
import polars as pl
import pytest

import offrecord as off
from explained import explained
from hours import EPSILON, MODEL, NOON, frame, rule_of


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


ALONE = {"accept": "model", "by": None, "single_chain": True, "mechanism": "best-local"}


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize(("n", "private"), [(9, 4), (30, 0), (30, 29), (30, 11), (200, 90)])
def test_one_private_record_gets_the_policy_of_design(redact, n, private, epsilon):
    release = redact(single(range(n), [private]), **ALONE, epsilon=epsilon)
    rule = explained(release)
    assert rule.columns == ["hour", "region", "Pr(redacted | 0)", "Pr(redacted | 1)"]
    policy = expected(n, [private], epsilon)
    assert rule_of(release) == pytest.approx(policy.redaction, abs=1e-6)
    assert rule["region"].to_list() == list(policy.regions)
    counts = {name: list(policy.regions).count(name) for name in ("S", "M", "L", "private")}
    assert release.summary.regions == counts
    assert release.summary.leakage == pytest.approx(policy.leakage, abs=1e-6)
    assert release.summary.leakage <= epsilon


@pytest.mark.parametrize(("private", "rows"), [(0, slice(2)), (29, slice(28, None))])
def test_a_short_chain_gets_the_rule_of_a_long_one_cut(redact, private, rows):
    short = redact(single(range(2), [private % 28]), **ALONE, epsilon=0.3)
    long = expected(30, [private], 0.3).redaction[rows]
    assert rule_of(short) == pytest.approx(long, abs=1e-6)


@pytest.mark.parametrize("step", ["1", "1h"])
def test_gaps_are_counted_in_steps(redact, step):
    n, private, gaps = 40, 17, {3, 4, 15, 16, 19, 20, 21, 30, 38}
    table = single(range(n), [private], gaps=gaps)
    if step == "1h":
        table = table.with_columns(hour=pl.lit(NOON) + pl.duration(hours=pl.col("hour")))
    release = redact(table, **ALONE, step=step)
    rows = [i for i in range(n) if i not in gaps]
    assert rule_of(release) == pytest.approx(expected(n, [private]).redaction[rows], abs=1e-6)
    without = redact(table, **ALONE | {"accept": ["model", "another-release"]})
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
    assert release.summary.runs == 1
    assert rule_of(release) == pytest.approx(
        expected(n, [15, 16, 17, 18]).redaction[rows], abs=1e-6
    )
    each = redact(table, **ALONE, step=1, protect="each", dataset="each")
    assert each.summary.runs == 2
    near = redact(single(range(n), private, states=[0] * n), **ALONE, step=1, dataset="near")
    assert near.summary.runs == 2


def test_a_long_memory(redact):
    """A chain that remembers far redacts over many records; designs and certificate hold
    them all.
    """
    model = off.MarkovChain.binary(0.001, 0.002)
    release = redact(single(range(3000), [1500]), **ALONE | {"model": model, "mechanism": "window"})
    assert release.summary.regions["L"] > 512
    policy = off.design(off.Problem(model, 3000, [1501], EPSILON), off.BestWindow())
    assert rule_of(release).tolist() == policy.redaction.tolist()


def test_a_second_order_model_with_its_own_start(redact):
    transition = [[[0.9, 0.1], [0.5, 0.5]], [[0.7, 0.3], [0.2, 0.8]]]
    model = off.MarkovChain(transition, start=[[0.25, 0.25], [0.25, 0.25]], order=2)
    release = redact(single(range(12), [5]), **ALONE, model=model)
    assert release.summary.leakage <= EPSILON


def test_regions_are_those_of_the_rule_whatever_the_values(redact):
    table, asked = frame(), {"mechanism": "best-local", "dry_run": True}
    rule = explained(redact(table, **asked))
    chances = rule.select(pl.col("^Pr.redacted.*$")).to_numpy()
    regions = rule["region"].to_numpy()
    assert np.all((chances.max(axis=1) == 0) == (regions == "S"))
    assert np.all((chances.min(axis=1) == 1) == np.isin(regions, ["L", "private"]))
    assert np.all((regions == "private") == table.sort("room", "hour")["hidden"].to_numpy())
    other = table.with_columns(state=1 - pl.col("state"))
    assert explained(redact(other, **asked, accept="model")).equals(rule)
