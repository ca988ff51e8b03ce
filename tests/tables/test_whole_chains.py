"""Chains with a private record go as a whole where rules would release nothing of them."""

import time

import numpy as np
import polars as pl

import offrecord as off


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
        epsilon=1.0, dataset="traits", key_file=tmp_path / "key.json",
    )  # fmt: skip
    assert time.process_time() - began < 20
    assert release.frame.height == 117 * 60
    assert set(release.frame["who"]) == set(range(120)) - {3, 50, 119}
    assert release.certificate["kind"] == "whole chains"
