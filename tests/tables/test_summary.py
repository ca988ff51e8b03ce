"""What a summary says: what left, what it cost those concerned, and the promise."""

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import offrecord as off
from definition import leakage_of_table, output_table, samples
from offrecord.tables.engines import stream

CHAIN = off.MarkovChain.binary(0.02, 0.28)  # 1 holds in 1 of 15 records
SLOW = off.MarkovChain.binary(0.002, 0.028)


def table(lengths, private):
    """Chains of zeros; private: chains and places."""
    rows = [(c, t, 0, (c, t) in private) for c, n in enumerate(lengths) for t in range(n)]
    return pl.DataFrame(rows, schema=["c", "t", "v", "p"], orient="row")


@pytest.fixture
def asked(tmp_path):
    options = dict(value="v", order="t", by="c", private="p", epsilon=1.0, dataset="d")
    options |= dict(model=CHAIN, accept="model", key_file=tmp_path / "keys" / "k.json")
    return options | {"mechanism": "best-local"}


@pytest.fixture
def redact(asked):
    return lambda frame, **more: off.redact(frame, **asked | more)


def lines(summary):
    said = dict(line.split("  ", 1) for line in summary.figures().splitlines())
    return {name: line.strip() for name, line in said.items()}


def test_the_lines(redact):
    summary = redact(table([200, 200], {(0, 100)})).summary
    said = lines(summary)
    names = "released,protected,in these,promise,meaning,plain erasure,regions,mechanism,time"
    assert list(said) == names.split(",")
    share = 1 - summary.redacted / 400
    assert said["released"] == f"{share:.2%} of 400 records ({summary.expected:.2%} expected)"
    assert said["protected"] == "1 private record in 1 run, in 1 of 2 chains"
    assert said["in these"] == f"{1 - summary.redacted / 200:.2%} of 200 records released"
    assert said["promise"] == (
        "at most 2.718 to 1 about each private value, under the model, taken for exactly right;"
        " 2.718 to 1 is reached"
    )
    assert said["meaning"] == (
        "before the release a private record was 7 % likely to be 1; after it at most 17 %"
    )
    assert said["mechanism"] == "best-local"


def test_the_odds_of_plain_erasure_are_those_by_the_definition(redact):
    erased = np.zeros((5, 2))
    erased[2] = 1
    told = leakage_of_table(output_table(CHAIN, 5, erased, [3]))
    said = lines(redact(table([200], {(0, 100)})).summary)["plain erasure"]
    assert said == f"would have given {math.exp(told):.4g} to 1 under the mean chain"


def test_the_mechanism_that_came_next_is_named(redact):
    summary = redact(table([200], {(0, 100)}), mechanism=None).summary
    assert summary.mechanism == "owner"
    assert summary.window < summary.runner_up_expected < summary.expected
    share = f"{summary.runner_up_expected:.2%}"
    assert lines(summary)["mechanism"] == f"owner; next: best-local, {share} expected"


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_chain_that_loses_everything(redact, dry_run):
    """16 records of one chain go, of many that stay: that must not look like nothing."""
    summary = redact(table([16, 30_000], {(0, 8)}), model=SLOW, dry_run=dry_run).summary
    assert (summary.touched, summary.lost, summary.touched_records) == (1, 1, 16)
    assert summary.touched_released == 0
    assert lines(summary)["released"].startswith("99.95% of 30,016 records")
    said = "0.00% of 16 records released"
    assert lines(summary)["in these"] == said + ("" if dry_run else "; of 1 chain nothing is left")


def test_chains_that_are_private_as_a_whole(redact):
    """No ε would release anything of them."""
    summary = redact(table([16, 300], {(0, t) for t in range(16)})).summary
    said = lines(summary)
    assert list(said) == ["released", "protected", "promise", "time"]
    assert said["released"] == "94.94% of 316 records"
    assert said["protected"] == "16 private records in 1 chain, which is left out as a whole"
    assert (summary.leakage, summary.gain) == (0, None)


def test_one_chain_needs_no_line_of_its_own(redact):
    assert "in these" not in lines(redact(table([300], {(0, 150)})).summary)


def test_no_private_record_means_nothing(redact):
    summary = redact(table([30], set()), accept="none").summary
    assert (summary.touched, summary.lost, summary.gain) == (0, 0, None)
    assert not {"in these", "meaning"} & set(lines(summary))


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("mechanism", ["best-local", "owner"])
def test_parts_add_up_to_the_whole(asked, tmp_path, monkeypatch, mechanism, dry_run):
    frame = table([5, 40, 3, 60, 20, 1], {(0, 2), (1, 4), (3, 30), (3, 34), (5, 0)})
    frame = frame.with_columns(v=pl.when(pl.col("t") % 7 != 6).then("v"))
    frame.write_csv(tmp_path / "t.csv")
    monkeypatch.setattr(stream, "_PART", 16)
    options = asked | {"mechanism": mechanism, "dry_run": dry_run}
    whole = off.redact(frame, **options).summary
    output = None if dry_run else tmp_path / "o.csv"
    parts = off.redact_file(tmp_path / "t.csv", output, **options).summary
    rounded = {"released", "touched_released", "expected"}
    for name in vars(whole).keys() - rounded - {"seconds", "warnings"}:
        assert getattr(parts, name) == getattr(whole, name), name
    for name in rounded:
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-12)
    assert sum(whole.regions.values()) == whole.rows - whole.missing


def test_a_promise_about_plausible_chains_says_what_draws_found(redact):
    values = samples(CHAIN, 12, 400, np.random.default_rng(1)).ravel()
    frame = table([400] * 12, {(0, 200)}).with_columns(v=values)
    options = dict(model=None, fit=True, chain_order=1, phase=None, mechanism="window")
    release = redact(frame, **options, coverage=0.95, dry_run=True)
    found = release.certificate["policy"]["validation"]
    said = lines(release.summary)
    assert said["promise"].startswith(
        "at most 2.718 to 1 about each private value, in 95 % of the chains that 4,400 reference"
        f" records leave plausible (2,000 drawn: {found['above']} exceed it"
    )
    (verdict,) = release.certificate["verdicts"]
    assert said["model"].startswith(f"{verdict['verdict']}: ")
    assert release.summary.leakage == 1  # in the share that is promised


@pytest.mark.parametrize("phase", ["step", None])
def test_before_a_release_a_value_is_as_likely_as_in_the_reference_records(redact, phase):
    """A panel in which 1 is new at first, and frequent at last, and no chain is stationary."""
    rng = np.random.default_rng(6)
    values = rng.random((400, 8)) < np.linspace(0.02, 0.55, 8)
    private = {(person, 2) for person in range(0, 400, 20)}
    frame = table([8] * 400, private).with_columns(v=values.ravel().astype(int))
    options = dict(model=None, fit=True, phase=phase, step=1, mechanism="window")
    release = redact(frame, **options)
    reference = np.delete(values, range(0, 400, 20), axis=0)
    likely = reference[:, 2].mean() if phase else reference.mean()
    meaning = release.summary.gain
    assert (meaning.value, meaning.before) == (1, pytest.approx(likely, abs=0.03))
    odds = meaning.before / (1 - meaning.before) * math.e
    assert meaning.after == pytest.approx(odds / (1 + odds))
    assert lines(release.summary)["meaning"].startswith(
        f"before the release a private record was {meaning.before * 100:.0f} % likely to be 1;"
    )


def test_all_of_it_is_json(redact):
    summary = redact(table([200], {(0, 100)})).summary
    content = json.loads(json.dumps(summary.to_dict()))
    erased = content["gain"].pop("erased")
    assert content["gain"] == pytest.approx({"value": 1, "before": 1 / 15, "after": 0.1626}, 1e-3)
    assert erased > 0.1626
    assert replace(summary, erasure=math.inf).to_dict()["erasure"] == "inf"
