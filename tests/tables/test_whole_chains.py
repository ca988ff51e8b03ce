"""Chains with a private record go as a whole where rules would release nothing of them."""

import time

import numpy as np
import polars as pl
import pytest

import offrecord as off
from offrecord.reports.report import Report


def test_people_with_a_lasting_trait_are_left_out_at_once(tmp_path):
    """Memory as long as a chain: designing rules that redact everything would take minutes."""
    rng, rows = np.random.default_rng(5), []
    for who in range(120):
        often = 0.9 if rng.random() < 0.5 else 0.1
        rows += [(who, day, int(rng.random() < often)) for day in range(60)]
    table = pl.DataFrame(rows, schema=["who", "day", "ill"], orient="row")
    private = pl.DataFrame({"who": [3, 50, 119], "day": [7, 30, 59]})
    began = time.process_time()
    release = off.redact(
        table, by="who", order="day", value="ill", step=1, private_list=private, fit=True,
        epsilon=1.0, dataset="traits", key_file=tmp_path / "keys" / "key.json",
    )  # fmt: skip
    assert time.process_time() - began < 20
    assert release.frame.height == 117 * 60
    assert set(release.frame["who"]) == set(range(120)) - {3, 50, 119}
    assert release.certificate["kind"] == "whole chains"
    assert release.summary.released == release.summary.expected == 117 / 120
    protected = "3 private records in 3 chains, which are left out as a whole"
    assert f"protected  {protected}\n" in release.summary.figures()
    assert not any("key" in one or "coin" in one for one in release.certificate["assumptions"])
    proof, _ = release.write(tmp_path / "out.csv")
    page = off.report(release, tmp_path / "out.csv").html
    assert f"{protected}." in page
    assert "no record is private" not in page
    assert "offrecord attack out.csv" in page
    assert off.attack(tmp_path / "out.csv", private_list=private).holds
    lead = off.report(proof).lead
    assert "3 chains with private records are left out" in lead
    assert "no record is private" not in lead


def test_shares_count_chains_that_are_left_out(tmp_path):
    """Of 10 people of 15 days, 2 are private as a whole."""
    table = pl.DataFrame(
        [(who, day, (who * day) % 3 % 2) for who in range(10) for day in range(15)],
        schema=["who", "day", "ill"],
        orient="row",
    )
    options = {"by": "who", "order": "day", "value": "ill", "epsilon": 1.0, "dataset": "d"}
    options |= {"key_file": tmp_path / "key.json", "mechanism": "window"}
    out = off.redact(table, private_list=pl.DataFrame({"who": [3, 5]}), **options)
    assert out.summary.released == out.summary.expected == 0.8
    assert Report(out.outcome.certificate(out._entered), "c").released == 0.8
    record = off.MarkovChain([[0.6, 0.4], [0.5, 0.5]])
    marked = table.with_columns(
        off=pl.col("who").is_in([3, 5]) | ((pl.col("who") == 8) & (pl.col("day") == 7))
    )
    out = off.redact(marked, private="off", model=record, accept="another-release", **options)
    left = out.frame["ill"].count()
    assert 100 < left < 120
    assert out.summary.released == pytest.approx(left / 150)
    assert out.summary.expected == pytest.approx(left / 150)
    assert out.certificate["choice"]["expected"] == pytest.approx(left / 150)
    assert out.certificate["counts"]["dropped_records"] == 30
    assert out.summary.redacted == 150 - left
